"""Messages out of a stream whose boundaries are known.

Knows: the 4-byte size before every message, request and response headers, raw SASL tokens after SaslHandshake v0
(KIP-43), and when the boundary is lost.
Refuses to know: how to find a boundary again (resync.py), which response belongs to which request (pairing.py).
Rule: a message is cut only when its last byte is accounted for, as seen, left out or never seen; a message whose header
was not seen is never one.
"""

# ruff: noqa: PLR0917 -- jitted kernels take arrays and indices one by one

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import njit

from wirecheck.decode.connection.matching import answered_is_raw, answers_request, drop_raw, request, response
from wirecheck.decode.connection.recognise import (
    DOUBT,
    GSSAPI,
    HIGHEST_KEY,
    HIGHEST_VERSION,
    NO,
    NO_CLIENT,
    NOT_SEEN,
    PRODUCE,
    RESERVED,
    SASL_HANDSHAKE,
    SHORTEST_REQUEST,
    STRONG,
    WAIT,
    WEAK,
    gss_token,
    int16,
    int32,
    mechanism,
    opening_request,
    produce_acks,
    request_header,
    taken_request,
    tls_record,
)
from wirecheck.decode.connection.state.chunks import detach, free_list, read, seen_last, without_front
from wirecheck.decode.connection.state.heap import other_way, side_of, take_wait, way_of
from wirecheck.decode.connection.state.slots import (
    C_CLIENT,
    C_PROTOCOL,
    C_RAW,
    C_SASL,
    F_ACKS_UNKNOWN,
    F_RAW,
    KAFKA,
    L_MESSAGE_BYTES,
    L_SEARCH_BYTES,
    L_SEARCH_PIECES,
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
    Q_KEPT,
    Q_KEY,
    Q_PIECES,
    Q_SIDE,
    Q_SIZE,
    Q_SOURCE,
    Q_SPANS,
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
    W_PIECES,
    W_RAW,
    W_RESCANS,
    W_SCAN,
    W_SKIPPED,
    W_TAIL,
    W_VERSION,
)

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Bytes, Ints


RAW_TOKEN = -2  # W_KEY of a frame that is no message
DOUBTED = 3  # W_LOST of an opening that the server's answer or the next request has to confirm
GIVEN_UP = 2  # W_LOST of a message that could wait no longer (relief.py): only its end is still of interest
TOKEN_BYTES = 1 << 20  # sasl.server.max.receive.size is 512 KiB by default
PEEK = 64  # enough for the header of most requests
PEEK_FAR = 1024  # enough for client id, transactional id and acks
GSS_TOKENS = 16  # of a client before its first request; Kerberos takes 3
OPENING = 256  # bytes of a first request waited for before its connection is judged
RESCANS = 256  # times a search may look again at bytes it had passed over
RESCAN_BYTES = 16 << 10


@njit
def cut(s: Ints, new: Bytes, old: Bytes, c: int, w: int) -> None:
    """Cut what direction w has; it stops at the first incomplete message or lost boundary."""
    while s[w + W_MODE] in (START, SYNC) and s[w + W_NEXT] >= s[w + W_NEED]:
        if s[w + W_END] < 0:
            if not _head(s, new, old, c, w):
                return
        elif s[w + W_NEXT] < s[w + W_END]:
            s[w + W_NEED] = s[w + W_END]
            if s[w + W_LOST] == GIVEN_UP:
                drop(s, w, s[w + W_NEXT])
                s[w + W_NEED] = s[w + W_NEXT] + 1
            return
        else:
            _complete(s, new, old, c, w)


@njit
def lose_boundary(s: Ints, w: int) -> None:
    s[w + W_MODE] = SEARCH
    s[w + W_SCAN] = s[w + W_FROM] if s[w + W_HEAD] >= 0 else s[w + W_NEXT]
    s[w + W_END] = -1
    s[w + W_CANDIDATES] = 0
    s[w + W_RESCANS] = 0


@njit
def at_boundary(s: Ints, w: int, at: int) -> None:
    """A message of direction w begins at this offset."""
    s[w + W_MODE] = SYNC
    s[w + W_AT] = at
    s[w + W_END] = -1
    s[w + W_NEED] = at + 4
    s[w + W_CANDIDATES] = 0


@njit
def turn_off(s: Ints, c: int, protocol: int) -> None:
    """Not Kafka, or not readable: count its bytes, hold none."""
    s[c + C_PROTOCOL] = protocol
    for w in (way_of(c, 0), way_of(c, 1)):
        s[w + W_MODE] = OFF
        drop(s, w, s[w + W_NEXT])
        s[w + W_HEAD] = -1
        s[w + W_TAIL] = -1


