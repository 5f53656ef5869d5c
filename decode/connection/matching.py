"""Which response answers which request.

A broker answers one connection's requests in order (Kafka protocol guide, "Network"); Produce with acks=0 has no
response. Correlation IDs repeat, so order comes first. An exchange is written once, when nothing can change it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from wirecheck.decode.connection.connection import BY_FIN, BY_RST, NOT_CLOSED
from wirecheck.decode.connection.stream.modes import SEARCHING, UNSEEN
from wirecheck.decode.connection.waiting import ACKS_UNKNOWN, HANDED_OUT, RAW, Message

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.shared import Shared

# outcomes, in the order of exchanges.OUTCOMES
ANSWERED: Final = 0
NO_RESPONSE_DUE: Final = 1
REQUEST_UNSEEN: Final = 2
RESPONSE_UNSEEN: Final = 3
CLOSED_BY_SERVER: Final = 4
CLOSED_BY_CLIENT: Final = 5
PENDING: Final = 6
ORPHAN: Final = 7

PATIENCE: Final = 16  # unmatched ones in a row after which only half as many waiting messages are compared
AHEAD: Final = 8  # clients keep 1 to 5 requests in flight


def on_request(shared: Shared, connection: Connection, request: Message, due: bool) -> None:
    """A request is complete; `due`: a response has to come."""
    request.losses = connection.responses().losses()
    if shared.early and not request.is_raw():
        _write(shared, connection, request.early_copy(), None, PENDING)
    if not due:
        _write(shared, connection, request, None, NO_RESPONSE_DUE)
        return
    early = connection.early_responses
    if early.first is not None and not request.is_raw():
        before: Message | None = None
        response: Message | None = early.first
        position: i64 = 0
        reach = _reach(shared, connection.unmatched_requests)
        while response is not None and position < reach:
            if response.correlation == request.correlation:
                if position <= AHEAD:
                    connection.unmatched_requests = 0
                else:
                    connection.unmatched_requests += 1
                early.remove(before, response)
                _write(shared, connection, request, response, ANSWERED)
                return
            before, response = response, response.next
            position += 1
        if position > AHEAD:
            connection.unmatched_requests += 1
    connection.in_flight.push(request)
    while connection.in_flight.first is not None and _too_many(shared, connection, connection.in_flight.count):
        connection.limits_hit += 1
        give_up_request(shared, connection)


def on_response(shared: Shared, connection: Connection, response: Message) -> None:
    """A response is complete."""
    reach = _reach(shared, connection.unmatched_responses)
    request = connection.in_flight.first
    # Answers come in order: no older request is answered any more, and many of them would hide the one that is due.
    while request is not None and request.correlation < response.correlation and connection.in_flight.count > reach:
        connection.limits_hit += 1
        give_up_request(shared, connection)
        request = connection.in_flight.first
    before: Message | None = None
    position: i64 = 0
    while request is not None and (request.correlation != response.correlation or request.is_raw()):
        before, request = request, request.next
        position += 1
        if position == reach:
            request = None
    if request is not None and position <= AHEAD:
        connection.unmatched_responses = 0
    elif position > AHEAD:
        connection.unmatched_responses += 1
    if request is None:
        connection.early_responses.push(response)
        while connection.early_responses.first is not None and _too_many(
            shared, connection, connection.early_responses.count
        ):
            connection.limits_hit += 1
            give_up_response(shared, connection)
        return
    if position > 0:
        before = _skip_requests(shared, connection, request)
    out_of_order = before is not None
    connection.in_flight.remove(before, request)
    _write(shared, connection, request, response, ANSWERED, out_of_order=out_of_order)
    if out_of_order:
        connection.answered_out_of_order += 1
        return
    # Answers that came before one whose request we have: theirs came before that request, and is not to come any more.
    # On a busy connection those of a few lost requests would otherwise fill the queue every request is compared with.
    give_up_responses(shared, connection)


def _reach(shared: Shared, unmatched: i64) -> i64:
    """How many waiting messages are compared: fewer, the longer nothing has been where it should be."""
    return max(shared.bounds.waiting_messages >> min(unmatched // PATIENCE, 30), AHEAD)


def _too_many(shared: Shared, connection: Connection, count: i64) -> bool:
    return count > shared.bounds.waiting_messages or connection.waiting_size() > shared.bounds.waiting_bytes


def _skip_requests(shared: Shared, connection: Connection, upto: Message) -> Message | None:
    """A response came for a later request: settle the ones before it that can be explained; the last that cannot."""
    lost = connection.responses().losses()
    before: Message | None = None
    request = connection.in_flight.first
    while request is not None and request is not upto:
        following = request.next
        if request.is_raw():
            connection.in_flight.remove(before, request)
        elif request.flags & ACKS_UNKNOWN:
            connection.in_flight.remove(before, request)
            _write(shared, connection, request, None, NO_RESPONSE_DUE)
        elif request.losses != lost:
            connection.in_flight.remove(before, request)
            _write(shared, connection, request, None, RESPONSE_UNSEEN)
        else:
            before = request
        request = following
    return before


def give_up_request(shared: Shared, connection: Connection) -> None:
    """We wait no longer for the response to the oldest request: if it comes, it is unseen, whatever it says."""
    _settle_request(shared, connection, RESPONSE_UNSEEN)


def _settle_request(shared: Shared, connection: Connection, outcome: i64) -> None:
    request = connection.in_flight.first
    if request is not None:
        connection.in_flight.remove(None, request)
        if not request.is_raw():
            _write(shared, connection, request, None, outcome)


def give_up_responses(shared: Shared, connection: Connection) -> None:
    while connection.early_responses.first is not None:
        give_up_response(shared, connection)


def give_up_response(shared: Shared, connection: Connection) -> None:
    """The oldest response without request stays without."""
    response = connection.early_responses.first
    if response is None:
        return
    connection.early_responses.remove(None, response)
    asked = connection.requests()
    may_be_unseen = asked.losses() > 0 or not asked.start_seen or asked.has_hole() or connection.limits_hit > 0
    _write(shared, connection, None, response, REQUEST_UNSEEN if may_be_unseen else ORPHAN)


def response_deadline(shared: Shared, connection: Connection, oldest: Message) -> i64:
    """When the oldest response without request is given up."""
    asked = connection.requests()
    open_question = asked.has_hole() or asked.mode == SEARCHING
    return oldest.ts_last_ns + (shared.bounds.hole_ns if open_question else shared.bounds.slack_ns)


def finish(shared: Shared, connection: Connection) -> None:
    """Nothing more will come: everything that waits is written."""
    request = connection.in_flight.first
    while request is not None:
        _settle_request(shared, connection, _unanswered(connection, request))
        request = connection.in_flight.first
    give_up_responses(shared, connection)


def _unanswered(connection: Connection, request: Message) -> i64:
    """Why a request has no response, as far as we can know."""
    answers = connection.responses()
    if answers.losses() != request.losses or answers.stream == UNSEEN or answers.mode == SEARCHING:
        return RESPONSE_UNSEEN
    by = connection.closed_by
    if by == NOT_CLOSED:
        return PENDING
    return CLOSED_BY_CLIENT if by in (BY_FIN + connection.client, BY_RST + connection.client) else CLOSED_BY_SERVER


# --- SASL tokens, which have no correlation id


def token_is_due(connection: Connection) -> bool:
    """The next answer due is that to a raw SASL token."""
    first = connection.in_flight.first
    return first is not None and first.is_raw()


def answers_request(connection: Connection, correlation: i64) -> bool:
    """Behind tokens, a request waits that has this id: the last token of Kerberos is not answered."""
    request = connection.in_flight.first
    position: i64 = 0
    while request is not None and position < AHEAD:
        if not request.is_raw() and request.correlation == correlation:
            return True
        request = request.next
        position += 1
    return False


def on_token(shared: Shared, connection: Connection, is_request: bool) -> None:
    """A token is complete; one of the server answers the oldest of the client.

    A server's token that was captured before the client's it answers was taken for a response to a request that is
    still to come: servers answer in order, so with nothing else in flight the oldest such response is that token.
    """
    if is_request:
        answer = connection.early_responses.first
        if answer is not None and connection.in_flight.first is None:
            connection.early_responses.remove(None, answer)
            connection.responses().messages -= 1
            connection.responses().raw_frames += 1
            return
        token = Message(0, 0, 0, 0)
        token.flags = RAW
        on_request(shared, connection, token, True)
    elif token_is_due(connection):
        give_up_request(shared, connection)


def _write(
    shared: Shared,
    connection: Connection,
    request: Message | None,
    response: Message | None,
    outcome: i64,
    *,
    out_of_order: bool = False,
) -> None:
    """One exchange is decided; its messages are handed out with it."""
    if request is not None:
        if response is not None:
            response.key, response.version = request.key, request.version
        if request.flags & HANDED_OUT:
            request = None
            if response is None:
                return
    shared.output.add(connection, request, response, outcome, out_of_order)
