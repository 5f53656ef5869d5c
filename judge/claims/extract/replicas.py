"""Claims about replicas: who serves a partition, who follows it, how far a broker has read the metadata log.

Knows: partition errors that deny leadership, followers' fetches and the sessions they belong to, heartbeats,
AlterPartition and AssignReplicasToDirs answers. Does not know who should lead or follow.
Rule: a follower is the replica ID of a fetch, and whether a server granted one is kept beside it, as anybody can send
one; a session counts from a full fetch that was seen.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.columns import Table
from wirecheck.decode.peer import Peer
from wirecheck.decode.wire import RESPONSE
from wirecheck.judge.claims.batch import Batch, value_per
from wirecheck.judge.claims.extract.bindings import numbered, slots
from wirecheck.judge.claims.extract.clients import who
from wirecheck.judge.claims.extract.servers import addresses_of
from wirecheck.judge.claims.reduce import Column, Ints, Rows, constant, grouped, ids, texts

NOT_LEADER, UNKNOWN_LEADER_EPOCH = 6, 75
PARTITION_ANSWERS = (
    ("Produce", "responses", "partition_responses", "name", "index"),
    ("Fetch", "responses", "partitions", "topic", "partition_index"),
    ("ListOffsets", "topics", "partitions", "name", "partition_index"),
    ("OffsetForLeaderEpoch", "topics", "partitions", "topic", "partition"),
)
"""API, topics, partitions, the columns of the name and of the partition's number."""
BY_TOPIC_ID = (
    ("AlterPartition", "topics", "topics.partitions"),
    ("AssignReplicasToDirs", "directories.topics", "directories.topics.partitions"),
)


def claims(batch: Batch) -> Iterator[Rows]:
    for api, *columns in PARTITION_ANSWERS:
        tables = batch.tables(api, "response")
        if tables:
            yield from served(batch, tables, api, columns)
    yield from followed(batch)
    yield from heartbeats(batch)
    yield from registrations(batch)
    for api, path, partitions in BY_TOPIC_ID:
        tables = batch.tables(api, "response")
        if tables:
            yield replica_answers(batch, api, tables[path], tables[partitions])


def served(batch: Batch, tables: dict[str, Table], api: str, columns: list[str]) -> Iterator[Rows]:
    """Partitions a broker serves, and those it says it does not lead."""
    path, inner, name, number = columns
    topics, partitions = tables[path], tables[f"{path}.{inner}"]
    message, parent = partitions.message, partitions.parent
    error = partitions["error_code"]
    by_id = "topic_id" in topics.names
    topic_id = numbered(topics) if by_id else constant(None, len(topics))
    key = [
        texts(topics[name]).take(parent),
        topic_id.take(parent),
        Column(partitions[number]),
        batch.endpoint(message),
    ]
    latest = {"latest": batch.exchanges.ts_ns[message]}
    yield Rows("serves", key, message, peak=latest).where(error == 0)
    denied = np.isin(error, (NOT_LEADER, UNKNOWN_LEADER_EPOCH))
    more = [*key, constant(api, len(partitions)), Column(error)]
    yield Rows("denies", more, message, slots(batch, message)).where(denied)


def followed(batch: Batch) -> Iterator[Rows]:
    """Which partitions a follower asks for, and since when its session is known."""
    tables = batch.tables("Fetch", "request")
    if not tables:
        return
    header, topics, partitions = tables[""], tables["topics"], tables["topics.partitions"]
    replica = np.maximum(header["replica_id"], header["replica_state.replica_id"])
    follows = replica >= 0
    message = header.message
    ts_ns = batch.exchanges.ts_ns
    full = header["session_epoch"] <= 0
    trusted = {"granted": granted(batch, message).astype(np.int64)}
    peak = {"full": np.where(full, ts_ns[message], -1), **trusted}
    session = [Column(replica), batch.endpoint(message), batch.client_id(message), batch.host(message)]
    yield Rows("follower", session, message, peak=peak).where(follows)
    sent = [Column(replica), batch.host(message), port(batch.endpoint(message))]
    yield Rows("fetch_versions", sent, message, versions(batch, message), trusted).where(follows)
    parent = topics.parent[partitions.parent]
    asked = [
        ids(topics["topic_id"]).take(partitions.parent),
        Column(partitions["partition"]),
        Column(replica[parent]),
        batch.endpoint(partitions.message),
        batch.client_id(partitions.message),
        batch.host(partitions.message),
    ]
    by_id = topics.present("topic_id")[partitions.parent] & follows[parent]
    yield Rows("follows", asked, partitions.message).where(by_id)


