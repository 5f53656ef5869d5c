"""Capture files that nobody should have written: every container, link type, tunnel and packing, bent or made of lies.

Knows: the tests' writer of packets and files, and what must hold of whatever is read: rows that the frames contract
lets through, or one InputError.
Rule: an input is its number and the run's seed, nothing else: the runner can make it again.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fuzz.bend import Draws, bend
from tests import traffic as t
from tests.build import plain
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.capture.source.pcap import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SUFFIX = "capture"
STAMP = frames.Stamp("L", "fuzz")
WORDS = (0, 1, 5, 16, 60, 127, 128, 255, 0x7FFF, 0xFFFF, 1 << 20, (1 << 20) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
LONGS = (*WORDS, 1 << 48, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def packed_by_arrow(name: str) -> Callable[[bytes], bytes]:
    def pack(data: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, name) as stream:
            stream.write(data)
        return bytes(sink.getvalue())

    return pack


PACKINGS: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: gzip.compress(data, 1),
    lambda data: bz2.compress(data, 1),
    lambda data: lzma.compress(data, preset=0),
    packed_by_arrow("zstd"),
    packed_by_arrow("lz4"),
)


@cache
def packets() -> tuple[tuple[int, bytes], ...]:
    """(link type, packet): a connection of either IP version, through every link layer and tunnel."""
    found: list[tuple[int, bytes]] = []
    for client, server in ((("10.0.0.1", 40000), ("10.0.0.9", 9092)), (("fd00::1", 40000), ("fd00::9", 9092))):
        talk = t.Talk(client=client, server=server).open()
        asked = plain("Metadata", "request", 12, {"topics": [{"name": "orders"}]}, {"correlationId": 7})
        answered = plain("Metadata", "response", 12, {"clusterId": "c"}, {"correlationId": 7})
        for segment in talk.request(asked).response(answered).close().segments:
            found += around(t.ip(segment), ":" in client[0])
    return tuple(found)


def around(ip: bytes, is_v6: bool) -> Iterator[tuple[int, bytes]]:
    yield from (
        (t.RAW, ip),
        (t.SLL, t.sll(ip)),
        (t.SLL2, t.sll2(ip)),
        (t.NULL, t.loopback(ip, 30 if is_v6 else 2, "<")),
    )
    yield from ((t.LOOP, t.loopback(ip, 24 if is_v6 else 2, ">")), (t.IPV6 if is_v6 else t.IPV4, ip))
    framed = t.ethernet(ip)
    yield t.ETHERNET, framed
    yield t.ETHERNET, t.ethernet(ip, vlans=[(0x8100, 1), (0x88A8, 7)])
    yield t.ETHERNET, bytes(12) + struct.pack(">HII", 0x8847, 0x00040040, 0x00010140) + ip
    yield t.ETHERNET, bytes(12) + b"\x88\x64" + bytes(6) + (b"\0\x57" if is_v6 else b"\0\x21") + ip
    kind = t.ether_type(ip)
    tunnels = [
        (struct.pack(">HHII", 0xB000, kind, 0, 7) + bytes(4) + ip, 47),
        (struct.pack(">HHI", 0x1000, 0x88BE, 1) + bytes(8) + framed, 47),
        (struct.pack(">HHI", 0x1000, 0x22EB, 1) + bytes(11) + b"\x01" + bytes(8) + framed, 47),
        (struct.pack(">HHHH", 1, 4789, 0, 0) + b"\x08" + bytes(7) + framed, 17),
        (struct.pack(">HHHH", 1, 6081, 0, 0) + b"\x02\0\x65\x58" + bytes(12) + framed, 17),
        (ip, 41 if is_v6 else 4),
    ]
    for body, protocol in tunnels:
        yield t.ETHERNET, t.ethernet(t.ipv4("1.2.3.4", "5.6.7.8", body, protocol=protocol))
    if is_v6:
        chain = [(0, b"\0" + bytes(6)), (43, b"\0" + bytes(6)), (44, bytes(7)), (51, b"\x02" + bytes(14))]
        yield t.ETHERNET, t.ethernet(t.ipv6("fd00::1", "fd00::9", ip[40:], chain=chain))


def make(rng: np.random.Generator) -> bytes:
    """One file: sound or full of lies, mostly bent; half of those that are packed are bent inside."""
    data = classic(rng) if rng.random() < 0.35 else blocks(rng)
    pack = PACKINGS[int(rng.integers(len(PACKINGS)))] if rng.random() < 0.15 else None
    inside = pack is None or rng.random() < 0.5
    data = bent(data, rng) if inside and rng.random() < 0.85 else data
    if pack is None:
        return data
    at = int(rng.integers(len(data) + 1))
    whole = pack(data) if rng.random() < 0.7 else pack(data[:at]) + pack(data[at:])
    return whole if inside else bent(whole, rng)


def bent(data: bytes, rng: np.random.Generator) -> bytes:
    return bend(data, data, Draws(int(rng.integers(1, 2**62))))


def some(rng: np.random.Generator, link_type: int | None = None) -> list[tuple[int, bytes]]:
    among = [one for one in packets() if link_type is None or one[0] == link_type]
    return [among[i] for i in rng.integers(0, len(among), int(rng.integers(0, 12))).tolist()]


def classic(rng: np.random.Generator) -> bytes:
    link_type = int(rng.choice([one[0] for one in packets()]))
    given = [
        t.Packet(int(rng.integers(0, 1 << 61)), data[: word(rng, len(data))], word(rng, len(data)))
        for _, data in some(rng, link_type)
    ]
    order = str(rng.choice(["<", ">"]))
    return t.pcap(given, link_type=link_type, order=order, nanoseconds=bool(rng.integers(2)), snaplen=word(rng, 262144))


def word(rng: np.random.Generator, honest: int) -> int:
    return int(rng.choice(WORDS)) if rng.random() < 0.05 else honest


def blocks(rng: np.random.Generator) -> bytes:
    """A pcapng of one or two sections."""
    return b"".join(section(rng, str(rng.choice(["<", ">"]))) for _ in range(1 + int(rng.random() < 0.2)))


def section(rng: np.random.Generator, order: str) -> bytes:
    links = [int(rng.choice([one[0] for one in packets()])) for _ in range(int(rng.integers(1, 4)))]
    out = [t.section(order), *(interface(rng, link_type, order) for link_type in links)]
    for number, link_type in enumerate(links):
        for _, data in some(rng, link_type):
            out.append(packet(rng, number, data, order))
            if rng.random() < 0.1:
                out.append(statistics(rng, word(rng, number), order))
            if rng.random() < 0.05:
                out.append(t.block(int(rng.choice([4, 9, 10, 0xBAD])), bytes(int(rng.integers(0, 40))), order))
    return b"".join(out)


def option(rng: np.random.Generator, code: int, honest: bytes, order: str) -> bytes:
    if rng.random() < 0.1:
        return struct.pack(order + "HH", code, word(rng, len(honest)) & 0xFFFF) + honest
    return t.option(code, honest, order)


def interface(rng: np.random.Generator, link_type: int, order: str) -> bytes:
    body = struct.pack(order + "HHI", link_type, 0, word(rng, 0))
    if rng.random() < 0.5:
        unit = int(rng.integers(256)) if rng.random() < 0.5 else 9
        body += option(rng, 9, bytes([unit]), order)
    if rng.random() < 0.3:
        body += option(rng, 14, struct.pack(order + "Q", int(rng.choice(np.array(LONGS, np.uint64)))), order)
    return t.block(1, body[: int(rng.integers(8))] if rng.random() < 0.03 else body, order)


def packet(rng: np.random.Generator, number: int, data: bytes, order: str) -> bytes:
    kind, size = int(rng.choice([6, 6, 6, 2, 3])), word(rng, len(data))
    clock = rng.integers(0, 1 << 32, 2).tolist() if rng.random() < 0.3 else [395_000, 5]
    if kind == 3:
        return t.block(3, struct.pack(order + "I", size) + data, order)
    if kind == 2:
        head = struct.pack(order + "HHIIII", word(rng, number) & 0xFFFF, 3, *clock, size, word(rng, len(data)))
    else:
        head = struct.pack(order + "IIIII", word(rng, number), *clock, size, word(rng, len(data)))
    return t.block(kind, head + data, order)


def statistics(rng: np.random.Generator, number: int, order: str) -> bytes:
    counts = rng.choice(np.array(LONGS, np.uint64), 2).tolist()
    said = b"".join(
        option(rng, code, struct.pack(order + "Q", int(n)), order) for code, n in zip((5, 7), counts, strict=True)
    )
    return t.block(5, struct.pack(order + "III", number, 0, 0) + said, order)


def read(path: Path, rng: np.random.Generator) -> str:
    """What became of it; raises if anything but rows of the contract or one InputError came out."""
    try:
        batch_bytes = int(rng.choice([100, 4096, 1 << 20]))
        tables = list(read_frames([path], "L", "fuzz", batch_bytes=batch_bytes))
    except InputError:
        return "nothing to read"
    progress = pa.Table.from_batches([frames.mark_rows([frames.Mark(frames.PROGRESS, 0)], STAMP)])
    table: Any = frames.with_file_seq(pa.concat_tables([*tables, progress]), 1)
    frames_file.look(table, frames.FRAMES.names)
    kinds = table["kind"].to_numpy()
    found = "rows" if (kinds == frames.FRAME).any() else "no rows"
    return f"{found}, error" if (kinds == frames.INPUT_ERROR).any() else found