@njit
def drop(s: Ints, w: int, upto: int) -> None:
    """Give up the bytes before this offset: seen, and not understood."""
    gap_before = seen_gap(s, s[w + W_HEAD], upto)
    start = s[w + W_FROM]
    first = detach(s, w, upto)
    if first >= 0:
        s[w + W_SKIPPED] += upto - start - gap_before
        free_list(s, first)


@njit
def seen_gap(s: Ints, p: int, upto: int) -> Any:
    """Bytes of the list before `upto` that were never seen."""
    total = 0
    while p >= 0 and s[p + 1] < upto:
        if s[p + 3] == 2:
            total += min(s[p + 2], upto - s[p + 1])
        p = s[p + 0]
    return total


@njit
def _head(s: Ints, new: Bytes, old: Bytes, c: int, w: int) -> Any:
    """Read size and header at the boundary; False: more bytes are needed, or the protocol is not decided."""
    at = s[w + W_AT]
    have = s[w + W_NEXT] - at
    if have < 4:
        s[w + W_NEED] = at + 4
        return False
    is_request = s[c + C_CLIENT] == side_of(c, w)
    if s[c + C_PROTOCOL] == UNDECIDED and s[w + W_MODE] == START and not is_request:
        if s[w + W_KEPT] > s[L_SEARCH_BYTES]:
            turn_off(s, c, OTHER)
            return False
        if not _answer_confirms(s, new, old, c, w):
            return False
    n = read(s, new, old, s[w + W_HEAD], at, old, min(have, PEEK))
    if n < 4:
        lose_boundary(s, w)
        return True
    s[w + W_LOST] = 0
    if not is_request:
        return _response_head(s, old, c, w, n)
    if s[w + W_MODE] == START:
        return _opening(s, new, old, c, w)
    if s[c + C_RAW]:
        return _token_or_request(s, new, old, c, w)
    return _request_head(s, old, w, n)


@njit
def _opening(s: Ints, new: Bytes, old: Bytes, c: int, w: int) -> Any:
    """The first bytes of a connection decide what it is."""
    at = s[w + W_AT]
    have, size = s[w + W_NEXT] - at, int32(old, 0)
    n = read(s, new, old, s[w + W_HEAD], at, old, min(have, PEEK_FAR))
    if n >= 5 and tls_record(old, 0, n):
        turn_off(s, c, TLS)
        return True
    if n >= 6 and gss_token(old, size):
        s[c + C_RAW] = 1
        s[c + C_SASL] = GSSAPI
        s[w + W_MODE] = SYNC
        return True
    if size < SHORTEST_REQUEST or size > s[L_MESSAGE_BYTES]:
        turn_off(s, c, OTHER)
        return True
    enough = min(size + 4, OPENING)
    if have < enough:
        s[w + W_NEED] = at + min(enough, have + 1)
        if n >= 12 and taken_request(s, old, 0, n, s[L_MESSAGE_BYTES])[0] == NO:
            turn_off(s, c, OTHER)
            return True
        return False
    verdict, _, client = opening_request(s, old, min(n, size + 4), s[L_MESSAGE_BYTES])
    if verdict == STRONG:
        _is_kafka(s, c, w)
    elif n < enough:
        lose_boundary(s, w)
    elif verdict == WAIT and n == have and have < size + 4:
        s[w + W_NEED] = s[w + W_NEXT] + 1
        return False
    elif verdict in (WEAK, DOUBT) and s[w + W_KEPT] <= s[L_SEARCH_BYTES] and s[w + W_PIECES] <= s[L_SEARCH_PIECES]:
        return _doubted(s, new, old, c, w, client)
    else:
        turn_off(s, c, OTHER)
    return True


@njit
def _is_kafka(s: Ints, c: int, w: int) -> None:
    """The first request, at the boundary of direction w, is believed."""
    s[c + C_PROTOCOL] = KAFKA
    s[w + W_MODE] = SYNC
    s[w + W_LOST] = 0
    s[w + W_NEED] = s[w + W_AT] + 4


@njit
def _doubted(s: Ints, new: Bytes, old: Bytes, c: int, w: int, client: int) -> Any:
    """The first request of a connection, in old, is none that clients send: the same client's next one confirms it."""
    correlation, end = int32(old, 8), s[w + W_AT] + 4 + int32(old, 0)
    s[w + W_LOST] = DOUBTED
    s[w + W_CORRELATION] = correlation
    s[w + W_NEED] = s[w + W_NEXT] + 1
    if s[w + W_NEXT] <= end:
        return False
    n = read(s, new, old, s[w + W_HEAD], end, old, min(s[w + W_NEXT] - end, PEEK_FAR))
    verdict, _, follower = taken_request(s, old, 0, n, s[L_MESSAGE_BYTES])
    if verdict == NO:
        turn_off(s, c, OTHER)
    elif verdict != WAIT and follower == client and int32(old, 8) > correlation:
        _is_kafka(s, c, w)
    else:
        return False
    return True


