"""Recovery: how many messages are found again in a damaged capture, beside tshark on the same file.

Knows: how to damage a capture (loss, reorder, duplicates, a start in the middle, each alone and together), which
messages are still whole in what is left, and which of them a program tells. Captures: synthesised traffic of 40
connections in MTU-sized segments, and every FOLDER/*/capture.pcap under WIRECHECK_CAPTURES, where that is set.
Refuses to know: how anything of ours follows. What is whole is found by a reader of its own: sequence numbers, sizes,
nothing else.
Rule: a request counts when all its bytes are in the damaged file, a response when its request counts too. A message
told that the undamaged capture does not hold is wrong, and none may be.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.traffic import write_capture

if TYPE_CHECKING:
    from collections.abc import Iterator

SYNTHETIC_BYTES = 20_000_000
BAR = 0.99
DAMAGE = {
    "1% loss": (0.01, 0.0, 0.0, 0.0),
    "5% reorder": (0.0, 0.05, 0.0, 0.0),
    "5% duplicates": (0.0, 0.0, 0.05, 0.0),
    "mid-stream start": (0.0, 0.0, 0.0, 0.3),
    "all together": (0.01, 0.05, 0.05, 0.3),
    "10% loss": (0.1, 0.0, 0.0, 0.0),
}
WITHOUT_BAR = {"10% loss"}
FURTHEST = 5  # records a packet is moved or repeated later
LINK_BYTES = {1: 14, 113: 16, 276: 20}

Flow = tuple[str, int, str, int]


@dataclass
class Capture:
    head: bytes
    records: list[tuple[bytes, bytes]]

    @classmethod
    def read(cls, path: Path) -> Capture:
        data, at, records = path.read_bytes(), 24, []
        order = "<" if data[:4] in {b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"} else ">"
        while at + 16 <= len(data):
            size = struct.unpack_from(order + "I", data, at + 8)[0]
            records.append((data[at : at + 8], data[at + 8 : at + 16 + size]))
            at += 16 + size
        return cls(data[:24], records)

    def write(self, path: Path) -> None:
        path.write_bytes(self.head + b"".join(when + rest for when, rest in self.records))

    def damaged(self, loss: float, reorder: float, repeat: float, skip: float) -> Capture:
        """The same capture as a worse one would have seen it; times stay in order, as a capture's do."""
        dice = random.Random(1)
        placed = []
        for place, (_, packet) in enumerate(self.records[int(skip * len(self.records)) :]):
            if dice.random() < loss:
                continue
            later = dice.randint(1, FURTHEST) + 0.5 if dice.random() < reorder else 0
            placed.append((place + later, packet))
            if dice.random() < repeat:
                placed.append((place + dice.randint(1, FURTHEST) + 0.5, packet))
        placed.sort(key=lambda entry: entry[0])
        start = int(skip * len(self.records))
        times = [self.records[min(start + int(place), len(self.records) - 1)][0] for place, _ in placed]
        return Capture(self.head, [(when, packet) for when, (_, packet) in zip(times, placed, strict=True)])

    def segments(self) -> Iterator[tuple[Flow, int, int, bytes]]:
        """(flow, flags, sequence number, payload) of every TCP packet."""
        link = struct.unpack_from("<I" if self.head[0] in {0xD4, 0x4D} else ">I", self.head, 20)[0]
        for _, record in self.records:
            ip = record[8 + LINK_BYTES[link] :]
            if ip[0] >> 4 != 4 or ip[9] != 6:
                continue
            tcp = (ip[0] & 15) * 4
            source, target, seq = struct.unpack_from(">HHI", ip, tcp)
            begin, end = tcp + (ip[tcp + 12] >> 4) * 4, struct.unpack_from(">H", ip, 2)[0]
            flow = (".".join(map(str, ip[12:16])), source, ".".join(map(str, ip[16:20])), target)
            yield flow, ip[tcp + 13], seq, ip[begin:end]


@dataclass(frozen=True)
class Message:
    flow: Flow
    at: int
    """Sequence number of its size."""
    data: bytes
    """Without its size."""


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
    data = bytearray()
    for at, piece in found:
        if at > len(data):
            break
        if at + len(piece) > len(data):
            data += piece[len(data) - at :]
    cut, at = [], 0
    while at + 8 <= len(data):
        size = struct.unpack_from(">i", data, at)[0]
        if not 4 <= size <= len(data) - at - 4:
            break
        cut.append(Message(flow, at, bytes(data[at + 4 : at + 4 + size])))
        at += 4 + size
    return cut


def is_request(message: Message) -> bool:
    key, version, _, client = struct.unpack_from(">hhih", message.data.ljust(10, b"\xff"))
    return 0 <= key <= 94 and 0 <= version <= 20 and 0 < client < 200


