"""One direction of a connection: packets in any order become bytes in order, and gaps.

Knows: sequence numbers (32 bits, wrapping, RFC 9293 3.4), overlap, duplicates, what was held back, and when a hole is
final: when the peer acknowledged past it some frames or some capture time ago, or when it is old; where two agents show
the connection, when both have passed it. Bytes that one of two agents left out wait for the other's.
Refuses to know: what the bytes mean, and the other direction except for its acknowledgements.
Rule: a gap is a piece of its own, never bytes; the first bytes seen for an offset stay, whatever comes later.
"""

# ruff: noqa: PLR0917 -- jitted kernels take arrays and indices one by one

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import njit

from wirecheck.decode.connection.limits import BOTH, BOTH_HELD
from wirecheck.decode.connection.state.chunks import append, copy_stamp, free_piece, new_piece, split, stamp
from wirecheck.decode.connection.state.heap import side_of, take_line, way_of
from wirecheck.decode.connection.state.slots import (
    A_GAP,
    ALL_LEFT,
    C_AGENT,
    C_AGENT2,
    C_GRID,
    C_LIMITS,
    C_MARK,
    C_STARTED,
    C_TICK,
    CLOSED,
    DATA,
    G_AGENTS,
    G_GAPS,
    G_GONE,
    GAP,
    H_BYTES,
    H_DIRECTION,
    H_TS,
    HELD,
    L_HELD_BYTES,
    L_HELD_PIECES,
    L_HOLE_NS,
    L_SLACK_FRAMES,
    L_SLACK_NS,
    LEFT,
    MIDDLE,
    NOW_ADDRESS,
    NOW_AGENT,
    NOW_LEFT,
    NOW_LEFT_END,
    NOW_OFFSET,
    NOW_TS,
    NOW_WIRE,
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
    W_BOTH_MID_FRAMES,
    W_BOTH_MID_TIME,
    W_BOTH_OLD_FRAMES,
    W_BOTH_OLD_TIME,
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
    W_SHOWN,
    W_SHOWN2,
    W_SYN,
    W_TOP,
    W_UNSEEN,
)

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Bytes, Ints


BELIEVABLE = 1 << 30  # the largest window TCP can offer (RFC 7323 2.3): nothing further away belongs to this stream


@njit
def offset_of(s: Ints, w: int, seq: int) -> Any:
    """Where a sequence number lies in direction w: the place nearest to the newest byte."""
    near = s[w + W_TOP]
    ahead = (seq - s[w + W_BASE] - near) & 0xFFFFFFFF
    if ahead >= 0x80000000:
        ahead -= 0x100000000
    return near + ahead


@njit
def sent(s: Ints, w: int, seq: int) -> None:
    """Direction w goes on at this sequence number: whatever comes before it was sent, seen or not."""
    if s[w + W_OPEN] == RUNNING:
        at = offset_of(s, w, seq)
        if at - s[w + W_TOP] < BELIEVABLE >> 6:
            s[w + W_TOP] = max(s[w + W_TOP], at)


@njit
def begin(s: Ints, w: int, seq: int) -> None:
    """The stream of direction w is known to begin at this sequence number."""
    s[w + W_BASE] = seq & 0xFFFFFFFF
    s[w + W_OPEN] = RUNNING
    s[w + W_MODE] = START
    s[w + W_SYN] = 1
    for column in (W_NEXT, W_TOP, W_FROM, W_SCAN):
        s[w + column] = 0


@njit
def begin_late(s: Ints, w: int, seq: int) -> Any:
    """SYN after first data, which is held, by a shuffled capture: True if it fits, and the stream then begins there."""
    at = offset_of(s, w, seq)
    first = s[w + W_HELD]
    if first < 0 or at > s[first + P_AT] or s[first + P_AT] - at > s[L_HELD_BYTES]:
        return False
    s[w + W_OPEN] = RUNNING
    s[w + W_MODE] = START
    s[w + W_SYN] = 1
    for column in (W_NEXT, W_FROM, W_SCAN):
        s[w + column] = at
    return True


@njit
def two_live(s: Ints, c: int) -> Any:
    """Whether a second agent may still show what is missing: one that has shown the connection, or one that may yet
    show that it does, by another clock or in later files.
    """
    first, second = s[c + C_AGENT], s[c + C_AGENT2]
    if second < 0:
        return s[G_AGENTS] > 1 and s[NOW_TS] - s[c + C_STARTED] < BOTH * s[L_HOLE_NS]
    return (s[G_GONE] >> min(first, 62)) & 1 == 0 and (s[G_GONE] >> min(second, 62)) & 1 == 0


@njit
def shown(s: Ints, c: int, w: int, at: int) -> None:
    """The agent of the frame that is looked at has shown direction w up to this offset."""
    column = W_SHOWN2 if s[NOW_AGENT] == s[c + C_AGENT2] else W_SHOWN
    s[w + column] = max(s[w + column], at)


