"""Finding message boundaries again: after a gap that swallowed one, and when a capture began in the middle.

Knows: what a chain of headers looks like (a believable header at p, and at p + 4 + its size another one of the same
client, later), and that responses carry the correlation ids of requests we have seen.
Refuses to know: what messages mean. It never guesses one: a position is trusted only when its chain is confirmed.
Rule: an earlier candidate that encloses a later one goes first, so that traffic inside of records is not mistaken for
the connection's own; bytes given up are counted.
"""

# ruff: noqa: PLR0917 -- jitted kernels take arrays and indices one by one

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from decode.cutting import RESCAN_BYTES, at_boundary, drop, turn_off
from decode.pieces import read
from decode.recognise import (
    API_VERSIONS,
    NO,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    STRONG,
    WAIT,
    WEAK,
    int16,
    int32,
    request_header,
)
from decode.slots import (
    BY_CONTENT,
    C_ASKED,
    C_CLIENT,
    C_PROTOCOL,
    C_RESYNCHRONISED,
    C_ROLE_BY,
    C_SEARCHED,
    CANDIDATES,
    DATA,
    F_RAW,
    KAFKA,
    L_GIVE_UP_BYTES,
    L_MESSAGE_BYTES,
    L_SEARCH_BYTES,
    L_SEARCH_PIECES,
    OTHER,
    P_AT,
    P_KIND,
    P_LENGTH,
    P_NEXT,
    Q_CORRELATION,
    Q_FLAGS,
    Q_NEXT,
    SEARCH,
    UNDECIDED,
    W_CANDIDATE,
    W_CANDIDATES,
    W_CLIENT,
    W_FROM,
    W_HEAD,
    W_KEPT,
    W_LAST_CORRELATION,
    W_MODE,
    W_NEXT,
    W_PIECES,
    W_SCAN,
    Bytes,
    Ints,
    Memory,
)
from decode.stream import has_hole

FAR = 1 << 16  # correlation ids of consecutive requests we see differ by less, even after a long gap
NEAR = 64
IDS = 64  # unanswered requests looked for at once
WAITING, CONFIRMED, REFUTED = 0, 1, 2
HEADER = 300  # longest believable request header
PATIENCE_BYTES = 4 << 20  # after so much of an unrecognised connection, hold only what a candidate needs


@njit
def search(m: Memory, c: int, w: int) -> Any:
    """Look for a boundary in direction w; True if one was found."""
    client = m.connection[c, C_CLIENT]
    if client < 0 or client == w - 2 * c:
        found = _search_requests(m, c, w)
    else:
        o = 4 * c + 1 - w
        known = m.way[o, W_MODE] != SEARCH and not has_hole(m, o)  # which ids to look for
        found = known and _search_responses(m, c, w)
    if not found:
        _retain(m, c, w)
    return found


@njit
def _search_requests(m: Memory, c: int, w: int) -> Any:
    ids = np.zeros(0, np.int64)
    found = _scan(m, c, w, ids)
    if found >= 0:
        _trust(m, c, w, found)
        return True
    return _resolve(m, c, w, ids)


@njit
def _search_responses(m: Memory, c: int, w: int) -> Any:
    ids = np.empty(IDS, np.int64)
    count, q = 0, m.connection[c, C_ASKED]
    while q >= 0 and count < IDS:
        if not m.wait[q, Q_FLAGS] & F_RAW:
            ids[count] = m.wait[q, Q_CORRELATION]
            count += 1
        q = m.wait[q, Q_NEXT]
    if count == 0:
        m.way[w, W_SCAN] = max(m.way[w, W_SCAN], m.way[w, W_NEXT] - 7)
        return False
    _scan(m, c, w, ids[:count])
    return _resolve(m, c, w, ids[:count])


