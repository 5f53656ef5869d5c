"""What was seen, as values: how much of the traffic was read, and the topics, clients and clusters in it.

Findings rest on it; nothing here is wrong or right.

Rule: as in `verdict.py`, whose values these stand beside.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from wirecheck.client_ids import is_of_node
from wirecheck.document import SPREAD, left_out, of_row
from wirecheck.judge.activity_states import ELSEWHERE, IN_PART, NOT_CAPTURED, STALLED
from wirecheck.wording import NS_PER_S, and_list, plural, rfc3339

TopicState = Literal["current", "replaced", "deleted", "former", "unresolved"]
Speaker = Literal["broker", "controller", "metadata-log", "client"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """How much was read, of a connection, of an endpoint, or of everything."""

    frames: int = 0
    """TCP segments."""
    messages: int = 0
    """Kafka requests and responses."""
    decoded_messages: int = 0
    """Those of which every byte is known."""
    unseen_bytes: int = 0
    """Bytes that were sent and not captured."""
    encrypted_connections: int = 0
    """Connections that stayed encrypted."""
    undecoded_messages: int = 0
    """Messages that could not be decoded."""

    @property
    def share(self) -> str:
        """Decoded share, cut and not rounded: 100 % means all messages."""
        return f"{self.decoded_messages * 1000 // self.messages / 10:g} %" if self.messages else "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRead(Read):
    """How much of one connection was read."""

    connection: str
    """`ip:port>ip:port`, the client first."""
    protocol: str = ""
    """kafka, tls, other, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRead(Read):
    """How much of the connections to one server was read."""

    endpoint: str
    """`ip:port`."""
    connections: int
    """How many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage(Read):
    """How much of the traffic was captured and read: what a verdict rests on."""

    connections: int = 0
    """TCP connections."""
    exchanges: int = 0
    """Requests with their responses, or with one of the two."""
    unlisted_connections: int = left_out(0)
    """Connections without a response that are too many to be listed one by one."""
    decrypted_connections: int = left_out(0)
    """Connections that a key log decrypted."""
    dropped_frames: int = left_out(0)
    """Packets that were lost while capturing."""
    quarantined_files: int = left_out(0)
    """Files of frames that could not be read."""
    missing_files: int = left_out(0)
    """Files of frames that an agent wrote and that did not arrive."""
    unassigned_endpoints: int = left_out(0)
    """Endpoints whose cluster is not known: nothing is compared with them. Named under details, the first 100."""
    unassigned_topics: int = left_out(0)
    """Topics whose cluster is not known: nothing is compared with them. Named under details, the first 100."""
    unassigned_clients: int = left_out(0)
    """Clients whose cluster is not known: nothing is compared with them. Named under details, the first 100."""
    seen_percent: float = 0.0
    """The least of: messages that were decoded, bytes that were captured, connections that are not encrypted."""
    measures: Mapping[str, int] = field(default_factory=dict, metadata=SPREAD)
    """Other measures by their names, if there is something to count."""
    input_errors: tuple[str, ...] = ()
    """What could not be read, a line each."""
    details: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By measure its parts: reasons, protocols, names."""

    def parts(self, measure: str) -> Mapping[str, int]:
        """Of a measure by reason, protocol or name; empty where it has none."""
        return self.details.get(measure, {})

    @property
    def has_kafka(self) -> bool:
        """Whether there was Kafka traffic, or what may have been."""
        return bool(self.messages or self.encrypted_connections)

    @property
    def is_whole(self) -> bool:
        """Whether all of the input could be read."""
        return not (self.input_errors or self.quarantined_files or self.missing_files)


class Lasting:
    """What was seen from a first time to a last one."""

    __slots__ = ()
    first_ns: int
    last_ns: int

    @property
    def first_seen(self) -> str:
        """RFC 3339, UTC."""
        return rfc3339(self.first_ns)

    @property
    def last_seen(self) -> str:
        """RFC 3339, UTC."""
        return rfc3339(self.last_ns)

    @property
    def lasted_s(self) -> float:
        return (self.last_ns - self.first_ns) / NS_PER_S


