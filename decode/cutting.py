"""Messages out of a stream whose boundaries are known.

Knows: the 4-byte size before every message, request and response headers, raw SASL tokens after SaslHandshake v0
(KIP-43), and when the boundary is lost.
Refuses to know: how to find a boundary again (resync.py), which response belongs to which request (pairing.py).
Rule: a message is cut only when its last byte is accounted for, as seen, left out or never seen; a message whose header
was not seen is never one.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from decode.pairing import answered_is_raw, drop_raw, new_wait, request, response
from decode.pieces import detach, free_list, read, seen_last, without_front
from decode.recognise import (
    NO,
    NO_CLIENT,
    NOT_SEEN,
    PRODUCE,
    SASL_HANDSHAKE,
    SHORTEST_REQUEST,
    STRONG,
    WAIT,
    int16,
    int32,
    mechanism,
    opening_request,
    produce_acks,
    request_header,
    tls_record,
)
from decode.slots import (
    C_CLIENT,
    C_PROTOCOL,
    C_RAW,
    C_SASL,
    F_ACKS_UNKNOWN,
    F_RAW,
    KAFKA,
    L_MESSAGE_BYTES,
    L_SEARCH_BYTES,
    OFF,
    OTHER,
    P_FRAME,
    P_SOURCE,
    P_TS,
    Q_AT,
    Q_CORRELATION,
    Q_FLAGS,
    Q_FRAME,
    Q_FRAME_LAST,
    Q_GAP,
    Q_KEY,
    Q_PIECES,
    Q_SIDE,
    Q_SIZE,
    Q_SOURCE,
    Q_TS,
    Q_TS_LAST,
    Q_VERSION,
    SASL_RAW,
    SEARCH,
    START,
    SYNC,
    TLS,
    UNDECIDED,
    W_AT,
    W_CANDIDATES,
    W_CLIENT,
    W_CORRELATION,
    W_END,
    W_FROM,
    W_HEAD,
    W_KEPT,
    W_KEY,
    W_LAST_CORRELATION,
    W_LOST,
    W_MESSAGES,
    W_MODE,
    W_NEED,
    W_NEXT,
    W_RAW,
    W_RESCANS,
    W_SCAN,
    W_SKIPPED,
    W_TAIL,
    W_VERSION,
    Memory,
)

RAW_TOKEN = -2  # W_KEY of a frame that is no message
TOKEN_BYTES = 1 << 20  # sasl.server.max.receive.size is 512 KiB by default
PEEK = 64  # enough for the header of most requests
PEEK_FAR = 1024  # enough for client id, transactional id and acks
OPENING = 256  # bytes of a first request waited for before its connection is judged
HIGHEST_KEY, HIGHEST_VERSION = 20_000, 200  # far above any fork's; an unknown API is undecoded, not noise
RESCANS = 256  # times a search may look again at bytes it had passed over
RESCAN_BYTES = 16 << 10


@njit
def cut(m: Memory, c: int, w: int) -> None:
    """Cut what direction w has; it stops at the first incomplete message or lost boundary."""
    way = m.way
    while way[w, W_MODE] in (START, SYNC) and way[w, W_NEXT] >= way[w, W_NEED]:
        if way[w, W_END] < 0:
            if not _head(m, c, w):
                return
        elif way[w, W_NEXT] < way[w, W_END]:
            way[w, W_NEED] = way[w, W_END]
            return
        else:
            _complete(m, c, w)


@njit
def lose_boundary(m: Memory, w: int) -> None:
    way = m.way
    way[w, W_MODE] = SEARCH
    way[w, W_SCAN] = way[w, W_FROM] if way[w, W_HEAD] >= 0 else way[w, W_NEXT]
    way[w, W_END] = -1
    way[w, W_CANDIDATES] = 0
    way[w, W_RESCANS] = 0


@njit
def at_boundary(m: Memory, w: int, at: int) -> None:
    """A message of direction w begins at this offset."""
    way = m.way
    way[w, W_MODE] = SYNC
    way[w, W_AT] = at
    way[w, W_END] = -1
    way[w, W_NEED] = at + 4
    way[w, W_CANDIDATES] = 0


@njit
def turn_off(m: Memory, c: int, protocol: int) -> None:
    """Not Kafka, or not readable: count its bytes, hold none."""
    m.connection[c, C_PROTOCOL] = protocol
    for w in (2 * c, 2 * c + 1):
        way = m.way
        way[w, W_MODE] = OFF
        drop(m, w, way[w, W_NEXT])
        way[w, W_HEAD] = -1
        way[w, W_TAIL] = -1


@njit
def drop(m: Memory, w: int, upto: int) -> None:
    """Give up the bytes before this offset: seen, and not understood."""
    gap_before = seen_gap(m, m.way[w, W_HEAD], upto)
    start = m.way[w, W_FROM]
    first = detach(m, w, upto)
    if first >= 0:
        m.way[w, W_SKIPPED] += upto - start - gap_before
        free_list(m, first)


@njit
def seen_gap(m: Memory, p: int, upto: int) -> Any:
    """Bytes of the list before `upto` that were never seen."""
    total = 0
    while p >= 0 and m.piece[p, 1] < upto:
        if m.piece[p, 3] == 2:
            total += min(m.piece[p, 2], upto - m.piece[p, 1])
        p = m.piece[p, 0]
    return total


@njit
def _head(m: Memory, c: int, w: int) -> Any:
    """Read size and header at the boundary; False: more bytes are needed, or the protocol is not decided."""
    way, at = m.way, m.way[w, W_AT]
    have = way[w, W_NEXT] - at
    if have < 4:
        way[w, W_NEED] = at + 4
        return False
    is_request = m.connection[c, C_CLIENT] == w - 2 * c
    if m.connection[c, C_PROTOCOL] == UNDECIDED and way[w, W_MODE] == START and not is_request:
        if way[w, W_KEPT] > m.limit[L_SEARCH_BYTES]:
            turn_off(m, c, OTHER)
        return False
    n = read(m, way[w, W_HEAD], at, m.scratch, min(have, PEEK))
    if n < 4:
        lose_boundary(m, w)
        return True
    way[w, W_LOST] = 0
    if not is_request:
        return _response_head(m, c, w, n)
    if way[w, W_MODE] == START:
        return _opening(m, c, w)
    if m.connection[c, C_RAW]:
        return _token_or_request(m, c, w)
    return _request_head(m, w, n)


@njit
def _opening(m: Memory, c: int, w: int) -> Any:
    """The first bytes of a connection decide what it is."""
    way, at = m.way, m.way[w, W_AT]
    have, size = way[w, W_NEXT] - at, int32(m.scratch, 0)
    n = read(m, way[w, W_HEAD], at, m.scratch, min(have, PEEK_FAR))
    if n >= 5 and tls_record(m.scratch, 0, n):
        turn_off(m, c, TLS)
        return True
    if size < SHORTEST_REQUEST or size > m.limit[L_MESSAGE_BYTES]:
        turn_off(m, c, OTHER)
        return True
    enough = min(size + 4, OPENING)
    if have < enough:
        way[w, W_NEED] = at + min(enough, have + 1)
        if n >= 12 and request_header(m.known, m.scratch, 0, n, m.limit[L_MESSAGE_BYTES])[0] == NO:
            turn_off(m, c, OTHER)
            return True
        return False
    verdict, _, _ = opening_request(m.known, m.scratch, min(n, size + 4), m.limit[L_MESSAGE_BYTES])
    if verdict == STRONG:
        m.connection[c, C_PROTOCOL] = KAFKA
        way[w, W_MODE] = SYNC
    elif n < enough:
        lose_boundary(m, w)
    else:
        turn_off(m, c, OTHER)
    return True


@njit
def _request_head(m: Memory, w: int, n: int) -> Any:
    way, at = m.way, m.way[w, W_AT]
    size = int32(m.scratch, 0)
    if size < SHORTEST_REQUEST or size > m.limit[L_MESSAGE_BYTES]:
        lose_boundary(m, w)
        return True
    enough = min(size + 4, 14)
    if way[w, W_NEXT] - at < enough:
        way[w, W_NEED] = at + enough
        return False
    way[w, W_END] = at + 4 + size
    if n < min(12, enough):
        way[w, W_LOST] = 1
        return True
    way[w, W_KEY], way[w, W_VERSION] = int16(m.scratch, 4), int16(m.scratch, 6)
    way[w, W_CORRELATION] = int32(m.scratch, 8)
    strange = not (0 <= way[w, W_KEY] <= HIGHEST_KEY and 0 <= way[w, W_VERSION] <= HIGHEST_VERSION)
    if n >= 14 and size >= 10 and size != 12:
        strange = strange or not -1 <= int16(m.scratch, 12) <= size - 10
    if strange:
        lose_boundary(m, w)
    return True


@njit
def _token_or_request(m: Memory, c: int, w: int) -> Any:
    """After SaslHandshake v0 every frame is a raw token until one is a request again."""
    way, at = m.way, m.way[w, W_AT]
    have, size = way[w, W_NEXT] - at, int32(m.scratch, 0)
    if size < 0 or size > m.limit[L_MESSAGE_BYTES]:
        lose_boundary(m, w)
        return True
    n = read(m, way[w, W_HEAD], at, m.scratch, min(have, size + 4, PEEK_FAR))
    verdict, length, _ = request_header(m.known, m.scratch, 0, n, m.limit[L_MESSAGE_BYTES])
    if verdict == WAIT and length <= size + 4 and have < length:
        way[w, W_NEED] = at + length
        return False
    if verdict > WAIT:
        m.connection[c, C_RAW] = 0
        return _request_head(m, w, n)
    if size > TOKEN_BYTES:
        lose_boundary(m, w)
        return True
    way[w, W_KEY] = RAW_TOKEN
    way[w, W_END] = at + 4 + size
    return True


@njit
def _response_head(m: Memory, c: int, w: int, n: int) -> Any:
    way, at = m.way, m.way[w, W_AT]
    size, raw = int32(m.scratch, 0), answered_is_raw(m, c)
    if size < (0 if raw else 4) or size > m.limit[L_MESSAGE_BYTES]:
        lose_boundary(m, w)
        return True
    way[w, W_KEY] = RAW_TOKEN if raw else 0
    if not raw and way[w, W_NEXT] - at < 8:
        way[w, W_NEED] = at + 8
        return False
    way[w, W_MODE] = SYNC
    way[w, W_END] = at + 4 + size
    way[w, W_LOST] = 1 if n < 8 and not raw else 0
    way[w, W_CORRELATION] = int32(m.scratch, 4) if n >= 8 else 0
    return True


@njit
def _complete(m: Memory, c: int, w: int) -> None:
    """The message that ends at W_END is all there."""
    way, at, end = m.way, m.way[w, W_AT], m.way[w, W_END]
    is_request = m.connection[c, C_CLIENT] == w - 2 * c
    useful = way[w, W_LOST] == 0 and way[w, W_KEY] != RAW_TOKEN
    due, flags = True, 0
    if useful and is_request:
        due, flags = _look_into_request(m, c, w, end - at)
    first = detach(m, w, end)
    way[w, W_AT] = end
    way[w, W_END] = -1
    way[w, W_NEED] = end + 4
    if not useful:
        free_list(m, first)
        if way[w, W_KEY] == RAW_TOKEN and way[w, W_LOST] == 0:
            _count_token(m, c, w, is_request)
        return
    q = _waiting(m, first, at, end)
    m.wait[q, Q_SIDE] = 0 if is_request else 1
    m.wait[q, Q_CORRELATION] = way[w, W_CORRELATION]
    way[w, W_MESSAGES] += 1
    if not is_request:
        response(m, c, q)
        return
    m.wait[q, Q_KEY], m.wait[q, Q_VERSION], m.wait[q, Q_FLAGS] = way[w, W_KEY], way[w, W_VERSION], flags
    request(m, c, q, due)
    _look_again(m, c, w)


@njit
def _waiting(m: Memory, first: int, at: int, end: int) -> Any:
    q = new_wait(m)
    wait, piece = m.wait, m.piece
    ts, frame, gap = seen_last(m, first)
    wait[q, Q_TS], wait[q, Q_FRAME], wait[q, Q_SOURCE] = (
        piece[first, P_TS],
        piece[first, P_FRAME],
        piece[first, P_SOURCE],
    )
    wait[q, Q_TS_LAST], wait[q, Q_FRAME_LAST], wait[q, Q_GAP] = ts, frame, gap
    wait[q, Q_PIECES] = without_front(m, first, 4)
    wait[q, Q_AT], wait[q, Q_SIZE] = at, end - at - 4
    return q


@njit
def _look_into_request(m: Memory, c: int, w: int, length: int) -> Any:
    """(whether a response is due, flags): what the connection learns from a request."""
    way = m.way
    n = read(m, way[w, W_HEAD], way[w, W_AT], m.scratch, min(length, PEEK))
    verdict, header, client = request_header(m.known, m.scratch, 0, n, m.limit[L_MESSAGE_BYTES])
    if length > n and (verdict == WAIT or way[w, W_KEY] == PRODUCE):
        n = read(m, way[w, W_HEAD], way[w, W_AT], m.scratch, min(length, PEEK_FAR))
        verdict, header, client = request_header(m.known, m.scratch, 0, n, m.limit[L_MESSAGE_BYTES])
    way[w, W_LAST_CORRELATION] = way[w, W_CORRELATION]
    if verdict <= WAIT:
        return True, (F_ACKS_UNKNOWN if way[w, W_KEY] == PRODUCE else 0)
    if client != NO_CLIENT:
        way[w, W_CLIENT] = client
    if way[w, W_KEY] == PRODUCE:
        acks, _ = produce_acks(m.known, m.scratch, 0, n, header)
        return acks != 0, (F_ACKS_UNKNOWN if acks == NOT_SEEN else 0)
    if way[w, W_KEY] == SASL_HANDSHAKE:
        m.connection[c, C_SASL] = mechanism(m.scratch, n, header)
        m.connection[c, C_RAW] = 1 if way[w, W_VERSION] == 0 else 0
    return True, 0


@njit
def _count_token(m: Memory, c: int, w: int, is_request: bool) -> None:
    m.way[w, W_RAW] += 1
    m.connection[c, C_SASL] = max(m.connection[c, C_SASL], SASL_RAW)
    if not is_request:
        if answered_is_raw(m, c):
            drop_raw(m, c)
        return
    q = new_wait(m)
    m.wait[q, Q_FLAGS] = F_RAW
    request(m, c, q, True)


@njit
def _look_again(m: Memory, c: int, w: int) -> None:
    """A new request makes bytes of a searched response stream worth another look."""
    o = 4 * c + 1 - w
    way = m.way
    if way[o, W_MODE] == SEARCH and way[o, W_RESCANS] < RESCANS:
        way[o, W_RESCANS] += 1
        way[o, W_SCAN] = min(way[o, W_SCAN], max(way[o, W_FROM], way[o, W_NEXT] - RESCAN_BYTES))
