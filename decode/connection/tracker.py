"""Frame by frame: which connection a frame belongs to, and everything that follows from it.

Knows: SYN, ACK, FIN, RST, port reuse, who is the client, when a connection is over, and what falls due with time.
Refuses to know: ordering (stream.py), cutting (cutting.py), searching (resync.py), pairing (pairing.py).
Rule: everything is decided by the frames of one connection, one after the other, and by capture time that passed
between them; never by how frames are cut into calls. What falls due is done before the next frame is looked at.
"""

# ruff: noqa: PLR0917 -- jitted kernels take arrays and indices one by one

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import njit

from wirecheck.decode.connection.eviction import give_up, pending
from wirecheck.decode.connection.fast_path import ENDS, OUT_OF_STEP, WITHIN, step, take
from wirecheck.decode.connection.framing import at_boundary, cut, turn_off
from wirecheck.decode.connection.matching import answer_deadline, finish, give_up_answer
from wirecheck.decode.connection.reassembly import (
    BELIEVABLE,
    acknowledge,
    arrive,
    begin,
    begin_late,
    close_held,
    close_holes,
    declare_gaps,
    has_hole,
    hole_deadline,
    offset_of,
    remember_acknowledged,
    sent,
)
from wirecheck.decode.connection.recognise import tls_record
from wirecheck.decode.connection.resync import last_chance, search
from wirecheck.decode.connection.state.chunks import free_list
from wirecheck.decode.connection.state.heap import other_way, take_connection, touch, way_of
from wirecheck.decode.connection.state.slots import (
    BY_SYN,
    C_AGENT,
    C_AGENT2,
    C_ANSWERS,
    C_ANSWERS_COUNT,
    C_ASKED,
    C_ASKED_COUNT,
    C_BORN,
    C_CLIENT,
    C_CLOSE_NS,
    C_CLOSED_BY,
    C_DEADLINE,
    C_DUE,
    C_GRID,
    C_LAST,
    C_LIMITS,
    C_PAIR,
    C_PAYLOADS,
    C_PROTOCOL,
    C_ROLE_BY,
    C_SERIAL,
    C_SIZE,
    C_STARTED,
    C_STATE,
    C_TICK,
    C_TLS,
    CLOSED,
    FIN_OF,
    G_CALL,
    G_CONNECTIONS_USED,
    G_EARLY,
    G_LINES,
    G_NEED,
    G_PENDING,
    G_PIECES,
    G_REFUSED,
    G_SERIAL,
    G_TOP,
    G_WAITS,
    GONE,
    H_COUNT,
    HELD,
    L_CONNECTIONS,
    L_IDLE_NS,
    L_LINGER_NS,
    L_PENDING_BYTES,
    L_SLACK_NS,
    LIVE,
    MIDDLE,
    NOW_ACK,
    NOW_ADDRESS,
    NOW_AGENT,
    NOW_BIT,
    NOW_END,
    NOW_FLAGS,
    NOW_FRAME,
    NOW_LEFT,
    NOW_LEFT_END,
    NOW_OFFSET,
    NOW_PAIR,
    NOW_SEQ,
    NOW_SOURCE,
    NOW_TS,
    NOW_WIRE,
    P_COUNT,
    Q_COUNT,
    RELEASED,
    RST_OF,
    RUNNING,
    SEARCH,
    START,
    TLS,
    UNDECIDED,
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
    W_BYTES,
    W_CLIENT,
    W_END,
    W_FIN,
    W_FRAMES,
    W_FROM,
    W_HEAD,
    W_HELD,
    W_HELD_BYTES,
    W_HELD_COUNT,
    W_HELD_TAIL,
    W_KEPT,
    W_MODE,
    W_NEXT,
    W_OPEN,
    W_PIECES,
    W_SCAN,
    W_SETTLED,
    W_SHOWN,
    W_SHOWN2,
    W_SYN,
    W_TAIL,
    W_TOP,
)

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Bytes, Frames, Ints


