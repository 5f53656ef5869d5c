"""Which response answers which request.

Knows: a broker answers one connection's requests in order (Kafka protocol guide, "Network"); Produce with acks=0 has no
response; correlation ids repeat (SASL re-authentication), so order comes first and the id second.
Refuses to know: bytes, and whether an answer is good.
Rule: an exchange is written once, when nothing can change it any more; what was not seen is never blamed on a side.
"""

# ruff: noqa: PLR0917 -- jitted kernels take arrays and indices one by one

from __future__ import annotations

from typing import Any

from numba import njit

from decode.pieces import free_list
from decode.slots import (
    ANSWERED,
    C_ANSWERS,
    C_ANSWERS_COUNT,
    C_ASKED,
    C_ASKED_COUNT,
    C_CLIENT,
    C_CLOSED_BY,
    C_LIMITS,
    C_OUT_OF_ORDER,
    C_WAITING_BYTES,
    CLIENT_FIN,
    CLIENT_RST,
    CLOSED,
    CLOSED_BY_CLIENT,
    CLOSED_BY_SERVER,
    DATA,
    E_OUT_OF_ORDER,
    E_OUTCOME,
    E_REQUEST,
    E_RESPONSE,
    F_ACKS_UNKNOWN,
    F_RAW,
    G_EXCHANGES,
    G_MESSAGES,
    G_PARTS,
    G_SPANS,
    G_WAIT_FREE,
    G_WAIT_TOP,
    G_WAIT_USED,
    L_HOLE_NS,
    L_SLACK_NS,
    L_WAITING,
    L_WAITING_BYTES,
    M_AT,
    M_CONNECTION,
    M_CORRELATION,
    M_FRAME,
    M_FRAME_LAST,
    M_GAP,
    M_KEY,
    M_PARTS,
    M_SIDE,
    M_SIZE,
    M_SOURCE,
    M_SPANS,
    M_TS,
    M_TS_LAST,
    M_VERSION,
    NO_RESPONSE_DUE,
    ORPHAN,
    P_ADDRESS,
    P_AT,
    P_KIND,
    P_LENGTH,
    P_NEXT,
    PENDING,
    Q_AT,
    Q_CORRELATION,
    Q_COUNT,
    Q_FLAGS,
    Q_FRAME,
    Q_FRAME_LAST,
    Q_GAP,
    Q_KEY,
    Q_MARK,
    Q_NEXT,
    Q_PIECES,
    Q_SIDE,
    Q_SIZE,
    Q_SOURCE,
    Q_TS,
    Q_TS_LAST,
    Q_VERSION,
    REQUEST_UNSEEN,
    RESPONSE_UNSEEN,
    SEARCH,
    UNSET,
    W_MODE,
    W_OPEN,
    W_SKIPPED,
    W_SYN,
    W_UNSEEN,
    Memory,
)
from decode.stream import has_hole


@njit
def new_wait(m: Memory) -> Any:
    q = m.whole[G_WAIT_FREE]
    if q >= 0:
        m.whole[G_WAIT_FREE] = m.wait[q, Q_NEXT]
    else:
        q = m.whole[G_WAIT_TOP]
        m.whole[G_WAIT_TOP] += 1
    m.whole[G_WAIT_USED] += 1
    for column in range(Q_COUNT):
        m.wait[q, column] = 0
    m.wait[q, Q_NEXT] = -1
    m.wait[q, Q_PIECES] = -1
    return q


@njit
def free_wait(m: Memory, q: int) -> None:
    m.wait[q, Q_NEXT] = m.whole[G_WAIT_FREE]
    m.whole[G_WAIT_FREE] = q
    m.whole[G_WAIT_USED] -= 1


@njit
def losses(m: Memory, w: int) -> Any:
    """Bytes of direction w of which we do not know what they were: whatever needed them is not to blame."""
    return m.way[w, W_UNSEEN] + m.way[w, W_SKIPPED]


@njit
def _push(m: Memory, c: int, q: int, column: int) -> None:
    connection = m.connection
    if connection[c, column] < 0:
        connection[c, column] = q
    else:
        m.wait[connection[c, column + 1], Q_NEXT] = q
    connection[c, column + 1] = q
    connection[c, column + 2] += 1
    connection[c, C_WAITING_BYTES] += m.wait[q, Q_SIZE]


@njit
def _unlink(m: Memory, c: int, before: int, q: int, column: int) -> None:
    connection, following = m.connection, m.wait[q, Q_NEXT]
    if before < 0:
        connection[c, column] = following
    else:
        m.wait[before, Q_NEXT] = following
    if connection[c, column + 1] == q:
        connection[c, column + 1] = before
    connection[c, column + 2] -= 1
    connection[c, C_WAITING_BYTES] -= m.wait[q, Q_SIZE]