@njit
def _scan(m: Memory, c: int, w: int, ids: Ints) -> Any:
    """Test every position not tested yet; candidates are noted, a request that continues what we know is returned."""
    way = m.way
    p, at = way[w, W_HEAD], max(way[w, W_SCAN], way[w, W_FROM])
    while p >= 0:
        start, end = m.piece[p, P_AT], m.piece[p, P_AT] + m.piece[p, P_LENGTH]
        if end <= at or m.piece[p, P_KIND] != DATA:
            at = max(at, end)
            p = m.piece[p, P_NEXT]
            continue
        at, length = max(at, start), 0
        first = p
        while p >= 0 and m.piece[p, P_KIND] == DATA:
            length = m.piece[p, P_AT] + m.piece[p, P_LENGTH] - at
            p = m.piece[p, P_NEXT]
        run = np.empty(length, np.uint8)
        read(m, first, at, run, length)
        stop, found = _scan_run(m, w, run, at, ids, p < 0)
        if found >= 0:
            return found
        if m.connection[c, C_PROTOCOL] == UNDECIDED:
            m.connection[c, C_SEARCHED] += stop
        at += stop
    way[w, W_SCAN] = max(at, way[w, W_SCAN])
    return -1


@njit
def _scan_run(m: Memory, w: int, run: Bytes, at: int, ids: Ints, last: bool) -> Any:
    """(positions tested, offset of a request that needs no further proof or -1) of contiguous bytes at offset `at`."""
    largest, n = m.limit[L_MESSAGE_BYTES], len(run)
    highest = largest >> 24
    for i in range(n):
        if n - i < 8:
            return (i if last else n), -1
        if run[i] > highest:
            continue
        if len(ids):
            if _asked(ids, int32(run, i + 4)) >= 0 and 4 <= int32(run, i) <= largest:
                _note(m, w, at + i, int32(run, i), int32(run, i + 4), 0)
            continue
        if run[i + 4] != 0 or run[i + 6] != 0:
            continue
        verdict, _, client = request_header(m.known, run, i, n, largest)
        if verdict == WAIT and last:
            return i, -1
        if verdict in (NO, WAIT) or int32(run, i + 8) < 0:
            continue
        known_client = m.way[w, W_CLIENT] >= 0 and client == m.way[w, W_CLIENT]
        ahead = int32(run, i + 8) - m.way[w, W_LAST_CORRELATION]
        if verdict == STRONG and known_client and 0 < ahead <= FAR:
            return i, at + i
        if verdict == STRONG or (verdict == WEAK and known_client and 0 < ahead <= NEAR):
            _note(m, w, at + i, int32(run, i), int32(run, i + 8), client)
    return n, -1


@njit
def _asked(ids: Ints, correlation: int) -> Any:
    for k in range(len(ids)):
        if ids[k] == correlation:
            return k
    return -1


@njit
def _note(m: Memory, w: int, at: int, size: int, correlation: int, client: int) -> None:
    """Remember a candidate; when there are too many, the one that ends last makes room."""
    way, count = m.way, m.way[w, W_CANDIDATES]
    place = count
    if count == CANDIDATES:
        for k in range(CANDIDATES):
            if place == count or way[w, W_CANDIDATE + 4 * k + 1] > way[w, W_CANDIDATE + 4 * place + 1]:
                place = k
        if way[w, W_CANDIDATE + 4 * place + 1] <= at + 4 + size:
            return
        for k in range(place, CANDIDATES - 1):
            for column in range(4):
                way[w, W_CANDIDATE + 4 * k + column] = way[w, W_CANDIDATE + 4 * (k + 1) + column]
        place = CANDIDATES - 1
    else:
        for k in range(count):
            if way[w, W_CANDIDATE + 4 * k] == at:
                return
        way[w, W_CANDIDATES] += 1
    base = W_CANDIDATE + 4 * place
    way[w, base], way[w, base + 1] = at, at + 4 + size
    way[w, base + 2], way[w, base + 3] = correlation, client


@njit
def _resolve(m: Memory, c: int, w: int, ids: Ints) -> Any:
    """Confirm or refute candidates by what stands where they end; True if one is trusted now."""
    way, kept, covered = m.way, 0, -1
    for k in range(way[w, W_CANDIDATES]):
        base = W_CANDIDATE + 4 * k
        at, end = way[w, base], way[w, base + 1]
        state = _verdict(m, w, end, way[w, base + 2], way[w, base + 3], ids)
        if state == REFUTED or end < way[w, W_FROM]:
            continue
        if state == CONFIRMED and at >= covered:
            _trust(m, c, w, at if at >= way[w, W_FROM] else end)
            return True
        if state == WAITING:
            covered = max(covered, end)
        for column in range(4):
            way[w, W_CANDIDATE + 4 * kept + column] = way[w, base + column]
        kept += 1
    way[w, W_CANDIDATES] = kept
    return False


