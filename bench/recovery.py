"""Recovery: how many messages are found again in a damaged capture, beside tshark on the same file.

Knows: which messages are still whole in what damage.py leaves of a capture (loss, reorder, duplicates, a start in the
middle, each alone and together), and which of them a program tells. Captures: synthesised traffic of 40
connections in MTU-sized segments, the same inside TLS 1.3 and 1.2 with the key log at hand, and every
FOLDER/*/capture.pcap under WIRECHECK_CAPTURES, where that is set.
Refuses to know: how anything of ours follows. What is whole is found by a reader of its own: sequence numbers, sizes,
nothing else. The captures are trimmed first, as an agent would: what is told lacks its records and secrets.
Rule: a request counts when all its bytes (inside TLS: all its records) are in the damaged file, a response when its
request counts too. Inside TLS 1.2 connections count whose handshake is whole: no key log opens others. A message
told is known by its connection, its ids and its size; one that the undamaged capture does not hold, or of which a kept
byte differs, is wrong, and none may be.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from bench.damage import DAMAGE, Capture, Flow
from bench.inside_tls import Record, wrap
from bench.traffic import write_capture

SYNTHETIC_BYTES = 20_000_000
BAR = 0.99
MEAN_BAR = 0.999  # over seeds
SASL_HANDSHAKE_V0 = struct.pack(">hh", 17, 0)  # raw tokens follow; they are neither asked for nor counted
WITHOUT_BAR = {"10% loss", "2% loss in bursts"}
WITHOUT_HANDSHAKE = {"mid-stream start", "all together"}
TLS_VERSIONS = ("1.3", "1.2")


@dataclass(frozen=True)
class Message:
    flow: Flow
    at: int
    """Sequence number of its size."""
    data: bytes
    """Without its size."""


Pairs = list[tuple[Message, Message | None]]  # requests with their responses


@dataclass(frozen=True)
class InsideTls:
    """A capture's messages, in another capture."""

    capture: Capture
    keys: Path
    records: dict[Flow, list[Record]]

    needs_handshake: bool

    def opens(self, flow: Flow, seen: Seen) -> bool:
        """Whether what was seen is enough for its keys."""
        ends = [flow, flow[2:] + flow[:2]]
        return not self.needs_handshake or all(seen.whole(end, 0, self.records[end][0].wire_begin) for end in ends)

    def span(self, message: Message) -> tuple[int, int]:
        """Of all its records."""
        records, end = self.records[message.flow], message.at + 4 + len(message.data)
        first = bisect_right(records, message.at, key=lambda record: record.begin) - 1
        last = bisect_left(records, end, key=lambda record: record.end)
        return records[first].wire_begin, records[last].wire_end


def span(message: Message) -> tuple[int, int]:
    return message.at, message.at + 4 + len(message.data)


def streams(capture: Capture) -> dict[Flow, list[tuple[int, bytes]]]:
    """Pieces by flow; a flow whose ports are used twice is left out: the reader is simple, and says so by this line."""
    pieces: dict[Flow, list[tuple[int, bytes]]] = defaultdict(list)
    begins: dict[Flow, set[int]] = defaultdict(set)
    for flow, flags, seq, payload in capture.segments():
        if flags & 2:
            begins[flow].add(seq)
        if payload:
            pieces[flow].append((seq, payload))
    twice = {frozenset((f[:2], f[2:])) for f, seqs in begins.items() if len(seqs) > 1}
    known = {f: (min(begins[f]) + 1) % 2**32 for f in begins}
    return {
        flow: sorted(((seq - known[flow] + 2**31) % 2**32 - 2**31, data) for seq, data in found)
        for flow, found in pieces.items()
        if flow in known and frozenset((flow[:2], flow[2:])) not in twice
    }


def messages(flow: Flow, found: list[tuple[int, bytes]]) -> list[Message]:
    """Sizes and what they cover; a raw SASL token (KIP-43) may be empty, and is no message to is_request."""
    data = bytearray()
    for at, piece in found:
        if at > len(data):
            break
        if at + len(piece) > len(data):
            data += piece[len(data) - at :]
    cut, at = [], 0
    while at + 4 <= len(data):
        size = struct.unpack_from(">i", data, at)[0]
        if not 0 <= size <= len(data) - at - 4:
            break
        cut.append(Message(flow, at, bytes(data[at + 4 : at + 4 + size])))
        at += 4 + size
    return cut


