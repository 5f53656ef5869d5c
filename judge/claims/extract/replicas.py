"""Claims about replicas: who serves a partition, who follows it, how far a broker has read the metadata log.

Rule: a fetch with a replica ID is a follower's. Any host can send one, so the claim also has whether a server granted
it. A fetch session counts from a captured full fetch on.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.peer import Peer
from wirecheck.decode.wire import RESPONSE
from wirecheck.judge.claims.batch import Batch, Bools, Lines
from wirecheck.judge.claims.claim import ALONE, AT
from wirecheck.judge.claims.extract.servers import addresses_of
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.claims.reduce import Column, Ints, Rows, spelled

NOT_LEADER, UNKNOWN_LEADER_EPOCH = 6, 75
ALL, LEADER = -1, 1
"""Values of acks: every replica in sync has the records, or the leader alone."""
LATEST, CLIENT = -1, -1
"""The timestamp that asks for the end of a log, and the replica ID of a client."""
PARTITION_ANSWERS = (
    ("Produce", "responses.partition_responses", "name", "index"),
    ("Fetch", "responses.partitions", "topic", "partition_index"),
    ("ListOffsets", "topics.partitions", "name", "partition_index"),
    ("OffsetForLeaderEpoch", "topics.partitions", "topic", "partition"),
)
"""API, table of partitions, the columns of the topic's name and of the partition's number."""
BY_TOPIC_ID = (
    ("AlterPartition", "topics.partitions"),
    ("AssignReplicasToDirs", "directories.topics.partitions"),
)
"""How the controller answers a broker about its replicas."""
REPLICA = ("replica_id", "replica_state.replica_id")
"""Fields of a Fetch, to version 14 and later, with the broker that sends it; a client has -1."""
NEVER_NS = -(1 << 62)
ACTS = tuple((api, "") for api in ("BrokerHeartbeat", "AlterPartition", "AssignReplicasToDirs"))


def claims(batch: Batch) -> Iterator[Rows]:
    for api, partitions, name, number in batch.each("response", PARTITION_ANSWERS):
        error = partitions["error_code"]
        named = partitions.column(name).only(partitions.present(name))
        key = [named, "topic_id" if partitions.has("topic_id") else "-", number, "@endpoint"]
        latest, reached = {"latest": partitions.ts_ns}, log_ends(partitions, api)
        yield partitions.states("serves", key, error == 0, peak=latest, named=reached)
        denied = np.isin(error, (NOT_LEADER, UNKNOWN_LEADER_EPOCH))
        yield partitions.states("denies", [*key, f"={api}", "error_code"], denied, tally=partitions.slots)
    if (partitions := batch.lines("AlterPartition", "response", "topics.partitions")) and partitions.has("topic_id"):
        yield led(partitions)
    yield from followed(batch)
    for _, header in batch.each("request", ACTS):
        yield acts(header)
    if header := batch.lines("BrokerHeartbeat", "request"):
        yield from heartbeats(header)
    if listeners := batch.lines("BrokerRegistration", "request", "listeners"):
        yield registrations(listeners)
    for api, partitions in batch.each("response", BY_TOPIC_ID):
        who = f"topic_id partition_index ={api} @client_id @endpoint @host"
        yield partitions.states("replica_answer", who, partitions.present("topic_id"), error=partitions["error_code"])


def log_ends(partitions: Lines, api: str) -> tuple[Column, Ints]:
    """How far the log of each partition reached, by the slot of the request: the high watermark, and of a write the
    base offset and one more. What acks=1 granted has names of its own: it need not be committed. An answer that came a
    slot later or more is left out.
    """
    request, ts_ns = partitions.partner, partitions.batch.exchanges.ts_ns
    sent_ns = np.where(request >= 0, ts_ns[request], 0)
    known = (partitions["error_code"] == 0) & (partitions.ts_ns - sent_ns < SLOT_NS)
    acks = np.full(len(partitions), ALL)
    if api == "Fetch":
        end = partitions["high_watermark"]
    elif api == "Produce":
        acks, end = partitions.other("acks", absent=0), partitions["base_offset"] + 1
    elif api == "ListOffsets":
        known, end = known & asks_for_the_end(partitions), partitions["offset"]
    else:
        known, end = known & False, acks
    which = np.select([known & (acks == ALL), known & (acks == LEADER)], [0, 1], 2)
    names = spelled(f"{AT}{{}}{{}}".format, Column(sent_ns // SLOT_NS), Column(which, ["", ALONE, ""]))
    return names.only((which < 2) & (end > 0)), end


def asks_for_the_end(partitions: Lines) -> Bools:
    """Which answers of ListOffsets are to a client that asked for nothing but the end of logs, whatever transactions
    are open.
    """
    asked, batch = partitions.batch.lines("ListOffsets", "request", "topics.partitions"), partitions.batch
    if not asked:
        return np.zeros(len(partitions), np.bool_)
    for_end = np.zeros(len(batch.decoded), np.bool_)
    for_end[asked.message] = True
    for_end[asked.message[asked["timestamp"] != LATEST]] = False
    from_client = (partitions.other("replica_id", absent=0) == CLIENT) & (
        partitions.other("isolation_level", absent=1) == 0
    )
    found: Bools = from_client & for_end[partitions.partner]
    return found


def led(partitions: Lines) -> Rows:
    """Who leads a partition, as the controller answers AlterPartition. The hints beside an error of Fetch, Produce and
    ShareFetch (KIP-951) are no statement about a topic ID: brokers look them up by name, and to who asks for an
    ID that ended they name the leader of the topic that has the name now (Kafka 4.4.0).
    """
    where = partitions.present("topic_id") & (partitions["error_code"] == 0)
    where &= (partitions["leader_id"] >= 0) & (partitions["leader_epoch"] >= 0)
    return partitions.states("led", "topic_id partition_index leader_epoch leader_id @host @endpoint", where)


def followed(batch: Batch) -> Iterator[Rows]:
    """Which partitions a follower asks for, and since when its session is known."""
    header, partitions = batch.lines("Fetch", "request"), batch.lines("Fetch", "request", "topics.partitions")
    if not header or not partitions:
        return
    replica, follows = replicas(header)
    trusted = {"granted": granted(batch, header.message).astype(np.int64)}
    peak = {"full": np.where(header["session_epoch"] <= 0, header.ts_ns, -1), **trusted}
    yield header.states("follower", [replica, "@endpoint", "@client_id", "@host"], follows, peak=peak)
    sent = spelled("{}:{}".format, Column(batch.slot(header.message)), Column(batch.version(header.message)))
    key = [replica, "@host", port(header.column("@endpoint"))]
    shipped = follows & ~batch.drafted(header.message)  # versions of a draft are of no release
    yield header.states("fetch_versions", key, shipped, tally=sent, peak=trusted)
    replica, follows = replicas(partitions)
    asked = ["topic_id", "partition", replica, "@endpoint", "@client_id", "@host"]
    offset, ts_ns = partitions["fetch_offset"], partitions.ts_ns
    copied = {
        "begins": np.where(offset == 0, ts_ns, NEVER_NS),  # the last time
        "goes_on": np.where(offset > 0, -ts_ns, NEVER_NS),  # the first time
    }
    yield partitions.states("follows", asked, partitions.present("topic_id") & follows, peak=copied)


def replicas(lines: Lines) -> tuple[Column, Bools]:
    """Whose fetch it is; a client's has no replica ID."""
    replica = np.maximum(lines["replica_id"], lines["replica_state.replica_id"])
    return Column(replica), replica >= 0


