"""Who changed what: administrative requests with their sender and their response, as an audit of a capture.

    for change in Changes().read(tables).merged(): print(change.time_ns, change.action, change.object, change.principal)

A KRaft broker forwards such a request to the controller in an Envelope, with the client's principal and address. So one
change may be seen twice, and one that a client sends by TLS may be seen in its Envelope only. A principal is that of
the Envelope with exactly this request: all runs of Kafka's tools number their requests alike, on one host. Values of
configurations and credentials are never part of a change; what was not seen is None. A request that a broker reads
and Kafka's writers never write is a change as any other; of one that cannot be read, the response may show the objects.
"""

from __future__ import annotations

import base64
import re
from collections import defaultdict, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wirecheck.decode.api_names import ACL_OPERATIONS, name_of, names
from wirecheck.decode.columns import tables as columns_of
from wirecheck.decode.dialect import read
from wirecheck.decode.envelope import ENVELOPE, client_host, principal, unwrapped
from wirecheck.decode.forwarding import Way
from wirecheck.decode.message import Decoded, Status, only
from wirecheck.decode.nested import nested
from wirecheck.decode.peer import Conversation
from wirecheck.decode.show.learned_names import Brokers, are_different
from wirecheck.decode.show.message_page import error_name
from wirecheck.decode.wire import REQUEST, RESPONSE, client_id
from wirecheck.frame import Frame
from wirecheck.questions.counted_once import CountedOnce
from wirecheck.questions.quorum import APIS as QUORUM_APIS
from wirecheck.questions.quorum import PROJECTION as QUORUM
from wirecheck.questions.quorum import Quorum
from wirecheck.questions.request_digest import request_digests
from wirecheck.questions.traffic import BROKERS, Coverage
from wirecheck.wording import broker_name, number_list, plural, utc

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.wire import Messages

Body = dict[str, Any]
Key = tuple[str, int, str | None, str]
"""Action, correlation ID, client ID and address."""
MOST_CHANGES = 100_000
"""Requests that are kept for one capture; further ones are counted."""
MOST_TARGETS = 10_000
"""Objects of a request that are kept; further ones are counted."""
FORWARDED_WITHIN_NS = 60_000_000_000
"""An Envelope belongs to a client's request that is open, or was at most so long ago: request.timeout.ms, twice."""
SOON_NS = 20_000_000
CLOCKS_NS = 5_000_000_000
"""Clocks of two capture points may differ by as much."""
METADATA = 3
LIST_OF_TYPES = {2: "topic", 4: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}
"""ConfigResource.Type of Kafka's clients."""
ACL_TYPES = {1: "any", 2: "topic", 3: "group", 4: "cluster", 5: "transactional ID", 6: "delegation token", 7: "user"}
PERMISSIONS = ("UNKNOWN", "ANY", "DENY", "ALLOW")
PATTERNS = {1: "any", 2: "match", 4: "prefixed"}
"""ResourcePatternType; 3 (literal) is not printed."""
NO_ID = "A" * 22


class Action(NamedTuple):
    """What one API changes, by Kafka's field names."""

    object_type: str
    requested: tuple[str, ...]
    """Arrays of the request, one element for each object; none: the request is about one object."""
    name: tuple[str, ...] = ("name",)
    """Fields that name the object, the first that is set; `` for an element that is the name itself."""
    answered: str = ""
    """The array of the response with an error for each object; empty: one error for all."""
    answers_to: tuple[str, ...] = ("name",)
    """Fields of an answer that name the object; none: answers are in the order of the request."""
    inner: str = ""
    """The array in each of these elements that has the objects."""


BY_POSITION: tuple[str, ...] = ()
ACTIONS: dict[str, Action] = {
    "CreateTopics": Action("topic", ("topics",), answered="topics"),
    "DeleteTopics": Action(
        "topic", ("topics", "topicNames"), ("name", "topicId", ""), "responses", ("name", "topicId")
    ),
    "CreatePartitions": Action("topic", ("topics",), answered="results"),
    "DeleteRecords": Action("topic", ("topics",), answered="topics"),
    "AlterConfigs": Action("", ("resources",), ("resourceName",), "responses", ("resourceName",)),
    "IncrementalAlterConfigs": Action("", ("resources",), ("resourceName",), "responses", ("resourceName",)),
    "CreateAcls": Action("acl", ("creations",), ("resourceName",), "results", BY_POSITION),
    "DeleteAcls": Action("acl", ("filters",), ("resourceNameFilter",), "filterResults", BY_POSITION),
    "AlterClientQuotas": Action("quota", ("entries",), ("entity",), "entries", BY_POSITION),
    "AlterUserScramCredentials": Action("user", ("deletions", "upsertions"), ("name",), "results", ("user",)),
    "DeleteGroups": Action("group", ("groupsNames",), ("",), "results", ("groupId",)),
    "OffsetDelete": Action("group", (), ("groupId",)),
    "AlterShareGroupOffsets": Action("group", (), ("groupId",)),
    "DeleteShareGroupOffsets": Action("group", (), ("groupId",)),
    "ElectLeaders": Action("topic", ("topicPartitions",), ("topic",), "replicaElectionResults", ("topic",)),
    "AlterReplicaLogDirs": Action("topic", ("dirs",), answered="results", answers_to=("topicName",), inner="topics"),
    "AlterPartitionReassignments": Action("topic", ("topics",), answered="responses"),
    "UpdateFeatures": Action("feature", ("featureUpdates",), ("feature",), "results", ("feature",)),
    "CreateDelegationToken": Action("delegation token", (), ("ownerPrincipalName",)),
    "RenewDelegationToken": Action("delegation token", ()),
    "ExpireDelegationToken": Action("delegation token", ()),
    "UnregisterBroker": Action("broker", (), ("brokerId",)),
    "AddRaftVoter": Action("controller", (), ("voterId",)),
    "RemoveRaftVoter": Action("controller", (), ("voterId",)),
}
"""The APIs that change something people look after; what brokers send controllers by themselves is not among them."""


