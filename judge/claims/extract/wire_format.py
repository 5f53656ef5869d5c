"""Claims about the wire itself: connections, what is missing of them, what could not be read.

Rule: facts of a connection are cumulative, so the greatest holds; what was not seen is counted and never called broken.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode import request_waits
from wirecheck.decode.api_names import key_of
from wirecheck.decode.connection.exchanges import (
    CLOSED_BY_CLIENT,
    CLOSED_BY_SERVER,
    ORPHAN,
    OUTCOMES,
    PENDING,
    REQUEST_UNSEEN,
    RESPONSE_UNSEEN,
    Connection,
)
from wirecheck.decode.connection.stream.frame import NEVER
from wirecheck.decode.dialect import NAMES, suggested
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.message import Dialect, Status, Tolerance
from wirecheck.decode.request_waits import OVERDUE_NS, ROUNDS, SECOND_NS, answerable_ns
from wirecheck.decode.wire import RESPONSE
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.claim import Claim, Sighting
from wirecheck.judge.claims.extract import bindings
from wirecheck.judge.claims.outcomes import CLOSED, OTHERS, SLOT_NS, SUCCESS, TURNED_AWAY, WAITED, Run, single
from wirecheck.judge.claims.reduce import Column, Ints, Rows, constant, grouped, moment, spans, spelled
from wirecheck.judge.claims.response_outcomes import FAILED, NO_RESPONSE
from wirecheck.judge.claims.seconds import second_of

FACTS = (
    "frames",
    "payload_bytes",
    "requests",
    "responses",
    "raw_frames",
    "skipped_bytes",
    "conflicting_bytes",
    "resynchronised",
    "limits_hit",
    "cut_bytes",
    "cut_segments",
    "retransmitted",
    "unacceptable",
)
"""Facts of a connection that only grow."""
FORWARDABLE = {
    *("CreateTopics", "DeleteTopics", "CreatePartitions", "ElectLeaders", "AlterConfigs", "IncrementalAlterConfigs"),
    *("AlterPartitionReassignments", "ListPartitionReassignments", "CreateAcls", "DeleteAcls", "AlterClientQuotas"),
    *("AlterUserScramCredentials", "UpdateFeatures", "UnregisterBroker", "DescribeQuorum", "AddRaftVoter"),
    *("CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken", "RemoveRaftVoter"),
}
"""What brokers ask the controller for their clients (ApiKeys.forwardable)."""
TRANSACTIONS = {"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"}
"""Replicas of the transactions' log have to confirm these (TransactionStateManager); the first may also wait for a
block of producer IDs, which the controller allocates (RPCProducerIdManager of Kafka 3.4).
"""
REPLICATED = {
    *("Produce", "OffsetCommit", "TxnOffsetCommit", "OffsetDelete", "DeleteGroups", "DeleteRecords", "WriteTxnMarkers"),
    *("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat", "ShareFetch", "ShareAcknowledge"),
    *("InitializeShareGroupState", "WriteShareGroupState", "DeleteShareGroupState"),
    *("AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
}
"""Replicas of a topic have to confirm these, of __consumer_offsets or __share_group_state for most of them."""
OF_BROKERS = {"AlterPartition", "AllocateProducerIds", "AssignReplicasToDirs"}
"""What brokers ask the controller for themselves: the other controllers have to confirm it."""
ON_OTHERS = {
    *REPLICATED,
    *OF_BROKERS,
    *TRANSACTIONS,
    *ROUNDS,
    *FORWARDABLE,
}
"""Responses to these wait for other brokers, the controller or other members. A late one shows nothing about its
server.
"""
LATEST_S = 3600
UNANSWERED = (RESPONSE_UNSEEN, CLOSED_BY_SERVER, CLOSED_BY_CLIENT, PENDING)


def claims(batch: Batch) -> Iterator[Rows]:
    yield from read(batch)
    yield unanswered(batch)
    yield from broken(batch)
    yield from unpaired(batch)
    message = np.flatnonzero(batch.drafted(np.arange(len(batch.decoded))))
    dialect = words(batch.decoded.dialect[message], [NAMES.get(reading) for reading in Dialect])
    yield batch.states("dialect", [dialect], message)


def words(codes: NDArray[Any], values: Sequence[str | None]) -> Column:
    return Column(codes.astype(np.int64), values)


def connections(batch: Batch) -> Iterator[Claim]:
    """One claim per connection whose client is known, or which is over, with every fact as it is now; one per gap."""
    for connection in batch.exchanges.connections:
        if connection.is_guess or connection.unlisted:
            continue
        client, server, (first, last) = str(connection.client), str(connection.server), span(connection)
        key = (connection.client.host, server, client, connection.started_ns)
        yield Claim("connection", key, first, last, peak=facts(connection))
        for ts_ns, side, size, since_ns, until_ns in connection.gaps:
            read = {"until": until_ns} if until_ns >= 0 else {}
            seen = moment(ts_ns, connection.name)
            yield Claim("gap", (*key, ts_ns, SIDES[side], size), seen, peak={"since": -since_ns, **read})
        if is_refused(connection):
            yield ended(connection, "turned_away", TURNED_AWAY)
        if connection.over and connection.from_start and connection.tls_unfinished:
            yield ended(connection, "tls_failed", CLOSED)
        if connection.protocol == "kafka":
            yield Claim("server", (server,), first, last, peak={"answers": int(connection.responses > 0)})


def is_refused(connection: Connection) -> bool:
    """Whether the server reset it before anything was sent, as where no process listens."""
    reset = connection.over and connection.closed_by == "server-rst"
    return reset and connection.from_start and not connection.payload_bytes


def ended(connection: Connection, kind: str, how: int) -> Claim:
    """A connection that ended before its work, by host and server."""
    at_ns, port = connection.close_ns, connection.client.port
    outcomes = single(how, at_ns // SLOT_NS, port, Run(1, at_ns, at_ns))
    return Claim(
        kind, (connection.client.host, str(connection.server)), moment(at_ns, connection.name), outcomes=outcomes
    )


def turned_away(several: Connection) -> Claim:
    """Refused connections of one host to one server within one slot that have no rows of their own."""
    begun_ns, ended_ns = several.started_ns, several.last_ns
    outcomes = single(TURNED_AWAY, begun_ns // SLOT_NS, OTHERS, Run(several.unlisted, begun_ns, ended_ns))
    key = several.client.host, str(several.server)
    return Claim("turned_away", key, moment(begun_ns), moment(ended_ns), count=several.unlisted, outcomes=outcomes)


def span(connection: Connection) -> tuple[Sighting, Sighting]:
    return moment(connection.started_ns, connection.name), moment(connection.last_ns, connection.name)


def facts(connection: Connection) -> dict[str, Any]:
    """What holds of it, by name. What is 0 is left out: there may be very many connections."""
    stamp = [connection.last_ns, connection.frames]
    found = {
        **{name: getattr(connection, name) for name in FACTS},
        "unseen_bytes": connection.unseen_request_bytes + connection.unseen_response_bytes,
        "from_start": int(connection.from_start),
        "decrypted": int(connection.decrypted),
        "close_ns": connection.close_ns,
        "over": int(connection.over),
        "tls_unfinished": int(connection.tls_unfinished),
        "refused": int(is_refused(connection)),
        "protocol": [*stamp, connection.protocol],
        "closed_by": [*stamp, connection.closed_by] if connection.closed_by else 0,
    }
    return {name: value for name, value in found.items() if value}


def read(batch: Batch) -> Iterator[Rows]:
    """How many messages each connection had, and what became of them."""
    every = np.arange(len(batch.decoded))
    names = ["decoded_messages", *(f"undecoded_messages:{Status(s).name.lower()}" for s in range(1, len(Status)))]
    exchanges = batch.exchanges
    outcome = words(exchanges.outcome, [f"exchanges:{name.replace('-', '_')}" for name in OUTCOMES])
    for message, counted in (
        (every, constant("messages", len(every))),
        (every, words(batch.decoded.status, names)),
        proxied(batch),
        *possible_drafts(batch),
        (exchanges.first, outcome),
    ):
        yield batch.states("connection", "@connection", message, tally=counted)


def proxied(batch: Batch) -> tuple[Ints, Column]:
    """Messages that came through a proxy, by the host it names; their client is the proxy."""
    hosts = [c.proxied_for.host if c.proxied_for is not None else None for c in batch.exchanges.connections]
    named = {host: place for place, host in enumerate(dict.fromkeys(host for host in hosts if host is not None))}
    codes = np.array([-1 if host is None else named[host] for host in hosts], np.int64)[batch.exchanges.connection]
    message = np.flatnonzero(codes >= 0)
    return message, Column(codes[message], [f"proxied_messages:{host}" for host in named])


def possible_drafts(batch: Batch) -> Iterator[tuple[Ints, Column]]:
    """Messages that decode with a draft that was not selected, by the draft's name."""
    message = np.flatnonzero(batch.decoded.status == Status.POSSIBLY_A_DRAFT)
    names = suggested(batch.decoded.messages.take(message)) if len(message) else []
    for name in dict.fromkeys(filter(None, names)):
        rows = message[[one == name for one in names]]
        yield rows, constant(f"draft_messages:{name}", len(rows))


