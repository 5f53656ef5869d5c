"""Claims about servers: their cluster, their broker, the versions that they advertise.

Rule: a cluster ID counts if a server states it, or if it answered a request with that ID without error and checks the
ID. For Fetch only servers of the metadata log check it (KafkaRaftClient); brokers ignore it (KafkaApis).
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from wirecheck.decode.api_names import key_of
from wirecheck.decode.columns import Table
from wirecheck.decode.log.metadata_log import TOPIC_NAME
from wirecheck.decode.log.metadata_tables import LogTable
from wirecheck.decode.message import Status
from wirecheck.decode.peer import Peer
from wirecheck.decode.releases import digest, written
from wirecheck.decode.wire import REQUEST, RESPONSE
from wirecheck.judge.claims.batch import Batch, Bools, Lines, among
from wirecheck.judge.claims.claim import LEAST, METADATA_LOG, MOST_MEMBERS, RESERVED, ZERO, Claim, Key, least
from wirecheck.judge.claims.extract import named_ids
from wirecheck.judge.claims.extract.clients import closed_on
from wirecheck.judge.claims.extract.control import accepted
from wirecheck.judge.claims.kinds import UNANSWERED
from wirecheck.judge.claims.members import hashed, named
from wirecheck.judge.claims.outcomes import OTHERS
from wirecheck.judge.claims.reduce import Column, Ints, Rows, constant, grouped, spelled, texts

STATED = (("Metadata", "", "metadata"), ("DescribeCluster", "", "describe-cluster"))
RAFT = ("Fetch", "FetchSnapshot", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch")
"""APIs whose responses name the quorum's leader in NodeEndpoints."""
SENT = tuple((api, "") for api in (*RAFT, "BrokerRegistration"))
"""Requests that carry the sender's ClusterId."""
LISTS = (("Metadata", "brokers", "node_id"), ("DescribeCluster", "brokers", "broker_id"))
CONTROLLERS = 2
"""As a kind of endpoints in DescribeCluster."""
REGISTRATIONS = (("RegisterControllerRecord", "controller_id"), ("RegisterBrokerRecord", "broker_id"))
Endpoint = Callable[[Ints], Column]
"""From messages to the endpoints that made the statements."""


def claims(batch: Batch) -> Iterator[Rows]:
    yield from cluster_ids(batch)
    yield from addresses(batch)
    yield from registrations(batch)
    yield from advertised(batch)
    yield from features(batch)
    yield from versions(batch)


MOST_VERSIONS = 64
"""No API has as many; a client may send any number."""
NEVER_OF_FEATURES = (
    "Produce", "Fetch", "Metadata", "OffsetFetch", "LeaderAndIsr", "UpdateMetadata", "StopReplica",
    "OffsetCommit", "ListOffsets", "FindCoordinator",
)  # fmt: skip
"""APIs that Kafka answers with UNSUPPORTED_VERSION (35) for their version alone, but for the requests of OF_FEATURES.
Others have it where a feature is off, as of groups.
"""
OF_FEATURES: tuple[tuple[str, str, Callable[[Lines], Bools]], ...] = (
    ("OffsetCommit", "", lambda header: header.size("group_instance_id") > 0),
    ("ListOffsets", "topics.partitions", lambda partitions: partitions["timestamp"] < EARLIEST_TIMESTAMP),
    ("FindCoordinator", "", lambda header: header["key_type"] > OF_TRANSACTIONS),
)
"""Requests of these that need more than their version: static members (KIP-345), timestamps since KIP-734, and
coordinators of share groups (KIP-932), as KafkaApis rejects them.
"""
EARLIEST_TIMESTAMP = -2
"""The lowest that ListOffsets had from the start; lower ones came one by one."""
OF_TRANSACTIONS = 1
"""The higher of the two types of coordinators that FindCoordinator had from the start."""
FIRST_VERSIONS = {"Fetch": 4, "OffsetCommit": 1, "OffsetFetch": 1}
"""From these on they need nothing besides: a broker converts records for earlier versions of Fetch, and offsets of
version 0 are ZooKeeper's, which a broker of KRaft has not (MetadataSupport.requireZkOrThrow).
"""