@dataclass(frozen=True, slots=True)
class Cluster(Lasting):
    """A cluster and its endpoints."""

    label: str
    """The agent's cluster label."""
    cluster_id: str | None
    """None until a server reports it, and for endpoints that match no known cluster."""
    endpoints: tuple[str, ...]
    """Servers, `ip:port`."""
    brokers: tuple[int, ...]
    """Known broker IDs."""
    first_ns: int
    """When it was seen first."""
    last_ns: int
    """When it was seen last."""
    uncaptured_brokers: int = 0
    """So many of the brokers, or more, answer at no endpoint of the capture."""


@dataclass(frozen=True, slots=True)
class Topic(Lasting):
    """One topic ID under one name."""

    cluster: str | None
    """Cluster ID, or the label given; None where the cluster is unknown."""
    name: str | None
    """None where no message named the ID."""
    topic_id: str | None
    """In Kafka's base64; None where topics have no ID."""
    first_ns: int
    """When it was seen first."""
    last_ns: int
    """When it was seen last."""
    sources: tuple[str, ...]
    """Kinds of messages that named it: metadata, leader-and-isr, metadata-log, ..."""
    state: TopicState
    """current, replaced, deleted, former or unresolved."""
    earlier_ids: tuple[str, ...]
    """Of a current topic: the IDs that its name had before, the oldest first."""
    written_bytes: int | None = None
    """Bytes of records that clients wrote; None in tables of an earlier release."""
    read_bytes: int | None = None
    """Bytes of records that clients read; None in tables of an earlier release."""


@dataclass(frozen=True, slots=True)
class StatedBy:
    """The message that stated something."""

    time_ns: int
    """When it was seen."""
    source: str
    """Kind of the message: metadata, leader-and-isr, metadata-log, ..."""
    connection: str
    """`ip:port>ip:port`, the client first."""


@dataclass(frozen=True, slots=True)
class Partition:
    """The state of a partition, with the message that stated it."""

    partition: int
    """Number of the partition."""
    leader: int
    """Broker ID; -1 for none."""
    leader_epoch: int
    """-1 if the version has none."""
    replicas: tuple[int, ...]
    """Broker IDs, the preferred leader first."""
    isr: tuple[int, ...]
    """Broker IDs of the in-sync replicas."""
    offline_replicas: tuple[int, ...] | None
    """None if no message listed them."""
    time_ns: int
    """When it was seen."""
    source: str
    """Kind of the message: metadata, leader-and-isr, metadata-log, ..."""
    connection: str
    """`ip:port>ip:port`, the client first."""


@dataclass(frozen=True, slots=True)
class TopicDescription(Lasting):
    """A topic as it was observed, at the end of a capture or at a time."""

    cluster: str | None
    """Cluster ID, or the label given; None where the cluster is unknown."""
    name: str | None
    """None where no message named the ID."""
    topic_id: str | None
    """In Kafka's base64; None where topics have no ID."""
    topic_id_hex: str | None
    """The same ID in hex with dashes, as in log directories."""
    state: TopicState
    """current, replaced, deleted, former or unresolved."""
    earlier_ids: tuple[str, ...]
    """IDs that the name had before, the oldest first."""
    first_ns: int
    """When it was seen first."""
    last_ns: int
    """When it was seen last."""
    internal: bool | None
    """None where no message stated it."""
    internal_claim: StatedBy | None
    """What stated it."""
    authorized_operations: tuple[str, ...] | None
    """Operations that the requester may perform; None if no requester asked."""
    authorized_operations_claim: StatedBy | None
    """What stated them."""
    partitions: tuple[Partition, ...]
    """By number."""
    written_bytes: int | None = None
    """Bytes of records that clients wrote, in the whole capture; None in tables of an earlier release."""
    read_bytes: int | None = None
    """Bytes of records that clients read, in the whole capture; None in tables of an earlier release."""