@njit
def request(m: Memory, c: int, q: int, due: bool) -> None:
    """A request is complete; `due`: a response has to come."""
    connection = m.connection
    m.wait[q, Q_MARK] = losses(m, 2 * c + 1 - connection[c, C_CLIENT])
    if not due:
        _write(m, c, q, -1, NO_RESPONSE_DUE, 0)
        return
    before, r = -1, connection[c, C_ANSWERS]
    while r >= 0 and not m.wait[q, Q_FLAGS] & F_RAW:
        if m.wait[r, Q_CORRELATION] == m.wait[q, Q_CORRELATION]:
            _unlink(m, c, before, r, C_ANSWERS)
            _write(m, c, q, r, ANSWERED, 0)
            return
        before, r = r, m.wait[r, Q_NEXT]
    _push(m, c, q, C_ASKED)
    while (
        connection[c, C_ASKED_COUNT] > m.limit[L_WAITING] or connection[c, C_WAITING_BYTES] > m.limit[L_WAITING_BYTES]
    ):
        first = connection[c, C_ASKED]
        if first < 0:
            break
        connection[c, C_LIMITS] += 1
        _unlink(m, c, -1, first, C_ASKED)
        _write(m, c, first, -1, unanswered(m, c, first), 0)


@njit
def _too_many(m: Memory, c: int, column: int) -> Any:
    connection = m.connection
    return connection[c, column] > m.limit[L_WAITING] or connection[c, C_WAITING_BYTES] > m.limit[L_WAITING_BYTES]


@njit
def unanswered(m: Memory, c: int, q: int) -> Any:
    """Why a request has no response, as far as we can know."""
    w = 2 * c + 1 - m.connection[c, C_CLIENT]
    if losses(m, w) != m.wait[q, Q_MARK] or m.way[w, W_OPEN] == CLOSED or m.way[w, W_MODE] == SEARCH:
        return RESPONSE_UNSEEN
    by = m.connection[c, C_CLOSED_BY]
    if by == 0:
        return PENDING
    return CLOSED_BY_CLIENT if by in (CLIENT_FIN, CLIENT_RST) else CLOSED_BY_SERVER


@njit
def answered_is_raw(m: Memory, c: int) -> Any:
    """The next answer due is that to a raw SASL token."""
    first = m.connection[c, C_ASKED]
    return first >= 0 and (m.wait[first, Q_FLAGS] & F_RAW) != 0


@njit
def drop_raw(m: Memory, c: int) -> None:
    first = m.connection[c, C_ASKED]
    _unlink(m, c, -1, first, C_ASKED)
    free_wait(m, first)


@njit
def response(m: Memory, c: int, r: int) -> None:
    """A response is complete."""
    w = 2 * c + 1 - m.connection[c, C_CLIENT]
    before, q, position = -1, m.connection[c, C_ASKED], 0
    while q >= 0 and (m.wait[q, Q_CORRELATION] != m.wait[r, Q_CORRELATION] or m.wait[q, Q_FLAGS] & F_RAW):
        before, q, position = q, m.wait[q, Q_NEXT], position + 1
    if q < 0:
        _push(m, c, r, C_ANSWERS)
        _bound_answers(m, c)
        return
    if position:
        before = _skip_requests(m, c, q, losses(m, w))
    out_of_order = 1 if before >= 0 else 0
    m.connection[c, C_OUT_OF_ORDER] += out_of_order
    _unlink(m, c, before, q, C_ASKED)
    _write(m, c, q, r, ANSWERED, out_of_order)


@njit
def _skip_requests(m: Memory, c: int, upto: int, lost: int) -> Any:
    """A response came for a later request: settle the ones before it that can be explained; the last that cannot."""
    before, q = -1, m.connection[c, C_ASKED]
    while q != upto:
        following = m.wait[q, Q_NEXT]
        if m.wait[q, Q_FLAGS] & F_RAW:
            _unlink(m, c, before, q, C_ASKED)
            free_wait(m, q)
        elif m.wait[q, Q_FLAGS] & F_ACKS_UNKNOWN or m.wait[q, Q_MARK] != lost:
            _unlink(m, c, before, q, C_ASKED)
            _write(m, c, q, -1, NO_RESPONSE_DUE if m.wait[q, Q_FLAGS] & F_ACKS_UNKNOWN else RESPONSE_UNSEEN, 0)
        else:
            before = q
        q = following
    return before


@njit
def _bound_answers(m: Memory, c: int) -> None:
    connection = m.connection
    while (
        connection[c, C_ANSWERS_COUNT] > m.limit[L_WAITING] or connection[c, C_WAITING_BYTES] > m.limit[L_WAITING_BYTES]
    ):
        if connection[c, C_ANSWERS] < 0:
            return
        connection[c, C_LIMITS] += 1
        give_up_answer(m, c)


