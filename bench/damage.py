"""Captures damaged on purpose: loss, reorder, duplicates, bursts, a start in the middle.

Knows: pcap records, and how to lose, move and repeat them by dice that fall alike for a seed.
Refuses to know: what the packets say, and who reads them.
Rule: times stay in order, as a capture's do; a damage is four shares (lost, moved, repeated, skipped at the start).
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAMAGE = {
    "1% loss": (0.01, 0.0, 0.0, 0.0),
    "5% reorder": (0.0, 0.05, 0.0, 0.0),
    "5% duplicates": (0.0, 0.0, 0.05, 0.0),
    "mid-stream start": (0.0, 0.0, 0.0, 0.3),
    "all together": (0.01, 0.05, 0.05, 0.3),
    "10% loss": (0.1, 0.0, 0.0, 0.0),
    "2% loss in bursts": (0.02, 0.0, 0.0, 0.0),
}
BURST = (5, 50)  # packets lost together
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

    def damaged(
        self, loss: float, reorder: float, repeat: float, skip: float, *, bursts: bool = False, seed: int = 1
    ) -> Capture:
        """The same capture as a worse one would have seen it; times stay in order, as a capture's do."""
        dice = random.Random(seed)
        lost = self.in_bursts(loss, dice) if bursts else set()
        loss = 0.0 if bursts else loss
        placed = []
        for place, (_, packet) in enumerate(self.records[int(skip * len(self.records)) :]):
            if dice.random() < loss or place in lost:
                continue
            later = dice.randint(1, FURTHEST) + 0.5 if dice.random() < reorder else 0
            placed.append((place + later, packet))
            if dice.random() < repeat:
                placed.append((place + dice.randint(1, FURTHEST) + 0.5, packet))
        placed.sort(key=lambda entry: entry[0])
        start = int(skip * len(self.records))
        times = [self.records[min(start + int(place), len(self.records) - 1)][0] for place, _ in placed]
        return Capture(self.head, [(when, packet) for when, (_, packet) in zip(times, placed, strict=True)])

    def in_bursts(self, share: float, dice: random.Random) -> set[int]:
        """Places of packets lost one after the other, this share of all."""
        lost: set[int] = set()
        while len(lost) < share * len(self.records):
            first = dice.randrange(len(self.records))
            lost.update(range(first, first + dice.randint(*BURST)))
        return lost

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