@dataclass(frozen=True, slots=True)
class ClientState:
    """Whether a client gets its work done: the worst of its activities."""

    state: str
    """stalled, in part, skipped, failing, in doubt, not captured, elsewhere, lost, left or working."""
    since_ns: int | None
    """When the first request or response was seen that makes the state; None for working and not captured."""
    how: str
    """The API, the topic and the errors; or the check that doubts. Of a client that left, how it was rejected, if it
    was granted no work.
    """


@dataclass(frozen=True, slots=True)
class Activity(Lasting):
    """What came of one client's requests of one API."""

    cluster: str | None
    """Cluster ID, or the label given; None where the cluster is unknown."""
    client_id: str | None
    """None where requests carry none."""
    address: str
    """IP address, without the port."""
    api: str
    """API of the requests."""
    step: str
    """What the client needs it for: versions, login, metadata, coordinator, group, offsets, transactions, reads,
    writes, commits or administration.
    """
    state: str
    """stalled, in part, failing, elsewhere, not captured or working."""
    since_ns: int | None
    """When the first request or response was seen that makes the state; None for working and not captured."""
    until_ns: int | None
    """When the last one was seen, if a later request was granted or may have been; else None."""
    requests: int
    """Requests, each counted once: the sum of the following, without `late`."""
    granted: int
    """Of which a response granted something."""
    late: int
    """Granted, and at least 5 s later than the client asks for."""
    unasked: int
    """Sent without asking for a response (acks=0)."""
    rejected: int
    """Answered with an error code, or with a status that says no."""
    closed: int
    """The server closed the connection instead."""
    given_up: int
    """The client closed the connection, after it had waited for longer than it lets the server take."""
    in_flight: int
    """Open when the capture or the connection ended, for no longer than they may be."""
    unknown: int
    """Open for longer at the end, or each time that its client closed; or with a response that was not captured or not
    decoded.
    """
    errors: tuple[str, ...]
    """Kafka's names of the errors that make the state, NO_RESPONSE or CLOSED_WITHOUT_RESPONSE; where nothing was
    granted, all by which requests were rejected.
    """
    first_ns: int
    """When a request was seen first."""
    last_ns: int
    """When one was seen last."""

    @property
    def is_work(self) -> bool:
        """Whether a client needs it to write or read."""
        return self.step != "administration"


@dataclass(frozen=True, slots=True)
class RecreatedPartition:
    """Where a reader began a partition of a topic that was created again."""

    partition: int
    """Number of the partition."""
    offset: int
    """The lowest offset that it asked for."""
    never_read_from: int | None
    """The first record that it never read; None where it read all."""
    never_read_to: int | None
    """The last of them."""
    never_read: int
    """How many these are."""
    read_again_from: int | None
    """The first record that it reads a second time, as its group was set back; None where it reads none again."""
    read_again_to: int | None
    """The last of them that it had committed."""
    read_again: int
    """How many these are."""


