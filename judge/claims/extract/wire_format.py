"""Claims about the wire itself: connections, what is missing of them, what could not be read.

Knows: what following found out about each connection and what became of each message. Does not know what messages say.
Rule: facts of a connection are cumulative, so the greatest holds; what was not seen is counted and never called broken.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from wirecheck.decode.api_names import key_of, name_of
from wirecheck.decode.connection.exchanges import (
    CLOSED_BY_CLIENT,
    CLOSED_BY_SERVER,
    ORPHAN,
    OUTCOMES,
    PENDING,
    RESPONSE_UNSEEN,
    Connection,
)
from wirecheck.decode.dialect import suggested
from wirecheck.decode.message import Dialect, Status, Tolerance
from wirecheck.decode.wire import SIDES
from wirecheck.judge.claims.batch import Batch, connection_key, value_per
from wirecheck.judge.claims.claim import OTHERS, SLOT_NS, SUCCESS, WAITED, Claim, Runs, Sighting, slot_name
from wirecheck.judge.claims.extract.clients import who
from wirecheck.judge.claims.reduce import Column, Ints, Rows, constant, grouped

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
    "cut_bytes",
    "cut_segments",
)
"""Facts of a connection that only grow."""
WAITS = ("max_wait_ms", "timeout_ms")
"""Fields that say how long a server may take."""
ROUND_NS = 300_000_000_000
"""Answers to these wait for all members of a group: its rebalance timeout, by default max.poll.interval.ms."""
ROUNDS = {"JoinGroup", "SyncGroup"}
ON_OTHERS = {"Produce", "OffsetCommit", "TxnOffsetCommit", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", *ROUNDS}
"""Answers to these wait for other brokers or other members, so that a late one says nothing of its server."""
OVERDUE_NS = 5_000_000_000
"""A request that was open so much longer than it let its server take waited."""
LATEST_S = 3600
SECOND_NS, MILLISECOND_NS = 1_000_000_000, 1_000_000
UNANSWERED = (RESPONSE_UNSEEN, CLOSED_BY_SERVER, CLOSED_BY_CLIENT, PENDING)
DIRECTIONS = ("request", "response")


def claims(batch: Batch) -> Iterator[Rows]:
    yield from read(batch)
    yield from unanswered(batch)
    yield from broken(batch)
    yield from unpaired(batch)
    yield from dialects(batch)


def connections(batch: Batch) -> Iterator[Claim]:
    """One claim per connection whose client is known, or which is over, with every fact as it is now; one per gap."""
    for connection in batch.exchanges.connections:
        if connection.is_guess:
            continue
        client, server = str(connection.client), str(connection.server)
        key = (connection.client.host, server, client, connection.started_ns)
        yield Claim("connection", key, *span(connection), peak=facts(connection))
        for ts_ns, side, size in connection.gaps:
            seen = Sighting(ts_ns, connection.name, "", -1, -1, "", 0, 0)
            yield Claim("gap", (*key, ts_ns, DIRECTIONS[side], size), seen)
        if connection.protocol == "kafka":
            yield Claim("server", (server,), *span(connection), peak={"answers": int(connection.responses > 0)})


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
        **({"decrypted": 1} if connection.decrypted else {}),
        "protocol": [*stamp, connection.protocol],
        "sasl": [*stamp, connection.sasl or ""],
        "closed_by": [*stamp, connection.closed_by or ""],
        **({"over": 1} if connection.over else {}),
    }


def read(batch: Batch) -> Iterator[Rows]:
    """How many messages each connection had, and what became of them."""
    every = np.arange(len(batch.decoded))
    status = batch.decoded.status.astype(np.int64)
    names = ["decoded_messages", *(f"undecoded_messages:{Status(s).name.lower()}" for s in range(1, len(Status)))]
    key = connection_key(batch, every)
    yield Rows("connection", key, every, constant("messages", len(every)))
    yield Rows("connection", key, every, Column(status, names))
    yield from proxied(batch)
    yield from possible_drafts(batch)
    exchanges = batch.exchanges
    one = np.where(exchanges.request >= 0, exchanges.request, exchanges.response)
    outcome = Column(exchanges.outcome.astype(np.int64), [f"exchanges:{name.replace('-', '_')}" for name in OUTCOMES])
    yield Rows("connection", connection_key(batch, one), one, outcome)


def proxied(batch: Batch) -> Iterator[Rows]:
    """Messages that came through a proxy, by the host it names; their client is the proxy."""
    hosts = [c.proxied_for.host if c.proxied_for is not None else None for c in batch.exchanges.connections]
    named = {host: place for place, host in enumerate(dict.fromkeys(host for host in hosts if host is not None))}
    if named:
        codes = np.array([-1 if host is None else named[host] for host in hosts], np.int64)[batch.exchanges.connection]
        names = [f"proxied_messages:{host}" for host in named]
        message = np.flatnonzero(codes >= 0)
        yield Rows("connection", connection_key(batch, message), message, Column(codes[message], names))


def possible_drafts(batch: Batch) -> Iterator[Rows]:
    """Messages that a draft nobody named would read, by its name."""
    message = np.flatnonzero(batch.decoded.status == Status.POSSIBLY_A_DRAFT)
    names = suggested(batch.decoded.messages.take(message)) if len(message) else []
    for name in dict.fromkeys(filter(None, names)):
        rows = message[[one == name for one in names]]
        yield Rows("connection", connection_key(batch, rows), rows, constant(f"draft_messages:{name}", len(rows)))


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
    key = [batch.host(message), batch.endpoint(message), batch.api(message), outcome]
    due_ns = exchanges.ts_ns[message] + waits_ns(batch, message)
    close_ns = np.array([connection.close_ns or 0 for connection in exchanges.connections], np.int64)
    late_s = (close_ns[exchanges.connection[message]] - due_ns) // SECOND_NS
    closed = np.isin(exchanges.outcome[rows], (CLOSED_BY_SERVER, CLOSED_BY_CLIENT))
    words = [
        f"late:{min(max(0, late), LATEST_S)}" if shut else f"{due // SLOT_NS}:due"
        for shut, late, due in zip(closed.tolist(), late_s.tolist(), due_ns.tolist(), strict=True)
    ]
    unique = {word: code for code, word in enumerate(dict.fromkeys(words))}
    tally = Column(np.array([unique[word] for word in words], np.int64), list(unique))
    yield Rows("unanswered", key, message, tally)


def waits_ns(batch: Batch, message: Ints) -> Ints:
    """How long each request lets its server take."""
    waits = np.zeros(len(message), np.int64)
    keys = batch.decoded.messages.key[message]
    for key in np.unique(keys).tolist():
        name = name_of(key)
        tables = batch.tables(name, "request")
        field = next((f for f in WAITS if f in tables[""].names), None) if tables else None
        mine = np.flatnonzero(keys == key)
        if name in ROUNDS:
            waits[mine] = ROUND_NS
        elif field is not None:
            waits[mine] = np.maximum(0, value_per(message[mine], tables[""], field, absent=0)) * MILLISECOND_NS
    return waits


def answered(batch: Batch) -> Iterator[Claim]:
    """When each server answered, per slot of time; under WAITED by client, from when to when requests had waited."""
    exchanges = batch.exchanges
    rows = np.flatnonzero((exchanges.request >= 0) & (exchanges.response >= 0))
    asked, answer = exchanges.request[rows], exchanges.response[rows]
    sent_ns, ts_ns = exchanges.ts_ns[asked], exchanges.ts_ns[answer]
    late = np.flatnonzero(ts_ns - sent_ns >= OVERDUE_NS)
    late = late[~np.isin(batch.decoded.messages.key[asked[late]], [key_of(api) for api in ON_OTHERS])]
    late = late[ts_ns[late] - sent_ns[late] - waits_ns(batch, asked[late]) >= OVERDUE_NS]
    endpoint, slot = batch.endpoint(answer), ts_ns // SLOT_NS
    each, sample = grouped([endpoint, Column(slot)])
    first, last = np.full(len(sample), np.iinfo(np.int64).max), np.zeros(len(sample), np.int64)
    np.minimum.at(first, each, ts_ns)
    np.maximum.at(last, each, ts_ns)
    counts = np.bincount(each, minlength=len(sample))
    for number, row in enumerate(sample.tolist()):
        run = [int(counts[number]), int(first[number]), int(last[number])]
        yield answers(
            batch, int(answer[row]), endpoint.value(row), {SUCCESS: {slot_name(int(slot[row])): {OTHERS: run}}}
        )
    for row in late.tolist():
        client = batch.names[exchanges.connection[asked[row]]][0]
        run = [1, int(sent_ns[row]), int(ts_ns[row])]
        yield answers(
            batch, int(answer[row]), endpoint.value(row), {WAITED: {slot_name(int(slot[row])): {client: run}}}
        )


def answers(batch: Batch, message: int, endpoint: str, runs: Runs) -> Claim:
    return Claim("answered", (endpoint,), batch.sightings.at(message), runs=runs)


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
    return [batch.api(message), version, batch.endpoint(message), constant(reason, len(message)), batch.host(message)]