@njit
def give_up_answer(m: Memory, c: int) -> None:
    """The oldest response without request stays without."""
    r = m.connection[c, C_ANSWERS]
    w = 2 * c + m.connection[c, C_CLIENT]
    _unlink(m, c, -1, r, C_ANSWERS)
    innocent = losses(m, w) > 0 or m.way[w, W_SYN] == 0 or has_hole(m, w)
    _write(m, c, -1, r, REQUEST_UNSEEN if innocent else ORPHAN, 0)


@njit
def answer_deadline(m: Memory, c: int) -> Any:
    """When the oldest response without request is given up."""
    r = m.connection[c, C_ANSWERS]
    if r < 0:
        return -UNSET
    w = 2 * c + m.connection[c, C_CLIENT]
    open_question = has_hole(m, w) or m.way[w, W_MODE] == SEARCH
    return m.wait[r, Q_TS_LAST] + (m.limit[L_HOLE_NS] if open_question else m.limit[L_SLACK_NS])


@njit
def finish(m: Memory, c: int) -> None:
    """Nothing more will come: everything that waits is written."""
    connection = m.connection
    while connection[c, C_ASKED] >= 0:
        q = connection[c, C_ASKED]
        _unlink(m, c, -1, q, C_ASKED)
        if m.wait[q, Q_FLAGS] & F_RAW:
            free_wait(m, q)
        else:
            _write(m, c, q, -1, unanswered(m, c, q), 0)
    while connection[c, C_ANSWERS] >= 0:
        give_up_answer(m, c)


# --- output


@njit
def _write(m: Memory, c: int, q: int, r: int, outcome: int, out_of_order: int) -> None:
    """One exchange. The messages and their waiting rows are used up."""
    row = m.whole[G_EXCHANGES]
    m.exchange[row, E_OUTCOME] = outcome
    m.exchange[row, E_OUT_OF_ORDER] = out_of_order
    m.exchange[row, E_REQUEST] = -1
    m.exchange[row, E_RESPONSE] = -1
    if q >= 0:
        m.exchange[row, E_REQUEST] = _write_message(m, c, q, m.wait[q, Q_KEY], m.wait[q, Q_VERSION])
    if r >= 0:
        key, version = (m.wait[q, Q_KEY], m.wait[q, Q_VERSION]) if q >= 0 else (-1, -1)
        m.exchange[row, E_RESPONSE] = _write_message(m, c, r, key, version)
    m.whole[G_EXCHANGES] += 1


@njit
def _write_message(m: Memory, c: int, q: int, key: int, version: int) -> Any:
    row, wait = m.whole[G_MESSAGES], m.wait
    m.message[row, M_CONNECTION] = c
    m.message[row, M_SIDE] = wait[q, Q_SIDE]
    m.message[row, M_KEY] = key
    m.message[row, M_VERSION] = version
    m.message[row, M_CORRELATION] = wait[q, Q_CORRELATION]
    m.message[row, M_SIZE] = wait[q, Q_SIZE]
    m.message[row, M_TS] = wait[q, Q_TS]
    m.message[row, M_TS_LAST] = wait[q, Q_TS_LAST]
    m.message[row, M_SOURCE] = wait[q, Q_SOURCE]
    m.message[row, M_FRAME] = wait[q, Q_FRAME]
    m.message[row, M_FRAME_LAST] = wait[q, Q_FRAME_LAST]
    m.message[row, M_AT] = wait[q, Q_AT]
    m.message[row, M_GAP] = wait[q, Q_GAP]
    m.message[row, M_PARTS] = m.whole[G_PARTS]
    m.message[row, M_SPANS] = m.whole[G_SPANS]
    _write_parts(m, wait[q, Q_PIECES], wait[q, Q_AT] + 4)
    free_list(m, wait[q, Q_PIECES])
    free_wait(m, q)
    m.whole[G_MESSAGES] += 1
    return row


@njit
def _write_parts(m: Memory, p: int, begin: int) -> None:
    open_span = -1
    while p >= 0:
        if m.piece[p, P_KIND] == DATA:
            part = m.whole[G_PARTS]
            m.part[part, 0] = m.piece[p, P_ADDRESS]
            m.part[part, 1] = m.piece[p, P_LENGTH]
            m.whole[G_PARTS] += 1
            open_span = -1
        elif open_span >= 0:
            m.span[open_span, 1] += m.piece[p, P_LENGTH]
        else:
            open_span = m.whole[G_SPANS]
            m.span[open_span, 0] = m.piece[p, P_AT] - begin
            m.span[open_span, 1] = m.piece[p, P_LENGTH]
            m.whole[G_SPANS] += 1
        p = m.piece[p, P_NEXT]