@njit
def _verdict(m: Memory, w: int, end: int, correlation: int, client: int, ids: Ints) -> Any:
    """What the bytes at `end`, where the next message should begin, say about a candidate."""
    have = m.way[w, W_NEXT] - end
    if have <= 0:
        return WAITING
    n = read(m, m.way[w, W_HEAD], end, m.scratch, min(have, HEADER))
    if len(ids):
        if n < 8:
            return WAITING if n == have else REFUTED
        ahead = int32(m.scratch, 4) - correlation
        follows = 0 < ahead <= NEAR or _asked(ids, int32(m.scratch, 4)) > _asked(ids, correlation) >= 0
        return CONFIRMED if follows and 4 <= int32(m.scratch, 0) <= m.limit[L_MESSAGE_BYTES] else REFUTED
    verdict, _, follower = request_header(m.known, m.scratch, 0, n, m.limit[L_MESSAGE_BYTES])
    if verdict == WAIT:
        return WAITING if n == have else REFUTED
    if verdict == NO or follower != client:
        return REFUTED
    ahead = int32(m.scratch, 8) - correlation
    signs_in = int16(m.scratch, 4) in (SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE)
    return CONFIRMED if 0 < ahead <= FAR or signs_in else REFUTED


@njit
def _trust(m: Memory, c: int, w: int, at: int) -> None:
    drop(m, w, at)
    at_boundary(m, w, at)
    connection = m.connection
    connection[c, C_RESYNCHRONISED] += 1
    connection[c, C_PROTOCOL] = KAFKA
    if connection[c, C_CLIENT] < 0:
        connection[c, C_CLIENT] = w - 2 * c
        connection[c, C_ROLE_BY] = BY_CONTENT
        o = 4 * c + 1 - w
        m.way[o, W_CANDIDATES] = 0
        m.way[o, W_SCAN] = m.way[o, W_FROM]


@njit
def last_chance(m: Memory, c: int, w: int) -> Any:
    """Nothing follows: a candidate that ends exactly where the stream ends is trusted. True if there was one."""
    way = m.way
    if way[w, W_MODE] != SEARCH:
        return False
    for k in range(way[w, W_CANDIDATES]):
        base = W_CANDIDATE + 4 * k
        if way[w, base + 1] == way[w, W_NEXT] and way[w, base] >= way[w, W_FROM]:
            _trust(m, c, w, way[w, base])
            return True
    return False


@njit
def _retain(m: Memory, c: int, w: int) -> None:
    """Give up what no candidate needs."""
    way, connection = m.way, m.connection
    if connection[c, C_PROTOCOL] == UNDECIDED and connection[c, C_SEARCHED] > m.limit[L_GIVE_UP_BYTES]:
        turn_off(m, c, OTHER)
        return
    client, o = connection[c, C_CLIENT], 4 * c + 1 - w
    if client < 0:
        hold_all = connection[c, C_SEARCHED] < PATIENCE_BYTES
    else:
        hold_all = client != w - 2 * c and (way[o, W_MODE] == SEARCH or has_hole(m, o))
    if not hold_all:
        keep = way[w, W_SCAN]
        if way[w, W_CANDIDATES]:
            keep = min(keep, way[w, W_CANDIDATE])
        if client >= 0 and client != w - 2 * c:
            keep = min(keep, max(way[w, W_FROM], way[w, W_NEXT] - RESCAN_BYTES))
        drop(m, w, keep)
    while way[w, W_HEAD] >= 0 and (
        way[w, W_KEPT] > m.limit[L_SEARCH_BYTES] or way[w, W_PIECES] > m.limit[L_SEARCH_PIECES]
    ):
        first = way[w, W_HEAD]
        drop(m, w, m.piece[first, P_AT] + m.piece[first, P_LENGTH])