def unpaired(batch: Batch) -> Iterator[Rows]:
    """Responses that answer nothing, or not the oldest open request."""
    exchanges = batch.exchanges
    orphans = exchanges.response[(exchanges.outcome == ORPHAN) & (exchanges.response >= 0)]
    early = exchanges.response[exchanges.out_of_order & (exchanges.response >= 0)]
    for message, what in ((orphans, "response without request"), (early, "response out of order")):
        yield batch.states("stray", ["@connection", f"={what}"], message)
    unseen = exchanges.response[np.isin(exchanges.outcome, (ORPHAN, REQUEST_UNSEEN)) & (exchanges.response >= 0)]
    when = spelled(second_of, Column(exchanges.ts_ns[unseen] // SECOND_NS)), np.ones(len(unseen), np.int64)
    yield batch.states("request_unseen", ["@connection"], unseen, named=when)


def unanswered(batch: Batch) -> Rows:
    exchanges = batch.exchanges
    rows = np.flatnonzero(np.isin(exchanges.outcome, UNANSWERED) & (exchanges.request >= 0))
    rows = rows[answerable_ns(exchanges, exchanges.request[rows]) < NEVER]
    message = exchanges.request[rows]
    outcome = words(exchanges.outcome[rows], [name.replace("-", "_") for name in OUTCOMES])
    due = due_ns(batch, message)
    late_s = np.clip((batch.close_ns(message) - due) // SECOND_NS, 0, LATEST_S)
    closed = np.isin(exchanges.outcome[rows], (CLOSED_BY_SERVER, CLOSED_BY_CLIENT))
    late, slot_due = Column(np.where(closed, late_s, -1)), Column(np.where(closed, -1, due // SLOT_NS))
    when = spelled(lambda s, slot: f"late:{s}" if s >= 0 else f"{slot}:due", late, slot_due)
    return batch.states("unanswered", ["@host", "@endpoint", "@api", outcome], message, tally=when)


def allowed_ns(batch: Batch, message: Ints) -> Ints:
    """How long each request lets its server take."""
    return request_waits.allowed_ns(batch.decoded, message, lambda api: batch.tables(api, "request"))


def due_ns(batch: Batch, message: Ints) -> Ints:
    """Until when each of these open requests lets its server take."""
    return request_waits.due_ns(batch.exchanges, batch.decoded, message, lambda api: batch.tables(api, "request"))


def answered(batch: Batch) -> Iterator[Claim]:
    """When each server answered, per slot of time; under WAITED by client, from when to when requests had waited."""
    exchanges = batch.exchanges
    rows = np.flatnonzero((exchanges.request >= 0) & (exchanges.response >= 0))
    asked, answer = exchanges.request[rows], exchanges.response[rows]
    sent_ns, ts_ns = answerable_ns(exchanges, asked), exchanges.ts_ns[answer]
    late = np.flatnonzero(ts_ns - sent_ns >= OVERDUE_NS)
    late = late[~np.isin(batch.decoded.messages.key[asked[late]], [key_of(api) for api in ON_OTHERS])]
    late = late[ts_ns[late] - sent_ns[late] - allowed_ns(batch, asked[late]) >= OVERDUE_NS]
    endpoint, slot = batch.endpoint(answer), ts_ns // SLOT_NS
    each, sample = grouped([endpoint, Column(slot)])
    first, last, counts = spans(ts_ns, each, len(sample))
    begins = of_each(batch, answer, each, ts_ns == np.array(first)[each], min)
    ends = of_each(batch, answer, each, ts_ns == np.array(last)[each], max)
    for at, row in enumerate(sample.tolist()):
        outcomes = single(SUCCESS, int(slot[row]), OTHERS, Run(counts[at], first[at], last[at]))
        yield Claim("answered", (endpoint.value(row),), begins[at], ends[at], outcomes=outcomes)
    for row in late.tolist():
        client = batch.names[exchanges.connection[asked[row]]][0]
        run = Run(1, int(sent_ns[row]), int(ts_ns[row]))
        seen, outcomes = batch.sightings.at(int(answer[row])), single(WAITED, int(slot[row]), client, run)
        yield Claim("answered", (endpoint.value(row),), seen, outcomes=outcomes)


def of_each(
    batch: Batch, message: Ints, group: Ints, where: NDArray[np.bool_], best: Callable[..., Sighting]
) -> dict[int, Sighting]:
    """By group the best sighting of these: of several at one time the same, whatever their order."""
    found: dict[int, Sighting] = {}
    for row in np.flatnonzero(where).tolist():
        number, seen = int(group[row]), batch.sightings.at(int(message[row]))
        found[number] = best(found.get(number, seen), seen)
    return found


WITH_IDS = {
    ("LeaderAndIsr", "topic_states"): "request",
    ("UpdateMetadata", "topic_states"): "request",
    ("Metadata", "topics"): "response",
}
"""Where the draft of KIP-516 has a topic's ID as a tag."""
ODD_IDS = ("a topic ID that is not of 16 bytes", "two topic IDs")


def damaged(batch: Batch) -> Iterator[Rows]:
    """Messages of the draft that could be read, but not for the ID of each topic."""
    for (api, path), side in WITH_IDS.items():
        if topics := batch.lines(api, side, path):
            for reason, rows in zip(ODD_IDS, bindings.damaged_ids(topics), strict=True):
                key = [f"={api}", "@version", f"={side}", f"={reason}", "@client_id", "@connection"]
                yield topics.states("malformed", key, rows)


REFUSED = "refused"
"""Among what is malformed: all but the requests that a server read."""
OF_THE_FORM = (-1, 2, 42)
"""Errors by which a server says that it cannot read a request: UNKNOWN_SERVER_ERROR, CORRUPT_MESSAGE,
INVALID_REQUEST.
"""


ANSWERED = "answered"


def answers_of(batch: Batch, message: Ints) -> Ints:
    """Which of these messages are requests with a response."""
    is_request = batch.decoded.messages.side[message] != RESPONSE
    found: Ints = (is_request & (batch.partner(message, RESPONSE) >= 0)).astype(np.int64)
    return found


def refused(batch: Batch, message: Ints) -> Ints:
    """Which malformed messages were not read, as far as is known: responses, requests that no server granted, and of
    those that Kafka's readers take what it closed on, or rejected for its form.
    """
    exchanges, decoded, found = batch.exchanges, batch.decoded, batch.answers_of
    response, exchange = batch.partner(message, RESPONSE), batch.exchange[message]
    fate = np.where(response >= 0, found.fate[response], NO_RESPONSE)
    rejected = (fate == FAILED) & np.isin(found.error[response], OF_THE_FORM)
    closed = (exchange >= 0) & (exchanges.outcome[exchange] == CLOSED_BY_SERVER)
    is_read = np.where(decoded.status[message] == Status.OK, ~rejected & ~closed, fate > FAILED)
    is_refused: Ints = ((decoded.messages.side[message] == RESPONSE) | ~is_read).astype(np.int64)
    return is_refused


def broken(batch: Batch) -> Iterator[Rows]:
    """Messages that could not be read, or only with a tolerance."""
    status, messages = batch.decoded.status, batch.decoded.messages
    for reason, why in (("api", Status.UNKNOWN_API), ("version", Status.UNKNOWN_VERSION)):
        message = np.flatnonzero(status == why)
        version = "@version" if reason == "version" else "-"
        yield batch.states("unknown", f"@api {version} @endpoint ={reason} @host", message)
    bad = np.flatnonzero(batch.decoded.malformed)
    code = np.where(status[bad] == Status.OK, batch.decoded.deviation[bad], status[bad])
    reasons = words(code, [Status(s).name.lower().replace("_", " ") for s in range(len(Status))])
    key = ["@api", "@version", words(messages.side[bad], SIDES), reasons, "@client_id", "@connection"]
    yield batch.states("malformed", key, bad, sums={REFUSED: refused(batch, bad), ANSWERED: answers_of(batch, bad)})
    yield from damaged(batch)
    odd = np.flatnonzero(batch.decoded.tolerance)
    tolerance = words(batch.decoded.tolerance[odd], [one.name.lower().replace("_", "-") for one in Tolerance])
    yield batch.states("tolerated", ["@who", "@api", tolerance], odd)