@dataclass(frozen=True, slots=True)
class Recreation(Lasting):
    """What a client of a topic did once it was deleted and created again."""

    cluster: str | None
    """Cluster ID, or the label given; None where the cluster is unknown."""
    topic: str
    """Topic name."""
    topic_id: str | None
    """Of the topic that is there now; None where none was seen."""
    former_id: str | None
    """Of the topic that was deleted; None where none was seen."""
    deleted_ns: int
    """When it was deleted."""
    created_ns: int
    """When the topic that is there now was seen first."""
    deleted_by: str | None
    """Client ID that asked for the deletion; None where it was not captured, or several did."""
    created_by: str | None
    """Client ID that asked for the creation; None where it was not captured, or several did."""
    client_id: str | None
    """None where requests carry none."""
    address: str
    """IP address, without the port."""
    does: Literal["reads", "writes"]
    """What it does with the topic."""
    state: str
    """Of a reader: first record, records never read, end as asked, another offset (its group was set to it, or its
    application names it), rejected since, nothing since or not known. Of a writer: goes on, rejected since, nothing
    since or not known.
    """
    never_read: int | None
    """Records of the new topic that a reader never read, below where it began; None for a writer."""
    partitions: tuple[RecreatedPartition, ...]
    """Of a reader: where it began each partition, as far as that is known."""
    errors: tuple[str, ...]
    """Kafka's names of the errors of its last responses, where it was rejected."""
    writes_by: str | None
    """Of a writer that goes on: ID or name, by which it names the new topic; else None."""
    transaction: str | None
    """Of a writer with a transaction that began in the former topic and ended after its deletion: committed or aborted.
    What it had written there is gone. None also where that is not known.
    """
    first_ns: int
    """When it was seen to read or write the topic first."""
    last_ns: int
    """When it was seen to do so last."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Recreation":
        """Of a row of the table of recreations."""
        return of_row(cls, row, partitions=tuple(RecreatedPartition(**one) for one in row["partitions"] or ()))

    @property
    def client(self) -> str:
        return f"{self.client_id or 'a client without an ID'} ({self.address})"

    @property
    def is_lost(self) -> bool:
        """Whether it lost records, or its work."""
        return self.state in {"records never read", "rejected since"} or (self.state, self.does) == (NOTHING, "reads")

    @property
    def what(self) -> str:
        """What it did, in words."""
        if self.does == "writes" or self.state in {"rejected since", NOTHING, "not known"}:
            by = f" by {BY[self.writes_by]}" if self.writes_by else ""
            return f"{DOES[self.does, self.state]}{by}{f' ({and_list(self.errors)})' if self.errors else ''}{self.torn}"
        begun = and_list([f"{one.partition} from offset {one.offset:,}" for one in self.partitions[:MOST_BEGUN]])
        more = f", and {len(self.partitions) - MOST_BEGUN:,} more" if len(self.partitions) > MOST_BEGUN else ""
        where = f"goes on with partition {begun}{more}"
        asked = ", as it asked for the end" if self.state == "end as asked" else ""
        never = f"; never read: {self.lost}{asked}" if self.never_read else ""
        return f"{where}{never}{self.again}"

    @property
    def torn(self) -> str:
        """What became of a transaction of which a part is gone; empty where there was none."""
        return f"; {self.transaction} a transaction that it began in the former topic" if self.transaction else ""

    @property
    def lost(self) -> str:
        """`65 records (0 to 64)`."""
        known = [one for one in self.partitions if one.never_read]
        return ranges(self.never_read or 0, [(one.never_read_from, one.never_read_to) for one in known])

    @property
    def again(self) -> str:
        """`; read again: 12 records (20 to 31)`; empty where it read each record once."""
        known = [one for one in self.partitions if one.read_again]
        found = [(one.read_again_from, one.read_again_to) for one in known]
        return f"; read again: {ranges(sum(one.read_again for one in known), found)}" if known else ""


def ranges(count: int, offsets: Sequence[tuple[int | None, int | None]]) -> str:
    """So many records, with their offsets where they are of one partition."""
    records = plural(count, "record")
    if len(offsets) != 1:
        return f"{records} of {len(offsets):,} partitions"
    ((first, last),) = offsets
    return f"{records} ({f'offset {first:,}' if first == last else f'{first:,} to {last:,}'})"


NOTHING = "nothing since"
MOST_BEGUN = 3
"""So many partitions are named in a sentence."""
DOES = {
    ("reads", "not known"): "where it goes on is not known",
    ("reads", "rejected since"): "has been rejected since",
    ("reads", NOTHING): "has read nothing since",
    ("writes", "goes on"): "goes on writing",
    ("writes", "rejected since"): "has been rejected since",
    ("writes", NOTHING): "has written nothing since",
    ("writes", "not known"): "whether it goes on is not known",
}
BY = {"ID": "its new ID", "name": "name"}


@dataclass(frozen=True, slots=True)
class Client(Lasting):
    """A client ID at one address, and the API versions it uses."""

    cluster: str | None
    """Cluster ID, or the label given; None where the cluster is unknown."""
    client_id: str | None
    """None where requests carry none."""
    address: str
    """IP address, without the port."""
    software_name: str | None
    """From ApiVersions: apache-kafka-java, librdkafka, ..."""
    software_version: str | None
    """From ApiVersions."""
    apis: Mapping[str, tuple[int, ...]]
    """By API the versions that it sent."""
    requests: int
    """Requests it sent."""
    granted: bool | None
    """Whether a server granted it anything; None if no answer to it was seen."""
    through: tuple[str, ...]
    """Proxies and balancers that sent its requests on, if both of their legs were captured (CLU005)."""
    first_ns: int
    """When it was seen first."""
    last_ns: int
    """When it was seen last."""
    request_bytes: int | None = None
    """Bytes of its requests; None in tables of an earlier release."""
    response_bytes: int | None = None
    """Bytes of the responses to them; None in tables of an earlier release."""
    security_protocols: tuple[str, ...] = ()
    """As in security.protocol: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL; empty where no connection was captured from
    its first request on.
    """
    principals: tuple[str, ...] = ()
    """Who it is, such as `User:alice`: from its SASL login, or as a broker stated it when it forwarded its requests."""
    closed_ns: int | None = None
    """When its last connection was closed; None while one is open, or if that is not known."""
    closed_by: str | None = None
    """client or server."""
    work: ClientState | None = field(default=None, metadata=SPREAD)
    """Whether it gets its work done; None in tables of an earlier release."""
    between_brokers: bool | None = left_out(None)
    """It is a broker or a controller."""
    looks_like: str | None = left_out("")
    """What its versions suggest, where it never sent its software: Java 0.11."""
    rejected_by_target: tuple[tuple[str, int], ...] | None = left_out(None)
    """(API, version) of what it sent and the release asked for (`target`) does not serve."""
    not_in_target: tuple[tuple[str, int], ...] | None = left_out(None)
    """(API, lowest version) of what it uses and that release does not have at all."""
    upgrade_to: str | None = left_out("")
    """The first version of its library that works with that release; None where it is not known, or not needed."""
    advice: str | None = left_out("")
    """What to do before an upgrade to that release; None where nothing is."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Client":
        """Of a row of the table of clients."""
        return of_row(cls, row, apis={used["api"]: tuple(used["versions"]) for used in row["apis"] or ()})

    @property
    def key(self) -> tuple[str | None, str]:
        """Client ID and address, as of a harm."""
        return self.client_id, self.address

    @property
    def rejected(self) -> tuple[tuple[str, int], ...]:
        """(API, version) of both directions: versions too old for the release asked for, and APIs that it lacks."""
        return (*(self.rejected_by_target or ()), *(self.not_in_target or ()))

    @property
    def is_counted(self) -> bool:
        """Nodes' own clients, and parties that were never granted anything, are in no count, unless they are hurt."""
        known = self.work is not None and self.work.state in {STALLED, IN_PART, NOT_CAPTURED, ELSEWHERE}
        return not is_of_node(self.client_id) and (bool(self.granted) or known)