class Target(NamedTuple):
    """One object of a request, with the answer."""

    object_type: str
    object: str
    details: str
    error: str | None


LEFT_OUT = "(left out)"
LOOPBACK = {"127.0.0.1", "::1"}
OF_PRINCIPALS = {"AlterUserScramCredentials", "CreateDelegationToken"}
"""Actions whose object is a principal."""
ENTITIES = re.compile(r"\b(?:user|ip) ")
OF_ACL = re.compile(
    r"(?P<what>(?:\w+ )?(?P<kind>[\w ]+): \w+ )(?P<who>.*)(?P<how> \w+ from )(?P<host>any host|\S+)(?P<rest>.*)",
    re.DOTALL,
)
EVERYBODY = {"any principal", "User:*", "any host", "*"}


def without_principals(action: str, target: Target) -> Target:
    """What a request is about, without principals and addresses: of ACLs, quotas, credentials and tokens."""
    shown, text = target.object, target.details
    if action in OF_PRINCIPALS or (action == "AlterClientQuotas" and ENTITIES.search(shown)):
        shown = shown and LEFT_OUT
    elif action in {"CreateAcls", "DeleteAcls"}:
        if (found := OF_ACL.fullmatch(text)) is None:
            return target._replace(object=LEFT_OUT, details=text and LEFT_OUT)
        who, host = (one if one in EVERYBODY else LEFT_OUT for one in (found["who"], found["host"]))
        text = f"{found['what']}{who}{found['how']}{host}{found['rest']}"
        shown = LEFT_OUT if found["kind"] in {"user", "delegation token"} else shown
    return target._replace(object=shown, details=text)


@dataclass(slots=True)
class Seen:
    """One request, as it was seen from a client, in an Envelope, or both."""

    action: str
    correlation_id: int
    client_id: str | None
    host: str
    time_ns: int
    answered_ns: int | None
    targets: list[Target]
    frame: Frame
    connection: str
    """Name of the connection that carried it: the client's, or of an Envelope the broker's to the controller."""
    in_envelope: bool = False
    forwarded_by: str | None = None
    """Of an Envelope, the client ID of the broker that sent it, where the controller accepted it."""
    principal: str | None = None
    claimed_by: str | None = None
    """Who sent the Envelope that names the principal, where no controller was seen to accept it."""
    others: int = 0
    """Objects beyond MOST_TARGETS."""
    is_sent_on: bool = False
    """What answered it is a proxy, which sent it on."""
    digest: str | None = None
    """Of the request's bytes; None in rows of earlier versions."""
    forwarded_to: str | None = None
    """Name of the connection of the Envelope that carried it and was answered."""
    is_doubted: bool = False
    """What answered the Envelope is no member, as far as members are known."""
    envelope: Seen | None = None
    """Of a client's request, the Envelope that named its principal, where a controller accepted it."""
    is_of_several: bool = False
    """Envelopes of several principals hold it, byte for byte: they are listed in its place."""

    @property
    def key(self) -> Key:
        return self.action, self.correlation_id, self.client_id, self.host

    @property
    def sender(self) -> str | None:
        """Of an Envelope that no controller was seen to accept, the address that it came from."""
        accepted = not self.in_envelope or self.forwarded_by is not None
        return None if accepted or self.principal is None else Conversation.of(self.connection).client.host

    def named_by(self, envelope: Seen) -> None:
        """Take the principal of an Envelope with this request; what a controller accepted counts for more."""
        if self.principal is None or (self.claimed_by is not None and envelope.sender is None):
            self.principal, self.claimed_by = envelope.principal or self.principal, envelope.sender
            self.envelope = envelope if envelope.forwarded_by is not None else None

    @property
    def is_answered(self) -> bool:
        return all(target.error is not None for target in self.targets)

    @property
    def is_rejected(self) -> bool:
        return all(map(is_rejected, self.targets))

    @property
    def is_unread(self) -> bool:
        """Whether it cannot be read, and no answer says what it was about."""
        return not self.is_answered and any(target.details == UNREAD for target in self.targets)


