"""Which response answers which request.

A broker answers one connection's requests in order (Kafka protocol guide, "Network"); Produce with acks=0 has no
response. Correlation IDs repeat, so order comes first. An exchange is written once, when nothing can change it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from wirecheck.decode.connection.connection import BY_FIN, BY_RST, NOT_CLOSED
from wirecheck.decode.connection.stream.modes import SEARCHING, UNSEEN
from wirecheck.decode.connection.waiting import ACKS_UNKNOWN, AHEAD, HANDED_OUT, RAW, Message, MessageQueue

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


def on_request(shared: Shared, connection: Connection, request: Message, due: bool) -> None:
    """A request is complete; `due`: a response has to come."""
    request.losses = connection.responses().losses()
    if shared.early and not request.is_raw():
        _write(shared, connection, request.early_copy(), None, PENDING)
    if not due:
        _write(shared, connection, request, None, NO_RESPONSE_DUE)
        return
    early, in_flight = connection.early_responses, connection.in_flight
    if not request.is_raw():
        place = early.find(request.correlation, early.reach(shared.limits.waiting_messages))
        if place >= 0:
            if place > 0 and _may_be_unseen(connection):
                for _ in range(place):  # answers to earlier requests, none of which is to come any more
                    give_up_response(shared, connection)
                place = 0
            connection.answered_ns = max(connection.answered_ns, request.ts_ns)
            _write(shared, connection, request, early.remove(place), ANSWERED)
            return
    in_flight.push(request)
    while _too_many(shared, connection, in_flight):
        connection.limits_hit += 1
        give_up_request(shared, connection)


def on_response(shared: Shared, connection: Connection, response: Message) -> None:
    """A response is complete."""
    in_flight, early = connection.in_flight, connection.early_responses
    reach = in_flight.reach(shared.limits.waiting_messages)
    # Answers come in order: no older request is answered any more, and many of them would hide the one that is due.
    while in_flight.count > reach and in_flight.messages[0].correlation < response.correlation:
        connection.limits_hit += 1
        give_up_request(shared, connection)
    place = in_flight.find(response.correlation, reach)
    if place < 0:
        early.push(response)
        while _too_many(shared, connection, early):
            connection.limits_hit += 1
            give_up_response(shared, connection)
        return
    place = _skip_requests(shared, connection, place)
    request = in_flight.remove(place)
    _write(shared, connection, request, response, ANSWERED, out_of_order=place > 0)
    if place > 0:
        connection.answered_out_of_order += 1
        return
    connection.answered_ns = max(connection.answered_ns, request.ts_ns)
    # Answers that came before one whose request we have: theirs came before that request, and is not to come any more.
    # On a busy connection those of a few lost requests would otherwise fill the queue every request is compared with.
    give_up_responses(shared, connection)


def _too_many(shared: Shared, connection: Connection, queue: MessageQueue) -> bool:
    limits = shared.limits
    too_much = queue.count > limits.waiting_messages or connection.waiting_size() > limits.waiting_bytes
    return too_much and queue.count > 0


def _skip_requests(shared: Shared, connection: Connection, upto: i64) -> i64:
    """A response came for a later request: settle the ones before it that can be explained; how many cannot."""
    lost = connection.responses().losses()
    queue = connection.in_flight
    place: i64 = 0
    for _ in range(upto):
        request = queue.messages[place]
        if request.is_raw():
            queue.remove(place)
        elif request.flags & ACKS_UNKNOWN:
            _write(shared, connection, queue.remove(place), None, NO_RESPONSE_DUE)
        elif request.losses != lost:
            _write(shared, connection, queue.remove(place), None, RESPONSE_UNSEEN)
        else:
            place += 1
    return place


def give_up_request(shared: Shared, connection: Connection) -> None:
    """Stop waiting for the response to the oldest request; the exchange ends as RESPONSE_UNSEEN."""
    _settle_request(shared, connection, RESPONSE_UNSEEN)


def _settle_request(shared: Shared, connection: Connection, outcome: i64) -> None:
    request = connection.in_flight.remove(0)
    if not request.is_raw():
        _write(shared, connection, request, None, outcome)


def give_up_responses(shared: Shared, connection: Connection) -> None:
    while connection.early_responses.count > 0:
        give_up_response(shared, connection)


def give_up_response(shared: Shared, connection: Connection) -> None:
    """The oldest response without request stays without."""
    response = connection.early_responses.remove(0)
    _write(shared, connection, None, response, REQUEST_UNSEEN if _may_be_unseen(connection) else ORPHAN)


def _may_be_unseen(connection: Connection) -> bool:
    """Whether some requests may be missing."""
    asked = connection.requests()
    return asked.losses() > 0 or not asked.start_seen or asked.has_hole() or connection.limits_hit > 0


def response_deadline(shared: Shared, connection: Connection, oldest: Message) -> i64:
    """When the oldest response without request is given up."""
    asked = connection.requests()
    open_question = asked.has_hole() or asked.mode == SEARCHING
    return oldest.ts_last_ns + (shared.limits.hole_ns if open_question else shared.limits.slack_ns)


def finish(shared: Shared, connection: Connection) -> None:
    """Nothing more will come: everything that waits is written."""
    while connection.in_flight.count > 0:
        _settle_request(shared, connection, _unanswered(connection, connection.in_flight.messages[0]))
    give_up_responses(shared, connection)


def _unanswered(connection: Connection, request: Message) -> i64:
    """Why a request has no response, as far as we can know."""
    answers = connection.responses()
    lost = answers.losses() != request.losses or answers.stream == UNSEEN or answers.mode == SEARCHING
    lost = lost and not answers.is_silent()
    if lost and not connection.answered_in:  # what is not understood of another protocol holds no response
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
    for request in connection.in_flight.messages[:AHEAD]:
        if not request.is_raw() and request.correlation == correlation:
            return True
    return False


def on_token(shared: Shared, connection: Connection, is_request: bool) -> None:
    """A token is complete; one of the server answers the oldest of the client.

    A server's token that was captured before the client's it answers was taken for a response to a request that is
    still to come: servers answer in order, so with nothing else in flight the oldest such response is that token.
    """
    if is_request:
        if connection.early_responses.count > 0 and connection.in_flight.count == 0:
            connection.early_responses.remove(0)
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