def versions(batch: Batch) -> Iterator[Rows]:
    """Which versions a server was sent, which ones it answered, when last, and which ones it rejected. ApiVersions is
    answered in every version; that a version is not supported is no answer.
    """
    messages = batch.decoded.messages
    good = (messages.side == RESPONSE) & (batch.decoded.status == Status.OK) & (messages.key != key_of("ApiVersions"))
    good[batch.unsupported] = False
    answered = np.flatnonzero(good)
    yield from by_version(batch, "accepts", answered, batch.exchanges.ts_ns[answered])
    closed, _ = closed_on(batch)
    for kind, every in (
        ("receives", np.flatnonzero(messages.side == REQUEST)),
        ("rejects", batch.unsupported),
        ("rejects", closed),
    ):
        rows = every[(batch.version(every) >= 0) & (batch.version(every) < MOST_VERSIONS)]
        yield from by_version(batch, kind, rows, np.ones(len(rows), np.int64))
    yield batch.states("unsupported", "@host @endpoint @api @version", for_version_alone(batch))


def for_version_alone(batch: Batch) -> Ints:
    """Requests that were answered with UNSUPPORTED_VERSION (35) because of nothing but their version."""
    others = [lines.partner[asks(lines)] for _, lines, asks in batch.each("request", OF_FEATURES)]
    every = np.setdiff1d(batch.unsupported, np.concatenate([np.empty(0, np.int64), *others]))
    keys, version = batch.decoded.messages.key[every], batch.version(every)
    good = np.isin(keys, list(map(key_of, NEVER_OF_FEATURES))) & (version >= 0) & (version < MOST_VERSIONS)
    for api, first in FIRST_VERSIONS.items():
        good &= (keys != key_of(api)) | (version >= first)
    found: Ints = every[good]
    return found


def by_version(batch: Batch, kind: str, messages: Ints, values: Ints) -> Iterator[Rows]:
    """A claim per server, with the greatest value of each API and version."""
    api, version = batch.api(messages), batch.version(messages)
    group, sample = grouped([api, Column(version)])
    for number, row in enumerate(sample.tolist()):
        here = group == number
        peak = {f"{api.value(row)}:{version[row]}": values[here]}
        yield batch.states(kind, "@endpoint", messages[here], peak=peak)


def cluster_ids(batch: Batch) -> Iterator[Rows]:
    for _, header, how in batch.each("response", STATED):
        more: dict[str, Any] = {"error": np.zeros(len(header), np.int64), "apart": constant(OTHERS, len(header))}
        more["named"] = clients_of(batch, header.message), header.ts_ns
        yield header.states("cluster_id", f"@endpoint cluster_id ={how}", header.size("cluster_id") > 0, **more)
        answered = np.isin(header.message, answering(batch))
        withheld = header.present("cluster_id") & (header.size("cluster_id") <= 0)
        yield header.states("no_cluster_id", "@endpoint", answered & withheld)
    for api, header in batch.each("request", SENT):
        if header.has("cluster_id"):
            good = (header.size("cluster_id") > 0) & (header.other("error_code", absent=-1) == 0)
            if api == "Fetch":
                answers = batch.lines("Fetch", "response", "responses.partitions")
                good &= np.isin(header.partner, answers.message[of_log(answers)] if answers else ())
            yield header.states("cluster_id", "@endpoint cluster_id =accepted", good)


def clients_of(batch: Batch, messages: Ints) -> Column:
    """Who asked, as members of a set."""
    clients = spelled("{}|{}".format, batch.client_id(messages), batch.host(messages))
    values = list(clients.values or ())
    return Column(clients.codes, named(hashed(Column(np.arange(len(values)), values))))


def answering(batch: Batch) -> Ints:
    """Answers with brokers, or with a topic without an error: what is refused has no ClusterId either."""
    found = [brokers.message for _, brokers, _ in batch.each("response", LISTS)]
    if topics := batch.lines("Metadata", "response", "topics"):
        found.append(topics.message[topics["error_code"] == 0])
    return np.concatenate([np.zeros(0, np.int64), *found])


def of_log(partitions: Lines) -> Bools:
    """Which partitions of Fetch answers are the metadata log's, and have no error."""
    named = among(partitions.column("topic"), {TOPIC_NAME}) | among(partitions.column("topic_id"), {METADATA_LOG})
    found: Bools = named & (partitions["error_code"] == 0)
    return found