@dataclass
class Changes(Coverage):
    """All requests of a capture, while it is read, by released layouts and then by those of these dialects."""

    dialects: Sequence[str] = ()
    direct: list[Seen] = field(default_factory=list)
    forwarded: list[Seen] = field(default_factory=list)
    brokers: Brokers = field(default_factory=Brokers)
    creating: dict[tuple[int, str | None, str], int] = field(default_factory=dict)
    """When a client asked for Metadata and let topics be created: by correlation ID, client ID and address."""
    emptied: int = 0
    """Requests that were rejected and made place for others."""
    unread: int = 0
    """Requests that cannot be read and have no answer: a broker would refuse them, too."""
    others: int = 0
    """Requests beyond MOST_CHANGES, and objects beyond MOST_TARGETS."""
    rejected: list[Seen] = field(default_factory=list)
    """Of the requests, those that make place for others."""

    def __post_init__(self) -> None:
        self.once = CountedOnce(self.brokers)
        self.quorum = Quorum()

    def add(self, exchanges: Exchanges) -> None:
        self.cover(exchanges)
        self.once.only(exchanges)
        self.learn(of_apis(exchanges, [METADATA]))
        raft = of_apis(exchanges, QUORUM_APIS)
        if len(raft):
            self.quorum.learn(raft, read(raft.messages, self.dialects, QUORUM))
        for found in requests_in(administrative(exchanges), self.dialects):
            self.keep(found)

    def keep(self, found: Seen) -> None:
        self.others += found.others
        if found.is_unread:
            self.unread += 1
            return
        if len(self.direct) + len(self.forwarded) - self.emptied >= MOST_CHANGES:
            self.others += 1
            if found.is_rejected or not self.rejected:
                return
            self.rejected.pop().targets = []
            self.emptied += 1
        (self.forwarded if found.in_envelope else self.direct).append(found)
        if found.in_envelope and (carrier := answering(found)):
            ends = Conversation.of(carrier)
            self.quorum.link(ends.client.host, ends.server.host)
        if found.is_rejected:
            self.rejected.append(found)

    def learn(self, pairs: Exchanges) -> None:
        """Which broker is behind which address, and which clients let topics be created."""
        if not len(pairs):
            return
        decoded = read(pairs.messages, self.dialects, only(OF_METADATA))
        self.brokers.learn_answers(pairs, columns_of(decoded, METADATA, "response"))
        header = columns_of(decoded, METADATA, "request")[""]
        allowed = header["allow_auto_topic_creation"].astype(bool) | ~header.present("allow_auto_topic_creation")
        for row in header.message[allowed].tolist():
            if len(self.creating) < MOST_CHANGES:
                who = int(pairs.messages.correlation_id[row]), client_id(pairs.messages, row), host_of(pairs, row)
                self.creating[who] = int(pairs.ts_ns[row])

    def merged(self) -> Iterator[Change]:
        """Each request once, by time."""
        found = sorted(self.paired(), key=lambda one: (one.time_ns, one.frame, one.correlation_id))
        for one in found:
            yield from self.objects(one)

    def paired(self) -> Iterator[Seen]:
        """Requests of clients with the principals of their Envelopes; Envelopes whose request was not seen."""
        self.doubt_servers()
        open_requests, alone = OpenRequests(self.direct), Alone(self.may_be_one)
        for one in sorted(self.forwarded, key=lambda one: one.time_ns):
            client, is_named = request_in([each for each in open_requests.near(one) if self.may_carry(one, each)], one)
            if client is None:
                alone.add(one)
            elif is_named and is_another_ones(one, client):
                alone.add_both(one, client)
            else:
                if is_named:
                    client.named_by(one)
                client.forwarded_to = answering(one) or client.forwarded_to
                client.targets = client.targets if client.is_answered or one.is_doubted else one.targets
        yield from alone.found
        direct = (one for one in self.direct if not one.is_of_several)
        yield from without_back_legs(direct, self.once.ways, self.brokers.apart)

    def doubt_servers(self) -> None:
        """An Envelope between two hosts that members do not name was accepted by an outsider's server: whom it
        names is its sender's word. A process of the captured host itself may be any node's.
        """
        members = self.brokers.member_hosts()
        for one in self.forwarded if members else ():
            ends = Conversation.of(one.connection)
            if members.isdisjoint({ends.client.host, ends.server.host}) and ends.client.host not in LOOPBACK:
                one.forwarded_by, one.is_doubted = None, True

    def clusters_of(self, one: Seen) -> set[str]:
        """The cluster that a request was sent to; empty where it is not known, several where the address led to them
        in turn. A controller states none: the broker that sends an Envelope is on a host of its cluster.
        """
        ends, known = Conversation.of(one.connection), self.brokers.clusters_at
        if one.in_envelope:
            return known.get(ends.client.host) or known.get(ends.server.host) or set()
        return self.brokers.clusters.get(str(ends.server)) or known.get(ends.server.host) or set()

    def may_be_one(self, one: Seen, other: Seen) -> bool:
        """Whether two requests were not sent to different clusters, as a script does that runs against both."""
        return not are_different(self.clusters_of(one), self.clusters_of(other))

    def may_carry(self, envelope: Seen, client: Seen) -> bool:
        """Whether an Envelope may be that of the broker which the client asked, as far as brokers are known."""
        server, sender = str(Conversation.of(client.connection).server), envelope.forwarded_by
        nodes = set[int]() if server in self.brokers.shared else {*self.brokers.stated.get(server, ())}
        is_others = bool(nodes) and sender is not None and sender.isdecimal() and int(sender) not in nodes
        return not is_others and self.may_be_one(client, envelope)

    def objects(self, one: Seen) -> Iterator[Change]:
        server = one.connection.partition(">")[2]
        via = server if one.is_sent_on else one.forwarded_by or self.brokers.named(server)
        claimed_by, clusters = one.claimed_by or one.sender, self.clusters_of(one)
        answered_by, note = self.answered_by(one)
        for target in one.targets:
            yield Change(
                one.time_ns,
                one.action,
                target.object_type,
                target.object,
                " ".join(filter(None, (target.details, self.cause(one), note))),
                one.principal,
                claimed_by and self.brokers.at_host(claimed_by),
                one.client_id,
                one.host,
                via,
                answered_by,
                target.error,
                one.frame,
                *(clusters if len(clusters) == 1 else [None]),
            )

    def answered_by(self, one: Seen) -> tuple[str | None, str]:
        """Of a request that a broker forwarded, the node that answered, or its address; and a note where the capture
        shows that another one leads the quorum.
        """
        carrier = answering(one) if one.in_envelope else one.forwarded_to
        if carrier is None:
            return None, ""
        server = carrier.partition(">")[2]
        node, leader = self.quorum.node(server), self.quorum.leader(server, one.time_ns)
        node = self.brokers.get(server) if node is None else node
        is_other = node is not None and leader is not None and node != leader
        note = f"(node {node} does not lead the quorum, node {leader} does)" if is_other else ""
        return server if node is None else str(node), note

    def cause(self, one: Seen) -> str:
        """A broker that creates a topic for a Metadata request forwards it with that request's correlation ID."""
        asked = self.creating.get((one.correlation_id, one.client_id, one.host))
        automatic = one.action == "CreateTopics" and one.forwarded_by is not None and asked is not None
        return "created automatically for a Metadata request" if automatic else ""


