"""python -m fuzz.tls --sequences 100000 --damage net: damaged frames of TLS connections, and bent key logs, undone.

Knows: what must hold of any frames and any key log. Nothing is raised; every row comes out once, in order, with its
    numbers and length; a row that is plain has, byte for byte and at its place, what was handed to OpenSSL for there; a
    row of a connection that nobody opens is untouched.
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
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from fuzz.bend import Draws, bend
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
from wirecheck.capture.tls.plain_rows import on_the_wire
from wirecheck.capture.tls.record_stream import RecordStream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

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
OVERHEAD = -1
CLIENT, FIRST_PORT, PORTS = "10.0.0.1", 40_000, 16
FRAME_BITS = 16
UNCHANGED = ("tcp_seq", "tcp_ack", "payload_len", "ts_ns", "frame_no")


@dataclass(frozen=True)
class Base:
    """Frames of a conversation, its key log, and of each frame its bytes and what is plain there, or OVERHEAD."""

    rows: list[Row]
    keys: bytes
    plain: dict[int, tuple[bytes, NDArray[np.int16]]]


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
        whole = list(opened(undone(batch(rows), key_log.read_bytes(), [len(rows)])))
        for port, words in ((FIRST_PORT + place, said[0]), (segments.server[1], said[1])):
            values = np.concatenate([whole[i] for i, row in enumerate(rows) if row["src_port"] == port])
            assert values[values != OVERHEAD].astype(np.uint8).tobytes() == words, "not what OpenSSL was given"
        return Base(rows, key_log.read_bytes(), {i: (rows[i]["payload"], values) for i, values in enumerate(whole)})


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

    def is_right(self, row: Row, values: NDArray[np.int16]) -> bool:
        """What is plain was said there; of a bent row, where it has the bytes it had."""
        whole, plain_bytes = self.bases[row["frame_no"] >> FRAME_BITS].plain[row["frame_no"] % (1 << FRAME_BITS)]
        length, payload = row["payload_len"], row["payload"]
        if (first := whole.find(payload)) >= 0:
            said = plain_bytes[first : first + length]
            return len(said) == len(values) and bool(((values == OVERHEAD) | (values == said)).all())
        if not len(payload) == length == len(values):
            return False
        there, wire, was = values != OVERHEAD, np.frombuffer(payload, np.uint8), np.frombuffer(whole, np.uint8)
        return any(
            (wire == was[at : at + length])[there].all() and (values == plain_bytes[at : at + length])[there].all()
            for at in range(len(whole) - length + 1)  # a cut may have come before
        )


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
    secrets = Secrets(wanted=True, growing=rng is not None and rng.random() < 0.5)
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


def opened(found: list[pa.RecordBatch]) -> Iterator[NDArray[np.int16] | None]:
    """Of each row what is plain at each place of its payload on the wire; None where it is as it was."""
    for rows in found:
        if "wire_seq" not in rows.schema.names:
            yield from [None] * len(rows)
            continue
        length = rows.column("wire_len").to_pylist()
        spans, at = rows.column("wire_overhead"), rows.column("wire_overhead").offsets.to_numpy()
        begin, size = (values.to_numpy() for values in spans.values.flatten()[:2])
        for row, payload in enumerate(rows.column("payload").to_pylist()):
            yield (
                None
                if length[row] is None
                else laid_out(payload, length[row], begin, size, range(at[row], at[row + 1]))
            )


def laid_out(
    payload: bytes, length: int, begin: NDArray[np.int32], size: NDArray[np.int32], spans: range
) -> NDArray[np.int16]:
    is_plain = np.ones(length, bool)
    for i in spans:
        is_plain[begin[i] : begin[i] + size[i]] = False
    values = np.full(length, OVERHEAD, np.int16)
    if payload:
        values[is_plain] = np.frombuffer(payload, np.uint8)
    return values


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
    """What went in came out, and nothing else than what was encrypted."""
    rows, restored = damaged_ones.rows, [on_the_wire(each) for each in found]
    for name in UNCHANGED:
        values = [value for each in restored for value in each.column(name).to_pylist()]
        assert values == [row[name] for row in rows], f"rows, their order, or their {name}"
    payloads = [value for each in found for value in each.column("payload").to_pylist()]
    for row, payload, values in zip(rows, payloads, opened(found), strict=True):
        if values is None:
            assert payload == row["payload"], "an encrypted row was changed"
        elif payload:
            counts["plain rows"] += 1
            counts["plain bytes"] += len(payload)
            assert damaged_ones.is_right(row, values), "WRONG BYTES"


def run(options: argparse.Namespace) -> int:
    print(f"tls: {len(KINDS)} kinds of conversations, seed {options.seed}, damage {options.damage}", flush=True)
    rng, counts, begin = np.random.default_rng(options.seed), Counter[str](), time.monotonic()
    dice, done = (rng, Draws(options.seed + 1)), 0
    with tempfile.TemporaryDirectory(prefix="wirecheck-fuzz-") as name:
        sources = Sources(Path(name))
        while done < options.sequences:
            if done % SEQUENCES_OF_A_BASE == 0:
                bases = sources.bases(rng)
            count = min(TOGETHER, options.sequences - done)
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
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(run(arguments()))