def addresses(batch: Batch) -> Iterator[Rows]:
    for _, brokers, broker in batch.each("response", LISTS):
        yield address_rows(brokers, broker, ~of_controllers(brokers))
    if endpoints := batch.lines("UpdateMetadata", "request", "live_brokers.endpoints"):
        yield from accepted(batch, "UpdateMetadata", [address_rows(endpoints, "id")])
    if leaders := batch.lines("LeaderAndIsr", "request", "live_leaders"):
        yield from accepted(batch, "LeaderAndIsr", [address_rows(leaders, "broker_id", host="host_name")])
    if listeners := batch.lines("BrokerRegistration", "request", "listeners"):
        yield address_rows(listeners, "broker_id", listeners.other("error_code", absent=-1) == 0)


def of_controllers(nodes: Lines) -> Bools:
    """Which nodes of DescribeCluster answers are controllers: a controller describes its quorum (KIP-919)."""
    if not nodes.has("endpoint_type"):
        return np.zeros(len(nodes), np.bool_)
    found: Bools = nodes["endpoint_type"] == CONTROLLERS
    return found


def address_rows(lines: Lines, broker: str, good: Bools | bool = True, *, host: str = "host") -> Rows:
    key = ["@endpoint", addresses_of(lines.table, host), broker]
    return lines.states("address", key, (lines.size(host) > 0) & good)


def registrations(batch: Batch) -> Iterator[Rows]:
    """Nodes as the quorum's answers have them, controllers too, which no broker list names (KIP-595, KIP-853)."""
    for api in RAFT:
        named = batch.tables(api, "response").get("node_endpoints")
        if named is not None:
            yield registered(batch.endpoint, named, named["node_id"], named.message)
    if nodes := batch.lines("DescribeCluster", "response", "brokers"):
        yield registered(batch.endpoint, nodes.table, nodes["broker_id"], nodes.message, of_controllers(nodes))
    if listeners := batch.lines("DescribeQuorum", "response", "nodes.listeners"):
        yield registered(batch.endpoint, listeners.table, listeners["node_id"], listeners.message)


def registered_in_log(found: dict[str, LogTable], message: Ints, endpoint: Endpoint) -> Iterator[Rows]:
    """The same out of records of the metadata log (VotersRecord, KIP-853; RegisterControllerRecord, KIP-919); `message`
    of each of its entries.
    """
    for record, node in REGISTRATIONS:
        if record in found:
            log, listeners = found[record], found[record].inner("end_points")
            rows = listeners.parent
            yield registered(endpoint, listeners, log[node][rows], message[log.entry[rows]])
    if "VotersRecord" in found:
        log = found["VotersRecord"]
        voters, listeners = log.inner("voters"), log.inner("voters.endpoints")
        rows = voters.parent[listeners.parent]
        yield registered(endpoint, listeners, voters["voter_id"][listeners.parent], message[log.entry[rows]])


def registered(endpoint: Endpoint, listeners: Table, node: Ints, message: Ints, good: Bools | bool = True) -> Rows:
    key = [endpoint(message), addresses_of(listeners), Column(node)]
    return Rows("registered", key, message).where((listeners["host"].length > 0) & good)


def addresses_of(table: Table, host: str = "host") -> Column:
    """host:port of each row."""
    return spelled(lambda name, port: str(Peer(str(name), port)), texts(table[host]), Column(table["port"]))


def advertised(batch: Batch) -> Iterator[Rows]:
    """Version ranges, one text per answer: few different ones, however many answers."""
    header = batch.lines("ApiVersions", "response")
    if header is None:
        return
    keys = batch.tables("ApiVersions", "response")["api_keys"]
    order = np.argsort(keys.parent, kind="stable")
    cuts = np.searchsorted(keys.parent[order], np.arange(len(header) + 1))
    names: dict[str, int] = {}
    codes, again = np.empty(len(header), np.int64), np.full(len(header), -1, np.int64)
    for row in range(len(header)):
        part = order[cuts[row] : cuts[row + 1]]
        low, high = keys["min_version"][part].tolist(), keys["max_version"][part].tolist()
        every = [*zip(keys["api_key"][part].tolist(), zip(low, high, strict=True), strict=True)]
        codes[row] = names.setdefault(written(ranges := dict(every)), len(names))
        if len(ranges) < len(every) and (first := dict(reversed(every))) != ranges:
            again[row] = names.setdefault(written(first), len(names))  # two ranges of one API: both were said
    good = header["error_code"] == 0
    yield header.states("advertised", ["@endpoint", Column(codes, list(names))], good)
    if (twice := good & (again >= 0)).any():
        yield header.states("advertised", ["@endpoint", Column(again, list(names))], twice)
    digests = Column(codes, [digest(text) for text in names])
    yield header.states("connection_ranges", ["@connection", digests], good)


