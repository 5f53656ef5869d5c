"""Records in the follower's heap: taken, given back, found.

Knows: the four kinds of record, their sizes and free lists, and where a connection's directions lie in it.
Refuses to know: what the records mean.
Rule: whoever calls a kernel makes sure there is room before (walk.room); nothing here checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import njit

from wirecheck.decode.connection.state.slots import (
    C_COUNT,
    C_SIZE,
    C_TOUCH_NEXT,
    C_TOUCHED,
    G_CALL,
    G_CONNECTIONS,
    G_CONNECTIONS_USED,
    G_LINE_HEAD,
    G_LINE_TAIL,
    G_LINES,
    G_PIECES,
    G_TOP,
    G_TOUCHED,
    G_TOUCHED_COUNT,
    G_WAITS,
    H_CONNECTION,
    H_COUNT,
    H_KIND,
    NEXT,
    P_COUNT,
    Q_COUNT,
    Q_PIECES,
    W_COUNT,
)

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Ints


@njit
def _take(s: Ints, pool: int, size: int) -> Any:
    p = s[pool]
    if p >= 0:
        s[pool] = s[p + NEXT]
        s[pool + 1] -= 1
    else:
        p = s[G_TOP]
        s[G_TOP] += size
    s[p + NEXT] = -1
    return p


@njit
def _give(s: Ints, pool: int, p: int) -> None:
    s[p + NEXT] = s[pool]
    s[pool] = p
    s[pool + 1] += 1


@njit
def take_piece(s: Ints) -> Any:
    return _take(s, G_PIECES, P_COUNT)


@njit
def give_piece(s: Ints, p: int) -> None:
    _give(s, G_PIECES, p)


@njit
def take_wait(s: Ints) -> Any:
    q = _take(s, G_WAITS, Q_COUNT)
    for column in range(1, Q_COUNT):
        s[q + column] = 0
    s[q + Q_PIECES] = -1
    return q


@njit
def give_wait(s: Ints, q: int) -> None:
    _give(s, G_WAITS, q)


@njit
def take_connection(s: Ints) -> Any:
    c = _take(s, G_CONNECTIONS, C_SIZE)
    for column in range(1, C_SIZE):
        s[c + column] = 0
    return c


def give_connection(s: Ints, c: int) -> None:
    s[c + NEXT] = s[G_CONNECTIONS]
    s[G_CONNECTIONS] = c
    s[G_CONNECTIONS + 1] += 1
    s[G_CONNECTIONS_USED] -= 1


@njit
def take_line(s: Ints, kind: int, c: int) -> Any:
    """A line of output, last in order."""
    line = _take(s, G_LINES, H_COUNT)
    s[line + H_KIND] = kind
    s[line + H_CONNECTION] = c
    if s[G_LINE_HEAD] < 0:
        s[G_LINE_HEAD] = line
    else:
        s[s[G_LINE_TAIL] + NEXT] = line
    s[G_LINE_TAIL] = line
    return line


@njit
def touch(s: Ints, c: int) -> None:
    """Its facts changed in this call."""
    if s[c + C_TOUCHED] != s[G_CALL]:
        s[c + C_TOUCHED] = s[G_CALL]
        s[c + C_TOUCH_NEXT] = s[G_TOUCHED]
        s[G_TOUCHED] = c
        s[G_TOUCHED_COUNT] += 1


@njit
def way_of(c: int, side: int) -> Any:
    """The direction of connection c from its lower (0) or higher (1) endpoint."""
    return c + C_COUNT + side * W_COUNT


@njit
def side_of(c: int, w: int) -> Any:
    return (w - c - C_COUNT) // W_COUNT


@njit
def other_way(c: int, w: int) -> Any:
    return 2 * (c + C_COUNT) + W_COUNT - w