def answering(envelope: Seen) -> str | None:
    """The connection of an Envelope that a controller accepted and answered."""
    is_answered = envelope.forwarded_by is not None and envelope.is_answered
    return envelope.connection if is_answered else None


def nothing_apart(_one: str, _other: str) -> bool:
    return False


def without_back_legs(
    direct: Iterable[Seen], ways: Collection[Way] = (), apart: Callable[[str, str], bool] = nothing_apart
) -> Iterator[Seen]:
    """Without what a proxy sends on: the same request of the same client ID, from the host that received it, sent after
    it and answered before. A principal that only the proxy's Envelope names is the client's. `apart`: endpoints that
    are known to be different brokers, or of different clusters.
    """
    open_now: dict[tuple[str, str | None], list[Seen]] = defaultdict(list)
    for one in sorted(direct, key=lambda one: one.time_ns):
        others = open_now[one.action, one.client_id]
        others[:] = [other for other in others if open_until_ns(other) >= one.time_ns]
        fronts = [other for other in others if sends_on(other, one, ways) and not of_two(other, one, apart)]
        front = next((other for other in fronts if objects_of(other) == objects_of(one)), fronts[0] if fronts else None)
        if front is None:
            yield one
        else:
            if front.principal is None:
                front.principal, front.claimed_by = one.principal, one.claimed_by
            front.is_sent_on = True
            front.targets = front.targets if front.is_answered else one.targets
            others.remove(front)
        others.append(one)


def of_two(front: Seen, back: Seen, apart: Callable[[str, str], bool]) -> bool:
    return apart(*(str(Conversation.of(one.connection).server) for one in (front, back)))


def open_until_ns(one: Seen) -> int:
    """Of a request whose answer was not captured, until when a proxy sends it on; a client repeats it later."""
    return one.time_ns + SOON_NS if one.answered_ns is None else one.answered_ns


def sends_on(front: Seen, back: Seen, ways: Collection[Way]) -> bool:
    """Whether the host that received the first request sent the second one, or a proxy did from another address. A
    known proxy may rename what they are about.
    """
    received, sent = Conversation.of(front.connection), Conversation.of(back.connection)
    is_known = Way(str(received.server), sent.client.host, str(sent.server)) in ways
    one_host = received.server.host == sent.client.host and received.server != sent.server
    within = None in {front.answered_ns, back.answered_ns} or (back.answered_ns or 0) <= (front.answered_ns or 0)
    asked = [[target._replace(object="", error=None) for target in one.targets] for one in (front, back)]
    same = objects_of(front) == objects_of(back) or is_known
    errors = [[target.error for target in one.targets] for one in (front, back) if one.is_answered]
    return (is_known or one_host) and within and same and asked[0] == asked[1] and errors[:1] == errors[-1:]


def objects_of(one: Seen) -> list[str]:
    return [target.object for target in one.targets]


def administrative(exchanges: Exchanges) -> Exchanges:
    """Those that change something, and Envelopes."""
    return of_apis(exchanges, [*API_KEYS, ENVELOPE])