def is_request(message: Message) -> bool:
    key, version, _, client = struct.unpack_from(">hhih", message.data.ljust(10, b"\xff"))
    return 0 <= key <= 94 and 0 <= version <= 20 and 0 < client < 200


def asking(capture: Capture) -> set[Flow]:
    """The flows of those who connected: their SYN acknowledges nothing (RFC 9293 section 3.5)."""
    return {flow for flow, flags, _, _ in capture.segments() if flags & 0x12 == 2}


def pairs(capture: Capture) -> Pairs:
    """Requests with their responses, of all connections that begin in the capture and speak Kafka in the clear."""
    opened = asking(capture)
    found = streams(capture)
    cut = {flow: messages(flow, pieces) for flow, pieces in found.items()}
    paired: Pairs = []
    for flow, asked in cut.items():
        if flow not in opened:
            continue
        requests = list(filter(is_request, asked))
        if not requests or (len(requests) < len(asked) and requests[0].data[:4] != SASL_HANDSHAKE_V0):
            continue
        answers: dict[bytes, list[Message]] = defaultdict(list)
        for answer in cut.get(flow[2:] + flow[:2], []):
            answers[answer.data[:4]].append(answer)
        for request in requests:
            waiting = answers[request.data[4:8]]
            paired.append((request, waiting.pop(0) if waiting else None))
    return paired


class Seen:
    """Which bytes of every flow a capture holds."""

    def __init__(self, damaged: Capture, whole: Capture) -> None:
        begins = {}
        for flow, flags, seq, _ in whole.segments():
            if flags & 2:
                begins.setdefault(flow, (seq + 1) % 2**32)
        spans: dict[Flow, list[tuple[int, int]]] = defaultdict(list)
        for flow, _, seq, payload in damaged.segments():
            if payload and flow in begins:
                at = (seq - begins[flow] + 2**31) % 2**32 - 2**31
                spans[flow].append((at, at + len(payload)))
        self._spans = {flow: merged(sorted(found)) for flow, found in spans.items()}

    def whole(self, flow: Flow, begin: int, end: int) -> bool:
        if flow not in self._spans:
            return False
        starts, ends = self._spans[flow]
        place = bisect_right(starts, begin) - 1
        return place >= 0 and end <= ends[place]


