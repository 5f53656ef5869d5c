"""Claims about clients that get nowhere: servers that close instead of answering, or never answer, and servers that are
not Kafka.

Rule: only a connection that was captured whole shows that no answer came. What a client was granted, and when it wrote
last, stands in its own claim (clients.py).
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.api_names import key_of
from wirecheck.decode.connection.exchanges import CLOSED_BY_CLIENT, CLOSED_BY_SERVER, PENDING
from wirecheck.decode.request_waits import SECOND_NS, answerable_ns, no_byte_missing
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.extract.wire_format import ON_OTHERS, allowed_ns, span
from wirecheck.judge.claims.outcomes import OPEN, SLOT_NS, SUCCESS, Run, single
from wirecheck.judge.claims.reduce import Ints, Rows, moment

CLOSED, CLOSED_AFTER_GREETING, NO_RESPONSE = 1, 2, 3
"""In place of an error code: the server closed the connection, on which it had sent no response, or some; the client
waited for a response that never came.
"""
PATIENCE_NS = SECOND_NS
"""No client gives up sooner: of the libraries known, kafka-python waits the least, 2 s. A probe may."""


def claims(batch: Batch) -> Iterator[Rows]:
    exchanges = batch.exchanges
    ended = np.isin(exchanges.outcome, (CLOSED_BY_SERVER, CLOSED_BY_CLIENT, PENDING)) & (exchanges.request >= 0)
    if not ended.any():
        return
    known = np.array([each.from_start and no_byte_missing(each) for each in exchanges.connections], np.bool_)
    ended[ended] = known[exchanges.connection[exchanges.request[ended]]]
    asked, by_server = exchanges.request[ended], exchanges.outcome[ended] == CLOSED_BY_SERVER
    greeted = np.array([each.responses > 0 for each in exchanges.connections], np.bool_)[exchanges.connection[asked]]
    in_vain = waited_in_vain(batch, asked[~by_server])
    for message, error in (
        (asked[by_server & ~greeted], CLOSED),
        (asked[by_server & greeted], CLOSED_AFTER_GREETING),
        (in_vain, NO_RESPONSE),
    ):
        if len(message):
            errors = np.full(len(message), error, np.int64)
            yield batch.states("unserved", "@who", message, tally=batch.api(message), error=errors)


def waited_in_vain(batch: Batch, asked: Ints) -> Ints:
    """Requests for whose response their client waited longer than they let the server take, up to its close or to the
    last packet. Those that wait for other brokers or members show nothing about their server.
    """
    of_others = np.isin(batch.decoded.messages.key[asked], [key_of(api) for api in ON_OTHERS])
    asked = asked[~of_others]
    until_ns = np.array([each.close_ns or each.last_ns for each in batch.exchanges.connections], np.int64)
    waited_ns = until_ns[batch.exchanges.connection[asked]] - answerable_ns(batch.exchanges, asked)
    return asked[waited_ns - allowed_ns(batch, asked) >= PATIENCE_NS]


def connections(batch: Batch) -> Iterator[Claim]:
    """Of those that are over: how long the client was connected, and what answered it where that was not Kafka."""
    for connection in batch.exchanges.connections:
        ends = (connection.client.host, str(connection.server))
        if connection.over and connection.client_hash >= 0 and not connection.is_guess:
            first_ns, last_ns = connection.started_ns, connection.last_ns
            ended = SUCCESS if connection.close_ns else OPEN
            outcomes = single(ended, first_ns // SLOT_NS, connection.client.port, Run(1, first_ns, last_ns))
            key = (*ends, connection.client_hash)
            peak = {} if connection.close_ns else {"unclosed": last_ns}
            if connection.close_ns and (connection.closed_by or "").startswith("client"):
                peak["by_client"] = last_ns
            yield Claim("connected", key, *span(connection), outcomes=outcomes, peak=peak)
        if connection.over and connection.answered_in and connection.requests and not connection.is_guess:
            ts_ns = connection.last_ns
            outcomes = single(CLOSED, ts_ns // SLOT_NS, connection.client.port, Run(1, ts_ns, ts_ns))
            yield Claim("not_kafka", (*ends, connection.answered_in), moment(ts_ns, connection.name), outcomes=outcomes)