def features(batch: Batch) -> Iterator[Rows]:
    """Levels of features that servers have finalized, and those that they support (KIP-584)."""
    if levels := batch.lines("ApiVersions", "response", "finalized_features"):
        key = "@endpoint name max_version_level finalized_features_epoch"
        yield levels.states("finalized_feature", key, levels["/error_code"] == 0)
    if ranges := batch.lines("ApiVersions", "response", "supported_features"):
        good = ranges["/error_code"] == 0
        yield ranges.states("supported_feature", "@endpoint name min_version max_version", good)


Member = tuple[str, Key, Claim, int, str, Any]
"""Kind and key of a set, the claim that a member of it follows from, how often, the member and its value."""


def derived(claims: list[Claim]) -> Iterator[Claim]:
    """Claims derived from others, per server: sets, of which the least members are kept."""
    stating = [claim for claim in claims if claim.kind.removeprefix(UNANSWERED) in CARRYING]
    bindings = [claim for claim in stating if claim.kind == "binding"]
    found: dict[tuple[str, Key], Claim] = {}
    for kind, key, claim, count, member, value in chain(carried(stating), names(bindings), idless(bindings)):
        total = found.get((kind, key))
        if total is None:
            total = found[kind, key] = Claim(kind, key, claim.first, claim.last, count=0)
        elif claim.first < total.first:
            total.first = claim.first
        total.last = max(total.last, claim.last)
        total.count += count
        known = total.peak.get(member)
        if known is None or known < value:
            total.peak[member] = value
            if len(total.peak) >= MANY_MEMBERS:
                total.peak = least(total.peak)
    for total in found.values():
        total.peak = least(total.peak)
        yield total
    for claim in claims:
        if claim.kind == "deletion" and claim["source"] != "metadata-log":
            yield Claim("deletions", (claim.server(),), claim.first, claim.last, tally=dict(claim.tally))


MANY_MEMBERS = 8 * MOST_MEMBERS
"""A set of a large cluster is cut to its least members whenever it has so many."""
CARRYING = frozenset({"binding", "use"})
RESERVED_IDS = tuple(RESERVED)


def carried(stating: Iterable[Claim]) -> Iterator[Member]:
    """The topic IDs that endpoints used, and since when; without those that appear only in rejected requests of
    clients.
    """
    for claim in stating:
        topic_id = claim["topic_id"]
        if topic_id is None or topic_id.startswith(RESERVED_IDS) or (claim.outcomes and not claim.succeeded):
            continue
        waits = claim.kind.startswith(UNANSWERED)
        key = (claim.server(), claim["host"]) if waits else (claim.server(),)
        kind = f"{UNANSWERED}carries" if waits else "carries"
        yield kind, key, claim, claim.count, f"{LEAST}{topic_id}", -claim.first.ts_ns


def names(bindings: Iterable[Claim]) -> Iterator[Member]:
    """The topic IDs that endpoints report for names, without those that they merely repeat."""
    for claim in bindings:
        name, topic_id = claim["name"], claim["topic_id"]
        if name is None or topic_id is None or topic_id in RESERVED or claim["source"] in named_ids.SOURCES:
            continue
        yield "names", (claim.server(),), claim, 0, f"{LEAST}{hash_of(name)}:{topic_id}", 1


@lru_cache(maxsize=1 << 16)
def hash_of(name: str) -> str:
    return hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def idless(bindings: Iterable[Claim]) -> Iterator[Member]:
    """Topics that are named without an id where the version carries one."""
    for claim in bindings:
        if claim["topic_id"] == ZERO and claim["name"] is not None:
            (name,) = named(hashed(Column(np.zeros(1, np.int64), [claim["name"]])))
            yield "idless", (claim.server(),), claim, claim.count, name, [*claim.last, claim["name"]]
