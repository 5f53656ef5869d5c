"""Finding message boundaries again: after a gap that swallowed one, and when a capture began in the middle.

Knows: what a chain of headers looks like (a believable header at p, and at p + 4 + its size another one of the same
client, later), and that responses carry the correlation ids of requests we have seen.
Refuses to know: what messages mean. It never guesses one: a position is trusted only when its chain is confirmed.
Rule: an earlier candidate that encloses later ones goes first, however many they are, so that traffic inside of
records is not mistaken for the connection's own, and a connection's client is the one it was; bytes given up are
counted.
"""

# ruff: noqa: PLR0917 -- jitted kernels take arrays and indices one by one

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from wirecheck.decode.connection.framing import RESCAN_BYTES, at_boundary, drop, turn_off
from wirecheck.decode.connection.reassembly import has_hole
from wirecheck.decode.connection.recognise import (
    API_VERSIONS,
    DOUBT,
    NO,
    RESERVED,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    STRONG,
    WAIT,
    WEAK,
    int16,
    int32,
    request_header,
    taken_request,
)
from wirecheck.decode.connection.state.chunks import begins_packet, fills_packets, piece_of, read
from wirecheck.decode.connection.state.heap import other_way, side_of
from wirecheck.decode.connection.state.slots import (
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
    W_AT,
    W_CANDIDATE,
    W_CANDIDATES,
    W_CLIENT,
    W_FROM,
    W_HEAD,
    W_KEPT,
    W_LAST_CORRELATION,
    W_MESSAGES,
    W_MODE,
    W_NEXT,
    W_PIECES,
    W_SCAN,
)

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Bytes, Ints


FAR = 1 << 16  # correlation ids of consecutive requests we see differ by less, even after a long gap
NEAR = 64
IDS = 4096  # unanswered requests looked for at once: a burst of lost answers leaves as many behind
WAITING, CONFIRMED, REFUTED = 0, 1, 2
WALK = 8192  # pieces looked at, in one search, for a message that ends with a packet
HEADER = 300  # longest believable request header
PATIENCE_BYTES = 4 << 20  # after so much of an unrecognised connection, hold only what a candidate needs
FIRST = 4  # candidates that no later one displaces: what begins within them is not trusted before they are refuted
LONG = 2 << 20  # ... up to this length: max.request.size is 1 MiB by default, and a false one would hide others as long
KNOWN_BY = 4  # requests that make sure whose connection it is: a client's first ones may not name it yet


@njit
def search(s: Ints, new: Bytes, old: Bytes, c: int, w: int) -> Any:
    """Look for a boundary in direction w; True if one was found."""
    client = s[c + C_CLIENT]
    if client < 0 or client == side_of(c, w):
        found = _search_requests(s, new, old, c, w)
    else:
        o = other_way(c, w)
        known = s[o + W_MODE] != SEARCH and not has_hole(s, o)  # which ids to look for
        found = known and _search_responses(s, new, old, c, w)
    if not found:
        _retain(s, c, w)
    return found


@njit
def _search_requests(s: Ints, new: Bytes, old: Bytes, c: int, w: int) -> Any:
    ids = np.zeros((0, 2), np.int64)
    found = _scan(s, new, old, c, w, ids)
    if found >= 0:
        _trust(s, c, w, found)
        return True
    return _resolve(s, new, old, c, w, ids)


@njit
def _search_responses(s: Ints, new: Bytes, old: Bytes, c: int, w: int) -> Any:
    ids = np.empty((IDS, 2), np.int64)  # id, and its place among those asked with
    count, q = 0, s[c + C_ASKED]
    while q >= 0 and count < IDS:
        if not s[q + Q_FLAGS] & F_RAW:
            ids[count, 0], ids[count, 1] = s[q + Q_CORRELATION], count
            count += 1
        q = s[q + Q_NEXT]
    if count == 0:
        s[w + W_SCAN] = max(s[w + W_SCAN], s[w + W_NEXT] - 7)
        return False
    ids = ids[:count]
    said = ids[:, 0].copy()
    if (np.diff(said) < 0).any():  # seldom: reauthentication takes ids from elsewhere
        ids = ids[np.argsort(said, kind="mergesort")]
    found = _scan(s, new, old, c, w, ids)
    if found >= 0:
        _trust(s, c, w, found)
        return True
    return _resolve(s, new, old, c, w, ids)


