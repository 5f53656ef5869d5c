"""Frame by frame: which connection a frame belongs to, and everything that follows from it.

Knows: SYN, ACK, FIN, RST, port reuse, who is the client, when a connection is over, and what falls due with time.
Refuses to know: ordering (stream.py), cutting (cutting.py), searching (resync.py), pairing (pairing.py).
Rule: everything is decided by the frames of one connection, one after the other, and by capture time that passed
between them; never by how frames are cut into calls. What falls due is done before the next frame is looked at.
"""

# ruff: noqa: PLR0917 -- jitted kernels take arrays and indices one by one

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numba import njit

from decode.cutting import at_boundary, cut, turn_off
from decode.pairing import answer_deadline, finish, give_up_answer
from decode.pieces import free_list, move_alive, settle, unsettled
from decode.recognise import tls_record
from decode.resync import last_chance, search
from decode.slots import (
    BY_SYN,
    C_AGENT,
    C_ANSWERS,
    C_ANSWERS_COUNT,
    C_ASKED,
    C_ASKED_COUNT,
    C_BORN,
    C_CLIENT,
    C_CLOSE_NS,
    C_CLOSED_BY,
    C_COUNT,
    C_DEADLINE,
    C_DUE,
    C_GRID,
    C_LAST,
    C_NEXT,
    C_PAIR,
    C_PAYLOADS,
    C_PROTOCOL,
    C_ROLE_BY,
    C_STARTED,
    C_STATE,
    C_TICK,
    C_TLS,
    C_TOUCHED,
    CLIENT_FIN,
    CLIENT_RST,
    CLOSED,
    G_CALL,
    G_CONN_FREE,
    G_CONN_TOP,
    G_CONN_USED,
    G_EXCHANGES,
    G_GAPS,
    G_MESSAGES,
    G_NEED,
    G_PARTS,
    G_PIECE_USED,
    G_REFUSED,
    G_SPANS,
    G_TOUCHED,
    G_WAIT_USED,
    GONE,
    HELD,
    L_CONNECTIONS,
    L_IDLE_NS,
    L_LINGER_NS,
    L_SLACK_NS,
    LIVE,
    RELEASED,
    RUNNING,
    SEARCH,
    SERVER_FIN,
    SERVER_RST,
    START,
    SYNC,
    TLS,
    UNDECIDED,
    UNSET,
    W_ACKED,
    W_ACKED_MID_FRAMES,
    W_ACKED_MID_TIME,
    W_ACKED_OLD_FRAMES,
    W_ACKED_OLD_TIME,
    W_AT,
    W_BASE,
    W_BYTES,
    W_CLIENT,
    W_COUNT,
    W_END,
    W_FIN,
    W_FRAMES,
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
    W_SETTLED,
    W_SYN,
    W_TAIL,
    W_TOP,
    Bytes,
    Frames,
    Ints,
    Memory,
)
from decode.stream import (
    BELIEVABLE,
    acknowledge,
    arrive,
    begin,
    begin_late,
    close_holes,
    declare_gaps,
    has_hole,
    hole_deadline,
    offset_of,
    remember_acknowledged,
)

if TYPE_CHECKING:
    from collections.abc import Callable

FIN, SYN, RST, ACK = 1, 2, 4, 16
YOUNG_NS = 1_000_000_000  # a SYN that late belongs to a new connection
TLS_RECORDS = 4
SHORTEST_MESSAGE = 8  # a response: size and correlation id


@njit
def touch(m: Memory, c: int) -> None:
    if m.connection[c, C_TOUCHED] != m.whole[G_CALL]:
        m.connection[c, C_TOUCHED] = m.whole[G_CALL]
        m.touched[m.whole[G_TOUCHED]] = c
        m.whole[G_TOUCHED] += 1


