"""One direction of a connection: packets in any order become bytes in order, and gaps.

Knows: sequence numbers (32 bits, wrapping, RFC 9293 3.4), overlap, duplicates, what was held back, and when a hole is
final: when the peer acknowledged past it some frames or some capture time ago, or when it is old.
Refuses to know: what the bytes mean, and the other direction except for its acknowledgements.
Rule: a gap is a piece of its own, never bytes; the first bytes seen for an offset stay, whatever comes later.
"""

# ruff: noqa: PLR0917 -- jitted kernels take arrays and indices one by one

from __future__ import annotations

from typing import Any

from numba import njit

from decode.pieces import advance_front, append, byte_at, copy_stamp, free_piece, new_piece, stamp
from decode.slots import (
    C_GRID,
    C_LIMITS,
    C_MARK,
    C_TICK,
    CLOSED,
    DATA,
    G_GAPS,
    GAP,
    H_BYTES,
    H_CONNECTION,
    H_DIRECTION,
    H_TS,
    HELD,
    L_HELD_BYTES,
    L_HELD_PIECES,
    L_HOLE_NS,
    L_SLACK_FRAMES,
    L_SLACK_NS,
    LEFT,
    OFF,
    P_ADDRESS,
    P_AT,
    P_KIND,
    P_LENGTH,
    P_NEXT,
    P_TS,
    RUNNING,
    SEARCH,
    START,
    UNSET,
    W_ACKED,
    W_ACKED_MID_FRAMES,
    W_ACKED_MID_TIME,
    W_ACKED_OLD_FRAMES,
    W_ACKED_OLD_TIME,
    W_BASE,
    W_CONFLICTING,
    W_FIN,
    W_FROM,
    W_HELD,
    W_HELD_BYTES,
    W_HELD_COUNT,
    W_HELD_TAIL,
    W_MODE,
    W_NEXT,
    W_OPEN,
    W_SCAN,
    W_SYN,
    W_TOP,
    W_UNSEEN,
    Frames,
    Memory,
)

BELIEVABLE = 1 << 30  # the largest window TCP can offer (RFC 7323 2.3): nothing further away belongs to this stream


@njit
def offset_of(m: Memory, w: int, seq: int) -> Any:
    """Where a sequence number lies in direction w: the place nearest to the newest byte."""
    near = m.way[w, W_TOP]
    ahead = (seq - m.way[w, W_BASE] - near) & 0xFFFFFFFF
    if ahead >= 0x80000000:
        ahead -= 0x100000000
    return near + ahead


@njit
def begin(m: Memory, w: int, seq: int) -> None:
    """The stream of direction w is known to begin at this sequence number."""
    m.way[w, W_BASE] = seq & 0xFFFFFFFF
    m.way[w, W_OPEN] = RUNNING
    m.way[w, W_MODE] = START
    m.way[w, W_SYN] = 1
    for column in (W_NEXT, W_TOP, W_FROM, W_SCAN):
        m.way[w, column] = 0


@njit
def begin_late(m: Memory, w: int, seq: int) -> Any:
    """SYN after first data, by a shuffled capture: True if it fits, and the stream then begins there."""
    if m.way[w, W_OPEN] != HELD:
        return False
    at = offset_of(m, w, seq)
    first = m.way[w, W_HELD]
    if first < 0 or at > m.piece[first, P_AT] or m.piece[first, P_AT] - at > m.limit[L_HELD_BYTES]:
        return False
    m.way[w, W_OPEN] = RUNNING
    m.way[w, W_MODE] = START
    m.way[w, W_SYN] = 1
    for column in (W_NEXT, W_FROM, W_SCAN):
        m.way[w, column] = at
    return True


@njit
def acknowledge(m: Memory, w: int, ack: int) -> None:
    """The peer has everything of direction w below this number."""
    way = m.way
    if way[w, W_OPEN] == CLOSED:
        return
    at = offset_of(m, w, ack)
    if way[w, W_FIN] != UNSET:
        at = min(at, way[w, W_FIN])
    if at > way[w, W_ACKED] and at - way[w, W_TOP] < BELIEVABLE:
        way[w, W_ACKED] = at