@njit
def acknowledge(s: Ints, c: int, w: int, ack: int) -> None:
    """The peer has everything of direction w below this number."""
    if s[w + W_OPEN] == CLOSED:
        return
    at = offset_of(s, w, ack)
    if s[w + W_FIN] != UNSET:
        at = min(at, s[w + W_FIN])
    if at - s[w + W_TOP] < BELIEVABLE:
        s[w + W_ACKED] = max(s[w + W_ACKED], at)
        shown(s, c, w, at)


@njit
def remember_acknowledged(s: Ints, c: int, ts: int) -> None:
    """Keep what was acknowledged at least half the slack ago, in frames and in time, for both directions."""
    grid = ts // max(s[L_SLACK_NS] // 2, 1)
    steps = grid - s[c + C_GRID]
    if steps > 0:
        for w in (way_of(c, 0), way_of(c, 1)):
            s[w + W_ACKED_OLD_TIME] = s[w + W_ACKED_MID_TIME] if steps == 1 else s[w + W_ACKED]
            s[w + W_ACKED_MID_TIME] = s[w + W_ACKED]
            both = min(s[w + W_SHOWN], s[w + W_SHOWN2])
            s[w + W_BOTH_OLD_TIME] = s[w + W_BOTH_MID_TIME] if steps == 1 else both
            s[w + W_BOTH_MID_TIME] = both
        s[c + C_GRID] = grid
    if s[c + C_TICK] - s[c + C_MARK] >= s[L_SLACK_FRAMES] // 2:
        for w in (way_of(c, 0), way_of(c, 1)):
            s[w + W_ACKED_OLD_FRAMES] = s[w + W_ACKED_MID_FRAMES]
            s[w + W_ACKED_MID_FRAMES] = s[w + W_ACKED]
            s[w + W_BOTH_OLD_FRAMES] = s[w + W_BOTH_MID_FRAMES]
            s[w + W_BOTH_MID_FRAMES] = min(s[w + W_SHOWN], s[w + W_SHOWN2])
        s[c + C_MARK] = s[c + C_TICK]


@njit
def arrive(s: Ints, new: Bytes, old: Bytes, left: Ints, c: int, w: int, seq: int) -> None:
    """The payload of the frame that is looked at, which begins at this sequence number, for direction w."""
    length = s[NOW_WIRE]
    if s[w + W_OPEN] == CLOSED:
        s[w + W_BASE] = seq
        s[w + W_OPEN] = HELD
        s[w + W_TOP] = MIDDLE
        s[w + W_MODE] = SEARCH if s[w + W_MODE] != OFF else OFF
    a = offset_of(s, w, seq)
    b = a + length
    s[NOW_OFFSET] = a
    if s[w + W_OPEN] == RUNNING and abs(a - s[w + W_NEXT]) > BELIEVABLE:
        return
    s[w + W_TOP] = max(s[w + W_TOP], b)
    shown(s, c, w, b)
    address = s[NOW_ADDRESS]
    if s[w + W_OPEN] == RUNNING and a == s[w + W_NEXT] and s[w + W_HELD] < 0:
        s[w + W_NEXT] = b
        if s[w + W_MODE] == OFF:
            return
        if s[NOW_LEFT] == s[NOW_LEFT_END]:
            p = new_piece(s, a, length, DATA, address)
            stamp(s, p)
            append(s, w, p)
            return
        s[w + W_NEXT] = a
    _arrive_in_parts(s, new, old, left, w, a, b, 2 if s[NOW_AGENT] == s[c + C_AGENT2] else 1)
    catch_up(s, w, s[c + C_AGENT2] >= 0 and two_live(s, c))


@njit
def _arrive_in_parts(s: Ints, new: Bytes, old: Bytes, left: Ints, w: int, a: int, b: int, agent: int) -> None:
    at, address = a, s[NOW_ADDRESS]
    for k in range(s[NOW_LEFT], s[NOW_LEFT_END]):
        start = min(max(a + left[k, 0], at), b)
        end = min(max(start, a + left[k, 0] + left[k, 1]), b)
        _hold(s, new, old, w, at, start, DATA, address)
        address += start - at
        _hold(s, new, old, w, start, end, LEFT, agent)
        at = end
    _hold(s, new, old, w, at, b, DATA, address)


