"""Lists of pieces: how bytes of a stream are kept without moving them.

Knows: a piece is a run of one stream (bytes we have, bytes left out, bytes never seen) that points to where its bytes
lie; pieces form lists; lists are read, cut and given back here.
Refuses to know: why a piece is in which list.
Rule: bytes are copied twice at most: once when a call ends before their message does (settle), once into the message.
"""

# ruff: noqa: PLR0917 -- jitted kernels take arrays and indices one by one

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import njit

from wirecheck.decode.connection.state.heap import give_piece, take_piece
from wirecheck.decode.connection.state.slots import (
    DATA,
    G_ARENA_LIVE,
    GAP,
    NOW_FRAME,
    NOW_OFFSET,
    NOW_SOURCE,
    NOW_TS,
    NOW_WIRE,
    P_ADDRESS,
    P_AT,
    P_FRAME,
    P_FRAME_LAST,
    P_KIND,
    P_LENGTH,
    P_NEXT,
    P_PACKET,
    P_PACKET_END,
    P_SOURCE,
    P_TS,
    P_TS_LAST,
    W_FROM,
    W_HEAD,
    W_KEPT,
    W_PIECES,
    W_SETTLED,
    W_TAIL,
)
from wirecheck.decode.copying import copy

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Bytes, Ints


@njit
def new_piece(s: Ints, at: int, length: int, kind: int, address: int) -> Any:
    p = take_piece(s)
    s[p + P_AT] = at
    s[p + P_LENGTH] = length
    s[p + P_KIND] = kind
    s[p + P_ADDRESS] = address
    return p


@njit
def stamp(s: Ints, p: int) -> None:
    """The piece comes from the frame that is looked at."""
    s[p + P_TS] = s[NOW_TS]
    s[p + P_TS_LAST] = s[NOW_TS]
    s[p + P_FRAME] = s[NOW_FRAME]
    s[p + P_FRAME_LAST] = s[NOW_FRAME]
    s[p + P_SOURCE] = s[NOW_SOURCE]
    s[p + P_PACKET] = s[NOW_OFFSET]
    s[p + P_PACKET_END] = s[NOW_OFFSET] + s[NOW_WIRE]


@njit
def copy_stamp(s: Ints, p: int, q: int) -> None:
    for column in range(P_TS, P_PACKET_END + 1):
        s[q + column] = s[p + column]


@njit
def free_piece(s: Ints, p: int) -> None:
    if s[p + P_KIND] == DATA and s[p + P_ADDRESS] < 0:
        s[G_ARENA_LIVE] -= s[p + P_LENGTH]
    give_piece(s, p)


@njit
def free_list(s: Ints, p: int) -> None:
    while p >= 0:
        following = s[p + P_NEXT]
        free_piece(s, p)
        p = following


@njit
def advance_front(s: Ints, p: int, count: int) -> None:
    """The piece, of bytes that we have, without its first `count` bytes (fewer than it has)."""
    s[p + P_AT] += count
    s[p + P_LENGTH] -= count
    if s[p + P_ADDRESS] >= 0:
        s[p + P_ADDRESS] += count
    else:
        s[p + P_ADDRESS] -= count
        s[G_ARENA_LIVE] -= count


@njit
def split(s: Ints, p: int, count: int) -> Any:
    """Cut the piece after `count` bytes; the rest is a new piece behind it."""
    address = s[p + P_ADDRESS]
    if s[p + P_KIND] == DATA:
        address = address + count if address >= 0 else address - count
    rest = new_piece(s, s[p + P_AT] + count, s[p + P_LENGTH] - count, s[p + P_KIND], address)
    copy_stamp(s, p, rest)
    s[rest + P_NEXT] = s[p + P_NEXT]
    s[p + P_NEXT] = rest
    s[p + P_LENGTH] = count
    return rest


@njit
def append(s: Ints, w: int, p: int) -> None:
    """The piece becomes the newest in order of direction w."""
    if s[w + W_HEAD] < 0:
        s[w + W_HEAD] = p
        s[w + W_FROM] = s[p + P_AT]
    else:
        s[s[w + W_TAIL] + P_NEXT] = p
    s[w + W_TAIL] = p
    s[p + P_NEXT] = -1
    s[w + W_PIECES] += 1
    if s[p + P_KIND] == DATA:
        s[w + W_KEPT] += s[p + P_LENGTH]