def requests_in(pairs: Exchanges, dialects: Sequence[str]) -> Iterator[Seen]:
    """Of administrative exchanges what clients request, also in Envelopes."""
    if not len(pairs):
        return
    decoded, digests = Bodies(pairs.messages, dialects), request_digests(pairs.messages)
    for request, response in zip(pairs.request.tolist(), pairs.response.tolist(), strict=True):
        if request >= 0 and int(pairs.messages.key[request]) in API_KEYS:
            body, answer = decoded.body(request), decoded.body(response)
            one = seen(pairs, (request, response), (pairs.messages, request), body, answer)
            one.digest = digests[request]
            yield one
    yield from enveloped(pairs, decoded, dialects)


class Bodies:
    """Messages of a batch, as a broker reads them."""

    def __init__(self, messages: Messages, dialects: Sequence[str]) -> None:
        self.decoded = read(messages, dialects, lenient=(REQUEST, RESPONSE))

    def body(self, row: int) -> Body | None:
        """None without this message, and where it cannot be read."""
        return body_of(self.decoded, row)


def targets(api: str, request: Body | None, response: Body | None) -> tuple[list[Target], int]:
    """One for each object of a request, and how many more there are than are kept: those that were rejected first."""
    action = ACTIONS[api]
    if request is None:
        return unread_targets(action, response), 0
    every, errors = elements(action, request), Errors(action, response)
    answers = [errors.of(position, named(action.name, element)) for position, element in enumerate(every)]
    order = [*range(len(every))]
    if len(every) > MOST_TARGETS:
        order = sorted(sorted(order, key=lambda at: answers[at] not in {"NONE", None})[:MOST_TARGETS])
    found = []
    for at in order:
        kind = action.object_type or LIST_OF_TYPES.get(every[at].get("resourceType", 0), "resource")
        name = errors.better_name(at, named(action.name, every[at]))
        found.append(Target(kind, name, details(api, every[at], request), answers[at]))
    return found, len(every) - len(found)


def unread_targets(action: Action, response: Body | None) -> list[Target]:
    """The objects of a request that cannot be read, as far as its response names them."""
    errors = Errors(action, response)
    names = [next((str(one[name]) for name in action.answers_to if one.get(name)), UNKNOWN) for one in errors.answers]
    kind = action.object_type or "resource"
    answers = [
        Target(kind, name, UNREAD, errors.error_of(one)) for name, one in zip(names, errors.answers, strict=True)
    ]
    kept = sorted(answers, key=is_rejected)[:MOST_TARGETS]
    return kept or [Target(kind, UNKNOWN, UNREAD, errors.of(0, ""))]


def is_rejected(target: Target) -> bool:
    return target.error not in {"NONE", None}


API_KEYS = {key: name for key, name in names().items() if name in ACTIONS}
OF_METADATA = {
    ("Metadata", "request"): ("allow_auto_topic_creation",),
    ("Metadata", "response"): BROKERS,
}


def of_apis(exchanges: Exchanges, keys: list[int]) -> Exchanges:
    return exchanges.only(np.flatnonzero(np.isin(exchanges.messages.key[exchanges.first], keys)))


def host_of(pairs: Exchanges, row: int) -> str:
    return pairs.connections[int(pairs.connection[row])].client.host


def frame_of(pairs: Exchanges, row: int) -> Frame:
    first = int(pairs.frame_first[row])
    return Frame(pairs.names[int(pairs.source[row])], first, first)


def seen(
    pairs: Exchanges,
    carriers: tuple[int, int],
    about: tuple[Messages, int],
    request: Body | None,
    response: Body | None,
) -> Seen:
    """A client's request. `carriers`: the messages that were followed, the response -1 without one; `about`: the
    request itself, which is the carrier or inside it.
    """
    (carrier, response_carrier), (messages, row) = carriers, about
    api = name_of(int(messages.key[row]))
    found, others = targets(api, request, response)
    return Seen(
        api,
        int(messages.correlation_id[row]),
        client_id(messages, row),
        host_of(pairs, carrier),
        int(pairs.ts_ns[carrier]),
        int(pairs.ts_ns[response_carrier]) if response_carrier >= 0 else None,
        found,
        frame_of(pairs, carrier),
        pairs.connections[int(pairs.connection[carrier])].name,
        others=others,
    )


def body_of(decoded: Decoded, row: int) -> Body | None:
    if row < 0 or decoded.status[row] != Status.OK:
        return None
    body: Body = with_unknown(nested(decoded, row, contents=False)["body"])
    return body


def with_unknown(value: Any) -> Any:
    """The same with UNKNOWN for what was not captured or not kept."""
    if isinstance(value, list):
        return [with_unknown(one) for one in value]
    if not isinstance(value, dict):
        return value
    return UNKNOWN if value.keys() == {"left_out"} else {name: with_unknown(one) for name, one in value.items()}


def raw(value: str | None) -> bytes | None:
    """The bytes of a field of an Envelope; None where they are unknown."""
    return None if value in {None, UNKNOWN} else base64.b64decode(str(value))