@njit
def _hold(s: Ints, new: Bytes, old: Bytes, w: int, a: int, b: int, kind: int, address: int) -> None:
    """Put [a, b) among the pieces held, as far as it is new."""
    if s[w + W_OPEN] == RUNNING and a < s[w + W_NEXT]:
        if kind == DATA:
            address += s[w + W_NEXT] - a
        a = s[w + W_NEXT]
    if a >= b:
        return
    tail = s[w + W_HELD_TAIL]
    if tail >= 0 and a >= s[tail + P_AT] + s[tail + P_LENGTH]:
        _link(s, w, tail, a, b, kind, address)
        return
    before, p = -1, s[w + W_HELD]
    while p >= 0 and a < b and s[p + P_AT] < b:
        start, end = s[p + P_AT], s[p + P_AT] + s[p + P_LENGTH]
        if a < start:
            _link(s, w, before, a, start, kind, address)
            address += start - a if kind == DATA else 0
            a = start
        if a < end:
            stop = min(b, end)
            _overlap(s, new, old, w, p, a, stop, kind, address)
            address += stop - a if kind == DATA else 0
            a = stop
        before = p
        p = s[p + P_NEXT]
    if a < b:
        _link(s, w, before, a, b, kind, address)


@njit
def _link(s: Ints, w: int, before: int, a: int, b: int, kind: int, address: int) -> None:
    p = new_piece(s, a, b - a, kind, address)
    stamp(s, p)
    if before < 0:
        s[p + P_NEXT] = s[w + W_HELD]
        s[w + W_HELD] = p
    else:
        s[p + P_NEXT] = s[before + P_NEXT]
        s[before + P_NEXT] = p
    if s[p + P_NEXT] < 0:
        s[w + W_HELD_TAIL] = p
    s[w + W_HELD_COUNT] += 1
    if kind == DATA:
        s[w + W_HELD_BYTES] += b - a


@njit
def _overlap(s: Ints, new: Bytes, old: Bytes, w: int, p: int, a: int, b: int, kind: int, address: int) -> None:
    """[a, b) lies within piece p: the same bytes again, other bytes (counted), or bytes for what was left out."""
    if s[p + P_KIND] == LEFT:
        if kind == LEFT and s[p + P_ADDRESS] | address == s[p + P_ADDRESS]:
            return
        p = _part(s, w, p, a, b)
        if kind == LEFT:
            s[p + P_ADDRESS] |= address
            return
        s[p + P_KIND] = DATA
        s[p + P_ADDRESS] = address
        stamp(s, p)
        s[w + W_HELD_BYTES] += b - a
        return
    if kind != DATA:
        return
    there, skip = s[p + P_ADDRESS], a - s[p + P_AT]
    if there >= 0:
        s[w + W_CONFLICTING] += _differing(new, there + skip, new, address, b - a)
    else:
        s[w + W_CONFLICTING] += _differing(old, -1 - there + skip, new, address, b - a)


@njit
def _part(s: Ints, w: int, p: int, a: int, b: int) -> Any:
    """The piece of what is held that is [a, b), cut out of piece p."""
    for at in (b, a):
        if s[p + P_AT] < at < s[p + P_AT] + s[p + P_LENGTH]:
            rest = split(s, p, at - s[p + P_AT])
            s[w + W_HELD_COUNT] += 1
            if s[w + W_HELD_TAIL] == p:
                s[w + W_HELD_TAIL] = rest
            if at == a:
                p = rest
    return p


@njit
def _differing(one: Bytes, at: int, other: Bytes, begin: int, count: int) -> Any:
    total = 0
    for k in range(count):
        if one[at + k] != other[begin + k]:
            total += 1
    return total


@njit
def catch_up(s: Ints, w: int, both: bool) -> None:
    """Held pieces that now continue the stream become part of it; `both`: not what one of two agents left out."""
    if s[w + W_OPEN] != RUNNING:
        return
    while s[w + W_HELD] >= 0:
        p = s[w + W_HELD]
        length = s[p + P_LENGTH]
        if s[p + P_AT] > s[w + W_NEXT] or (both and s[p + P_KIND] == LEFT and s[p + P_ADDRESS] != ALL_LEFT):
            return
        s[w + W_HELD] = s[p + P_NEXT]
        if s[w + W_HELD] < 0:
            s[w + W_HELD_TAIL] = -1
        s[w + W_HELD_COUNT] -= 1
        if s[p + P_KIND] == DATA:
            s[w + W_HELD_BYTES] -= length
        s[w + W_NEXT] += length  # nothing is held that begins before it
        if s[w + W_MODE] == OFF:
            free_piece(s, p)
        else:
            append(s, w, p)


@njit
def old_acknowledgement(s: Ints, w: int) -> Any:
    at = max(s[w + W_ACKED_OLD_TIME], s[w + W_ACKED_OLD_FRAMES])
    return at if s[w + W_FIN] == UNSET else min(at, s[w + W_FIN])


@njit
def both_passed(s: Ints, w: int) -> Any:
    """Up to where neither of two agents will show anything of direction w any more."""
    return max(s[w + W_BOTH_OLD_TIME], s[w + W_BOTH_OLD_FRAMES])