@njit
def remember_acknowledged(m: Memory, c: int, ts: int) -> None:
    """Keep what was acknowledged at least half the slack ago, in frames and in time, for both directions."""
    grid = ts // max(m.limit[L_SLACK_NS] // 2, 1)
    steps = grid - m.connection[c, C_GRID]
    if steps > 0:
        for w in (2 * c, 2 * c + 1):
            m.way[w, W_ACKED_OLD_TIME] = m.way[w, W_ACKED_MID_TIME] if steps == 1 else m.way[w, W_ACKED]
            m.way[w, W_ACKED_MID_TIME] = m.way[w, W_ACKED]
        m.connection[c, C_GRID] = grid
    if m.connection[c, C_TICK] - m.connection[c, C_MARK] >= m.limit[L_SLACK_FRAMES] // 2:
        for w in (2 * c, 2 * c + 1):
            m.way[w, W_ACKED_OLD_FRAMES] = m.way[w, W_ACKED_MID_FRAMES]
            m.way[w, W_ACKED_MID_FRAMES] = m.way[w, W_ACKED]
        m.connection[c, C_MARK] = m.connection[c, C_TICK]


@njit
def arrive(m: Memory, f: Frames, i: int, w: int, seq: int) -> None:
    """The payload of frame i, which begins at this sequence number, for direction w."""
    way = m.way
    length = f.wire[i]
    if way[w, W_OPEN] == CLOSED:
        way[w, W_BASE] = seq
        way[w, W_OPEN] = HELD
        way[w, W_TOP] = 0
        way[w, W_MODE] = SEARCH if way[w, W_MODE] != OFF else OFF
    a = offset_of(m, w, seq)
    b = a + length
    if way[w, W_OPEN] == RUNNING and abs(a - way[w, W_NEXT]) > BELIEVABLE:
        return
    way[w, W_TOP] = max(way[w, W_TOP], b)
    address = f.at[i]
    if way[w, W_OPEN] == RUNNING and a == way[w, W_NEXT] and way[w, W_HELD] < 0:
        way[w, W_NEXT] = b
        if way[w, W_MODE] == OFF:
            return
        if f.left_at[i] == f.left_at[i + 1]:
            p = new_piece(m, a, length, DATA, address)
            stamp(m, p, f.ts_ns[i], f.frame_no[i], f.source[i])
            append(m, w, p)
            return
        way[w, W_NEXT] = a
    _arrive_in_parts(m, f, i, w, a, b)
    catch_up(m, w)


@njit
def _arrive_in_parts(m: Memory, f: Frames, i: int, w: int, a: int, b: int) -> None:
    at, address = a, f.at[i]
    for k in range(f.left_at[i], f.left_at[i + 1]):
        start = min(max(a + f.left_offset[k], at), b)
        end = min(max(start, a + f.left_offset[k] + f.left_length[k]), b)
        _hold(m, f, i, w, at, start, DATA, address)
        address += start - at
        _hold(m, f, i, w, start, end, LEFT, 0)
        at = end
    _hold(m, f, i, w, at, b, DATA, address)


@njit
def _hold(m: Memory, f: Frames, i: int, w: int, a: int, b: int, kind: int, address: int) -> None:
    """Put [a, b) among the pieces held, as far as it is new."""
    way = m.way
    if way[w, W_OPEN] == RUNNING and a < way[w, W_NEXT]:
        if kind == DATA:
            address += way[w, W_NEXT] - a
        a = way[w, W_NEXT]
    if a >= b:
        return
    tail = way[w, W_HELD_TAIL]
    if tail >= 0 and a >= m.piece[tail, P_AT] + m.piece[tail, P_LENGTH]:
        _link(m, f, i, w, tail, a, b, kind, address)
        return
    before, p = -1, way[w, W_HELD]
    while p >= 0 and a < b and m.piece[p, P_AT] < b:
        start, end = m.piece[p, P_AT], m.piece[p, P_AT] + m.piece[p, P_LENGTH]
        if a < start:
            _link(m, f, i, w, before, a, start, kind, address)
            address += start - a if kind == DATA else 0
            a = start
        if a < end:
            stop = min(b, end)
            _overlap(m, f, i, w, p, a, stop, kind, address)
            address += stop - a if kind == DATA else 0
            a = stop
        before = p
        p = m.piece[p, P_NEXT]
    if a < b:
        _link(m, f, i, w, before, a, b, kind, address)