def merged(spans: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    starts: list[int] = []
    ends: list[int] = []
    for start, end in spans:
        if ends and start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends


Known = tuple[Flow, int, bytes]  # flow, size, ids (a request's with its key and version)


def known(flow: Flow, size: int, start: bytes, *, asks: bool) -> Known:
    return flow, size, bytes(start[: 8 if asks else 4])


@dataclass(frozen=True)
class Kept:
    """A message told: its bytes, and where those lie in it."""

    data: bytes
    spans: tuple[tuple[int, int], ...]

    def agrees(self, whole: bytes) -> bool:
        at, kept = 0, b""
        for offset, length in self.spans:
            kept += whole[at:offset]
            at = offset + length
        return self.data == kept + whole[at:]


def ours(path: Path, folder: Path, keys: list[Path]) -> dict[Known, list[Kept]]:
    """Messages told without a hole that the capture left, of trimmed frames."""
    import pyarrow as pa

    from wirecheck.capture import frames_file
    from wirecheck.capture.agent.offline_agent import write_frames
    from wirecheck.decode.connection.follower import Follower
    from wirecheck.decode.connection.segments import segments

    with tempfile.TemporaryDirectory(dir=folder) as out:
        table = pa.concat_tables(
            [frames_file.read(file) for file in write_frames([path], Path(out) / "f", "bench", key_logs=keys).files]
        )
    follower = Follower()
    followed: dict[Known, list[Kept]] = defaultdict(list)
    for result in (follower.receive(segments(table)), follower.drain()):
        m = result.messages
        for i in range(len(m)):
            connection = result.connections[result.connection[i]]
            ends = (connection.client, connection.server)
            source, target = ends if m.side[i] == 0 else ends[::-1]
            rows = slice(m.span_at[i], m.span_at[i + 1])
            spans = tuple(zip(m.span_offset[rows].tolist(), m.span_length[rows].tolist(), strict=True))
            kept = Kept(m.data[m.at[i] : m.at[i + 1]].tobytes(), spans)
            if result.gap_bytes[i] == 0:
                followed[known((*source, *target), int(m.size[i]), kept.data, asks=m.side[i] == 0)].append(kept)
    return followed


def tshark(path: Path, ports: set[int], keys: list[Path]) -> set[tuple[Flow, int]]:
    """(flow, correlation id) of every message tshark tells."""
    layers = ["tcp.port=={},tls", "tls.port=={},kafka"] if keys else ["tcp.port=={},kafka"]
    kafka = [argument for port in sorted(ports) for layer in layers for argument in ("-d", layer.format(port))]
    kafka += [argument for key_log in keys for argument in ("-o", f"tls.keylog_file:{key_log}")]
    fields = ["ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "kafka.correlation_id"]
    command = [
        "tshark",
        "-r",
        str(path),
        "-o",
        "tcp.reassemble_out_of_order:TRUE",
        *kafka,
        "-Y",
        "kafka",
        "-T",
        "fields",
    ]
    out = subprocess.run(
        [*command, *(part for field in fields for part in ("-e", field))], capture_output=True, text=True, check=False
    )
    correlation_ids = set()
    for line in out.stdout.splitlines():
        source, source_port, target, target_port, ids = line.split("\t")
        flow = (source, int(source_port), target, int(target_port))
        correlation_ids |= {(flow, int(number)) for number in ids.split(",") if number}
    return correlation_ids


def said(paired: Pairs, capture: Capture) -> dict[Known, list[bytes]]:
    """What the undamaged capture says under each name, raw tokens too: where a SaslHandshake came late or never, one
    may be told as the message its bytes look like.
    """
    true: dict[Known, list[bytes]] = defaultdict(list)
    clients = {request.flow for request, _ in paired}
    for flow, pieces in streams(capture).items():
        if flow in clients or flow[2:] + flow[:2] in clients:
            for m in messages(flow, pieces):
                true[known(flow, len(m.data), m.data, asks=flow in clients)].append(m.data)
    return true


def damaged_by(capture: Capture, damage: str, seed: int) -> Capture:
    return capture.damaged(*DAMAGE[damage], bursts="bursts" in damage, seed=seed)


def recovered(
    capture: Capture, paired: Pairs, damaged: Capture, path: Path, inside: InsideTls | None = None
) -> tuple[dict[Known, bytes], int, list[Known]]:
    """What is still whole in the damaged file, how much of it is told, and what is told and wrong."""
    damaged.write(path)
    true = said(paired, capture)
    seen, flows = Seen(damaged, inside.capture if inside else capture), {name[0] for name in true}

    def is_whole(message: Message | None) -> bool:
        if message is None or (inside and not inside.opens(message.flow, seen)):
            return False
        return seen.whole(message.flow, *(inside.span(message) if inside else span(message)))

    whole = [(q, True) for q, _ in paired if is_whole(q)]
    whole += [(r, False) for q, r in paired if r and is_whole(q) and is_whole(r)]
    wanted = {known(m.flow, len(m.data), m.data, asks=asks): m.data for m, asks in whole}
    followed = ours(path, path.parent, [inside.keys] if inside else [])
    found = sum(any(kept.agrees(data) for kept in followed.get(name, ())) for name, data in wanted.items())
    mine = [(name, kept) for name, many in followed.items() if name[0] in flows for kept in many]
    return wanted, found, [name for name, kept in mine if not any(map(kept.agrees, true.get(name, ())))]


def wrapped(path: Path, version: str) -> InsideTls:
    target, keys = path.with_suffix(".tls.pcap"), path.with_suffix(".keys")
    records = wrap(path, target, keys, version)
    return InsideTls(Capture.read(target), keys, records, needs_handshake=version == "1.2")


def measured(name: str, capture: Capture, folder: Path, inside: InsideTls | None = None) -> list[dict]:
    paired = pairs(capture)
    path = folder / "damaged.pcap"
    ports = {request.flow[3] for request, _ in paired}
    rows = []
    for damage in DAMAGE:
        if inside and inside.needs_handshake and damage in WITHOUT_HANDSHAKE:
            continue
        damaged = damaged_by(inside.capture if inside else capture, damage, 1)
        wanted, found, wrong = recovered(capture, paired, damaged, path, inside)
        row = line(f"recovery, {name}, {damage}", found / max(len(wanted), 1), damage)
        if shutil.which("tshark"):
            theirs = tshark(path, ports, [inside.keys] if inside else [])
            by_id = [(n[0], struct.unpack_from(">i", data, 4 * (n[0][3] in ports))[0]) for n, data in wanted.items()]
            row["peer_value"] = sum(entry in theirs for entry in by_id) / max(len(by_id), 1)
            row["ratio"] = row["value"] / row["peer_value"] if row["peer_value"] else None
        rows += [row, line(f"recovery, {name}, {damage}: wrong messages", len(wrong), damage, wrong=True)]
        print(f"{name}, {damage}: {len(wanted)} whole, {found} read, {len(wrong)} wrong", file=sys.stderr)
    return rows


def line(name: str, value: float, damage: str, *, wrong: bool = False) -> dict:
    bar = None if damage in WITHOUT_BAR and not wrong else (0 if wrong else BAR)
    met = None if bar is None else (value == 0 if wrong else value >= BAR)
    peer = None if wrong else "tshark"
    unit = "messages" if wrong else "of whole messages"
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": peer,
        "peer_value": None,
        "ratio": None,
        "bar": bar,
        "met": met,
    }


def measure() -> list[dict]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as place:
        folder = Path(place)
        for mix in ("records", "small"):
            path = folder / "capture.pcap"
            write_capture(path, SYNTHETIC_BYTES if mix == "records" else SYNTHETIC_BYTES // 4, mix, 40)
            capture, name = Capture.read(path), f"40 connections of {mix}"
            rows += measured(name, capture, folder)
            for version in TLS_VERSIONS:
                inside = wrapped(path, version)
                rows += measured(f"{name} in TLS {version}", capture, folder, inside)
        real = os.environ.get("WIRECHECK_CAPTURES")
        for path in sorted(Path(real).glob("*/capture.pcap")) if real else []:
            rows += measured(path.parent.name, Capture.read(path), folder)
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="recovery over many seeds, without a peer")
    parser.add_argument("folder", type=Path, help="captures are FOLDER/*/capture.pcap")
    parser.add_argument("--only", nargs="*", help="captures, by the names of their folders")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--damage", nargs="*", default=[d for d in DAMAGE if d not in WITHOUT_BAR], choices=DAMAGE)
    return parser.parse_args()


def main() -> int:
    """A line per capture and damage: mean and worst of the seeds, wrong messages; 1 where a bar is missed."""
    options, missed = arguments(), 0
    for path in sorted(options.folder.glob("*/capture.pcap")):
        if options.only and path.parent.name not in options.only:
            continue
        capture = Capture.read(path)
        paired = pairs(capture)
        for damage in options.damage:
            shares: dict[int, float] = {}
            wrong = 0
            with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as folder:
                for seed in range(1, options.seeds + 1):
                    damaged = damaged_by(capture, damage, seed)
                    wanted, found, strange = recovered(capture, paired, damaged, Path(folder) / "damaged.pcap")
                    shares[seed] = found / len(wanted) if wanted else 1.0
                    wrong += len(strange)
            mean, worst = sum(shares.values()) / len(shares), min(shares, key=shares.__getitem__)
            good = mean >= MEAN_BAR and shares[worst] >= BAR and not wrong
            missed += not good
            print(
                f"{'ok    ' if good else 'MISSED'} {path.parent.name}, {damage}: {len(shares)} seeds, mean {mean:.4f}, "
                f"worst {shares[worst]:.4f} (seed {worst}), {wrong} wrong",
                flush=True,
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