def enveloped(pairs: Exchanges, bodies: Bodies, dialects: Sequence[str]) -> Iterator[Seen]:
    """What brokers forward, of the first Envelope around it: brokers refuse an Envelope in an Envelope."""
    inside = unwrapped(bodies.decoded, pairs.request_of)
    if not len(inside.messages):
        return
    inner, digests = Bodies(inside.messages, dialects), request_digests(inside.messages)
    answer_to = dict(zip(pairs.request.tolist(), pairs.response.tolist(), strict=True))
    response_to = {int(request): row for row, request in enumerate(inside.request_of.tolist()) if request >= 0}
    for row, outer in enumerate(inside.outer.tolist()):
        if inside.messages.side[row] != REQUEST or int(inside.messages.key[row]) not in API_KEYS:
            continue
        envelope = bodies.body(outer)
        if envelope is None:
            continue
        response = response_to.get(row, -1)
        answered = int(inside.outer[response]) if response >= 0 else -1
        one = seen(pairs, (outer, answered), (inside.messages, row), inner.body(row), inner.body(response))
        address = raw(envelope["clientHostAddress"])
        one.host = (address is not None and client_host(address)) or one.host
        one.principal = principal(raw(envelope["requestPrincipal"]))
        one.digest = digests[row]
        one.in_envelope, one.forwarded_by = True, client_id(pairs.messages, outer) if response >= 0 else None
        if (error := refusal(bodies, answer_to.get(outer, -1))) is not None:
            not_forwarded(one, error, host_of(pairs, outer), client_id(pairs.messages, outer))
            one.answered_ns = int(pairs.ts_ns[answer_to[outer]])
        yield one


def refusal(bodies: Bodies, answer: int) -> str | None:
    """The error of an Envelope whose sender may send none. (A broker that asks a wrong controller asks again.)"""
    body = bodies.body(answer)
    return error_name(UNAUTHORIZED) if body is not None and body["errorCode"] == UNAUTHORIZED else None


def not_forwarded(one: Seen, error: str, host: str, sender: str | None) -> None:
    """What an Envelope that was refused asks for is its sender's, whomever it names."""
    one.targets = [
        target._replace(error=error, details=f"{target.details} {REFUSED_ENVELOPE}".strip()) for target in one.targets
    ]
    one.host, one.client_id = host, sender


class OpenRequests:
    """Requests of clients, by the time of Envelopes, which come in their order: each request is looked at only while it
    is open, because all runs of Kafka's tools have one key.
    """

    def __init__(self, direct: Iterable[Seen]) -> None:
        self.later: dict[Key, deque[Seen]] = defaultdict(deque)
        for one in sorted(direct, key=lambda one: one.time_ns):
            self.later[one.key].append(one)
        self.now: dict[Key, list[Seen]] = defaultdict(list)

    def near(self, envelope: Seen) -> list[Seen]:
        """Those with its key that were open when it was sent, by clocks that may differ."""
        later, now = self.later[envelope.key], self.now[envelope.key]
        while later and later[0].time_ns <= envelope.time_ns + CLOCKS_NS:
            now.append(later.popleft())
        now[:] = [
            one for one in now if forwarded_until_ns(one) + CLOCKS_NS >= envelope.time_ns and not one.is_of_several
        ]
        return now


class Alone:
    """Envelopes whose request was not seen, or was seen of one of several clients that sent the same bytes: each once,
    however often a broker sent it.
    """

    def __init__(self, may_be_one: Callable[[Seen, Seen], bool]) -> None:
        self.may_be_one = may_be_one
        self.found: list[Seen] = []
        self.recent: dict[tuple[object, ...], list[Seen]] = defaultdict(list)

    def add(self, one: Seen) -> None:
        same = self.recent[*one.key, one.digest]
        same[:] = [each for each in same if one.time_ns - each.time_ns <= FORWARDED_WITHIN_NS]
        again = (each for each in reversed(same) if is_for_one(each, one) and self.may_be_one(each, one))
        if (before := next(again, None)) is None:
            same.append(one)
            self.found.append(one)
            return
        before.targets = one.targets if one.is_answered else before.targets
        before.answered_ns = one.answered_ns
        if before.forwarded_by is None and one.forwarded_by is not None:  # whatever the one before claimed
            before.forwarded_by, before.connection = one.forwarded_by, one.connection
            before.principal = one.principal

    def add_both(self, one: Seen, client: Seen) -> None:
        """Also the Envelope that named the client: which of the two is the client's, its bytes do not show."""
        client.is_of_several = True
        for each in (client.envelope, one):
            if each is not None:
                self.add(each)


def is_another_ones(envelope: Seen, client: Seen) -> bool:
    """Whether a request has the name of another principal, by an Envelope that a controller accepted as it did this."""
    return client.envelope is not None and not is_for_one(client.envelope, envelope)


