"""Claims about clients that get nowhere: servers that close instead of answering, and servers that are not Kafka.

Rule: only a connection that was captured whole shows that no answer came. ApiVersions and SaslHandshake count where
they are not answered, and prove nothing where they are: a listener answers them to whoever connects.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.connection.exchanges import CLOSED_BY_SERVER, Connection
from wirecheck.judge.claims.batch import Batch, value_per
from wirecheck.judge.claims.claim import OTHERS, SLOT_NS, Claim, slot_name
from wirecheck.judge.claims.extract.wire_format import span
from wirecheck.judge.claims.reduce import Rows, constant, moment

TO_ANYBODY = (17, 18)
"""SaslHandshake, ApiVersions."""
PRODUCE = 0
ANSWERED = "answered"
"""As a count: requests that got an answer; as a peak, negative, when the first one did."""
CLOSED = 1
"""In place of an error code: the server closed the connection."""


def claims(batch: Batch) -> Iterator[Rows]:
    exchanges = batch.exchanges
    rows = np.flatnonzero(exchanges.request >= 0)
    message = exchanges.request[rows]
    served = (exchanges.response[rows] >= 0) & ~np.isin(batch.decoded.messages.key[message], TO_ANYBODY)
    yield batch.states(
        "unserved", "@who", message[served],
        tally=constant(ANSWERED, int(served.sum())), peak={ANSWERED: -exchanges.ts_ns[message[served]]},
    )  # fmt: skip
    written = message[batch.decoded.messages.key[message] == PRODUCE]
    if len(written):
        header, every = batch.lines("Produce", "request"), constant(OTHERS, len(written))
        allowed_ms = value_per(written, header.table, "timeout_ms", absent=0) if header else np.zeros_like(written)
        peak, none = {"timeout_ms": allowed_ms}, np.zeros(len(written), np.int64)
        yield batch.states("writes", "@who", written, error=none, apart=every, peak=peak)
    closed = message[exchanges.outcome[rows] == CLOSED_BY_SERVER]
    if len(closed):
        known = np.array([all_captured(each) for each in exchanges.connections], np.bool_)
        closed = closed[known[exchanges.connection[closed]]]
        apis = batch.api(closed)
        yield batch.states("unserved", "@who", closed, tally=apis, error=np.full(len(closed), CLOSED, np.int64))


def all_captured(connection: Connection) -> bool:
    """Whether no byte of it is missing, understood or not."""
    lost = (
        connection.unseen_request_bytes,
        connection.unseen_response_bytes,
        connection.cut_bytes,
        connection.conflicting_bytes,
        connection.limits_hit,
        connection.unlisted,
        connection.is_guess,
    )
    return connection.from_start and not any(lost)


def connections(batch: Batch) -> Iterator[Claim]:
    """How long each client was connected; of connections on which Kafka was asked and something else answered, what."""
    for connection in batch.exchanges.connections:
        if connection.client_hash >= 0 and not connection.is_guess:
            ends = (connection.client.host, str(connection.server))
            yield Claim("connected", (*ends, connection.client_hash), *span(connection))
        if connection.over and connection.answered_in and connection.requests and not connection.is_guess:
            key = (connection.client.host, str(connection.server), connection.answered_in)
            port, ts_ns = str(connection.client).rpartition(":")[2], connection.last_ns
            runs = {str(CLOSED): {slot_name(ts_ns // SLOT_NS): {port: [1, ts_ns, ts_ns]}}}
            yield Claim("not_kafka", key, moment(ts_ns, connection.name), runs=runs)
