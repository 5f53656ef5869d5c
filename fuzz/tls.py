"""python -m fuzz.tls --sequences 100000 --damage net: damaged frames of TLS connections, and bent key logs, undone.

Knows: what must hold of any frames and any key log. Nothing is raised; every frame comes out, in order; a plain row has
    nothing but bytes that were handed to OpenSSL for its frame, and by their sequence numbers plain rows never join
    what was not together there; a row of a connection that no key opens is untouched.
Damage: `net` is loss, order, repeats, cuts, snap lengths, other numbers, a late start; `bytes` bends payloads besides:
    handshakes, record headers, lengths, ciphertext. Key logs are bent in one sequence of five. A sequence is the
    frames of a connection; some go through together, one behind the other or interleaved. Conversations are made anew,
    in other sizes, every few hundred sequences.
Rule: ends by itself after the sequences it was told, says seed, counts and time, and exits 1 on a breach, with the
frames in a file under build/fuzz. Keys are new in every run, so that the seed alone does not make the same bytes.
"""

# ruff: noqa: T201 -- a report on the terminal is what it is for

from __future__ import annotations

import argparse
import pickle
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, pairwise, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from fuzz.bend import Draws, bend
from fuzz.bound import Bound, add_minutes
from fuzz.damage import damaged
from fuzz.files import BUILD
from fuzz.following import batch, cuts
from tests import traffic
from tests.build import plain
from tests.tls_traffic import TlsTalk, certificate
from wirecheck.capture import frames
from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.capture.tls import joining, tls_connection
from wirecheck.capture.tls.decryption import Decryption
from wirecheck.capture.tls.key_log import Secrets
from wirecheck.capture.tls.records import RecordStream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fuzz.damage import Row