def request_in(near: Sequence[Seen], envelope: Seen) -> tuple[Seen | None, bool]:
    """The request that an Envelope carries, of those that were open, and whether it is certainly this one.

    A broker that answers a part of a request itself (IncrementalAlterConfigs of its loggers) forwards the rest: such an
    Envelope answers it, but may be another's. Of requests with the same bytes, time shows which one it carries only
    where one capture has them all: the clocks of two may differ.
    """
    near = [one for one in near if not is_answered_otherwise(one, envelope)]
    same = [one for one in near if one.digest is not None and one.digest == envelope.digest]
    in_time = [one for one in same if one.time_ns <= envelope.time_ns <= forwarded_until_ns(one)]
    by_one_clock = all(one.frame.source == envelope.frame.source for one in same)
    certain = in_time if in_time and by_one_clock else same
    if certain:
        return certain[-1], len(certain) == 1
    asked = asked_of(envelope)
    return next((one for one in reversed(near) if asked <= asked_of(one)), None), False


def is_answered_otherwise(client: Seen, envelope: Seen) -> bool:
    """Whether an Envelope that a controller accepted has another answer than the client has: a broker hands on what it
    was answered (ForwardingManager), so the Envelope was another client's.
    """
    given, found = ({(each.object_type, each.object): each.error for each in one.targets} for one in (client, envelope))
    both = [(given[key], found[key]) for key in given.keys() & found.keys()]
    return envelope.forwarded_by is not None and any(None not in pair and pair[0] != pair[1] for pair in both)


def forwarded_until_ns(client: Seen) -> int:
    """Until when its Envelope may be sent."""
    return client.time_ns + FORWARDED_WITHIN_NS if client.answered_ns is None else client.answered_ns


def asked_of(one: Seen) -> set[tuple[str, str, str]]:
    return {(target.object_type, target.object, target.details) for target in one.targets}


def is_for_one(before: Seen, envelope: Seen) -> bool:
    """Whether two Envelopes with one request may be for one client: a refused one may have named anyone."""
    both_accepted = before.forwarded_by is not None and envelope.forwarded_by is not None
    return not both_accepted or before.principal == envelope.principal


def elements(action: Action, request: Body) -> list[Body]:
    """One for each object. A name that is an element by itself has the field ``; a null array means all objects."""
    if not action.requested:
        return [request]
    arrays = [request[array] for array in action.requested if request.get(array) is not None]
    if not arrays:
        return [{}]
    found = [element if isinstance(element, dict) else {"": element} for array in arrays for element in array]
    return [{**outer, **one} for outer in found for one in outer[action.inner]] if action.inner else found


def named(fields: tuple[str, ...], element: Body) -> str:
    """The object's name, or what stands in its place; empty where there is none."""
    for name in fields:
        value = element.get(name)
        if isinstance(value, list):
            return ", ".join(f"{part['entityType']} {part['entityName'] or '(default)'}" for part in value)
        if value is not None and value != NO_ID:
            return str(value)
    return ""


class Errors:
    """The errors of an answer, by object."""

    def __init__(self, action: Action, response: Body | None) -> None:
        self.action, self.response = action, response
        self.answers: list[Body] = (response or {}).get(action.answered) or [] if action.answered else []
        self.by_name = {
            str(answer[name]): answer
            for answer in self.answers
            for name in action.answers_to
            if answer.get(name) is not None
        }

    def of(self, position: int, name: str) -> str | None:
        if self.response is None:
            return None
        return self.error_of(self.answer(position, name))

    def error_of(self, answer: Body | None) -> str:
        code = first_error(answer) if answer is not None else 0
        return "NONE" if (code := code or int((self.response or {}).get("errorCode", 0))) == 0 else error_name(code)

    def answer(self, position: int, name: str) -> Body | None:
        if self.action.answers_to == BY_POSITION:
            return self.answers[position] if position < len(self.answers) else None
        return self.by_name.get(name)

    def better_name(self, position: int, name: str) -> str:
        """An answer names a topic that was asked for by its ID."""
        answer = self.answer(position, name)
        return str((answer or {}).get("name") or name)


def first_error(answer: Body) -> int:
    """Of an object, or else of the first of its partitions that has one."""
    parts = [part for name in ("partitions", "partitionResult") for part in answer.get(name) or ()]
    return next((int(part["errorCode"]) for part in (answer, *parts) if part.get("errorCode")), 0)


UNCLEAN = 1
UNAUTHORIZED = 31
"""CLUSTER_AUTHORIZATION_FAILED."""
REFUSED_ENVELOPE = "(in an Envelope that was refused)"
VALIDATE_ONLY = "(validate only)"
"""Ends the details of a request that changes nothing."""
UNREAD = "(the request could not be read)"
UNKNOWN = "?"
"""Stands for a text of which not all bytes were captured."""


def details(api: str, element: Body, request: Body) -> str:
    """What may be shown of the request, in a few words."""
    describe = DETAILS.get(api)
    text = describe(element) if describe and element else ""
    text = f"{text} (unclean)".strip() if request.get("electionType") == UNCLEAN else text
    return f"{text} {VALIDATE_ONLY}".strip() if request.get("validateOnly") else text


def created(topic: Body) -> str:
    assigned = topic.get("assignments", topic.get("replicaAssignment"))  # as drafted in KIP-4
    if assigned:
        return plural(len(assigned), "assigned partition")
    count, factor = topic["numPartitions"], topic["replicationFactor"]
    many = "default partitions" if count < 0 else plural(count, "partition")
    return f"{many}, replication factor {'default' if factor < 0 else factor}"