@njit
def detach(s: Ints, w: int, upto: int) -> Any:
    """Take the pieces before offset `upto` off direction w, as a list; -1 if there are none."""
    first = s[w + W_HEAD]
    if first < 0 or s[first + P_AT] >= upto:
        return -1
    last, p = -1, first
    while p >= 0 and s[p + P_AT] < upto:
        excess = s[p + P_AT] + s[p + P_LENGTH] - upto
        if excess > 0:
            rest = split(s, p, s[p + P_LENGTH] - excess)
            s[w + W_PIECES] += 1
            if s[w + W_TAIL] == p:
                s[w + W_TAIL] = rest
        s[w + W_PIECES] -= 1
        if s[p + P_KIND] == DATA:
            s[w + W_KEPT] -= s[p + P_LENGTH]
        if s[w + W_SETTLED] == p:
            s[w + W_SETTLED] = -1
        last = p
        p = s[p + P_NEXT]
    s[last + P_NEXT] = -1
    s[w + W_HEAD] = p
    if p < 0:
        s[w + W_TAIL] = -1
    s[w + W_FROM] = upto
    return first


@njit
def without_front(s: Ints, p: int, count: int) -> Any:
    """The list without its first `count` bytes, which we have; -1 if nothing remains."""
    while p >= 0 and s[p + P_LENGTH] <= count:
        count -= s[p + P_LENGTH]
        following = s[p + P_NEXT]
        free_piece(s, p)
        p = following
    if p >= 0 and count > 0:
        advance_front(s, p, count)
    return p


@njit
def read(s: Ints, new: Bytes, old: Bytes, p: int, at: int, out: Bytes, limit: int) -> Any:
    """Copy bytes from stream offset `at` on into `out`, up to `limit` or the first that is not there; how many."""
    while p >= 0 and s[p + P_AT] + s[p + P_LENGTH] <= at:
        p = s[p + P_NEXT]
    count = 0
    while p >= 0 and count < limit and s[p + P_KIND] == DATA:
        skip = at + count - s[p + P_AT]
        length = min(s[p + P_LENGTH] - skip, limit - count)
        address = s[p + P_ADDRESS]
        if address >= 0:
            copy(new, address + skip, out, count, length)
        else:
            copy(old, -1 - address + skip, out, count, length)
        count += length
        p = s[p + P_NEXT]
    return count


@njit
def seen_last(s: Ints, p: int) -> Any:
    """Of the list: (time, frame) of its newest packet, bytes never seen, bytes that are there, runs that are not."""
    ts, frame, gap, kept, runs = s[p + P_TS_LAST], s[p + P_FRAME_LAST], 0, 0, 0
    before = DATA
    while p >= 0:
        kind = s[p + P_KIND]
        if kind == DATA:
            kept += s[p + P_LENGTH]
        elif before == DATA:
            runs += 1
        if kind == GAP:
            gap += s[p + P_LENGTH]
        else:
            ts, frame = max(ts, s[p + P_TS_LAST]), max(frame, s[p + P_FRAME_LAST])
        before = kind
        p = s[p + P_NEXT]
    return ts, frame, gap, kept, runs


@njit
def piece_of(s: Ints, p: int, at: int) -> Any:
    """The piece of the list, from p on, in which this offset lies."""
    while s[p + P_AT] + s[p + P_LENGTH] <= at:
        p = s[p + P_NEXT]
    return p


@njit
def fills_packets(s: Ints, p: int, at: int, end: int, most: int) -> Any:
    """(whether [at, end), which begins within p, begins where a packet begins and ends where one ends, pieces walked);
    no if that takes more than `most`.
    """
    if s[p + P_PACKET] != at or s[p + P_KIND] == GAP:
        return False, 0
    walked = 0
    while p >= 0 and s[p + P_AT] + s[p + P_LENGTH] < end and walked < most:
        p = s[p + P_NEXT]
        walked += 1
    return p >= 0 and s[p + P_PACKET_END] == end and s[p + P_KIND] != GAP, walked


@njit
def begins_packet(s: Ints, p: int, at: int) -> Any:
    while p >= 0 and s[p + P_AT] + s[p + P_LENGTH] <= at:
        p = s[p + P_NEXT]
    return p >= 0 and s[p + P_PACKET] == at and s[p + P_KIND] != GAP