@njit
def room(m: Memory, c: int, payload: int, spans: int) -> Any:
    """Whether every array has room for the most that this payload can set off; what is needed is left in G_NEED."""
    burst, held, waiting = payload, 0, 0
    if c >= 0:
        waiting = m.connection[c, C_ASKED_COUNT] + m.connection[c, C_ANSWERS_COUNT]
        for w in (2 * c, 2 * c + 1):
            burst += m.way[w, W_HELD_BYTES]
            held += m.way[w, W_HELD_COUNT]
            if m.way[w, W_MODE] in (SEARCH, START):
                burst += m.way[w, W_KEPT]
    need = burst // SHORTEST_MESSAGE + 2 * spans + held + waiting + 32
    m.whole[G_NEED] = need
    used = m.whole[G_PIECE_USED] + need
    return (
        used <= len(m.piece)
        and m.whole[G_WAIT_USED] + need <= len(m.wait)
        and m.whole[G_MESSAGES] + need <= len(m.message)
        and m.whole[G_EXCHANGES] + need <= len(m.exchange)
        and m.whole[G_GAPS] + need <= len(m.gap)
        and m.whole[G_PARTS] + used <= len(m.part)
        and m.whole[G_SPANS] + used <= len(m.span)
        and (m.whole[G_CONN_FREE] >= 0 or m.whole[G_CONN_TOP] < len(m.connection))
    )


@njit
def _open(m: Memory, f: Frames, i: int, pair: int) -> Any:
    """A new connection, or -1 if there are too many."""
    whole = m.whole
    if whole[G_CONN_USED] >= m.limit[L_CONNECTIONS]:
        whole[G_REFUSED] += 1
        return -1
    c = whole[G_CONN_FREE]
    if c >= 0:
        whole[G_CONN_FREE] = m.connection[c, C_NEXT]
    else:
        c = whole[G_CONN_TOP]
        whole[G_CONN_TOP] += 1
    whole[G_CONN_USED] += 1
    for column in range(C_COUNT):
        m.connection[c, column] = 0
    m.connection[c, C_STATE] = LIVE
    m.connection[c, C_PAIR] = pair
    m.connection[c, C_CLIENT] = -1
    m.connection[c, C_STARTED] = f.ts_ns[i]
    m.connection[c, C_LAST] = f.ts_ns[i]
    m.connection[c, C_GRID] = f.ts_ns[i] // max(m.limit[L_SLACK_NS] // 2, 1)
    m.connection[c, C_DUE] = -UNSET
    m.connection[c, C_DEADLINE] = -UNSET
    m.connection[c, C_BORN] = whole[G_CALL]
    m.connection[c, C_AGENT] = f.agent[i]
    for column in (C_ASKED, C_ANSWERS):
        m.connection[c, column] = -1
        m.connection[c, column + 1] = -1
    for w in (2 * c, 2 * c + 1):
        _clear(m, w)
    f.slot[pair] = c
    return c


@njit
def _clear(m: Memory, w: int) -> None:
    for column in range(W_COUNT):
        m.way[w, column] = 0
    for column in (W_HELD, W_HELD_TAIL, W_HEAD, W_TAIL, W_SETTLED, W_END, W_CLIENT):
        m.way[w, column] = -1
    for column in (
        W_ACKED, W_ACKED_MID_TIME, W_ACKED_OLD_TIME, W_ACKED_MID_FRAMES, W_ACKED_OLD_FRAMES, W_FIN,
    ):  # fmt: skip
        m.way[w, column] = UNSET


@njit
def _release(m: Memory, c: int) -> None:
    """The row is given back after the call, once its facts have been read."""
    m.connection[c, C_STATE] = RELEASED
    m.connection[c, C_DEADLINE] = -UNSET
    touch(m, c)


@njit
def _over(m: Memory, c: int, now: int) -> None:
    """Nothing more is expected of this connection: say what is open, hold nothing."""
    for w in (2 * c, 2 * c + 1):
        close_holes(m, c, w, now)
    _progress(m, c)
    client = m.connection[c, C_CLIENT]
    for side in (max(client, 0), 1 - max(client, 0)):
        if last_chance(m, c, 2 * c + side):
            _progress(m, c)
    if m.connection[c, C_CLIENT] >= 0:
        finish(m, c)
    for w in (2 * c, 2 * c + 1):
        free_list(m, m.way[w, W_HEAD])
        free_list(m, m.way[w, W_HELD])
        for column in (W_HEAD, W_TAIL, W_HELD, W_HELD_TAIL, W_SETTLED):
            m.way[w, column] = -1
        for column in (W_KEPT, W_PIECES, W_HELD_BYTES, W_HELD_COUNT):
            m.way[w, column] = 0
    m.connection[c, C_STATE] = GONE
    m.connection[c, C_DEADLINE] = m.connection[c, C_LAST] + m.limit[L_LINGER_NS]
    touch(m, c)


