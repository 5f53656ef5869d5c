"""Claims about clients that get nowhere: servers that close instead of answering, and servers that are not Kafka.

Rule: only a connection that was captured whole shows that no answer came. What a client was granted, and when it wrote
last, stands in its own claim (clients.py).
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.connection.exchanges import CLOSED_BY_SERVER, Connection
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.claim import SLOT_NS, SUCCESS, Claim, slot_name
from wirecheck.judge.claims.extract.overdue import no_byte_missing
from wirecheck.judge.claims.extract.wire_format import span
from wirecheck.judge.claims.reduce import Rows, moment

CLOSED = 1
"""In place of an error code: the server closed the connection."""


def claims(batch: Batch) -> Iterator[Rows]:
    exchanges = batch.exchanges
    closed = exchanges.request[(exchanges.outcome == CLOSED_BY_SERVER) & (exchanges.request >= 0)]
    if len(closed):
        known = np.array([each.from_start and no_byte_missing(each) for each in exchanges.connections], np.bool_)
        closed = closed[known[exchanges.connection[closed]]]
        apis = batch.api(closed)
        yield batch.states("unserved", "@who", closed, tally=apis, error=np.full(len(closed), CLOSED, np.int64))


def connections(batch: Batch) -> Iterator[Claim]:
    """Of those that are over: how long the client was connected, and what answered it where that was not Kafka."""
    for connection in batch.exchanges.connections:
        ends = (connection.client.host, str(connection.server))
        if connection.over and connection.client_hash >= 0 and not connection.is_guess:
            first_ns, last_ns = connection.started_ns, connection.last_ns
            runs = {SUCCESS: {slot_name(first_ns // SLOT_NS): {port_of(connection): [1, first_ns, last_ns]}}}
            yield Claim("connected", (*ends, connection.client_hash), *span(connection), runs=runs)
        if connection.over and connection.answered_in and connection.requests and not connection.is_guess:
            ts_ns = connection.last_ns
            runs = {str(CLOSED): {slot_name(ts_ns // SLOT_NS): {port_of(connection): [1, ts_ns, ts_ns]}}}
            yield Claim("not_kafka", (*ends, connection.answered_in), moment(ts_ns, connection.name), runs=runs)


def port_of(connection: Connection) -> str:
    return str(connection.client).rpartition(":")[2]