@njit
def _link(m: Memory, f: Frames, i: int, w: int, before: int, a: int, b: int, kind: int, address: int) -> None:
    way = m.way
    p = new_piece(m, a, b - a, kind, address if kind == DATA else 0)
    stamp(m, p, f.ts_ns[i], f.frame_no[i], f.source[i])
    if before < 0:
        m.piece[p, P_NEXT] = way[w, W_HELD]
        way[w, W_HELD] = p
    else:
        m.piece[p, P_NEXT] = m.piece[before, P_NEXT]
        m.piece[before, P_NEXT] = p
    if m.piece[p, P_NEXT] < 0:
        way[w, W_HELD_TAIL] = p
    way[w, W_HELD_COUNT] += 1
    if kind == DATA:
        way[w, W_HELD_BYTES] += b - a


@njit
def _overlap(m: Memory, f: Frames, i: int, w: int, p: int, a: int, b: int, kind: int, address: int) -> None:
    """[a, b) lies within piece p: the same bytes again, other bytes (counted), or bytes for what was left out."""
    if kind != DATA:
        return
    if m.piece[p, P_KIND] == LEFT:
        if a == m.piece[p, P_AT] and b == a + m.piece[p, P_LENGTH]:
            m.piece[p, P_KIND] = DATA
            m.piece[p, P_ADDRESS] = address
            stamp(m, p, f.ts_ns[i], f.frame_no[i], f.source[i])
            m.way[w, W_HELD_BYTES] += b - a
        return
    there = m.piece[p, P_ADDRESS]
    skip = a - m.piece[p, P_AT]
    for k in range(b - a):
        old = byte_at(m, there + skip + k if there >= 0 else there - skip - k)
        if old != m.payload[address + k]:
            m.way[w, W_CONFLICTING] += 1


@njit
def catch_up(m: Memory, w: int) -> None:
    """Held pieces that now continue the stream become part of it."""
    way = m.way
    if way[w, W_OPEN] != RUNNING:
        return
    while way[w, W_HELD] >= 0:
        p = way[w, W_HELD]
        a, length = m.piece[p, P_AT], m.piece[p, P_LENGTH]
        if a > way[w, W_NEXT]:
            return
        way[w, W_HELD] = m.piece[p, P_NEXT]
        if way[w, W_HELD] < 0:
            way[w, W_HELD_TAIL] = -1
        way[w, W_HELD_COUNT] -= 1
        if m.piece[p, P_KIND] == DATA:
            way[w, W_HELD_BYTES] -= length
        fresh = a + length - way[w, W_NEXT]
        if fresh <= 0:
            free_piece(m, p)
            continue
        if fresh < length:
            advance_front(m, p, length - fresh)
        way[w, W_NEXT] += fresh
        if way[w, W_MODE] == OFF:
            free_piece(m, p)
        else:
            append(m, w, p)


@njit
def old_acknowledgement(m: Memory, w: int) -> Any:
    at = max(m.way[w, W_ACKED_OLD_TIME], m.way[w, W_ACKED_OLD_FRAMES])
    return at if m.way[w, W_FIN] == UNSET else min(at, m.way[w, W_FIN])


@njit
def overfull(m: Memory, w: int) -> Any:
    return m.way[w, W_HELD_BYTES] > m.limit[L_HELD_BYTES] or m.way[w, W_HELD_COUNT] > m.limit[L_HELD_PIECES]


