"""IP and TCP headers by offset: one captured packet becomes one row of numbers, or the reason why not.

Knows: where the fields stand in IPv4 and IPv6 with extension headers, and what a snaplen cut.
Refuses to know: files and blocks (pcap.py, pcapng.py), link types and tunnels (link.py), connections, payload,
checksums (offloading makes them wrong).
Rule: no Python object per packet. Everything is int64 and `np.int64(byte)`, so that the same code runs jitted and
under NUMBA_DISABLE_JIT=1; every read stands behind a comparison with the end of what was captured.
"""

from __future__ import annotations

import socket
import struct
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wirecheck.capture.frames import MOST_PAYLOAD_BYTES
from wirecheck.capture.link.link_type import (
    BAD_HEADER,
    IPV4_FRAGMENT,
    IPV6_FRAGMENT,
    LINK_ETHERNET,
    NON_TCP,
    SNAPLEN_HEADER,
    TCP,
    Number,
    ip_start,
    u16,
    u32,
)
from wirecheck.decode.compiled import borrowing_njit
from wirecheck.decode.copying import copy

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Columns of a window's matrix of rows, int64[COLUMN_COUNT, capacity].
FRAME_NO, TS_NS, CLOCK, SRC, SRC_PORT, DST, DST_PORT, SEQ, ACK, FLAGS, AT, KEPT, LENGTH = range(13)
COLUMN_COUNT = 13

ADDRESSES_FULL = -1  # not a reason: the caller ends the batch and comes again with an empty address table

# The counters a walk carries from call to call, int64[COUNTER_COUNT]: next byte in the window, rows of this batch,
# packets of the file, newest time of any packet so far, packets that the file itself says were dropped; packets that
# a snaplen cut inside their payload, and the longest of them as captured.
POSITION, ROW, PACKET_NO, NEWEST_NS, DROPPED, CUT, CUT_BYTES = range(7)
COUNTER_COUNT = 7
OLDEST_NS = -(1 << 62)

ADDRESS_CAPACITY = 4096  # distinct addresses per batch; a batch ends early when it meets more
ADDRESS_SLOTS = 4 * ADDRESS_CAPACITY


class State(NamedTuple):
    """What a walk writes: the rows of this batch, and counts that go on from batch to batch."""

    rows: NDArray[np.int64]  # [COLUMN_COUNT, capacity]
    counters: NDArray[np.int64]  # [COUNTER_COUNT]
    skipped: NDArray[np.int64]  # [len(REASONS)]
    known: NDArray[np.int64]  # addresses of this batch: known[0, 0] counts, row 1 + code is (size, high, low)
    slots: NDArray[np.int64]  # hash table over `known`, 0 is free


@borrowing_njit
def _tcp_start_v4(data: NDArray[np.uint8], ip: int, end: int, wire_end: int) -> tuple[Number, Number]:
    """Where the TCP header begins and where the packet ends on the wire, or minus the reason."""
    if ip + 20 > end:
        return -SNAPLEN_HEADER, 0
    header_bytes = (np.int64(data[ip]) & 15) * 4
    total_bytes = u16(data, ip + 2)
    if header_bytes < 20 or 0 < total_bytes < header_bytes:
        return -BAD_HEADER, 0
    if data[ip + 9] != 6:
        return -NON_TCP, 0
    if u16(data, ip + 6) & 0x3FFF:  # more fragments, or an offset
        return -IPV4_FRAGMENT, 0
    if total_bytes == 0:  # segmentation offload: the card would have filled it in
        return ip + header_bytes, wire_end
    return ip + header_bytes, ip + total_bytes


@borrowing_njit
def _tcp_start_v6(data: NDArray[np.uint8], ip: int, end: int, wire_end: int) -> tuple[Number, Number]:
    """The same behind IPv6 and its chain of extension headers (RFC 8200 section 4)."""
    if ip + 40 > end:
        return -SNAPLEN_HEADER, 0
    payload_bytes = u16(data, ip + 4)
    packet_end = wire_end if payload_bytes == 0 else ip + 40 + payload_bytes  # 0: jumbo or segmentation offload
    following: Number = np.int64(data[ip + 6])
    at = ip + 40
    while following != 6:
        if following not in (0, 43, 44, 51, 60, 135, 139, 140):
            return -NON_TCP, 0
        if at + 8 > end:
            return -SNAPLEN_HEADER, 0
        size: Number = (np.int64(data[at + 1]) + 1) * 8
        if following == 51:  # authentication header: in units of 4, less 2 (RFC 4302)
            size = (np.int64(data[at + 1]) + 2) * 4
        elif following == 44:
            size = 8
            if u16(data, at + 2) & 0xFFF9:
                return -(IPV6_FRAGMENT if data[at] == 6 else NON_TCP), 0
        following = np.int64(data[at])
        at += size
    return at, packet_end