FIN, SYN, RST, ACK = 1, 2, 4, 16
YOUNG_NS = 1_000_000_000  # a SYN that late belongs to a new connection
TLS_RECORDS = 4
SEGMENTS_A_RECORD = 16  # 2^14 bytes of TLS in Ethernet's, and some room
SHORTEST_MESSAGE = 8  # a response: size and correlation id


@njit
def room(s: Ints, c: int, payload: int, spans: int) -> Any:
    """Whether the heap has room for the most that this payload can set off; what is needed is left in G_NEED."""
    burst, held, waiting = payload, 0, 0
    if c >= 0:
        waiting = s[c + C_ASKED_COUNT] + s[c + C_ANSWERS_COUNT]
        for w in (way_of(c, 0), way_of(c, 1)):
            burst += s[w + W_HELD_BYTES]
            held += s[w + W_HELD_COUNT]
            if s[w + W_MODE] in (SEARCH, START):
                burst += s[w + W_KEPT]
    need = (1 + s[G_EARLY]) * (burst // SHORTEST_MESSAGE) + 2 * spans + held + waiting + 32
    words = C_SIZE + max(need - s[G_PIECES + 1], 0) * P_COUNT + max(need - s[G_WAITS + 1], 0) * Q_COUNT
    words += max(2 * need - s[G_LINES + 1], 0) * H_COUNT
    s[G_NEED] = words
    return s[G_TOP] + words <= len(s)


@njit
def _open(s: Ints) -> Any:
    """A new connection, or -1 if there are too many."""
    if s[G_CONNECTIONS_USED] >= s[L_CONNECTIONS]:
        s[G_REFUSED] += 1
        return -1
    s[G_CONNECTIONS_USED] += 1
    c = take_connection(s)
    s[c + C_STATE] = LIVE
    s[c + C_PAIR] = s[NOW_PAIR]
    s[c + C_CLIENT] = -1
    s[c + C_STARTED] = s[NOW_TS]
    s[c + C_LAST] = s[NOW_TS]
    s[c + C_GRID] = s[NOW_TS] // max(s[L_SLACK_NS] // 2, 1)
    s[c + C_DUE] = -UNSET
    s[c + C_DEADLINE] = -UNSET
    s[c + C_BORN] = s[G_CALL]
    s[c + C_AGENT], s[c + C_AGENT2] = s[NOW_AGENT], -1
    s[G_SERIAL] += 1
    s[c + C_SERIAL] = s[G_SERIAL]
    for column in (C_ASKED, C_ANSWERS):
        s[c + column] = -1
        s[c + column + 1] = -1
    for w in (way_of(c, 0), way_of(c, 1)):
        _clear(s, w)
    return c


@njit
def _clear(s: Ints, w: int) -> None:
    for column in (W_HELD, W_HELD_TAIL, W_HEAD, W_TAIL, W_SETTLED, W_END, W_CLIENT):
        s[w + column] = -1
    for column in (
        W_ACKED, W_ACKED_MID_TIME, W_ACKED_OLD_TIME, W_ACKED_MID_FRAMES, W_ACKED_OLD_FRAMES, W_FIN, W_SHOWN, W_SHOWN2,
        W_BOTH_MID_TIME, W_BOTH_OLD_TIME, W_BOTH_MID_FRAMES, W_BOTH_OLD_FRAMES,
    ):  # fmt: skip
        s[w + column] = UNSET


@njit
def _release(s: Ints, c: int) -> None:
    """The row is given back after the call, once its facts have been read."""
    s[c + C_STATE] = RELEASED
    s[c + C_DEADLINE] = -UNSET
    touch(s, c)


@njit
def _over(s: Ints, new: Bytes, old: Bytes, c: int, now: int) -> None:
    """Nothing more is expected of this connection: say what is open, hold nothing."""
    for w in (way_of(c, 0), way_of(c, 1)):
        close_holes(s, c, w, now)
    _progress(s, new, old, c)
    client = s[c + C_CLIENT]
    for side in (max(client, 0), 1 - max(client, 0)):
        if last_chance(s, c, way_of(c, side)):
            _progress(s, new, old, c)
    if s[c + C_CLIENT] >= 0:
        finish(s, c)
    for w in (way_of(c, 0), way_of(c, 1)):
        free_list(s, s[w + W_HEAD])
        free_list(s, s[w + W_HELD])
        for column in (W_HEAD, W_TAIL, W_HELD, W_HELD_TAIL, W_SETTLED):
            s[w + column] = -1
        for column in (W_KEPT, W_PIECES, W_HELD_BYTES, W_HELD_COUNT):
            s[w + column] = 0
    s[c + C_STATE] = GONE
    s[c + C_DEADLINE] = s[c + C_LAST] + s[L_LINGER_NS]
    touch(s, c)


@njit
def _progress(s: Ints, new: Bytes, old: Bytes, c: int) -> None:
    """Cut and pair whatever can be, requests first; once more if that told who the client is, or that it is Kafka."""
    client, protocol = s[c + C_CLIENT], s[c + C_PROTOCOL]
    _cut_both(s, new, old, c)
    if s[c + C_CLIENT] != client or s[c + C_PROTOCOL] != protocol:
        _cut_both(s, new, old, c)


@njit
def _cut_both(s: Ints, new: Bytes, old: Bytes, c: int) -> None:
    first = way_of(c, max(s[c + C_CLIENT], 0))
    for w in (first, other_way(c, first)):
        cut(s, new, old, c, w)
        while s[w + W_MODE] == SEARCH and s[w + W_OPEN] == RUNNING and search(s, new, old, c, w):
            cut(s, new, old, c, w)


@njit
def _patience_ns(s: Ints, c: int) -> Any:
    """Silence after which a connection is over: a side that was seen and has not said FIN may still answer the other's
    (RFC 9293 3.6: a half-closed connection).
    """
    if s[c + C_CLOSED_BY] == 0:
        return s[L_IDLE_NS]
    for w in (way_of(c, 0), way_of(c, 1)):
        if s[w + W_FRAMES] > 0 and s[w + W_FIN] == UNSET:
            return s[L_IDLE_NS]
    return s[L_LINGER_NS]


@njit
def _deadline(s: Ints, c: int) -> None:
    """When something about this connection falls due if no frame comes."""
    last = s[c + C_LAST]
    at = last + _patience_ns(s, c)
    at = min(at, s[c + C_DUE])
    for w in (way_of(c, 0), way_of(c, 1)):
        if s[w + W_HELD] >= 0 or s[w + W_ACKED] > s[w + W_NEXT]:
            at = min(at, hole_deadline(s, c, w))
    if s[c + C_ANSWERS] >= 0:
        at = min(at, answer_deadline(s, c))
    s[c + C_DEADLINE] = at


@njit
def expire(s: Ints, new: Bytes, old: Bytes, c: int, now: int) -> None:
    """Do what fell due up to now, each at its own time."""
    while s[c + C_STATE] in (LIVE, GONE) and s[c + C_DEADLINE] <= now:
        at = s[c + C_DEADLINE]
        if s[c + C_STATE] == GONE:
            _release(s, c)
            return
        touch(s, c)
        if at >= s[c + C_DUE] or at >= s[c + C_LAST] + _patience_ns(s, c):
            _over(s, new, old, c, at)
            continue
        remember_acknowledged(s, c, at)
        moved = declare_gaps(s, c, way_of(c, 0), at)
        moved = declare_gaps(s, c, way_of(c, 1), at) or moved
        if moved:
            _progress(s, new, old, c)
        if s[c + C_ANSWERS] >= 0 and answer_deadline(s, c) <= at:
            give_up_answer(s, c)
        _closing(s, c, at)
        _deadline(s, c)


@njit
def _close(s: Ints, c: int, bit: int, ts: int, reset: bool) -> None:
    """FIN or RST was seen; only the first says who closed."""
    if s[c + C_CLOSED_BY] == 0:
        s[c + C_CLOSED_BY] = (RST_OF if reset else FIN_OF) + bit
        s[c + C_CLOSE_NS] = ts
    if reset:
        s[c + C_DUE] = min(s[c + C_DUE], ts + s[L_SLACK_NS])


@njit
def _closing(s: Ints, c: int, ts: int) -> None:
    """Both sides have sent all they had: over, as soon as late packets had their chance."""
    if s[c + C_CLOSED_BY] == 0:
        return
    for w in (way_of(c, 0), way_of(c, 1)):
        if s[w + W_FIN] == UNSET or s[w + W_OPEN] != RUNNING or s[w + W_NEXT] < s[w + W_FIN]:
            return
    s[c + C_DUE] = min(s[c + C_DUE], ts + s[L_SLACK_NS])


@njit
def _handshake(s: Ints, new: Bytes, old: Bytes, c: int) -> Any:
    """The connection a frame with SYN belongs to: c if it fits, else a new one."""
    bit, seq, flags, ts = s[NOW_BIT], s[NOW_SEQ] + 1, s[NOW_FLAGS], s[NOW_TS]
    if c >= 0 and s[c + C_STATE] in (LIVE, GONE):
        w = way_of(c, bit)
        if s[w + W_SYN] == 1:
            fits = s[w + W_BASE] == seq & 0xFFFFFFFF
        else:
            fits = s[c + C_STATE] == LIVE and ts - s[c + C_STARTED] < YOUNG_NS
            if fits and s[w + W_OPEN] == CLOSED:
                _begin(s, w, seq)
            elif fits and s[w + W_OPEN] == HELD and begin_late(s, w, seq):
                at_boundary_at_start(s, w)
        if fits:
            _roles(s, c, bit, flags)
            return c
        if s[c + C_STATE] == LIVE:
            _over(s, new, old, c, ts)
        _release(s, c)
    c = _open(s)
    if c < 0:
        return c
    _begin(s, way_of(c, bit), seq)
    if flags & ACK:
        _begin(s, way_of(c, 1 - bit), s[NOW_ACK])
    _roles(s, c, bit, flags)
    return c


@njit
def _begin(s: Ints, w: int, seq: int) -> None:
    begin(s, w, seq)
    at_boundary_at_start(s, w)


@njit
def at_boundary_at_start(s: Ints, w: int) -> None:
    at_boundary(s, w, s[w + W_NEXT])
    s[w + W_MODE] = START


@njit
def _roles(s: Ints, c: int, bit: int, flags: int) -> None:
    if s[c + C_CLIENT] < 0:
        s[c + C_CLIENT] = 1 - bit if flags & ACK else bit
        s[c + C_ROLE_BY] = BY_SYN


@njit
def _whose(s: Ints, new: Bytes, old: Bytes, c: int) -> Any:
    """The connection of this frame, c or a new one, after what fell due; -1 if it belongs to none worth following."""
    if c >= 0 and s[c + C_DEADLINE] <= s[NOW_TS]:
        expire(s, new, old, c, s[NOW_TS])
    if s[NOW_FLAGS] & SYN:
        return _handshake(s, new, old, c)
    if c >= 0 and s[c + C_STATE] in (LIVE, GONE):
        return c
    return _open(s) if s[NOW_WIRE] > 0 else -1


@njit
def _late(s: Ints, c: int) -> None:
    """A packet of a connection that is over counts as its own and changes nothing."""
    s[c + C_TICK] += 1
    s[way_of(c, s[NOW_BIT]) + W_FRAMES] += 1
    s[way_of(c, s[NOW_BIT]) + W_BYTES] += s[NOW_WIRE]
    touch(s, c)


@njit
def _frame(s: Ints, new: Bytes, old: Bytes, left: Ints, c: int) -> None:
    flags, ts, bit, wire = s[NOW_FLAGS], s[NOW_TS], s[NOW_BIT], s[NOW_WIRE]
    w, o = way_of(c, bit), way_of(c, 1 - bit)
    if s[NOW_AGENT] != s[c + C_AGENT] and s[c + C_AGENT2] < 0:
        s[c + C_AGENT2] = s[NOW_AGENT]
    touch(s, c)
    s[c + C_TICK] += 1
    s[c + C_LAST] = max(s[c + C_LAST], ts)
    s[w + W_FRAMES] += 1
    s[w + W_BYTES] += wire
    remember_acknowledged(s, c, ts)
    seq = s[NOW_SEQ] + (1 if flags & SYN else 0)
    if flags & ACK:
        _learn_start(s, w, o, seq)
        acknowledge(s, c, o, s[NOW_ACK])
    if wire > 0:
        if s[c + C_PROTOCOL] == UNDECIDED:
            _encrypted(s, new, left, c)
        arrive(s, new, old, left, c, w, seq)
    else:
        sent(s, w, seq)
    if flags & FIN:
        _fin(s, w, seq)
        _close(s, c, bit, ts, False)
    if flags & RST and (s[w + W_OPEN] != RUNNING or abs(offset_of(s, w, seq) - s[w + W_NEXT]) < BELIEVABLE >> 6):
        _close(s, c, bit, ts, True)
    moved = wire > 0
    for x in (w, o):
        if has_hole(s, x):
            moved = declare_gaps(s, c, x, ts) or moved
    if moved:
        _progress(s, new, old, c)
    _closing(s, c, ts)
    _deadline(s, c)


@njit
def _learn_start(s: Ints, w: int, o: int, seq: int) -> None:
    """The client's first packet after its SYN acknowledges exactly the server's SYN."""
    fresh = s[o + W_OPEN] == CLOSED and s[w + W_SYN] == 1 and s[w + W_TOP] == 0
    if fresh and not s[NOW_FLAGS] & (SYN | RST) and offset_of(s, w, seq) == 0:
        _begin(s, o, s[NOW_ACK])


@njit
def _encrypted(s: Ints, new: Bytes, left: Ints, c: int) -> None:
    """Payloads that begin as a TLS record does, also where only that was kept; a record fills up to a dozen packets."""
    s[c + C_PAYLOADS] += 1
    front = s[NOW_END] - s[NOW_ADDRESS]
    if s[NOW_LEFT] < s[NOW_LEFT_END]:
        front = min(front, left[s[NOW_LEFT], 0])
    if tls_record(new, s[NOW_ADDRESS], s[NOW_ADDRESS] + front):
        s[c + C_TLS] += 1
    if s[c + C_TLS] >= TLS_RECORDS and SEGMENTS_A_RECORD * s[c + C_TLS] > s[c + C_PAYLOADS]:
        turn_off(s, c, TLS)


@njit
def _fin(s: Ints, w: int, seq: int) -> None:
    if s[w + W_OPEN] == CLOSED:
        s[w + W_BASE] = seq
        s[w + W_OPEN] = RUNNING
        s[w + W_MODE] = SEARCH
        for column in (W_TOP, W_NEXT, W_FROM, W_SCAN):
            s[w + column] = MIDDLE
    if s[w + W_FIN] == UNSET:
        at = offset_of(s, w, seq) + s[NOW_WIRE]
        s[w + W_FIN] = at
        for column in (W_ACKED, W_ACKED_MID_TIME, W_ACKED_OLD_TIME, W_ACKED_MID_FRAMES, W_ACKED_OLD_FRAMES):
            s[w + column] = min(s[w + column], at)  # what acknowledged FIN came first in a shuffled capture


@njit
def _cut_one(s: Ints, new: Bytes, old: Bytes, c: int) -> None:
    """The frame that is looked at was in step: only its direction has something to cut."""
    held, w = pending(s, c), way_of(c, s[NOW_BIT])
    cut(s, new, old, c, w)
    if s[w + W_MODE] == SEARCH:
        _progress(s, new, old, c)
    _deadline(s, c)
    s[G_PENDING] += pending(s, c) - held


@njit
def follow(s: Ints, new: Bytes, old: Bytes, f: Frames, start: int) -> Any:
    """Frames from `start` on; where it stopped for want of room or because too much waits, or how many there are."""
    slot, pair, bit, ts_ns, frame_no, source, agent, seq, ack, flags, wire, at, left_at, left, where = f
    for i in range(start, len(wire)):
        c = slot[pair[i]]
        s[NOW_TS], s[NOW_FRAME], s[NOW_SOURCE] = ts_ns[i], frame_no[i], source[i]
        s[NOW_AGENT], s[NOW_PAIR], s[NOW_BIT] = agent[i], pair[i], bit[i]
        s[NOW_SEQ], s[NOW_ACK], s[NOW_FLAGS], s[NOW_WIRE] = seq[i], ack[i], flags[i], wire[i]
        s[NOW_ADDRESS], s[NOW_END], s[NOW_LEFT], s[NOW_LEFT_END] = at[i], at[i + 1], left_at[i], left_at[i + 1]
        kind = step(s, c) if c >= 0 else OUT_OF_STEP
        if kind != WITHIN and not room(s, c, wire[i], left_at[i + 1] - left_at[i]):
            return i
        if kind != OUT_OF_STEP:
            take(s, c)
            if kind == ENDS:
                _cut_one(s, new, old, c)
            where[i, 0], where[i, 1], where[i, 2] = s[c + C_SERIAL], bit[i], s[NOW_OFFSET]
            if s[G_PENDING] > s[L_PENDING_BYTES]:
                return i + 1
            continue
        before, held = c, pending(s, c) if c >= 0 else 0
        c = _whose(s, new, old, c)
        if before >= 0 and before != c:
            s[G_PENDING] += pending(s, before) - held
        if c < 0:
            continue
        held = held if c == before else 0
        slot[pair[i]] = c
        if s[c + C_STATE] == GONE:
            _late(s, c)
        else:
            where[i, 0], where[i, 1], where[i, 2] = s[c + C_SERIAL], bit[i], -1
            s[NOW_OFFSET] = -1
            _frame(s, new, old, left, c)
            where[i, 2] = s[NOW_OFFSET]
        s[G_PENDING] += pending(s, c) - held
        if s[G_PENDING] > s[L_PENDING_BYTES]:
            return i + 1
    return len(wire)


@njit
def lapse(s: Ints, new: Bytes, old: Bytes, rows: Ints, start: int, now: int) -> Any:
    """What fell due on these connections by now; the first for which there was no room, or how many there are."""
    for k in range(start, len(rows)):
        c = rows[k]
        if not room(s, c, 0, 0):
            return k
        held = pending(s, c)
        if now != UNSET:
            expire(s, new, old, c, now)
        elif s[c + C_STATE] == LIVE:
            _over(s, new, old, c, s[c + C_LAST])
        if now == UNSET and s[c + C_STATE] == GONE:
            _release(s, c)
        s[G_PENDING] += pending(s, c) - held
    return len(rows)


@njit
def relieve(s: Ints, new: Bytes, old: Bytes, rows: Ints, start: int) -> Any:
    """These connections give up what waits on them; the first for which there was no room, or how many there are."""
    for k in range(start, len(rows)):
        c = rows[k]
        if not room(s, c, 0, 0):
            return k
        held = pending(s, c)
        touch(s, c)
        s[c + C_LIMITS] += 1
        for w in (way_of(c, 0), way_of(c, 1)):
            close_held(s, c, w, s[c + C_LAST])
        _progress(s, new, old, c)
        give_up(s, c)
        _deadline(s, c)
        s[G_PENDING] += pending(s, c) - held
    return len(rows)