KINDS = {
    "1.3": ("1.3", None),
    "1.2 GCM": ("1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    "1.2 ChaCha20": ("1.2", "ECDHE-ECDSA-CHACHA20-POLY1305"),
    "1.2 CBC": ("1.2", "ECDHE-ECDSA-AES128-SHA"),
}
EXCHANGES = 8
SEQUENCES_OF_A_BASE = 400
REPORT_EVERY = 5_000
ALL_TRIES = 0.02  # sequences in which as much is tried as anywhere; in the others a gap of a GB costs no second
FEW_TRIES = 1_000
TOGETHER = 8
BENT_KEYS, INTERLEAVED = 0.2, 0.5
SEGMENT_BYTES = (300, 700, 1448)
TOPICS = (30, 90, 90, 90, 600)  # of an answer; of 600, one record is full and another follows
CLIENT, FIRST_PORT, PORTS = "10.0.0.1", 40_000, 16
FRAME_BITS, TAIL_BYTES = 16, 64
UNCHANGED = ("tcp_seq", "tcp_ack", "tcp_flags", "payload", "payload_len", "left_out", "ts_ns")


@dataclass(frozen=True)
class Base:
    """Frames of a conversation, its key log, what client and server said, and what of it is in each frame."""

    rows: list[Row]
    keys: bytes
    said: tuple[bytes, bytes]
    plain: list[bytes]


class Sources:
    """Conversations, one of each kind."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._pem = folder, certificate(folder)

    def bases(self, rng: np.random.Generator) -> list[Base]:
        return [self.base(name, rng, place) for place, name in enumerate(KINDS)]

    def base(self, name: str, rng: np.random.Generator, place: int = 0) -> Base:
        key_log, path = self._folder / "keys", self._folder / "pcap"
        key_log.unlink(missing_ok=True)
        segments = traffic.Talk((CLIENT, FIRST_PORT + place), mss=int(rng.choice(SEGMENT_BYTES)))
        said = converse(TlsTalk(self._pem, key_log, *KINDS[name], talk=segments).open(), int(rng.choice(TOPICS)))
        packets = [traffic.Packet(s.ts_ns, traffic.ethernet(traffic.ip(s))) for s in segments.segments]
        path.write_bytes(traffic.pcap(packets))
        found = [row for table in read_frames([path]) for row in table.to_pylist() if row["kind"] == frames.FRAME]
        rows = [row | {"frame_no": i, "agent": "one"} for i, row in enumerate(found)]
        found = undone(batch(rows), key_log.read_bytes(), [len(rows)])
        whole = [row["payload"] if row["decrypted"] else b"" for each in found for row in each.to_pylist()]
        for port, words in ((FIRST_PORT + place, said[0]), (segments.server[1], said[1])):
            there = b"".join(whole[i] for i, row in enumerate(rows) if row["src_port"] == port)
            assert there == words, "not what OpenSSL was given"
        return Base(rows, key_log.read_bytes(), said, whole)


def converse(talk: TlsTalk, topics: int) -> tuple[bytes, bytes]:
    """What the client said, and the server."""
    said = bytearray(), bytearray()
    for number in range(EXCHANGES):
        head = {"clientId": "fuzz", "correlationId": number}
        asked = plain("Metadata", "request", 9, {"topics": [{"name": f"t{i}"} for i in range(3 * number)]}, head)
        names = [{"name": f"topic-{i}", "partitions": []} for i in range(topics * (number % 3))]
        answer = plain("Metadata", "response", 9, {"topics": names}, {"correlationId": number})
        talk.request(asked).response(answer)
        said[0].extend(asked)
        said[1].extend(answer)
    talk.close()
    return bytes(said[0]), bytes(said[1])


@dataclass(frozen=True)
class Sequences:
    """Damaged frames of some conversations, each on a port of its own, and what is known of them."""

    bases: list[Base]
    rows: list[Row]
    keys: bytes

    def base_of(self, row: Row) -> Base:
        return self.bases[row["frame_no"] >> FRAME_BITS]

    def is_right(self, row: Row, payload: bytes) -> bool:
        """Whether this was said in the frame, whatever became of its other bytes."""
        return payload in self.base_of(row).plain[row["frame_no"] % (1 << FRAME_BITS)]


def sequences(bases: list[Base], dice: tuple[np.random.Generator, Draws], count: int, *, bent: bool) -> Sequences:
    rng, draws = dice
    chosen = [bases[i] for i in rng.integers(0, len(bases), count).tolist()]
    rows: list[list[Row]] = []
    keys = b""
    for place, each in enumerate(chosen):
        rows.append([moved(row, place) for row in damaged(rng, each.rows, bend=bent)])
        keys += (bend(each.keys, bases[0].keys, draws) if rng.random() < BENT_KEYS else each.keys) + b"\n"
    if rng.random() < INTERLEAVED:
        return Sequences(chosen, [row for some in zip_longest(*rows) for row in some if row is not None], keys)
    return Sequences(chosen, [row for some in rows for row in some], keys)


def moved(row: Row, place: int) -> Row:
    """The frame, as one of the connection at this place."""
    name = "src_port" if row["src_ip"] == CLIENT else "dst_port"
    return row | {name: row[name] + PORTS * place, "frame_no": row["frame_no"] + (place << FRAME_BITS)}


def undone(
    rows: pa.RecordBatch, keys: bytes, ends: list[int], rng: np.random.Generator | None = None
) -> list[pa.RecordBatch]:
    """In some calls; the rows as trim would see them."""
    secrets = Secrets(in_use=True, growing=rng is not None and rng.random() < 0.5)
    late = secrets.growing and rng is not None and rng.random() < 0.5
    if not late:
        secrets.read(keys)
    undo, found = Decryption(secrets), []
    for begin, end in pairwise([0, *ends]):
        part = rows.slice(begin, end - begin)
        found += list(undo.add(part))
        if late:
            secrets.read(keys)
        if rng is not None and rng.random() < 0.3:
            found += list(undo.advance("one", int(part.column("ts_ns").to_numpy().max())))
    found += list(undo.drain())
    only = [each.filter(pa.array(each.column("kind").to_numpy() == frames.FRAME)) for each in found]
    return [each for each in only if len(each)]


@contextmanager
def bound(*, all_tries: bool) -> Iterator[None]:
    """How often is tried what opens a record, before a connection is given up."""

    def stream(begin: int) -> RecordStream:
        made = RecordStream(begin)
        made.numbers.most_tries = FEW_TRIES
        return made

    if all_tries:
        yield
    else:
        with patch.object(tls_connection, "RecordStream", stream), patch.object(joining, "MOST_TRIES", FEW_TRIES):
            yield


def vouched(damaged_ones: Sequences, found: list[pa.RecordBatch], counts: Counter[str]) -> None:
    """What went in came out, and nothing else than what was encrypted, nor in another order. Rows of one frame that
    follow each other, as where a packet was split, are looked at together.
    """
    made, ends = [row for each in found for row in each.to_pylist()], dict[tuple[int, int, int], bytes]()
    outs = groupby(made, key=itemgetter("frame_no"))
    for frame_no, some in groupby(damaged_ones.rows, key=itemgetter("frame_no")):
        given, (number, rows) = list(some), next(outs, (None, ()))
        assert number == frame_no, "rows, or their order"
        there = list(rows)
        rests = sum(is_more_of(row, before) for before, row in pairwise(there))
        assert len(given) <= len(there) <= len(given) + rests, "a row is missing, or one too many"
        for row in there:
            same = any(all(row[name] == one[name] for name in UNCHANGED) for one in given)
            assert row["decrypted"] or same, "an encrypted row was changed"
            if row["decrypted"]:
                counts["plain rows"] += bool(row["payload"])
                counts["plain bytes"] += len(row["payload"])
                assert damaged_ones.is_right(row, row["payload"]), "WRONG BYTES"
                joined(damaged_ones, row, ends)
    assert next(outs, None) is None, "a row too many"


def is_more_of(row: Row, before: Row) -> bool:
    """Whether a row is the rest of the same frame, which has a hole in its middle."""
    ahead = (row["tcp_seq"] - before["tcp_seq"] - before["payload_len"]) & 0xFFFFFFFF
    return before["payload_len"] > 0 and 0 < ahead < 1 << 20


def joined(damaged_ones: Sequences, row: Row, ends: dict[tuple[int, int, int], bytes]) -> None:
    """What a row continues by its numbers, it continued when it was said."""
    payload, seq = row["payload"], row["tcp_seq"]
    if payload:
        flow = row["src_port"], row["dst_port"]
        tail = ends.pop((*flow, seq), b"")
        said = damaged_ones.base_of(row).said[row["src_ip"] != CLIENT]
        assert tail + payload[:TAIL_BYTES] in said, "SPLICED"
        ends[*flow, (seq + len(payload)) & 0xFFFFFFFF] = (tail + payload)[-TAIL_BYTES:]


def run(options: argparse.Namespace) -> int:
    print(f"tls: {len(KINDS)} kinds of conversations, seed {options.seed}, damage {options.damage}", flush=True)
    rng, counts, begin = np.random.default_rng(options.seed), Counter[str](), time.monotonic()
    dice, done, end = (rng, Draws(options.seed + 1)), 0, Bound(options.sequences, options.minutes)
    with tempfile.TemporaryDirectory(prefix="wirecheck-fuzz-") as name:
        sources = Sources(Path(name))
        while not end.over(done):
            if done % SEQUENCES_OF_A_BASE == 0:
                bases = sources.bases(rng)
            count = end.next(done, TOGETHER)
            damaged_ones = sequences(bases, dice, count, bent=options.damage == "bytes")
            done += count
            try:
                with bound(all_tries=rng.random() < ALL_TRIES):
                    found = undone(batch(damaged_ones.rows), damaged_ones.keys, cuts(rng, len(damaged_ones.rows)), rng)
                vouched(damaged_ones, found, counts)
            except Exception:  # noqa: BLE001 -- whatever it is, it is the finding
                counts["BREACHES"] += 1
                print(f"BREACH before {done}, frames in {keep(options, done, damaged_ones)}:", flush=True)
                traceback.print_exc(limit=-3)
            if done % REPORT_EVERY < count:
                print(f"  {done} in {time.monotonic() - begin:.0f} s, {counts['BREACHES']} breaches", flush=True)
    breaches = counts.pop("BREACHES", 0)
    print(f"  {done} sequences in {time.monotonic() - begin:.0f} s, {breaches} breaches")
    print("  " + ", ".join(f"{name} {count:,}" for name, count in counts.most_common()))
    return 1 if breaches else 0


def keep(options: argparse.Namespace, number: int, what: Any) -> Path:
    folder = BUILD / "fuzz"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"tls-{options.damage}-{options.seed}-{number}.pickle"
    path.write_bytes(pickle.dumps(what))
    return path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="damaged frames of TLS connections, undone with their keys")
    parser.add_argument("--sequences", type=int, default=5_000)
    parser.add_argument("--damage", choices=["bytes", "net"], default="net")
    parser.add_argument("--seed", type=int, default=1)
    add_minutes(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(run(arguments()))
