"""When a follower holds too much: what each connection costs, which give way, and what giving way means.

Knows: the memory of what waits on a connection, and that a message is given up by its bytes, not by its boundary: the
stream stays readable behind it.
Refuses to know: when it is too much (limits.py says, walk.py notices), and whose traffic it is.
Rule: who gives way depends on what is held and on nothing else, so cutting the input into other calls changes nothing;
what is given up is counted as skipped, and no side is blamed for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from wirecheck.decode.connection.framing import GIVEN_UP, drop, lose_boundary
from wirecheck.decode.connection.matching import give_up_answer, give_up_request
from wirecheck.decode.connection.state.heap import way_of
from wirecheck.decode.connection.state.slots import (
    C_ANSWERS,
    C_ANSWERS_COUNT,
    C_ASKED,
    C_ASKED_COUNT,
    C_LAST,
    C_PROTOCOL,
    C_STATE,
    C_WAITING_KEPT,
    G_CONNECTIONS_USED,
    G_PENDING,
    KAFKA,
    L_CONNECTIONS,
    L_PENDING_BYTES,
    LIVE,
    OFF,
    OTHER,
    PIECE_BYTES,
    SEARCH,
    START,
    SYNC,
    TLS,
    UNDECIDED,
    W_CANDIDATES,
    W_END,
    W_HELD_BYTES,
    W_HELD_COUNT,
    W_KEPT,
    W_LOST,
    W_MODE,
    W_NEED,
    W_NEXT,
    W_PIECES,
    W_SCAN,
    WAIT_BYTES,
)

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Ints

UNSURE = 4  # doublings: one that never showed Kafka gives way at a sixteenth of what others may hold


@njit
def pending(s: Ints, c: int) -> Any:
    """Bytes of memory that wait on connection c. Pieces of a message are not counted: they become one after a call."""
    total = s[c + C_WAITING_KEPT] + WAIT_BYTES * (s[c + C_ASKED_COUNT] + s[c + C_ANSWERS_COUNT])
    for w in (way_of(c, 0), way_of(c, 1)):
        pieces = s[w + W_HELD_COUNT]
        if s[w + W_MODE] != SYNC or s[w + W_END] < 0:
            pieces += s[w + W_PIECES]
        total += s[w + W_KEPT] + s[w + W_HELD_BYTES] + PIECE_BYTES * pieces
    return total


@njit
def give_up(s: Ints, c: int) -> None:
    """Hold nothing of connection c; what is held out of order was put in order before."""
    for w in (way_of(c, 0), way_of(c, 1)):
        mode = s[w + W_MODE]
        if mode == START:
            lose_boundary(s, w)
        if mode == SYNC and s[w + W_END] >= 0:
            s[w + W_LOST] = GIVEN_UP
            s[w + W_NEED] = s[w + W_NEXT]
        elif s[w + W_MODE] == SEARCH:
            s[w + W_SCAN] = max(s[w + W_SCAN], s[w + W_NEXT])
            s[w + W_CANDIDATES] = 0
        if mode != OFF and (mode != SYNC or s[w + W_END] >= 0):
            drop(s, w, s[w + W_NEXT])
    while s[c + C_ASKED] >= 0:
        give_up_request(s, c)
    while s[c + C_ANSWERS] >= 0:
        give_up_answer(s, c)


@njit
def _pending_of(s: Ints, rows: Ints) -> Any:
    found = np.empty(len(rows), np.int64)
    for k in range(len(rows)):
        found[k] = pending(s, rows[k])
    return found


def too_much(s: Ints) -> bool:
    return bool(s[G_PENDING] > s[L_PENDING_BYTES])


def giving_way(s: Ints, rows: Ints) -> Ints:
    """Those of these connections that give up what waits on them, so that a quarter of the bound is free."""
    rows = rows[s[rows + C_STATE] == LIVE]
    held = _pending_of(s, rows)
    size = np.frexp(held.astype(np.float64))[1] + np.where(s[rows + C_PROTOCOL] == KAFKA, 0, UNSURE)
    wanted = s[G_PENDING] - s[L_PENDING_BYTES] // 4 * 3
    freed = np.bincount(size, held)[::-1].cumsum()[::-1]  # by giving up all of this size and above
    least = np.flatnonzero(freed >= wanted)
    chosen: Ints = rows[(size >= (least[-1] if len(least) else 0)) & (held > 0)]
    return chosen


def too_many(s: Ints) -> bool:
    return bool(2 * s[G_CONNECTIONS_USED] > s[L_CONNECTIONS])


def let_go(s: Ints, rows: Ints) -> Ints:
    """Those of these connections that make room for others, after this call: a quarter of the bound is left then, if
    enough of them never showed Kafka. Those over come first, then the ones silent longest.
    """
    over, protocol = s[rows + C_STATE] != LIVE, s[rows + C_PROTOCOL]
    may = over | np.isin(protocol, (UNDECIDED, OTHER, TLS))
    worth = np.where(over, 0, np.where(protocol == UNDECIDED, 1, 2))[may]
    order = np.lexsort((rows[may], s[rows[may] + C_LAST], worth))
    chosen: Ints = rows[may][order[: s[G_CONNECTIONS_USED] - s[L_CONNECTIONS] // 4]]
    return chosen