@borrowing_njit
def _address(data: NDArray[np.uint8], at: int, size: int, state: State) -> Number:
    """Code of an address in this batch's table."""
    known, slots = state.known, state.slots
    high: Number = np.int64(0)
    low = u32(data, at)
    if size == 16:
        high = (u32(data, at) << 32) | u32(data, at + 4)
        low = (u32(data, at + 8) << 32) | u32(data, at + 12)
    mixed: Number = np.int64(2166136261)
    for part in range(0, size, 4):  # FNV-1a over 32-bit parts, kept small enough never to overflow int64
        mixed = ((mixed ^ u32(data, at + part)) * 16777619) & 0xFFFFFFFF
    slot = (mixed ^ (mixed >> 15)) % ADDRESS_SLOTS
    while slots[slot] != 0:
        row = slots[slot]
        if known[row, 0] == size and known[row, 1] == high and known[row, 2] == low:
            return row - 1
        slot = (slot + 1) % ADDRESS_SLOTS
    row = known[0, 0] + 1
    if row > ADDRESS_CAPACITY:
        return ADDRESSES_FULL
    known[0, 0] = row
    known[row, 0], known[row, 1], known[row, 2] = size, high, low
    slots[slot] = row
    return row - 1


@borrowing_njit
def _is_plain(data: NDArray[np.uint8], at: int, captured: int, link_type: int) -> Number:
    """TCP in IPv4 in Ethernet, without tags or a tunnel: what nearly every packet is."""
    if link_type != LINK_ETHERNET or captured < 54:
        return False
    return u16(data, at + 12) == 0x0800 and u16(data, at + 14) >> 8 == 0x45 and u16(data, at + 22) & 0xFF == 6


@borrowing_njit
def read_packet(data: NDArray[np.uint8], where: tuple[int, int, int, int, int], state: State) -> Number:
    """Headers of one packet into the next row: TCP, a reason, or ADDRESSES_FULL."""
    at, captured, wire, link_type, _ = where
    end = at + captured
    cut = BAD_HEADER if captured >= wire else SNAPLEN_HEADER  # too short, though all of it is here?
    ip = at + 14
    if not _is_plain(data, at, captured, link_type):
        ip = ip_start(data, at, end, link_type)
    if ip < 0:
        return cut if ip == -SNAPLEN_HEADER else -ip
    if ip >= end:
        return cut
    version = data[ip] >> 4
    if version == 4:
        tcp, packet_end = _tcp_start_v4(data, ip, end, at + max(wire, captured))
    elif version == 6:
        tcp, packet_end = _tcp_start_v6(data, ip, end, at + max(wire, captured))
    else:
        return BAD_HEADER
    if tcp < 0:
        return cut if tcp == -SNAPLEN_HEADER else -tcp
    if tcp + 20 > end:
        return cut
    payload = tcp + (np.int64(data[tcp + 12]) >> 4) * 4
    if payload < tcp + 20 or payload > packet_end or packet_end - payload > MOST_PAYLOAD_BYTES:
        return BAD_HEADER
    size, src_at, dst_at = (4, ip + 12, ip + 16) if version == 4 else (16, ip + 8, ip + 24)
    src = _address(data, src_at, size, state)
    dst = _address(data, dst_at, size, state)
    if src < 0 or dst < 0:
        return ADDRESSES_FULL
    rows, row = state.rows, state.counters[ROW]
    rows[SRC, row], rows[DST, row] = src, dst
    rows[SRC_PORT, row], rows[DST_PORT, row] = u16(data, tcp), u16(data, tcp + 2)
    rows[SEQ, row], rows[ACK, row] = u32(data, tcp + 4), u32(data, tcp + 8)
    rows[FLAGS, row] = u16(data, tcp + 12) & 0x1FF
    rows[AT, row] = payload
    rows[LENGTH, row] = packet_end - payload
    rows[KEPT, row] = max(0, min(packet_end, end) - payload)
    return TCP


@borrowing_njit
def take_packet(data: NDArray[np.uint8], where: tuple[int, int, int, int, int], state: State) -> bool:
    """Count one packet and keep its row if it has one. False: the batch is full, nothing was counted.

    `where` is its first byte, its captured length, its length on the wire, its link type and its time.
    """
    rows, counters = state.rows, state.counters
    row, ts_ns = counters[ROW], where[4]
    if row == rows.shape[1]:
        return False
    outcome = read_packet(data, where, state)
    if outcome == ADDRESSES_FULL:
        return False
    counters[PACKET_NO] += 1
    counters[NEWEST_NS] = max(counters[NEWEST_NS], ts_ns)
    if outcome == TCP:
        rows[FRAME_NO, row] = counters[PACKET_NO]
        rows[TS_NS, row] = ts_ns
        rows[CLOCK, row] = counters[NEWEST_NS]
        if rows[KEPT, row] < rows[LENGTH, row]:
            counters[CUT] += 1
            counters[CUT_BYTES] = max(counters[CUT_BYTES], where[1])
        counters[ROW] += 1
    else:
        state.skipped[outcome] += 1
    return True


@borrowing_njit
def gather(
    data: NDArray[np.uint8], at: NDArray[np.int64], size: NDArray[np.int64], ends: NDArray[np.int32],
    out: NDArray[np.uint8],
) -> None:  # fmt: skip
    """out[ends[i] : ends[i + 1]] = the kept bytes of row i, which begin at data[at[i]]; ends[0] is given."""
    end: Number = np.int64(ends[0])
    for i in range(at.size):
        copy(data, at[i], out, end, size[i])
        end += size[i]
        ends[i + 1] = end


def address_texts(known: NDArray[np.int64]) -> list[str]:
    return [_text(*address) for address in known[1 : 1 + int(known[0, 0])].tolist()]


@lru_cache(ADDRESS_CAPACITY)
def _text(size: int, high: int, low: int) -> str:
    if size == 4:
        return socket.inet_ntop(socket.AF_INET, struct.pack(">I", low))
    return socket.inet_ntop(socket.AF_INET6, struct.pack(">qq", high, low))
