"""Which response answers which request.

Knows: a broker answers one connection's requests in order (Kafka protocol guide, "Network"); Produce with acks=0 has no
response; correlation ids repeat (SASL re-authentication), so order comes first and the id second.
Refuses to know: bytes, and whether an answer is good.
Rule: an exchange is written once, when nothing can change it any more; what was not seen is never blamed on a side.
"""

# ruff: noqa: PLR0917 -- jitted kernels take arrays and indices one by one

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import njit

from wirecheck.decode.connection.reassembly import has_hole
from wirecheck.decode.connection.state.heap import give_wait, take_line, take_wait, way_of
from wirecheck.decode.connection.state.slots import (
    AN_EXCHANGE,
    ANSWERED,
    C_ANSWERS,
    C_ANSWERS_COUNT,
    C_ASKED,
    C_ASKED_COUNT,
    C_CLIENT,
    C_CLOSED_BY,
    C_LIMITS,
    C_OUT_OF_ORDER,
    C_STRAYS,
    C_STRAYS_ASKED,
    C_WAITING_BYTES,
    C_WAITING_KEPT,
    CLOSED,
    CLOSED_BY_CLIENT,
    CLOSED_BY_SERVER,
    E_OUT_OF_ORDER,
    E_OUTCOME,
    E_REQUEST,
    E_RESPONSE,
    F_ACKS_UNKNOWN,
    F_RAW,
    F_TOLD,
    FIN_OF,
    G_BYTES,
    G_EARLY,
    G_EXCHANGES,
    G_MESSAGES,
    G_SPANS,
    L_HOLE_NS,
    L_SLACK_NS,
    L_WAITING,
    L_WAITING_BYTES,
    NO_RESPONSE_DUE,
    ORPHAN,
    PENDING,
    Q_CORRELATION,
    Q_COUNT,
    Q_FLAGS,
    Q_KEPT,
    Q_KEY,
    Q_MARK,
    Q_NEXT,
    Q_PIECES,
    Q_SIZE,
    Q_SPANS,
    Q_TS_LAST,
    Q_VERSION,
    REQUEST_UNSEEN,
    RESPONSE_UNSEEN,
    RST_OF,
    SEARCH,
    W_MODE,
    W_OPEN,
    W_SKIPPED,
    W_SYN,
    W_UNSEEN,
)

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Ints


PATIENCE = 16  # strays after which only half as many waiting messages are compared
AHEAD = 8  # clients keep 1 to 5 requests in flight


@njit
def losses(s: Ints, w: int) -> Any:
    """Bytes of direction w of which we do not know what they were: whatever needed them is not to blame."""
    return s[w + W_UNSEEN] + s[w + W_SKIPPED]


@njit
def _push(s: Ints, c: int, q: int, column: int) -> None:
    if s[c + column] < 0:
        s[c + column] = q
    else:
        s[s[c + column + 1] + Q_NEXT] = q
    s[c + column + 1] = q
    s[c + column + 2] += 1
    s[c + C_WAITING_BYTES] += s[q + Q_SIZE]
    s[c + C_WAITING_KEPT] += s[q + Q_KEPT]


@njit
def _unlink(s: Ints, c: int, before: int, q: int, column: int) -> None:
    following = s[q + Q_NEXT]
    if before < 0:
        s[c + column] = following
    else:
        s[before + Q_NEXT] = following
    if s[c + column + 1] == q:
        s[c + column + 1] = before
    s[c + column + 2] -= 1
    s[c + C_WAITING_BYTES] -= s[q + Q_SIZE]
    s[c + C_WAITING_KEPT] -= s[q + Q_KEPT]