@njit
def _scan(s: Ints, new: Bytes, old: Bytes, c: int, w: int, ids: Ints) -> Any:
    """Test every position not tested yet; candidates are noted, a request that continues what we know is returned."""
    p, at = s[w + W_HEAD], max(s[w + W_SCAN], s[w + W_FROM])
    while p >= 0:
        start, end = s[p + P_AT], s[p + P_AT] + s[p + P_LENGTH]
        if end <= at or s[p + P_KIND] != DATA:
            at = max(at, end)
            p = s[p + P_NEXT]
            continue
        at, length = max(at, start), 0
        first = p
        while p >= 0 and s[p + P_KIND] == DATA:
            length = s[p + P_AT] + s[p + P_LENGTH] - at
            p = s[p + P_NEXT]
        run = np.empty(length, np.uint8)
        read(s, new, old, first, at, run, length)
        stop, found = _scan_run(s, w, run, at, first, ids, p < 0)
        if found >= 0:
            return found
        if s[c + C_PROTOCOL] == UNDECIDED:
            s[c + C_SEARCHED] += stop
        at += stop
    s[w + W_SCAN] = max(at, s[w + W_SCAN])
    return -1


@njit
def _scan_run(s: Ints, w: int, run: Bytes, at: int, p: int, ids: Ints, last: bool) -> Any:
    """(positions tested, offset of a request that needs no further proof or -1) of bytes at offset `at`, in piece p."""
    largest, n, steps = s[L_MESSAGE_BYTES], len(run), WALK
    sure = s[w + W_CLIENT] >= 0 and s[w + W_MESSAGES] >= KNOWN_BY and s[w + W_NEXT] - s[w + W_AT] < PATIENCE_BYTES
    highest = largest >> 24
    for i in range(n - 7):
        if run[i] > highest:
            continue
        if len(ids):
            size = int32(run, i)
            if _asked(ids, int32(run, i + 4)) >= 0 and 4 <= size <= largest:
                p = piece_of(s, p, at + i)
                fills, walked = fills_packets(s, p, at + i, at + i + 4 + size, steps)
                steps -= walked
                if fills:
                    return i, at + i
                _note(s, w, at + i, size, int32(run, i + 4), 0)
            continue
        if run[i + 4] != 0 or run[i + 6] != 0:
            continue
        verdict, _, client = request_header(s, run, i, n, largest)
        if verdict == NO and sure:  # the client may be one whose id nobody else would use
            verdict, _, client = taken_request(s, run, i, n, largest)
            verdict = STRONG if verdict == DOUBT and client == s[w + W_CLIENT] else verdict
        if verdict == WAIT and last:
            return i, -1
        if verdict in (NO, WAIT, DOUBT) or int32(run, i + 8) < 0:
            continue
        known_client = s[w + W_CLIENT] >= 0 and client == s[w + W_CLIENT]
        if sure and not known_client:
            continue
        ahead = int32(run, i + 8) - s[w + W_LAST_CORRELATION]
        if verdict == STRONG:
            p = piece_of(s, p, at + i)
            if known_client and 0 < ahead <= FAR and begins_packet(s, p, at + i):
                return i, at + i
            fills, walked = fills_packets(s, p, at + i, at + i + 4 + int32(run, i), steps)
            steps -= walked
            if fills:
                return i, at + i
        if verdict == STRONG or (verdict == WEAK and known_client and 0 < ahead <= NEAR):
            _note(s, w, at + i, int32(run, i), int32(run, i + 8), client)
    return (max(n - 7, 0) if last else n), -1


@njit
def _asked(ids: Ints, correlation: int) -> Any:
    """The place of a correlation id among those asked with, rows (id, place) by id; -1 if it is none of them."""
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        if ids[middle, 0] < correlation:
            low = middle + 1
        else:
            high = middle
    return ids[low, 1] if low < len(ids) and ids[low, 0] == correlation else -1


@njit
def _note(s: Ints, w: int, at: int, size: int, correlation: int, client: int) -> None:
    """Remember a candidate; when there are too many, the one that ends last makes room, but not one of the FIRST."""
    count = s[w + W_CANDIDATES]
    place = count
    if count == CANDIDATES:
        for k in range(CANDIDATES):
            base = W_CANDIDATE + 4 * k
            if k < FIRST and s[w + base + 1] - s[w + base] <= LONG:
                continue
            if place == count or s[w + base + 1] > s[w + W_CANDIDATE + 4 * place + 1]:
                place = k
        if s[w + W_CANDIDATE + 4 * place + 1] <= at + 4 + size:
            return
        for k in range(place, CANDIDATES - 1):
            for column in range(4):
                s[w + W_CANDIDATE + 4 * k + column] = s[w + W_CANDIDATE + 4 * (k + 1) + column]
        place = CANDIDATES - 1
    else:
        for k in range(count):
            if s[w + W_CANDIDATE + 4 * k] == at:
                return
        s[w + W_CANDIDATES] += 1
    base = W_CANDIDATE + 4 * place
    s[w + base], s[w + base + 1] = at, at + 4 + size
    s[w + base + 2], s[w + base + 3] = correlation, client


