"""Packets from the kernel's ring (AF_PACKET, TPACKET_V3): blocks of packets in shared memory.

A block is ours from the moment its status says so until it is given back; the part that the kernel filled is copied.
Source: linux/if_packet.h, Documentation/networking/packet_mmap.
"""

from __future__ import annotations

import struct
import sys
from typing import TYPE_CHECKING, Final

from wirecheck.capture.source.classic import read32

if TYPE_CHECKING:
    from mypy_extensions import i64

    from wirecheck.capture.link.packet import Headers

SOL_PACKET: Final = 263
RX_RING: Final = 5
STATISTICS: Final = 6
VERSION: Final = 10
IGNORE_OUTGOING: Final = 23
V3 = 2
BLOCK_BYTES: Final = 1 << 20
RETIRE_MS: Final = 100  # a block that is not full is handed over after this long
OURS: Final = 1  # TP_STATUS_USER; 0 is the kernel's
STATUS_AT: Final = 8
_COUNT_AT: Final = 12
_FIRST_AT: Final = 16
_FILLED_AT: Final = 20
HEAD_BYTES: Final = 48
_NATIVE_BIG: Final = sys.byteorder == "big"


def ring_request(blocks: int) -> bytes:
    """The kernel's struct tpacket_req3. Version 3 lays packets out end to end; the frame size is only a bound."""
    frame_bytes = 2048
    return struct.pack("=7I", BLOCK_BYTES, blocks, frame_bytes, blocks * BLOCK_BYTES // frame_bytes, RETIRE_MS, 0, 0)


def drops(statistics: bytes) -> int:
    """Packets lost since this was last asked (struct tpacket_stats_v3)."""
    return int(struct.unpack("=III", statistics)[1])


def filled_bytes(head: bytes) -> int:
    """Of a block that begins so: where its last packet ends."""
    return int(struct.unpack_from("=I", head, _FILLED_AT)[0])


def begin_block(block: bytes, headers: Headers) -> int:
    """Stand before the block's first packet; answers how many there are."""
    headers.position = read32(block, _FIRST_AT, _NATIVE_BIG)
    return int(read32(block, _COUNT_AT, _NATIVE_BIG))


def walk_block(block: bytes, left: i64, link_type: i64, headers: Headers) -> int:
    """Packets from where we stand; answers how many are left because the batch is full."""
    at = headers.position
    while left > 0:
        ts_ns = read32(block, at + 4, _NATIVE_BIG) * 1_000_000_000 + read32(block, at + 8, _NATIVE_BIG)
        captured, wire = read32(block, at + 12, _NATIVE_BIG), read32(block, at + 16, _NATIVE_BIG)
        begins = read32(block, at + 24, _NATIVE_BIG)  # two 16-bit offsets: the link header's and the network header's
        begins = begins >> 16 if _NATIVE_BIG else begins & 0xFFFF
        if not headers.take_packet(block, at + begins, captured, wire, link_type, ts_ns):
            break
        left -= 1
        at += read32(block, at, _NATIVE_BIG)
    headers.position = at
    return int(left)