def granted(batch: Batch, message: Ints) -> NDArray[np.bool_]:
    """Whether a Fetch was answered with at least one partition without an error. Only a broker may fetch with a replica
    ID: of a client every partition is refused, and an answer without partitions proves nothing.
    """
    served_any = np.zeros(len(batch.decoded), np.bool_)
    if answers := batch.tables("Fetch", "response"):
        partitions = answers["responses.partitions"]
        served_any[partitions.message[partitions["error_code"] == 0]] = True
    answer = batch.partner(message, RESPONSE)
    found: NDArray[np.bool_] = (answer >= 0) & served_any[answer]
    return found


def port(endpoint: Column) -> Column:
    """Of endpoints; listeners of one name have it in common, and two clusters on the same hosts have not."""
    ports = [Peer.of(one).port for one in endpoint.values or ()]
    return Column(np.array(ports, np.int64)[endpoint.codes])


def versions(batch: Batch, message: Ints) -> Column:
    """slot:version of each fetch."""
    slot, version = batch.slot(message), batch.version(message)
    group, sample = grouped([Column(slot), Column(version)])
    _, codes = np.unique(group, return_inverse=True)
    names = [f"{slot[row]}:{version[row]}" for row in sample.tolist()]
    return Column(codes.astype(np.int64).ravel(), names)


def heartbeats(batch: Batch) -> Iterator[Rows]:
    """How far a broker says it has read the metadata log, by 10 s; a fenced broker may lag."""
    tables, answers = batch.tables("BrokerHeartbeat", "request"), batch.tables("BrokerHeartbeat", "response")
    if not tables or not answers:
        return
    header = tables[""]
    message = header.message
    partner = batch.partner(message, RESPONSE)
    error = value_per(partner, answers[""], "error_code", absent=-1)
    fenced = value_per(partner, answers[""], "is_fenced", absent=1)
    epochs = [Column(header["broker_id"]), Column(header["broker_epoch"]), batch.endpoint(message), batch.host(message)]
    yield Rows("broker_epoch", [*epochs, Column(error)], message).where(error >= 0)
    good = np.flatnonzero((error == 0) & (fenced == 0))
    slot = batch.slot(message)
    for number in np.unique(slot[good]).tolist():
        rows = good[slot[good] == number]
        key = [Column(header["broker_id"][rows]), batch.endpoint(message[rows])]
        yield Rows("heartbeat", key, message[rows], peak={f"at:{number}": header["current_metadata_offset"][rows]})


def registrations(batch: Batch) -> Iterator[Rows]:
    """Which processes register under which node ID, at which address, and the epoch that each gets."""
    tables, answers = batch.tables("BrokerRegistration", "request"), batch.tables("BrokerRegistration", "response")
    if not tables or not answers:
        return
    header, listeners = tables[""], tables["listeners"]
    message, parent = listeners.message, listeners.parent
    partner = batch.partner(message, RESPONSE)
    error = value_per(partner, answers[""], "error_code", absent=-1)
    epoch = value_per(partner, answers[""], "broker_epoch", absent=-1)
    incarnation = ids(header["incarnation_id"]).take(parent)
    where = [batch.endpoint(message), batch.host(message), addresses_of(listeners)]
    key = [Column(header["broker_id"][parent]), incarnation, *where, Column(error)]
    yield Rows("registration", key, message, peak={"epoch": epoch}).where(error >= 0)


def replica_answers(batch: Batch, api: str, topics: Table, partitions: Table) -> Rows:
    """How the controller answers a broker about its replicas, over time."""
    message, parent = partitions.message, partitions.parent
    client_id, host, endpoint = who(batch, message)
    key = [
        ids(topics["topic_id"]).take(parent),
        Column(partitions["partition_index"]),
        constant(api, len(partitions)),
        client_id,
        endpoint,
        host,
    ]
    rows = Rows("replica_answer", key, message, error=partitions["error_code"])
    return rows.where(topics.present("topic_id")[parent])
