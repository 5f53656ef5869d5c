"""Blocks of the kernel's ring, built byte by byte: no rights needed."""

import struct

import pytest

from tests import traffic as t
from wirecheck.capture import frames
from wirecheck.capture.link import link_type
from wirecheck.capture.source import ring
from wirecheck.capture.source.rows import Rows

SEGMENTS = t.Talk(mss=40).open().request(b"q" * 100).close().segments


def block_of(packets, at=48):
    """One block, its packets from `at` on."""
    body = b""
    for p in packets:
        size = 82 + len(p.data) + (-(82 + len(p.data)) % 8)
        seconds, rest = divmod(p.ts_ns, 10**9)
        head = struct.pack("=IIIIIIHH", size, seconds, rest, len(p.data), p.wire_bytes, 0, 82, 96)
        body += head.ljust(82, b"\0") + p.data + bytes(-(82 + len(p.data)) % 8)
    head = struct.pack("=IIIIII", 1, 0, ring.OURS, len(packets), at, at + len(body)).ljust(at, b"\0")
    return head + body


def walked(data, batch_bytes=1 << 16):
    rows, found = Rows(batch_bytes), []
    left = ring.begin_block(data[: ring.filled_bytes(data)], rows.headers)
    while left:
        rows.begin()
        left = ring.walk_block(data, left, link_type.LINK_ETHERNET, rows.headers)
        rows.keep(data)
        columns = ("frame_no", "ts_ns", "tcp_seq", "payload")
        batch = rows.batch("eth0", frames.Stamp("", ""))
        found += zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    return found, rows


@pytest.mark.parametrize("batch_bytes", [1, 200, 1 << 16])
def test_every_packet_of_a_block_is_a_row_however_small_the_batch(batch_bytes):
    found, _ = walked(block_of(t.packets(SEGMENTS)), batch_bytes)
    assert found == [(i + 1, s.ts_ns, s.seq, s.payload) for i, s in enumerate(SEGMENTS)]


def test_what_is_no_segment_is_counted():
    noise = t.Packet(0, t.ethernet(bytes(28), kind=0x0806))
    _, rows = walked(block_of([noise, *t.packets(SEGMENTS[:1]), noise]))
    assert [(m.count, m.reason) for m in rows.skipped_marks("eth0", 1)] == [(2, "not-ip")]


def test_an_empty_block_has_no_rows():
    assert walked(block_of([]))[0] == []