@njit
def _resolve(s: Ints, new: Bytes, old: Bytes, c: int, w: int, ids: Ints) -> Any:
    """Confirm or refute candidates by what stands where they end; True if one is trusted now."""
    kept, covered = 0, -1
    for k in range(s[w + W_CANDIDATES]):
        base = W_CANDIDATE + 4 * k
        at, end = s[w + base], s[w + base + 1]
        if end < s[w + W_FROM]:  # what stands there was given up
            continue
        state = _verdict(s, new, old, w, base, ids)
        if state == REFUTED:
            continue
        if state == CONFIRMED and at >= covered:
            _trust(s, c, w, at if at >= s[w + W_FROM] else end)
            return True
        if state == WAITING:
            covered = max(covered, end)
        for column in range(4):
            s[w + W_CANDIDATE + 4 * kept + column] = s[w + base + column]
        kept += 1
    s[w + W_CANDIDATES] = kept
    return False


@njit
def _verdict(s: Ints, new: Bytes, old: Bytes, w: int, base: int, ids: Ints) -> Any:
    """What the bytes at the end of a candidate, where the next message should begin, say about it."""
    end, correlation = s[w + base + 1], s[w + base + 2]
    have = s[w + W_NEXT] - end
    if have <= 0:
        return WAITING
    n = read(s, new, old, s[w + W_HEAD], end, old, min(have, HEADER))
    if len(ids):
        if n < 8:
            return WAITING if n == have else REFUTED
        if not 4 <= int32(old, 0) <= s[L_MESSAGE_BYTES]:
            return REFUTED
        return CONFIRMED if _follows(s, w, base, int32(old, 4), ids) else REFUTED
    verdict, _, follower = taken_request(s, old, 0, n, s[L_MESSAGE_BYTES])
    if verdict == WAIT:
        return WAITING if n == have else REFUTED
    if verdict == NO or follower != s[w + base + 3]:
        return REFUTED
    ahead = int32(old, 8) - correlation
    signs_in = int16(old, 4) in (SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE)
    return CONFIRMED if 0 < ahead <= FAR or signs_in or correlation >= RESERVED else REFUTED


@njit
def _follows(s: Ints, w: int, base: int, correlation: int, ids: Ints) -> Any:
    """Whether a response with this id can follow the candidate; small numbers are everywhere, so packets must agree."""
    first, last = begins_packet(s, s[w + W_HEAD], s[w + base]), begins_packet(s, s[w + W_HEAD], s[w + base + 1])
    if _asked(ids, correlation) > _asked(ids, s[w + base + 2]) >= 0:
        return first or last or correlation > FAR
    return first and last and 0 < correlation - s[w + base + 2] <= NEAR


@njit
def _trust(s: Ints, c: int, w: int, at: int) -> None:
    drop(s, w, at)
    at_boundary(s, w, at)
    s[c + C_RESYNCHRONISED] += 1
    s[c + C_PROTOCOL] = KAFKA
    if s[c + C_CLIENT] < 0:
        s[c + C_CLIENT] = side_of(c, w)
        s[c + C_ROLE_BY] = BY_CONTENT
        o = other_way(c, w)
        s[o + W_CANDIDATES] = 0
        s[o + W_SCAN] = s[o + W_FROM]


@njit
def last_chance(s: Ints, c: int, w: int) -> Any:
    """Nothing follows: a candidate that ends exactly where the stream ends is trusted. True if there was one."""
    if s[w + W_MODE] != SEARCH:
        return False
    for k in range(s[w + W_CANDIDATES]):
        base = W_CANDIDATE + 4 * k
        if s[w + base + 1] == s[w + W_NEXT] and s[w + base] >= s[w + W_FROM]:
            _trust(s, c, w, s[w + base])
            return True
    return False


@njit
def _retain(s: Ints, c: int, w: int) -> None:
    """Give up what no candidate needs."""
    if s[c + C_PROTOCOL] == UNDECIDED and s[c + C_SEARCHED] > s[L_GIVE_UP_BYTES]:
        turn_off(s, c, OTHER)
        return
    client, o = s[c + C_CLIENT], other_way(c, w)
    if client < 0:
        hold_all = s[c + C_SEARCHED] < PATIENCE_BYTES
    else:
        hold_all = client != side_of(c, w) and (s[o + W_MODE] == SEARCH or has_hole(s, o))
    if not hold_all:
        keep = s[w + W_SCAN]
        if s[w + W_CANDIDATES]:
            keep = min(keep, s[w + W_CANDIDATE])
        if client >= 0 and client != side_of(c, w):
            keep = min(keep, max(s[w + W_FROM], s[w + W_NEXT] - RESCAN_BYTES))
        drop(s, w, keep)
    while s[w + W_HEAD] >= 0 and (s[w + W_KEPT] > s[L_SEARCH_BYTES] or s[w + W_PIECES] > s[L_SEARCH_PIECES]):
        first = s[w + W_HEAD]
        drop(s, w, s[first + P_AT] + s[first + P_LENGTH])