def partitions(topic: Body) -> str:
    if topic["partitions"] == UNKNOWN:  # an array of numbers of which a byte was not captured
        return f"partitions {UNKNOWN}"
    found = [part if isinstance(part, int) else part["partitionIndex"] for part in topic["partitions"] or ()]
    return f"partition{'' if len(found) == 1 else 's'} {', '.join(number_list(found))}" if found else ""


OPERATION_OF_CONFIG = {0: "set", 1: "delete", 2: "append to", 3: "subtract from"}


def configurations(resource: Body) -> str:
    """Names without values. AlterConfigs, which has no operations, sets."""
    operations = (
        (OPERATION_OF_CONFIG.get(one.get("configOperation", 0), "change"), one) for one in resource["configs"]
    )
    return ", ".join(f"{operation} {one['name']}" for operation, one in operations)


def acl(one: Body) -> str:
    """An ACL as text. A filter of ACLs has fields of other names; null means any."""
    kind = ACL_TYPES.get(one.get("resourceType") or one.get("resourceTypeFilter") or 0, "resource")
    pattern = PATTERNS.get(one.get("resourcePatternType") or one.get("patternTypeFilter") or 0, "")
    who = one.get("principal", one.get("principalFilter")) or "any principal"
    host = one.get("host", one.get("hostFilter")) or "any host"
    permission, operation = of(PERMISSIONS, one["permissionType"]), of(ACL_OPERATIONS, one["operation"])
    return " ".join(filter(None, (pattern, kind + ":", permission, who, operation, "from", host)))


def of(words: tuple[str, ...], number: int) -> str:
    return words[number] if 0 <= number < len(words) else str(number)


DETAILS: dict[str, Callable[[Body], str]] = {
    "CreateTopics": created,
    "CreatePartitions": lambda topic: f"to {plural(topic['count'], 'partition')}",
    "DeleteRecords": partitions,
    "ElectLeaders": partitions,
    "AlterPartitionReassignments": partitions,
    "AlterReplicaLogDirs": lambda topic: f"{partitions(topic)} to {topic['path']}",
    "AlterConfigs": configurations,
    "IncrementalAlterConfigs": configurations,
    "CreateAcls": acl,
    "DeleteAcls": acl,
    "AlterClientQuotas": lambda entry: ", ".join(
        f"{'remove' if one['remove'] else 'set'} {one['key']}" for one in entry["ops"]
    ),
    "AlterUserScramCredentials": lambda one: "set" if "iterations" in one else "removed",
    "UpdateFeatures": lambda one: f"to level {one['maxVersionLevel']}",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One object that an administrative request is about: who asked for what, and the answer."""

    time_ns: int
    """When the request was seen first, in nanoseconds since 1970."""
    action: str
    """The API, by Kafka's name: DeleteTopics."""
    object_type: str
    """topic, broker, group, user, acl, quota, feature, controller, ..."""
    object: str
    """Its name; empty where the request means all objects of its type, or names one with the empty name."""
    details: str
    """Counts, names of configurations, whom an ACL is about; never a value."""
    principal: str | None
    """`User:alice`, from the Envelope in which a broker forwards the request; None where none was seen."""
    claimed_by: str | None
    """Who named the principal, where no controller was seen to accept the Envelope: the ID of the broker on the host
    that sent it, or its address. None where the principal is the controller's, or none was seen.
    """
    client_id: str | None
    """Client ID of the request."""
    host: str
    """Address of the client."""
    via_broker: str | None
    """ID of the broker that the client asked, or its address where nothing named it."""
    answered_by: str | None
    """ID of the controller that answered what the broker forwarded, or its address; None where it was not seen."""
    error: str | None
    """Kafka's name of the error, NONE if the request was accepted, None where no answer was seen."""
    frame: Frame
    """The packet in which the request begins."""
    cluster: str | None
    """ID of the cluster that it was sent to, where the capture shows one."""

    @property
    def time(self) -> dt.datetime:
        """When the request was seen first, in UTC, to the microsecond."""
        return utc(self.time_ns)

    @property
    def named_principal(self) -> str:
        """`User:alice`, or `User:alice (claimed by 10.0.6.6)` where no controller was seen to accept that."""
        claimed = f" (claimed by {broker_name(self.claimed_by)})" if self.claimed_by else ""
        return f"{self.principal}{claimed}" if self.principal else ""

    @property
    def answer(self) -> str:
        """The answer in words: ok, Kafka's name of the error, or "no answer seen"."""
        if self.error == "NONE":
            return "valid" if self.is_validation else "ok"
        return "no answer seen" if self.error is None else self.error

    @property
    def is_validation(self) -> bool:
        """It was asked whether the request is valid; nothing is changed."""
        return self.details.endswith(VALIDATE_ONLY)

    def without_principals(self) -> Change:
        """The same for others to read: who asked for it is the client ID alone."""
        target = without_principals(self.action, Target(self.object_type, self.object, self.details, self.error))
        found = replace(self, object=target.object, details=target.details)
        return replace(found, principal=None, claimed_by=None, host="")