@njit
def overfull(s: Ints, w: int, both: bool) -> Any:
    times = BOTH_HELD if both else 1
    return s[w + W_HELD_BYTES] > times * s[L_HELD_BYTES] or s[w + W_HELD_COUNT] > times * s[L_HELD_PIECES]


@njit
def declare_gaps(s: Ints, c: int, w: int, now: int) -> Any:
    """Close every hole of direction w that is final by now; True if the stream moved."""
    moved, both = False, two_live(s, c)
    while s[w + W_OPEN] != CLOSED:
        held = s[w + W_HELD]
        edge = s[held + P_AT] if held >= 0 else -UNSET
        acked = old_acknowledgement(s, w)
        if both:
            acked = min(acked, both_passed(s, w))
        aged = held >= 0 and now >= s[held + P_TS] + s[L_HOLE_NS] * (BOTH if both else 1)
        full = held >= 0 and overfull(s, w, both)
        if s[w + W_OPEN] == HELD:
            if held < 0 or not (acked > edge or aged or full):
                return moved
            _start_in_the_middle(s, w, edge)
        elif edge <= s[w + W_NEXT]:
            passed = aged or full or both_passed(s, w) >= edge + s[held + P_LENGTH]
            if both and s[c + C_AGENT2] >= 0 and not passed:
                return moved
            s[held + P_ADDRESS] = ALL_LEFT if s[held + P_KIND] == LEFT else s[held + P_ADDRESS]
        elif acked > s[w + W_NEXT]:
            _gap(s, c, w, min(acked, edge), now)
        elif aged or full:
            _gap(s, c, w, edge, now)
        else:
            return moved
        if full and not aged and acked <= edge:
            s[c + C_LIMITS] += 1
        catch_up(s, w, both and s[c + C_AGENT2] >= 0)
        moved = True
    return moved


@njit
def close_holes(s: Ints, c: int, w: int, now: int) -> None:
    """Nothing more will come: every hole of direction w is final."""
    close_held(s, c, w, now)
    end = max(s[w + W_ACKED], s[w + W_TOP])
    if s[w + W_FIN] != UNSET:
        end = min(end, s[w + W_FIN])
    if s[w + W_OPEN] == RUNNING and end > s[w + W_NEXT]:
        _gap(s, c, w, end, now)


@njit
def close_held(s: Ints, c: int, w: int, now: int) -> None:
    """Wait for nothing before what is held."""
    while s[w + W_OPEN] != CLOSED and s[w + W_HELD] >= 0:
        edge = s[s[w + W_HELD] + P_AT]
        if s[w + W_OPEN] == HELD:
            _start_in_the_middle(s, w, edge)
        elif edge > s[w + W_NEXT]:
            _gap(s, c, w, edge, now)
        catch_up(s, w, False)


@njit
def _start_in_the_middle(s: Ints, w: int, at: int) -> None:
    s[w + W_OPEN] = RUNNING
    for column in (W_NEXT, W_FROM, W_SCAN):
        s[w + column] = at


@njit
def _gap(s: Ints, c: int, w: int, to: int, now: int) -> None:
    at = s[w + W_NEXT]
    if s[w + W_MODE] != OFF:
        p = new_piece(s, at, to - at, GAP, 0)
        if s[w + W_HELD] >= 0:
            copy_stamp(s, s[w + W_HELD], p)
        else:
            stamp(s, p)
        append(s, w, p)
    s[w + W_NEXT] = to
    s[w + W_TOP] = max(s[w + W_TOP], to)
    s[w + W_UNSEEN] += to - at
    line = take_line(s, A_GAP, c)
    s[line + H_TS] = now
    s[line + H_DIRECTION] = side_of(c, w)
    s[line + H_BYTES] = to - at
    s[G_GAPS] += 1


@njit
def hole_deadline(s: Ints, c: int, w: int) -> Any:
    """When the oldest hole of direction w becomes final if nothing more arrives; far away if there is none."""
    at, held = -UNSET, s[w + W_HELD]
    beyond = s[w + W_NEXT] if s[w + W_OPEN] == RUNNING else (s[held + P_AT] if held >= 0 else -UNSET)
    if s[w + W_ACKED] > beyond:
        at = (s[c + C_GRID] + 1) * max(s[L_SLACK_NS] // 2, 1)
    if held >= 0:
        at = min(at, s[held + P_TS] + s[L_HOLE_NS] * (BOTH if two_live(s, c) else 1))
    return at


@njit
def has_hole(s: Ints, w: int) -> Any:
    """Something of direction w is still missing and may still come."""
    if s[w + W_OPEN] == HELD:
        return True
    return s[w + W_OPEN] == RUNNING and (s[w + W_HELD] >= 0 or s[w + W_ACKED] > s[w + W_NEXT])