@njit
def _progress(m: Memory, c: int) -> None:
    """Cut and pair whatever can be, requests first."""
    for _ in range(2):
        client = m.connection[c, C_CLIENT]
        first = 2 * c + max(client, 0)
        for w in (first, 4 * c + 1 - first):
            cut(m, c, w)
            while m.way[w, W_MODE] == SEARCH and m.way[w, W_OPEN] == RUNNING and search(m, c, w):
                cut(m, c, w)
        if m.connection[c, C_CLIENT] == client:
            return


@njit
def _deadline(m: Memory, c: int) -> None:
    """When something about this connection falls due if no frame comes."""
    connection = m.connection
    last = connection[c, C_LAST]
    at = last + (m.limit[L_LINGER_NS] if connection[c, C_CLOSED_BY] else m.limit[L_IDLE_NS])
    at = min(at, connection[c, C_DUE])
    for w in (2 * c, 2 * c + 1):
        if m.way[w, W_HELD] >= 0 or m.way[w, W_ACKED] > m.way[w, W_NEXT]:
            at = min(at, hole_deadline(m, c, w))
    if connection[c, C_ANSWERS] >= 0:
        at = min(at, answer_deadline(m, c))
    connection[c, C_DEADLINE] = at


@njit
def expire(m: Memory, c: int, now: int) -> None:
    """Do what fell due up to now, each at its own time."""
    connection = m.connection
    while connection[c, C_STATE] in (LIVE, GONE) and connection[c, C_DEADLINE] <= now:
        at = connection[c, C_DEADLINE]
        if connection[c, C_STATE] == GONE:
            _release(m, c)
            return
        touch(m, c)
        idle = m.limit[L_LINGER_NS] if connection[c, C_CLOSED_BY] else m.limit[L_IDLE_NS]
        if at >= connection[c, C_DUE] or at >= connection[c, C_LAST] + idle:
            _over(m, c, at)
            continue
        remember_acknowledged(m, c, at)
        moved = declare_gaps(m, c, 2 * c, at)
        moved = declare_gaps(m, c, 2 * c + 1, at) or moved
        if moved:
            _progress(m, c)
        if connection[c, C_ANSWERS] >= 0 and answer_deadline(m, c) <= at:
            give_up_answer(m, c)
        _closing(m, c, at)
        _deadline(m, c)


@njit
def _close(m: Memory, c: int, bit: int, ts: int, reset: bool) -> None:
    """FIN or RST was seen; only the first says who closed."""
    connection = m.connection
    if connection[c, C_CLOSED_BY] == 0:
        server = connection[c, C_CLIENT] == 1 - bit
        if reset:
            connection[c, C_CLOSED_BY] = SERVER_RST if server else CLIENT_RST
        else:
            connection[c, C_CLOSED_BY] = SERVER_FIN if server else CLIENT_FIN
        connection[c, C_CLOSE_NS] = ts
    if reset:
        connection[c, C_DUE] = min(connection[c, C_DUE], ts + m.limit[L_SLACK_NS])


@njit
def _closing(m: Memory, c: int, ts: int) -> None:
    """Both sides have sent all they had: over, as soon as late packets had their chance."""
    if m.connection[c, C_CLOSED_BY] == 0:
        return
    for w in (2 * c, 2 * c + 1):
        if m.way[w, W_FIN] == UNSET or m.way[w, W_OPEN] != RUNNING or m.way[w, W_NEXT] < m.way[w, W_FIN]:
            return
    m.connection[c, C_DUE] = min(m.connection[c, C_DUE], ts + m.limit[L_SLACK_NS])