@dataclass(frozen=True, slots=True)
class Statement(Lasting):
    """Who states, uses or rejects a disputed topic ID."""

    cluster: str | None
    """Cluster ID, or the label given; None where the cluster is unknown."""
    name: str | None
    """Topic name; None if no message named the ID."""
    topic_id: str
    """In Kafka's base64."""
    speaker: Speaker
    """What it is that speaks."""
    who: str
    """A broker's ip:port, controller@epoch, or a client ID; empty for the metadata log."""
    does: Literal["says", "orders", "uses", "refuses"]
    """says (in responses or the log), orders (a controller's request), uses (a client) or refuses."""
    broker: int | None
    """Broker ID, if the endpoint's is known."""
    first_ns: int
    """When it was seen first."""
    last_ns: int
    """When it was seen last."""
    count: int
    """How often it was seen."""


@dataclass(frozen=True, slots=True)
class NotKept:
    """How many topics or clients of a label were seen beyond the bound, and are not kept."""

    table: Literal["topics", "clients"]
    """What they are."""
    label: str
    """The agent's cluster label."""
    cluster: str | None
    """Cluster ID, or the label given; None where the cluster is unknown."""
    first_ns: int | None
    """When the first of them was seen first."""
    last_ns: int | None
    """When the last of them was seen last."""
    count: int
    """How many there are."""
