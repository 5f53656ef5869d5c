"""python -m fuzz.tls --sequences 100000 --damage net: damaged frames of TLS connections, and bent key logs, undone.

Knows: what must hold of any frames and any key log. Nothing is raised; every row comes out once, in order, with its
    numbers and length; a row that is plain has, byte for byte and at its place, what OpenSSL encrypted there; a row of
    a connection that nobody opens is untouched.
Damage: `net` is loss, order, repeats, cuts, snap lengths, other numbers, a late start; `bytes` bends payloads besides:
    handshakes, record headers, lengths, ciphertext. Key logs are bent in one sequence of five.
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
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzz.bend import Draws, bend
from fuzz.damage import damaged
from fuzz.files import BUILD
from fuzz.following import batch, cuts
from tests import traffic
from tests.build import plain
from tests.tls_traffic import TlsTalk, certificate
from wirecheck.capture import frames
from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.capture.tls.decryption import Decryption
from wirecheck.capture.tls.key_log import Secrets
from wirecheck.capture.tls.plain_rows import on_the_wire

if TYPE_CHECKING:
    import pyarrow as pa

    from fuzz.damage import Row

KINDS = {
    "1.3": ("1.3", None),
    "1.2 GCM": ("1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    "1.2 ChaCha20": ("1.2", "ECDHE-ECDSA-CHACHA20-POLY1305"),
    "1.2 CBC": ("1.2", "ECDHE-ECDSA-AES128-SHA"),
}
EXCHANGES = 8
REPORT_EVERY = 5_000
BENT_KEYS = 0.2
OVERHEAD = -1


@dataclass(frozen=True)
class Base:
    """Frames of one conversation, its key log, and of each frame's bytes what is plain there, or OVERHEAD."""

    name: str
    rows: list[Row]
    keys: bytes
    plain: dict[int, list[int]]


def base(name: str, pem: Path, folder: Path) -> Base:
    version, ciphers = KINDS[name]
    talk = TlsTalk(pem, folder / f"{name}.keys", version, ciphers, talk=traffic.Talk(mss=700)).open()
    for number in range(EXCHANGES):
        head = {"clientId": "fuzz", "correlationId": number}
        talk.request(plain("Metadata", "request", 9, {"topics": [{"name": f"t{i}"} for i in range(3 * number)]}, head))
        answer = {"topics": [{"name": f"topic-{i}", "partitions": []} for i in range(90 * (number % 3))]}
        talk.response(plain("Metadata", "response", 9, answer, {"correlationId": number}))
    talk.close()
    path = folder / f"{name}.pcap"
    path.write_bytes(traffic.pcap([traffic.Packet(s.ts_ns, traffic.ethernet(traffic.ip(s))) for s in talk.segments]))
    rows = [row for table in read_frames([path]) for row in table.to_pylist() if row["kind"] == frames.FRAME]
    keys = talk.key_log.read_bytes()
    known = {row["frame_no"]: bytes_of(row) for row in undone(batch(rows), keys, [len(rows)]) if row["payload_len"]}
    return Base(name, rows, keys, known)


def undone(rows: pa.RecordBatch, keys: bytes, ends: list[int], rng: np.random.Generator | None = None) -> list[Row]:
    """In some calls; plain rows as they are, with what they are on the wire beside."""
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
    out: list[Row] = []
    for each in found:
        restored = on_the_wire(each).to_pylist()
        out += [row | {"restored": wire} for row, wire in zip(each.to_pylist(), restored, strict=True)]
    return out


def bytes_of(row: Row) -> list[int]:
    """What is plain at each place of a row's payload on the wire."""
    values = iter(row["payload"])
    covered = {at for span in row["wire_overhead"] for at in range(span["offset"], span["offset"] + span["length"])}
    return [OVERHEAD if at in covered else next(values) for at in range(row["wire_len"])]


def vouched(chosen: Base, rows: list[Row], found: list[Row], counts: Counter[str]) -> None:
    """What went in came out, and nothing else than what was encrypted."""
    found = [row for row in found if row["kind"] == frames.FRAME]
    assert [row["frame_no"] for row in found] == [row["frame_no"] for row in rows], "rows or their order"
    for row, out in zip(rows, found, strict=True):
        for name in ("tcp_seq", "tcp_ack", "payload_len", "ts_ns"):
            assert out["restored"][name] == row[name], name
        if out.get("wire_seq") is None:
            assert out["payload"] == row["payload"], "an encrypted row was changed"
        elif out["payload"]:
            counts["plain rows"] += 1
            counts["plain bytes"] += len(out["payload"])
            assert right(chosen, row, out), "WRONG BYTES"


def right(chosen: Base, row: Row, out: Row) -> bool:
    whole = next(each["payload"] for each in chosen.rows if each["frame_no"] == row["frame_no"])
    first = whole.find(row["payload"])
    said = chosen.plain[row["frame_no"]][first : first + row["payload_len"]]
    return first >= 0 and all(byte in {OVERHEAD, expected} for byte, expected in zip(bytes_of(out), said, strict=True))


def run(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="wirecheck-fuzz-") as name:
        pem = certificate(Path(name))
        bases = [base(kind, pem, Path(name)) for kind in KINDS]
    print(f"tls: {len(bases)} conversations, seed {options.seed}, damage {options.damage}", flush=True)
    rng, counts, begin = np.random.default_rng(options.seed), Counter[str](), time.monotonic()
    draws = Draws(options.seed + 1)
    for number in range(options.sequences):
        chosen = bases[int(rng.integers(len(bases)))]
        rows = [row | {"agent": "one", "source": "one", "cluster": "c"} for row in chosen.rows]
        rows = damaged(rng, rows, bend=options.damage == "bytes")
        keys = chosen.keys
        if rng.random() < BENT_KEYS:
            counts["bent key logs"] += 1
            keys = bend(keys, bases[0].keys, draws)
        try:
            if rows:
                vouched(chosen, rows, undone(batch(rows), keys, cuts(rng, len(rows)), rng), counts)
        except Exception:  # noqa: BLE001 -- whatever it is, it is the finding
            counts["BREACHES"] += 1
            print(f"BREACH in sequence {number}, frames in {keep(options, number, (chosen, rows, keys))}:", flush=True)
            traceback.print_exc(limit=-3)
        if (number + 1) % REPORT_EVERY == 0:
            print(f"  {number + 1} in {time.monotonic() - begin:.0f} s, {counts['BREACHES']} breaches", flush=True)
    print(f"  {options.sequences} sequences in {time.monotonic() - begin:.0f} s, {counts.pop('BREACHES', 0)} breaches")
    print("  " + ", ".join(f"{name} {count:,}" for name, count in counts.most_common()))
    return 1 if counts["BREACHES"] else 0


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