@njit
def _handshake(m: Memory, f: Frames, i: int, c: int, pair: int) -> Any:
    """The connection a frame with SYN belongs to: c if it fits, else a new one."""
    bit, seq, flags, ts = f.bit[i], f.seq[i] + 1, f.flags[i], f.ts_ns[i]
    if c >= 0 and m.connection[c, C_STATE] in (LIVE, GONE):
        w = 2 * c + bit
        if m.way[w, W_SYN] == 1:
            fits = m.way[w, W_BASE] == seq & 0xFFFFFFFF
        else:
            fits = m.connection[c, C_STATE] == LIVE and ts - m.connection[c, C_STARTED] < YOUNG_NS
            if fits and m.way[w, W_OPEN] == CLOSED:
                _begin(m, w, seq)
            elif fits and m.way[w, W_OPEN] == HELD and begin_late(m, w, seq):
                at_boundary_at_start(m, w)
        if fits:
            _roles(m, c, bit, flags)
            return c
        if m.connection[c, C_STATE] == LIVE:
            _over(m, c, ts)
        _release(m, c)
    c = _open(m, f, i, pair)
    if c < 0:
        return c
    _begin(m, 2 * c + bit, seq)
    if flags & ACK:
        _begin(m, 2 * c + 1 - bit, f.ack[i])
    _roles(m, c, bit, flags)
    return c


@njit
def _begin(m: Memory, w: int, seq: int) -> None:
    begin(m, w, seq)
    at_boundary_at_start(m, w)


@njit
def at_boundary_at_start(m: Memory, w: int) -> None:
    at_boundary(m, w, m.way[w, W_NEXT])
    m.way[w, W_MODE] = START


@njit
def _roles(m: Memory, c: int, bit: int, flags: int) -> None:
    if m.connection[c, C_CLIENT] < 0:
        m.connection[c, C_CLIENT] = 1 - bit if flags & ACK else bit
        m.connection[c, C_ROLE_BY] = BY_SYN


@njit
def _whose(m: Memory, f: Frames, i: int) -> Any:
    """The connection of frame i, after what fell due for it; -1 if it belongs to none worth following."""
    pair, ts = f.pair[i], f.ts_ns[i]
    c = f.slot[pair]
    if c >= 0 and m.connection[c, C_DEADLINE] <= ts:
        expire(m, c, ts)
    if f.flags[i] & SYN:
        return _handshake(m, f, i, c, pair)
    if c >= 0 and m.connection[c, C_STATE] == GONE:
        _late(m, f, i, c)
        return -1
    if c >= 0 and m.connection[c, C_STATE] == LIVE:
        return c
    return _open(m, f, i, pair) if f.wire[i] > 0 else -1


@njit
def _late(m: Memory, f: Frames, i: int, c: int) -> None:
    """A packet of a connection that is over counts as its own and changes nothing."""
    m.connection[c, C_TICK] += 1
    m.way[2 * c + f.bit[i], W_FRAMES] += 1
    m.way[2 * c + f.bit[i], W_BYTES] += f.wire[i]
    touch(m, c)


@njit
def _frame(m: Memory, f: Frames, i: int, c: int) -> None:
    connection, flags, ts, bit = m.connection, f.flags[i], f.ts_ns[i], f.bit[i]
    w, o = 2 * c + bit, 2 * c + 1 - bit
    touch(m, c)
    connection[c, C_TICK] += 1
    connection[c, C_LAST] = max(connection[c, C_LAST], ts)
    m.way[w, W_FRAMES] += 1
    m.way[w, W_BYTES] += f.wire[i]
    remember_acknowledged(m, c, ts)
    seq = f.seq[i] + (1 if flags & SYN else 0)
    if flags & ACK:
        _learn_start(m, f, i, w, o, seq)
        acknowledge(m, o, f.ack[i])
    if f.wire[i] > 0:
        if connection[c, C_PROTOCOL] == UNDECIDED:
            _encrypted(m, f, i, c)
        arrive(m, f, i, w, seq)
    if flags & FIN:
        _fin(m, f, i, w, seq)
        _close(m, c, bit, ts, False)
    if flags & RST and (m.way[w, W_OPEN] != RUNNING or abs(offset_of(m, w, seq) - m.way[w, W_NEXT]) < BELIEVABLE >> 6):
        _close(m, c, bit, ts, True)
    moved = f.wire[i] > 0
    for x in (w, o):
        if has_hole(m, x):
            moved = declare_gaps(m, c, x, ts) or moved
    if moved:
        _progress(m, c)
    _closing(m, c, ts)
    _deadline(m, c)