@njit
def _reach(s: Ints, strays: int) -> Any:
    """How many waiting messages are compared: fewer, the longer nothing has been where it should be."""
    return max(s[L_WAITING] >> min(strays // PATIENCE, 30), AHEAD)


@njit
def _learned(s: Ints, c: int, column: int, position: int, found: bool) -> None:
    if found and position <= AHEAD:
        s[c + column] = 0
    elif position > AHEAD:
        s[c + column] += 1


@njit
def request(s: Ints, c: int, q: int, due: bool) -> None:
    """A request is complete; `due`: a response has to come."""
    s[q + Q_MARK] = losses(s, way_of(c, 1 - s[c + C_CLIENT]))
    if s[G_EARLY] and not s[q + Q_FLAGS] & F_RAW:
        _tell_early(s, c, q)
    if not due:
        _write(s, c, q, -1, NO_RESPONSE_DUE, 0)
        return
    before, r, position = -1, s[c + C_ANSWERS], 0
    reach = 0 if s[q + Q_FLAGS] & F_RAW else _reach(s, s[c + C_STRAYS_ASKED])
    while r >= 0 and position < reach:
        if s[r + Q_CORRELATION] == s[q + Q_CORRELATION]:
            _learned(s, c, C_STRAYS_ASKED, position, True)
            _unlink(s, c, before, r, C_ANSWERS)
            _write(s, c, q, r, ANSWERED, 0)
            return
        before, r, position = r, s[r + Q_NEXT], position + 1
    _learned(s, c, C_STRAYS_ASKED, position, False)
    _push(s, c, q, C_ASKED)
    while s[c + C_ASKED] >= 0 and _too_many(s, c, C_ASKED_COUNT):
        s[c + C_LIMITS] += 1
        give_up_request(s, c)


@njit
def give_up_request(s: Ints, c: int) -> None:
    """We wait no longer for the response to the oldest request: if it comes, it is unseen, whatever it says."""
    first = s[c + C_ASKED]
    _unlink(s, c, -1, first, C_ASKED)
    if s[first + Q_FLAGS] & F_RAW:
        give_wait(s, first)
    else:
        _write(s, c, first, -1, RESPONSE_UNSEEN, 0)


@njit
def _too_many(s: Ints, c: int, column: int) -> Any:
    return s[c + column] > s[L_WAITING] or s[c + C_WAITING_BYTES] > s[L_WAITING_BYTES]


@njit
def unanswered(s: Ints, c: int, q: int) -> Any:
    """Why a request has no response, as far as we can know."""
    w = way_of(c, 1 - s[c + C_CLIENT])
    if losses(s, w) != s[q + Q_MARK] or s[w + W_OPEN] == CLOSED or s[w + W_MODE] == SEARCH:
        return RESPONSE_UNSEEN
    by = s[c + C_CLOSED_BY]
    if by == 0:
        return PENDING
    return CLOSED_BY_CLIENT if by in (FIN_OF + s[c + C_CLIENT], RST_OF + s[c + C_CLIENT]) else CLOSED_BY_SERVER


@njit
def answered_is_raw(s: Ints, c: int) -> Any:
    """The next answer due is that to a raw SASL token."""
    first = s[c + C_ASKED]
    return first >= 0 and (s[first + Q_FLAGS] & F_RAW) != 0


@njit
def answers_request(s: Ints, c: int, correlation: int) -> Any:
    """Behind tokens, a request waits that has this id: the last token of Kerberos is not answered."""
    q, position = s[c + C_ASKED], 0
    while q >= 0 and position < AHEAD:
        if not s[q + Q_FLAGS] & F_RAW and s[q + Q_CORRELATION] == correlation:
            return True
        q, position = s[q + Q_NEXT], position + 1
    return False


@njit
def drop_raw(s: Ints, c: int) -> None:
    first = s[c + C_ASKED]
    _unlink(s, c, -1, first, C_ASKED)
    give_wait(s, first)


@njit
def response(s: Ints, c: int, r: int) -> None:
    """A response is complete."""
    w = way_of(c, 1 - s[c + C_CLIENT])
    before, q, position = -1, s[c + C_ASKED], 0
    reach = _reach(s, s[c + C_STRAYS])
    while q >= 0 and (s[q + Q_CORRELATION] != s[r + Q_CORRELATION] or s[q + Q_FLAGS] & F_RAW):
        before, q, position = q, s[q + Q_NEXT], position + 1
        if position == reach:
            q = -1
    _learned(s, c, C_STRAYS, position, q >= 0)
    if q < 0:
        _push(s, c, r, C_ANSWERS)
        _bound_answers(s, c)
        return
    if position:
        before = _skip_requests(s, c, q, losses(s, w))
    out_of_order = 1 if before >= 0 else 0
    s[c + C_OUT_OF_ORDER] += out_of_order
    _unlink(s, c, before, q, C_ASKED)
    _write(s, c, q, r, ANSWERED, out_of_order)
    if not out_of_order:
        _settle_answers(s, c)


@njit
def _settle_answers(s: Ints, c: int) -> None:
    """Answers that came before one whose request we have: theirs came before that request, and is not to come any more.

    On a busy connection those of a few lost requests would otherwise fill the list that every request is compared with.
    """
    while s[c + C_ANSWERS] >= 0:
        give_up_answer(s, c)


@njit
def _skip_requests(s: Ints, c: int, upto: int, lost: int) -> Any:
    """A response came for a later request: settle the ones before it that can be explained; the last that cannot."""
    before, q = -1, s[c + C_ASKED]
    while q != upto:
        following = s[q + Q_NEXT]
        if s[q + Q_FLAGS] & F_RAW:
            _unlink(s, c, before, q, C_ASKED)
            give_wait(s, q)
        elif s[q + Q_FLAGS] & F_ACKS_UNKNOWN or s[q + Q_MARK] != lost:
            _unlink(s, c, before, q, C_ASKED)
            _write(s, c, q, -1, NO_RESPONSE_DUE if s[q + Q_FLAGS] & F_ACKS_UNKNOWN else RESPONSE_UNSEEN, 0)
        else:
            before = q
        q = following
    return before


@njit
def _bound_answers(s: Ints, c: int) -> None:
    while s[c + C_ANSWERS] >= 0 and _too_many(s, c, C_ANSWERS_COUNT):
        s[c + C_LIMITS] += 1
        give_up_answer(s, c)


@njit
def give_up_answer(s: Ints, c: int) -> None:
    """The oldest response without request stays without."""
    r = s[c + C_ANSWERS]
    w = way_of(c, s[c + C_CLIENT])
    _unlink(s, c, -1, r, C_ANSWERS)
    innocent = losses(s, w) > 0 or s[w + W_SYN] == 0 or has_hole(s, w) or s[c + C_LIMITS] > 0
    _write(s, c, -1, r, REQUEST_UNSEEN if innocent else ORPHAN, 0)


@njit
def answer_deadline(s: Ints, c: int) -> Any:
    """When the oldest response without request, which there is, is given up."""
    r = s[c + C_ANSWERS]
    w = way_of(c, s[c + C_CLIENT])
    open_question = has_hole(s, w) or s[w + W_MODE] == SEARCH
    return s[r + Q_TS_LAST] + (s[L_HOLE_NS] if open_question else s[L_SLACK_NS])


@njit
def finish(s: Ints, c: int) -> None:
    """Nothing more will come: everything that waits is written."""
    while s[c + C_ASKED] >= 0:
        q = s[c + C_ASKED]
        _unlink(s, c, -1, q, C_ASKED)
        if s[q + Q_FLAGS] & F_RAW:
            give_wait(s, q)
        else:
            _write(s, c, q, -1, unanswered(s, c, q), 0)
    while s[c + C_ANSWERS] >= 0:
        give_up_answer(s, c)


@njit
def _tell_early(s: Ints, c: int, q: int) -> None:
    """Hand the request out now; what waits for the response keeps its key and version only."""
    told = take_wait(s)
    for column in range(1, Q_COUNT):
        s[told + column] = s[q + column]
    s[q + Q_PIECES], s[q + Q_KEPT], s[q + Q_SPANS] = -1, 0, 0
    _write(s, c, told, -1, PENDING, 0)
    s[q + Q_FLAGS] |= F_TOLD


@njit
def _write(s: Ints, c: int, q: int, r: int, outcome: int, out_of_order: int) -> None:
    """One exchange is decided; its messages are handed out with it."""
    if q >= 0 and r >= 0:
        s[r + Q_KEY], s[r + Q_VERSION] = s[q + Q_KEY], s[q + Q_VERSION]
    if q >= 0 and s[q + Q_FLAGS] & F_TOLD:
        give_wait(s, q)
        q = -1
        if r < 0:
            return
    line = take_line(s, AN_EXCHANGE, c)
    s[line + E_REQUEST] = q
    s[line + E_RESPONSE] = r
    s[line + E_OUTCOME] = outcome
    s[line + E_OUT_OF_ORDER] = out_of_order
    s[G_EXCHANGES] += 1
    for x in (q, r):
        if x >= 0:
            s[G_MESSAGES] += 1
            s[G_BYTES] += s[x + Q_KEPT]
            s[G_SPANS] += s[x + Q_SPANS]