@njit
def declare_gaps(m: Memory, c: int, w: int, now: int) -> Any:
    """Close every hole of direction w that is final by now; True if the stream moved."""
    way, moved = m.way, False
    while way[w, W_OPEN] != CLOSED:
        held = way[w, W_HELD]
        edge = m.piece[held, P_AT] if held >= 0 else -UNSET
        acked = old_acknowledgement(m, w)
        aged = held >= 0 and now >= m.piece[held, P_TS] + m.limit[L_HOLE_NS]
        full = held >= 0 and overfull(m, w)
        if way[w, W_OPEN] == HELD:
            if held < 0 or not (acked > edge or aged or full):
                return moved
            _start_in_the_middle(m, w, edge)
        elif acked > way[w, W_NEXT]:
            _gap(m, c, w, min(acked, edge), now)
        elif aged or full:
            _gap(m, c, w, edge, now)
        else:
            return moved
        if full and not aged and acked <= edge:
            m.connection[c, C_LIMITS] += 1
        catch_up(m, w)
        moved = True
    return moved


@njit
def close_holes(m: Memory, c: int, w: int, now: int) -> None:
    """Nothing more will come: every hole of direction w is final."""
    way = m.way
    while way[w, W_OPEN] != CLOSED and way[w, W_HELD] >= 0:
        edge = m.piece[way[w, W_HELD], P_AT]
        if way[w, W_OPEN] == HELD:
            _start_in_the_middle(m, w, edge)
        elif edge > way[w, W_NEXT]:
            _gap(m, c, w, edge, now)
        catch_up(m, w)
    acked = way[w, W_ACKED] if way[w, W_FIN] == UNSET else min(way[w, W_ACKED], way[w, W_FIN])
    if way[w, W_OPEN] == RUNNING and acked > way[w, W_NEXT]:
        _gap(m, c, w, acked, now)


@njit
def _start_in_the_middle(m: Memory, w: int, at: int) -> None:
    m.way[w, W_OPEN] = RUNNING
    for column in (W_NEXT, W_FROM, W_SCAN):
        m.way[w, column] = at


@njit
def _gap(m: Memory, c: int, w: int, to: int, now: int) -> None:
    way, at = m.way, m.way[w, W_NEXT]
    if way[w, W_MODE] != OFF:
        p = new_piece(m, at, to - at, GAP, 0)
        if way[w, W_HELD] >= 0:
            copy_stamp(m, way[w, W_HELD], p)
        else:
            stamp(m, p, now, 0, 0)
        append(m, w, p)
    way[w, W_NEXT] = to
    way[w, W_TOP] = max(way[w, W_TOP], to)
    way[w, W_UNSEEN] += to - at
    row = m.whole[G_GAPS]
    m.gap[row, H_CONNECTION] = c
    m.gap[row, H_TS] = now
    m.gap[row, H_DIRECTION] = w - 2 * c
    m.gap[row, H_BYTES] = to - at
    m.whole[G_GAPS] += 1


@njit
def hole_deadline(m: Memory, c: int, w: int) -> Any:
    """When the oldest hole of direction w becomes final if nothing more arrives; far away if there is none."""
    way, at = m.way, -UNSET
    if way[w, W_OPEN] == CLOSED:
        return at
    held = way[w, W_HELD]
    beyond = way[w, W_NEXT] if way[w, W_OPEN] == RUNNING else (m.piece[held, P_AT] if held >= 0 else -UNSET)
    if way[w, W_ACKED] > beyond:
        at = (m.connection[c, C_GRID] + 1) * max(m.limit[L_SLACK_NS] // 2, 1)
    if held >= 0:
        at = min(at, m.piece[held, P_TS] + m.limit[L_HOLE_NS])
    return at


@njit
def has_hole(m: Memory, w: int) -> Any:
    """Something of direction w is still missing and may still come."""
    if m.way[w, W_OPEN] == HELD:
        return True
    return m.way[w, W_OPEN] == RUNNING and (m.way[w, W_HELD] >= 0 or m.way[w, W_ACKED] > m.way[w, W_NEXT])
