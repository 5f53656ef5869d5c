"""What tests of capture ask of a file: its rows as dictionaries, frames and marks apart."""

import pyarrow as pa

from wirecheck.capture import frames
from wirecheck.capture.agent.offline_agent import read_frames


def rows(*paths, **options):
    return pa.concat_tables(read_frames(list(paths), **options)).to_pylist()


def frames_of(*paths, **options):
    return [row for row in rows(*paths, **options) if row["kind"] == frames.FRAME]


def marks_of(*paths, **options):
    losses = [row for row in rows(*paths, **options) if row["kind"] not in (frames.FRAME, frames.STARTED, frames.ENDED)]
    return [(row["kind"], row["count"], row["reason"]) for row in losses]


def skipped(*paths, **options):
    return {reason: count for kind, count, reason in marks_of(*paths, **options) if kind == frames.SKIPPED}


def as_segments(found):
    """Rows as the plain tuples a test compares."""
    columns = ("ts_ns", "src_ip", "src_port", "dst_ip", "dst_port", "tcp_seq", "tcp_ack", "tcp_flags", "payload")
    return [tuple(row[c] for c in columns) for row in found]


def expected(segments):
    return [(s.ts_ns, *s.src, *s.dst, s.seq, s.ack, s.flags, s.payload) for s in segments]