@njit
def _learn_start(m: Memory, f: Frames, i: int, w: int, o: int, seq: int) -> None:
    """The client's first packet after its SYN acknowledges exactly the server's SYN."""
    way = m.way
    fresh = way[o, W_OPEN] == CLOSED and way[w, W_SYN] == 1 and way[w, W_TOP] == 0
    if fresh and not f.flags[i] & (SYN | RST) and offset_of(m, w, seq) == 0:
        _begin(m, o, f.ack[i])


@njit
def _encrypted(m: Memory, f: Frames, i: int, c: int) -> None:
    m.connection[c, C_PAYLOADS] += 1
    if tls_record(m.payload, f.at[i], f.at[i + 1]) and f.left_at[i] == f.left_at[i + 1]:
        m.connection[c, C_TLS] += 1
    if m.connection[c, C_TLS] >= TLS_RECORDS and 2 * m.connection[c, C_TLS] > m.connection[c, C_PAYLOADS]:
        turn_off(m, c, TLS)


@njit
def _fin(m: Memory, f: Frames, i: int, w: int, seq: int) -> None:
    way = m.way
    if way[w, W_OPEN] == CLOSED:
        way[w, W_BASE] = seq
        way[w, W_OPEN] = RUNNING
        way[w, W_MODE] = SEARCH
    if way[w, W_FIN] == UNSET:
        at = offset_of(m, w, seq) + f.wire[i]
        way[w, W_FIN] = at
        for column in (W_ACKED, W_ACKED_MID_TIME, W_ACKED_OLD_TIME, W_ACKED_MID_FRAMES, W_ACKED_OLD_FRAMES):
            way[w, column] = min(way[w, column], at)  # what acknowledged FIN came first in a shuffled capture


def _stamp() -> int:
    """Changes whenever a kernel changes: numba's cache looks at one file only, and these compile as one."""
    here = Path(__file__).parent
    kernels = ("walk", "slots", "pieces", "stream", "cutting", "resync", "pairing", "recognise", "wire")
    return crc32(b"".join((here / f"{name}.py").read_bytes() for name in kernels))


def _entries(stamp: int) -> tuple[Callable[..., Any], ...]:
    @njit(cache=True)
    def follow(m: Memory, f: Frames, start: int, stop: int) -> Any:
        """Frames start:stop; the first frame for which there was no room, or stop."""
        if stamp < 0:
            return start
        for i in range(start, stop):
            c = f.slot[f.pair[i]]
            if not room(m, c, f.wire[i], f.left_at[i + 1] - f.left_at[i]):
                return i
            c = _whose(m, f, i)
            if c >= 0:
                _frame(m, f, i, c)
        return stop

    @njit(cache=True)
    def lapse(m: Memory, rows: Ints, start: int, now: int, everything: bool) -> Any:
        """What fell due on these connections by now, or their end; the first for which there was no room, or all."""
        if stamp < 0:
            return start
        for k in range(start, len(rows)):
            c = rows[k]
            if not room(m, c, 0, 0):
                return k
            expire(m, c, now)
            if everything and m.connection[c, C_STATE] == LIVE:
                _over(m, c, m.connection[c, C_LAST])
            if everything and m.connection[c, C_STATE] == GONE:
                _release(m, c)
        return len(rows)

    @njit(cache=True)
    def settle_touched(m: Memory, touched: Ints, move: bool) -> Any:
        """Bytes of these connections that lie in the call's payload; `move`: copy them into the arena."""
        if stamp < 0:
            return 0
        total = 0
        body_from = np.empty(2, np.int64)
        for c in touched:
            if not move:
                total += unsettled(m, c)
                continue
            for side in (0, 1):
                w = 2 * c + side
                in_body = m.way[w, W_MODE] == SYNC and m.way[w, W_END] >= 0
                body_from[side] = m.way[w, W_AT] if in_body else -UNSET
            settle(m, c, body_from)
        return total

    @njit(cache=True)
    def compact(m: Memory, connections: int, arena: Bytes) -> None:
        if stamp >= 0:
            move_alive(m, connections, arena)

    return follow, lapse, settle_touched, compact


follow, lapse, settle_touched, compact = _entries(_stamp())
