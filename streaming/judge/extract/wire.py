"""Claims about the wire itself: connections, what is missing of them, what could not be read.

Knows: what following found out about each connection and what became of each message. Does not know what messages say.
Rule: facts of a connection are cumulative, so the greatest holds; what was not seen is counted and never called broken.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from decode.exchanges import (
    CLOSED_BY_CLIENT,
    CLOSED_BY_SERVER,
    ORPHAN,
    OUTCOMES,
    PENDING,
    RESPONSE_UNSEEN,
    Connection,
)
from decode.message import Dialect, Status, Tolerance
from decode.wire import SIDES
from streaming.judge.claim import Claim, Sighting
from streaming.judge.extract.batch import Batch
from streaming.judge.extract.clients import who
from streaming.judge.extract.reduce import Column, Ints, Rows, constant

FACTS = (
    "frames",
    "payload_bytes",
    "requests",
    "responses",
    "raw_frames",
    "skipped_bytes",
    "conflicting_bytes",
    "resynchronised",
    "out_of_order",
    "limits_hit",
)
"""Facts of a connection that only grow."""
UNANSWERED = (RESPONSE_UNSEEN, CLOSED_BY_SERVER, CLOSED_BY_CLIENT, PENDING)
DIRECTIONS = ("request", "response")


def claims(batch: Batch) -> Iterator[Rows]:
    yield from read(batch)
    yield from unanswered(batch)
    yield from broken(batch)
    yield from unpaired(batch)
    yield from dialects(batch)


def connections(batch: Batch) -> Iterator[Claim]:
    """One claim per connection, with every fact as it is now; one per gap."""
    for connection in batch.exchanges.connections:
        client, server = connection.name.split(">")
        key = (client.rpartition(":")[0], server, client, connection.started_ns)
        yield Claim("connection", key, *span(connection), peak=facts(connection))
        for ts_ns, side, size in connection.gaps:
            seen = Sighting(ts_ns, connection.name, "", -1, -1, "", 0, 0)
            yield Claim("gap", (*key, ts_ns, DIRECTIONS[side], size), seen)
        if connection.protocol == "kafka":
            yield Claim("server", (server,), *span(connection))


def span(connection: Connection) -> tuple[Sighting, Sighting]:
    first, last = (
        Sighting(ts_ns, connection.name, "", -1, -1, "", 0, 0) for ts_ns in (connection.started_ns, connection.last_ns)
    )
    return first, last


def facts(connection: Connection) -> dict[str, Any]:
    stamp = [connection.last_ns, connection.frames]
    return {
        **{name: getattr(connection, name) for name in FACTS},
        "unseen_bytes": connection.unseen_request_bytes + connection.unseen_response_bytes,
        "from_start": int(connection.from_start),
        "protocol": [*stamp, connection.protocol],
        "sasl": [*stamp, connection.sasl or ""],
        "closed_by": [*stamp, connection.closed_by or ""],
    }


def connection_key(batch: Batch, message: Ints) -> list[Column]:
    started = np.array([connection.started_ns for connection in batch.exchanges.connections], np.int64)
    host, endpoint, client = (batch.connection_part(message, part) for part in (2, 1, 0))
    return [host, endpoint, client, Column(started[batch.exchanges.connection[message]])]


def read(batch: Batch) -> Iterator[Rows]:
    """How many messages each connection had, and what became of them."""
    every = np.arange(len(batch.decoded))
    status = batch.decoded.status.astype(np.int64)
    names = ["decoded_messages", *(f"undecoded_messages:{Status(s).name.lower()}" for s in range(1, len(Status)))]
    key = connection_key(batch, every)
    yield Rows("connection", key, every, constant("messages", len(every)))
    yield Rows("connection", key, every, Column(status, names))
    exchanges = batch.exchanges
    one = np.where(exchanges.request >= 0, exchanges.request, exchanges.response)
    outcome = Column(exchanges.outcome.astype(np.int64), [f"exchanges:{name.replace('-', '_')}" for name in OUTCOMES])
    yield Rows("connection", connection_key(batch, one), one, outcome)


def unpaired(batch: Batch) -> Iterator[Rows]:
    """Responses that answer nothing, or not the oldest open request."""
    exchanges = batch.exchanges
    orphans = exchanges.response[(exchanges.outcome == ORPHAN) & (exchanges.response >= 0)]
    early = exchanges.response[exchanges.out_of_order & (exchanges.response >= 0)]
    for message, what in ((orphans, "response without request"), (early, "response out of order")):
        yield Rows("stray", [*connection_key(batch, message), constant(what, len(message))], message)


def dialects(batch: Batch) -> Iterator[Rows]:
    """Messages read by the layouts of a draft."""
    message = np.flatnonzero((batch.decoded.dialect >= Dialect.KIP516_DRAFT) & (batch.decoded.status == Status.OK))
    names = [Dialect(number).label for number in range(len(Dialect))]
    dialect = Column(batch.decoded.dialect[message].astype(np.int64), names)
    yield Rows("dialect", [batch.host(message), batch.endpoint(message), dialect], message)


def unanswered(batch: Batch) -> Iterator[Rows]:
    exchanges = batch.exchanges
    rows = np.flatnonzero(np.isin(exchanges.outcome, UNANSWERED) & (exchanges.request >= 0))
    message = exchanges.request[rows]
    outcome = Column(exchanges.outcome[rows].astype(np.int64), [name.replace("-", "_") for name in OUTCOMES])
    yield Rows("unanswered", [batch.host(message), batch.endpoint(message), batch.api(message), outcome], message)


def broken(batch: Batch) -> Iterator[Rows]:
    """Messages that could not be read, or only with a tolerance."""
    status, messages = batch.decoded.status, batch.decoded.messages
    unknown = np.flatnonzero(status == Status.UNKNOWN_API)
    yield Rows("unknown", unknown_key(batch, unknown, constant(None, len(unknown)), "api"), unknown)
    newer = np.flatnonzero(status == Status.UNKNOWN_VERSION)
    yield Rows("unknown", unknown_key(batch, newer, Column(batch.version(newer)), "version"), newer)
    bad = np.flatnonzero(status >= Status.TRUNCATED)
    key = [
        batch.api(bad),
        Column(batch.version(bad)),
        Column(messages.side[bad].astype(np.int64), SIDES),
        Column(status[bad].astype(np.int64), [Status(s).name.lower().replace("_", " ") for s in range(len(Status))]),
        batch.client_id(bad),
        *connection_key(batch, bad),
    ]
    yield Rows("malformed", key, bad)
    odd = np.flatnonzero(batch.decoded.tolerance)
    names = [tolerance.name.lower().replace("_", "-") for tolerance in Tolerance]
    tolerance = Column(batch.decoded.tolerance[odd].astype(np.int64), names)
    yield Rows("tolerated", [*who(batch, odd), batch.api(odd), tolerance], odd)


def unknown_key(batch: Batch, message: Ints, version: Column, reason: str) -> list[Column]:
    return [batch.api(message), version, batch.endpoint(message), constant(reason, len(message))]