@njit
def _answer_confirms(s: Ints, new: Bytes, old: Bytes, c: int, w: int) -> Any:
    """Whether the server's first bytes, in direction w, answer a doubted request; what answers none is not Kafka's.

    The id must not be 0: zeros are everywhere.
    """
    o = other_way(c, w)
    if s[o + W_MODE] != START or s[o + W_LOST] != DOUBTED or s[w + W_NEXT] - s[w + W_AT] < 8:
        return False
    n = read(s, new, old, s[w + W_HEAD], s[w + W_AT], old, 8)
    if n == 8 and 4 <= int32(old, 0) <= s[L_MESSAGE_BYTES] and int32(old, 4) == s[o + W_CORRELATION]:
        if int32(old, 4) != 0:
            _is_kafka(s, c, o)
        return s[c + C_PROTOCOL] == KAFKA
    if n == 8:
        turn_off(s, c, OTHER)
    return False


@njit
def _request_head(s: Ints, old: Bytes, w: int, n: int) -> Any:
    at = s[w + W_AT]
    size = int32(old, 0)
    if size < SHORTEST_REQUEST or size > s[L_MESSAGE_BYTES]:
        lose_boundary(s, w)
        return True
    enough = min(size + 4, 14)
    if s[w + W_NEXT] - at < enough:
        s[w + W_NEED] = at + enough
        return False
    s[w + W_END] = at + 4 + size
    if n < min(12, enough):
        s[w + W_LOST] = 1
        return True
    s[w + W_KEY], s[w + W_VERSION] = int16(old, 4), int16(old, 6)
    s[w + W_CORRELATION] = int32(old, 8)
    strange = not (0 <= s[w + W_KEY] <= HIGHEST_KEY and 0 <= s[w + W_VERSION] <= HIGHEST_VERSION)
    if n >= 14 and size >= 10 and size != 12:
        strange = strange or not -1 <= int16(old, 12) <= size - 10
    if strange:
        lose_boundary(s, w)
    return True


@njit
def _token_or_request(s: Ints, new: Bytes, old: Bytes, c: int, w: int) -> Any:
    """After SaslHandshake v0 every frame is a raw token until one is a request again."""
    at = s[w + W_AT]
    have, size = s[w + W_NEXT] - at, int32(old, 0)
    if size < 0 or size > s[L_MESSAGE_BYTES]:
        lose_boundary(s, w)
        return True
    n = read(s, new, old, s[w + W_HEAD], at, old, min(have, size + 4, PEEK_FAR))
    if s[c + C_PROTOCOL] == KAFKA:
        verdict, length, _ = taken_request(s, old, 0, n, s[L_MESSAGE_BYTES])
    else:
        verdict, length, _ = request_header(s, old, 0, n, s[L_MESSAGE_BYTES])
    if verdict == WAIT and length <= size + 4 and have < length:
        s[w + W_NEED] = at + length
        return False
    if verdict == STRONG or (verdict > WAIT and s[c + C_PROTOCOL] == KAFKA):
        s[c + C_RAW] = 0
        s[c + C_PROTOCOL] = KAFKA
        return _request_head(s, old, w, n)
    if size > TOKEN_BYTES or (s[c + C_PROTOCOL] == UNDECIDED and s[w + W_RAW] >= GSS_TOKENS):
        lose_boundary(s, w)
        return True
    s[w + W_KEY] = RAW_TOKEN
    s[w + W_END] = at + 4 + size
    return True


@njit
def _response_head(s: Ints, old: Bytes, c: int, w: int, n: int) -> Any:
    at = s[w + W_AT]
    size, raw = int32(old, 0), answered_is_raw(s, c)
    if raw and size >= 4:
        if s[w + W_NEXT] - at < 8:
            s[w + W_NEED] = at + 8
            return False
        raw = n < 8 or not answers_request(s, c, int32(old, 4))
    if size < (0 if raw else 4) or size > s[L_MESSAGE_BYTES]:
        lose_boundary(s, w)
        return True
    s[w + W_KEY] = RAW_TOKEN if raw else 0
    if not raw and s[w + W_NEXT] - at < 8:
        s[w + W_NEED] = at + 8
        return False
    s[w + W_MODE] = SYNC
    s[w + W_END] = at + 4 + size
    s[w + W_LOST] = 1 if n < 8 and not raw else 0
    s[w + W_CORRELATION] = int32(old, 4) if n >= 8 else 0
    return True


