"""The kernel's ring of packets: blocks of a TPACKET_V3 ring, read by offset.

Knows: how a block and the packets in it are laid out, and how to ask for such a ring.
Refuses to know: sockets, interfaces and filters (live.py), what is in a packet (packet.py).
Rule: a block belongs to us from the moment its status says so until we give it back; rows copy what they keep before.
Source: linux/if_packet.h (struct tpacket_block_desc, tpacket3_hdr, tpacket_req3), Documentation/networking/packet_mmap.
"""

from __future__ import annotations

import struct
import sys
from typing import TYPE_CHECKING

from wirecheck.capture.link import link_type as link
from wirecheck.capture.link import packet
from wirecheck.capture.source.classic import read32
from wirecheck.decode.compiled import borrowing_njit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SOL_PACKET, RX_RING, STATISTICS, VERSION, IGNORE_OUTGOING, V3 = 263, 5, 6, 10, 23, 2
BLOCK_BYTES = 1 << 20
RETIRE_MS = 100  # a block that is not full is handed over after this long
OURS = 1  # TP_STATUS_USER; 0 is the kernel's
STATUS_AT, _COUNT_AT, _FIRST_AT = 8, 12, 16
_NATIVE_BIG = int(sys.byteorder == "big")


def ring_request(blocks: int) -> bytes:
    """The kernel's struct tpacket_req3. Version 3 lays packets out end to end; the frame size is only a bound."""
    frame_bytes = 2048
    return struct.pack("=7I", BLOCK_BYTES, blocks, frame_bytes, blocks * BLOCK_BYTES // frame_bytes, RETIRE_MS, 0, 0)


def drops(statistics: bytes) -> int:
    """Packets lost since this was last asked (struct tpacket_stats_v3)."""
    return int(struct.unpack("=III", statistics)[1])


@borrowing_njit
def begin_block(data: NDArray[np.uint8], block: int, state: packet.State) -> link.Number:
    """Stand before the block's first packet; answers how many there are."""
    state.counters[packet.POSITION] = block + read32(data, block + _FIRST_AT, _NATIVE_BIG)
    return read32(data, block + _COUNT_AT, _NATIVE_BIG)


@borrowing_njit
def walk_block(data: NDArray[np.uint8], left: int, link_type: int, state: packet.State) -> link.Number:
    """Packets from where we stand; answers how many are left because the batch is full."""
    at = state.counters[packet.POSITION]
    while left > 0:
        seconds = read32(data, at + 4, _NATIVE_BIG)
        ts_ns = seconds * 1_000_000_000 + read32(data, at + 8, _NATIVE_BIG)
        captured, wire = read32(data, at + 12, _NATIVE_BIG), read32(data, at + 16, _NATIVE_BIG)
        begins = read32(data, at + 24, _NATIVE_BIG)  # two 16-bit offsets: the link header's and the network header's
        begins = begins >> 16 if _NATIVE_BIG else begins & 0xFFFF
        if not packet.take_packet(data, (at + begins, captured, wire, link_type, ts_ns), state):
            break
        left -= 1
        at += read32(data, at, _NATIVE_BIG)
    state.counters[packet.POSITION] = at
    return left
