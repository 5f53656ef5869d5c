"""The law of segments: how TCP carried the bytes of a capture changes nothing of what is found in it.

Segments of a byte or three, windows and SYNs that anyone made up, and ports that are used again within seconds: all
findings, the work, and each message are those of the capture as it was.

Not covered: ports that are used again while packets of both connections are out of order, which costs a message: one
connection of a pair of endpoints is followed at a time. How long a stretch is missing then: test_invented_segments.py.
"""

import random
import struct

import pytest

from tests.depth import DEEP
from tests.laws.test_clock_steps import CAPTURES, ends_of, packets_of, said, write
from tests.laws.test_refused import LINK_HEADERS
from wirecheck import library

SEEDS = range(20 if DEEP else 2)
FIN, SYN, RST, ACK = 1, 2, 4, 16
MASK = (1 << 32) - 1
TCP = 6
RECORD = 8
"""Bytes before the packet: both of its lengths."""
NEAR = 4
"""Packets are out of order by so many places."""


def checksum(data):
    """Of IP and TCP (RFC 1071)."""
    found = sum(struct.unpack(f">{len(data) // 2}H", data[: len(data) & ~1])) + (data[-1] << 8 if len(data) & 1 else 0)
    while found >> 16:
        found = (found & 0xFFFF) + (found >> 16)
    return ~found & 0xFFFF


class Frame:
    """A TCP segment in a record of a capture file, in its parts."""

    def __init__(self, link, ns, rest):
        self.ns, self.link, data = ns, rest[RECORD : RECORD + link], rest[RECORD + link :]
        size = (data[0] & 15) * 4
        self.ip, total = data[:size], struct.unpack(">H", data[2:4])[0]
        head = (data[size + 12] >> 4) * 4
        self.tcp, self.payload = bytearray(data[size : size + head]), data[size + head : total]

    def field(self, at, kind):
        return struct.unpack_from(kind, self.tcp, at)[0]

    def put(self, at, kind, value):
        struct.pack_into(kind, self.tcp, at, value)
        return self

    @property
    def seq(self):
        return self.field(4, ">I")

    @property
    def flags(self):
        return self.tcp[13]

    @property
    def from_end(self):
        return self.ip[12:16], bytes(self.tcp[:2])

    def copy(self, payload=b""):
        made = object.__new__(Frame)
        made.ns, made.link, made.ip, made.tcp, made.payload = self.ns, self.link, self.ip, self.tcp[:], payload
        return made

    def row(self):
        size = len(self.tcp) + len(self.payload)
        ip = bytearray(self.ip)
        struct.pack_into(">H", ip, 2, len(ip) + size)
        for data, at, before in ((ip, 10, b""), (self.tcp, 16, ip[12:20] + struct.pack(">HH", TCP, size))):
            struct.pack_into(">H", data, at, 0)
            struct.pack_into(">H", data, at, checksum(before + data + (self.payload if before else b"")))
        data = self.link + ip + self.tcp + self.payload
        return self.ns, struct.pack("<II", len(data), len(data)) + data


@pytest.fixture(scope="module", params=CAPTURES)
def capture(request):
    head, part_ns, packets = packets_of(request.param)
    link = LINK_HEADERS[struct.unpack("<I", head[20:24])[0]]
    frames = [Frame(len(link), *packet) for packet in packets]
    ends = [ends_of(head, rest) for _, rest in packets]
    return head, part_ns, frames, ends, library.replay(write_to(request, head, part_ns, frames))


def write_to(request, head, part_ns, frames):
    folder = request.getfixturevalue("tmp_path_factory").mktemp("whole")
    return write(folder / "whole.pcap", head, part_ns, [one.row() for one in frames])


def replayed(capture, frames, tmp_path):
    head, part_ns, *_ = capture
    return library.replay(write(tmp_path / "made.pcap", head, part_ns, [one.row() for one in frames]))


def is_the_same(after, before):
    assert said(after) == said(before)
    assert after.coverage.decoded_messages == before.coverage.decoded_messages
    assert after.coverage.messages == before.coverage.messages
    assert after.coverage.unseen_bytes == before.coverage.unseen_bytes


def in_pieces(frame, dice):
    """One byte to three in each."""
    at = 0
    while at < len(frame.payload):
        size = dice.randrange(1, 4)
        piece = frame.copy(frame.payload[at : at + size]).put(4, ">I", frame.seq + at & MASK)
        if at + size < len(frame.payload):
            piece.tcp[13] &= ~FIN
        yield piece
        at += size
    if not frame.payload:
        yield frame


@pytest.mark.parametrize("seed", SEEDS)
def test_segments_of_a_byte_change_nothing(capture, seed, tmp_path):
    """Of a fifth of the connections; of a part of them out of order, too."""
    _, _, frames, ends, before = capture
    dice, made = random.Random(seed), []
    chosen = {one: dice.random() < 0.2 for one in dict.fromkeys(ends)}
    for frame, own in zip(frames, ends, strict=True):
        pieces = [*in_pieces(frame, dice)] if chosen[own] else [frame]
        for at in range(0, len(pieces), NEAR) if seed % 2 else ():
            part = pieces[at : at + NEAR]
            dice.shuffle(part)
            pieces[at : at + NEAR] = part
        made += pieces
    is_the_same(replayed(capture, made, tmp_path), before)


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_and_syns_that_are_made_up_change_nothing(capture, seed, tmp_path):
    """Any window in each SYN; before a true one others with other numbers; and, later, SYNs in a client's name."""
    _, _, frames, ends, before = capture
    dice, made = random.Random(seed), []
    first = {own: frame for frame, own in zip(reversed(frames), reversed(ends), strict=True)}
    for frame, own in zip(frames, ends, strict=True):
        is_first = frame.flags & (SYN | ACK) == SYN
        for _ in range(dice.randrange(3) if is_first else dice.random() < 0.01):
            one = first[own].copy().put(4, ">I", dice.randrange(1 << 32)).put(14, ">H", dice.choice([0, 1, 65_535]))
            one.tcp[13], one.ns = SYN, frame.ns
            made.append(one.put(8, ">I", 0))
        made.append(frame.copy(frame.payload).put(14, ">H", dice.randrange(1 << 16)) if is_first else frame)
    is_the_same(replayed(capture, made, tmp_path), before)


def test_ports_that_are_used_again_change_nothing(capture, tmp_path):
    """Each connection has the port of one to the same server that has ended before, a moment ago where there is one."""
    _, _, frames, ends, before = capture
    spans, opened = {}, {}
    for at, (frame, own) in enumerate(zip(frames, ends, strict=True)):
        spans[own] = spans.get(own, (at, at))[0], at
        if frame.flags & (SYN | ACK) == SYN:
            opened.setdefault(own, frame)
    free, ports = {}, {}
    for own, (begin, end) in sorted(spans.items(), key=lambda item: item[1]):
        if own not in opened:
            continue
        client = opened[own].from_end
        pair = client[0], own - {client}
        known = [one for one in free.get(pair, ()) if one[0] < begin]
        port = max(known)[1] if known else client[1]
        free[pair] = [*(one for one in free.get(pair, ()) if one[1] != port), (end, port)]
        ports[own] = client, port
    assert len({port for _, port in ports.values()}) < len(ports)
    made = []
    for frame, own in zip(frames, ends, strict=True):
        one = frame.copy(frame.payload)
        if own in ports:
            client, port = ports[own]
            place = 0 if one.from_end == client else 2
            one.tcp[place : place + 2] = port
        made.append(one)
    is_the_same(replayed(capture, made, tmp_path), before)