@njit
def _complete(s: Ints, new: Bytes, old: Bytes, c: int, w: int) -> None:
    """The message that ends at W_END is all there."""
    at, end = s[w + W_AT], s[w + W_END]
    is_request = s[c + C_CLIENT] == side_of(c, w)
    useful = s[w + W_LOST] == 0 and s[w + W_KEY] != RAW_TOKEN
    due, flags = True, 0
    if useful and is_request:
        due, flags = _look_into_request(s, new, old, c, w, end - at)
    if s[w + W_LOST] == GIVEN_UP:
        drop(s, w, end)
    first = detach(s, w, end)
    s[w + W_AT] = end
    s[w + W_END] = -1
    s[w + W_NEED] = end + 4
    if not useful:
        free_list(s, first)
        if s[w + W_KEY] == RAW_TOKEN and s[w + W_LOST] == 0:
            _count_token(s, c, w, is_request)
        return
    q = _waiting(s, first, at, end)
    s[q + Q_SIDE] = 0 if is_request else 1
    s[q + Q_CORRELATION] = s[w + W_CORRELATION]
    s[w + W_MESSAGES] += 1
    if not is_request:
        s[q + Q_KEY], s[q + Q_VERSION] = -1, -1
        response(s, c, q)
        return
    s[q + Q_KEY], s[q + Q_VERSION], s[q + Q_FLAGS] = s[w + W_KEY], s[w + W_VERSION], flags
    request(s, c, q, due)
    _look_again(s, c, w)


@njit
def _waiting(s: Ints, first: int, at: int, end: int) -> Any:
    q = take_wait(s)
    ts, frame, gap, kept, runs = seen_last(s, first)
    s[q + Q_TS], s[q + Q_FRAME], s[q + Q_SOURCE] = (
        s[first + P_TS],
        s[first + P_FRAME],
        s[first + P_SOURCE],
    )
    s[q + Q_TS_LAST], s[q + Q_FRAME_LAST] = ts, frame
    s[q + Q_GAP], s[q + Q_KEPT], s[q + Q_SPANS] = gap, kept - 4, runs
    s[q + Q_PIECES] = without_front(s, first, 4)
    s[q + Q_AT], s[q + Q_SIZE] = at, end - at - 4
    return q


@njit
def _look_into_request(s: Ints, new: Bytes, old: Bytes, c: int, w: int, length: int) -> Any:
    """(whether a response is due, flags): what the connection learns from a request."""
    n = read(s, new, old, s[w + W_HEAD], s[w + W_AT], old, min(length, PEEK))
    verdict, header, client = taken_request(s, old, 0, n, s[L_MESSAGE_BYTES])
    if length > n and (verdict == WAIT or s[w + W_KEY] == PRODUCE):
        n = read(s, new, old, s[w + W_HEAD], s[w + W_AT], old, min(length, PEEK_FAR))
        verdict, header, client = taken_request(s, old, 0, n, s[L_MESSAGE_BYTES])
    if s[w + W_CORRELATION] < RESERVED:  # signing in again takes ids from elsewhere (KIP-368)
        s[w + W_LAST_CORRELATION] = s[w + W_CORRELATION]
    if verdict <= WAIT:
        return True, (F_ACKS_UNKNOWN if s[w + W_KEY] == PRODUCE else 0)
    if client != NO_CLIENT:
        s[w + W_CLIENT] = client
    if s[w + W_KEY] == PRODUCE:
        acks, _ = produce_acks(s, old, 0, n, header)
        return acks != 0, (F_ACKS_UNKNOWN if acks == NOT_SEEN else 0)
    if s[w + W_KEY] == SASL_HANDSHAKE:
        s[c + C_SASL] = mechanism(old, n, header)
        s[c + C_RAW] = 1 if s[w + W_VERSION] == 0 else 0
    return True, 0


@njit
def _count_token(s: Ints, c: int, w: int, is_request: bool) -> None:
    s[w + W_RAW] += 1
    s[c + C_SASL] = max(s[c + C_SASL], SASL_RAW)
    if not is_request:
        if answered_is_raw(s, c):
            drop_raw(s, c)
        return
    q = take_wait(s)
    s[q + Q_FLAGS] = F_RAW
    request(s, c, q, True)


@njit
def _look_again(s: Ints, c: int, w: int) -> None:
    """A new request makes bytes of a searched response stream worth another look."""
    o = other_way(c, w)
    if s[o + W_MODE] == SEARCH and s[o + W_RESCANS] < RESCANS:
        s[o + W_RESCANS] += 1
        s[o + W_SCAN] = min(s[o + W_SCAN], max(s[o + W_FROM], s[o + W_NEXT] - RESCAN_BYTES))