def pairs(capture: Capture) -> list[tuple[Message, Message | None]]:
    """Requests with their responses, of all connections that begin in the capture and speak Kafka in the clear."""
    found = streams(capture)
    cut = {flow: messages(flow, pieces) for flow, pieces in found.items()}
    paired: list[tuple[Message, Message | None]] = []
    for flow, asked in cut.items():
        if not asked or not all(map(is_request, asked)):
            continue
        answers: dict[bytes, list[Message]] = defaultdict(list)
        for answer in cut.get(flow[2:] + flow[:2], []):
            answers[answer.data[:4]].append(answer)
        for request in asked:
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

    def whole(self, message: Message | None) -> bool:
        if message is None or message.flow not in self._spans:
            return False
        starts, ends = self._spans[message.flow]
        place = bisect_right(starts, message.at) - 1
        return place >= 0 and message.at + 4 + len(message.data) <= ends[place]


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


Told = set[tuple[Flow, bytes]]


def ours(path: Path) -> tuple[Told, Told]:
    """(messages told, those of them told in spite of a hole), by flow and bytes."""
    import pyarrow as pa

    from capture.frames import Stamp
    from capture.pcap import CaptureFile
    from decode.following.connection import Follower
    from decode.following.segments import segments

    file = CaptureFile(path)
    rows = [batch.rows for batch in file.batches(Stamp("bench", "bench"))]
    file.close()
    follower = Follower()
    told: Told = set()
    partly: Told = set()
    for result in (follower.receive(segments(pa.Table.from_batches(rows))), follower.drain()):
        m = result.messages
        for i in range(len(m)):
            connection = result.connections[result.connection[i]]
            ends = (connection.client, connection.server)
            source, target = ends if m.side[i] == 0 else ends[::-1]
            kept = m.data[m.at[i] : m.at[i + 1]].tobytes()
            (partly if m.span_at[i + 1] > m.span_at[i] else told).add(((*source, *target), kept))
    return told, partly


def tshark(path: Path, ports: set[int]) -> set[tuple[Flow, int]]:
    """(flow, correlation id) of every message tshark tells."""
    kafka = [argument for port in sorted(ports) for argument in ("-d", f"tcp.port=={port},kafka")]
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
    told = set()
    for line in out.stdout.splitlines():
        source, source_port, target, target_port, ids = line.split("\t")
        flow = (source, int(source_port), target, int(target_port))
        told |= {(flow, int(number)) for number in ids.split(",") if number}
    return told


def measured(name: str, capture: Capture, folder: Path) -> list[dict]:
    paired = pairs(capture)
    true = {(m.flow, m.data) for pair in paired for m in pair if m}
    flows = {flow for flow, _ in true}
    ports = {request.flow[3] for request, _ in paired}
    rows = []
    for damage, numbers in DAMAGE.items():
        damaged = capture.damaged(*numbers)
        path = folder / "damaged.pcap"
        damaged.write(path)
        seen = Seen(damaged, capture)
        wanted = {(q.flow, q.data) for q, _ in paired if seen.whole(q)}
        wanted |= {(r.flow, r.data) for q, r in paired if r and seen.whole(q) and seen.whole(r)}
        told, _ = ours(path)
        wrong = {message for message in told if message[0] in flows} - true
        row = line(f"recovery, {name}, {damage}", len(wanted & told) / max(len(wanted), 1), damage)
        if shutil.which("tshark"):
            theirs = tshark(path, ports)
            by_id = [(flow, struct.unpack_from(">i", data, 4 * (flow[3] in ports))[0]) for flow, data in wanted]
            row["peer_value"] = sum(entry in theirs for entry in by_id) / max(len(by_id), 1)
            row["ratio"] = row["value"] / row["peer_value"] if row["peer_value"] else None
        rows += [row, line(f"recovery, {name}, {damage}: wrong messages", len(wrong), damage, wrong=True)]
        print(f"{name}, {damage}: {len(wanted)} whole, {len(wanted & told)} told, {len(wrong)} wrong", file=sys.stderr)
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
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as name:
        folder = Path(name)
        for mix in ("records", "small"):
            path = folder / "capture.pcap"
            write_capture(path, SYNTHETIC_BYTES if mix == "records" else SYNTHETIC_BYTES // 4, mix, 40)
            rows += measured(f"40 connections of {mix}", Capture.read(path), folder)
        real = os.environ.get("WIRECHECK_CAPTURES")
        for path in sorted(Path(real).glob("*/capture.pcap")) if real else []:
            rows += measured(path.parent.name, Capture.read(path), folder)
    return rows