def granted(batch: Batch, message: Ints) -> Bools:
    """Whether a Fetch was answered with at least one partition without an error. Only a broker may fetch with a replica
    ID: of a client every partition is refused, and an answer without partitions proves nothing.
    """
    served_any = np.zeros(len(batch.decoded), np.bool_)
    if partitions := batch.lines("Fetch", "response", "responses.partitions"):
        served_any[partitions.message[partitions["error_code"] == 0]] = True
    answer = batch.partner(message, RESPONSE)
    found: Bools = (answer >= 0) & served_any[answer]
    return found


def port(endpoint: Column) -> Column:
    """Of endpoints; listeners of one name have it in common, and two clusters on the same hosts have not."""
    ports = [Peer.of(one).port for one in endpoint.values or ()]
    return Column(np.array(ports, np.int64)[endpoint.codes])


def acts(header: Lines) -> Rows:
    """Which broker epoch a process acts with; two of one node ID assign directories by turns."""
    error = header.other("error_code", absent=-1)
    key = ["broker_id", "broker_epoch", "@endpoint", "@host", Column(error)]
    return header.states("broker_epoch", key, error >= 0, tally=header.slots)


def heartbeats(header: Lines) -> Iterator[Rows]:
    """Offline log directories (KIP-858), and how far a broker reports to have read the metadata log, per 10 s. A fenced
    broker may lag.
    """
    error, offline = header.other("error_code", absent=-1), header.size("offline_log_dirs")
    yield header.states("offline_dirs", ["broker_id", "@endpoint", Column(offline)], (offline > 0) & (error == 0))
    good = (error == 0) & (header.other("is_fenced", absent=1) == 0)
    named = spelled(f"{AT}{{}}".format, Column(header.batch.slot(header.message))), header["current_metadata_offset"]
    yield header.states("heartbeat", "broker_id @endpoint", good, named=named)


def registrations(listeners: Lines) -> Rows:
    """Which processes register under which node ID, at which address, and the epoch that each gets."""
    error, epoch = listeners.other("error_code", absent=-1), listeners.other("broker_epoch", absent=-1)
    where = ["@endpoint", "@host", addresses_of(listeners.table), Column(error)]
    return listeners.states("registration", ["broker_id", "incarnation_id", *where], error >= 0, peak={"epoch": epoch})


def to_clients(answered: Lines) -> Bools:
    """Which partitions of responses to Fetch are for clients, and not for replicas."""
    found: Bools = np.maximum(*(answered.other(field, absent=-1) for field in REPLICA)) < 0
    return found
