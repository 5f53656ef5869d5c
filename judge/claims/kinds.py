"""The kinds of claims, as data: the parts of each key, where the ledger files it, what it says in words.

Knows: every statement the judge can hear of. Does not know how one is extracted, merged or judged.
Rule: a kind's fields and their order are part of the stored state: a change of them needs a new STATE_VERSION.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

Subject = tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    fields: tuple[str, ...]
    """Names of the key's parts, in order."""
    subjects: tuple[Subject, ...]
    """Where the ledger files it: (space, fields of the subject's key); once per subject it speaks about."""
    sentence: str
    """What one such claim says, from its fields."""
    growing: frozenset[str] = frozenset()
    """Peaks that rise with traffic and that no check has to see at once: a greater value is no news."""

    @cached_property
    def at(self) -> dict[str, int]:
        """Where each field stands in a key."""
        return {name: place for place, name in enumerate(self.fields)}

    @cached_property
    def filed(self) -> tuple[tuple[str, bool, tuple[int, ...]], ...]:
        """Per subject its space, whether its subject is a topic's, and where its parts stand in a key."""
        return tuple(
            (space, space in {"name", "id"}, tuple(self.at[name] for name in names if name))
            for space, *names in self.subjects
        )


def kind(fields: str, subjects: str, sentence: str, *, growing: str = "") -> Kind:
    filed = tuple(tuple(subject.split(":")) for subject in subjects.split())
    return Kind(tuple(fields.split()), filed, sentence, frozenset(growing.split()))


STATED: Mapping[str, Kind] = {
    # which topic is which; `by` is controller@epoch in control requests, `endpoint` who answered (None: any broker)
    "binding": kind(
        "name topic_id source endpoint by", "name:name id:topic_id", "{source}: topic {name} has id {topic_id}"
    ),
    "absence": kind("name source endpoint error", "name:name", "{source}: no such topic {name} (error {error})"),
    "creation": kind("name topic_id endpoint", "name:name id:topic_id", "topic {name} is created"),
    "deletion": kind(
        "name topic_id source endpoint by", "name:name id:topic_id", "{source}: topic {name} {topic_id} is deleted"
    ),
    # who had a topic created or deleted; `how`: sent by the client itself, or forwarded in an Envelope
    "changed": kind(
        "name topic_id action client_id host principal how endpoint",
        "name:name",
        "{client_id} at {host} sends {action} of {name}",
    ),
    "partition": kind(
        "topic_id partition source leader_epoch leader replicas isr",
        "id:topic_id",
        "{source}: partition {partition} has leader {leader} of epoch {leader_epoch}, replicas {replicas}, ISR {isr}",
    ),
    "unnumbered": kind(
        "name partition source leader_epoch leader replicas isr",
        "name:name",
        "{source}: partition {partition} of {name} has leader {leader}, replicas {replicas}, ISR {isr}",
    ),
    "offline": kind(
        "name topic_id partition source offline",
        "name:name id:topic_id",
        "{source}: partition {partition} has replicas {offline} offline",
    ),
    "topic_described": kind(
        "name topic_id source internal operations",
        "name:name id:topic_id",
        "{source}: internal {internal}, authorized operations {operations}",
    ),
    "ordered": kind(
        "name topic_id partition endpoint by how",
        "name:name id:topic_id",
        "controller {by} orders {endpoint}: {how} partition {partition} of {name} with id {topic_id}",
    ),
    "full_order": kind("endpoint by", "server:", "controller {by} tells {endpoint} all of its partitions"),
    "stopped": kind(
        "name partition endpoint by leader_epoch",
        "name:name",
        "controller {by} has {endpoint} delete partition {partition} of {name} in leader epoch {leader_epoch}",
    ),
    "id_refused": kind(
        "topic_id partition endpoint by",
        "id:topic_id",
        "{endpoint} answers INCONSISTENT_TOPIC_ID (103) for partition {partition} of {topic_id}",
    ),
    "id_asked": kind(
        "topic_id partition endpoint by",
        "id:topic_id",
        "controller {by} orders partition {partition} of topic id {topic_id}",
    ),
    "partition_use": kind(
        "topic_id client_id host endpoint",
        "id:topic_id",
        "{client_id} fetches partitions of {topic_id}",
        growing="latest",
    ),
    "use": kind(
        "topic_id api client_id host endpoint", "id:topic_id", "{client_id} uses the id in {api}", growing="used"
    ),
    # whose requests about partitions are refused; answers over time are kept apart by partition
    "refused": kind(
        "topic_id api client_id host endpoint", "id:topic_id", "{endpoint} answers {api} of {client_id} with an error"
    ),
    "named_answer": kind(
        "name api client_id host endpoint",
        "client:client_id:host",
        "{endpoint} answers {api} of {client_id} about {name}",
    ),
    "deletions": kind("endpoint", "server:", "topics are deleted"),
    # who leads and follows
    "serves": kind(
        "name topic_id partition endpoint",
        "name:name id:topic_id",
        "{endpoint} serves partition {partition}",
        growing="latest",
    ),
    "denies": kind(
        "name topic_id partition endpoint api error",
        "name:name id:topic_id",
        "{endpoint} answers {api} for partition {partition} with {error}",
    ),
    "follower": kind(
        "broker endpoint client_id host", "follower:broker", "broker {broker} fetches from {endpoint}", growing="full"
    ),
    # by the leaders' port: of brokers by brokers there are too many to count each by time
    "fetch_versions": kind("broker host port", "server:", "broker {broker} at {host} fetches from brokers"),
    "follows": kind(
        "topic_id partition broker endpoint client_id host",
        "id:topic_id",
        "broker {broker} asks {endpoint} for partition {partition}",
    ),
    "heartbeat": kind("broker endpoint", "server:", "broker {broker} tells how far it has read the metadata log"),
    "replica_answer": kind(
        "topic_id partition api client_id endpoint host",
        "id:topic_id",
        "{api} of {client_id} for partition {partition}",
    ),
    # which endpoint belongs to which cluster
    "server": kind("endpoint", "server:", "{endpoint} answers in Kafka's protocol"),
    "cluster_id": kind("endpoint cluster_id how", "server:", "{endpoint} belongs to cluster {cluster_id} ({how})"),
    "address": kind("endpoint address broker", "server:", "{endpoint} says that broker {broker} is at {address}"),
    "registered": kind("endpoint address node", "server:", "{endpoint} holds that node {node} is at {address}"),
    "carries": kind("endpoint", "server:", "{endpoint} speaks of topic ids"),
    "names": kind("endpoint", "server:", "{endpoint} tells the ids of topics"),
    "log_order": kind("endpoint", "server:", "{endpoint} shows the metadata log", growing="high_watermark"),
    "log_epoch": kind(
        "endpoint epoch offset written",
        "server:",
        "{endpoint} shows that leader epoch {epoch} of the metadata log begins at offset {offset}",
    ),
    "log_diverged": kind(
        "endpoint epoch diverging_epoch end_offset",
        "server:",
        "{endpoint}, leader of the metadata log in epoch {epoch}, answers that epoch {diverging_epoch} ends at offset"
        " {end_offset}",
    ),
    "chunk": kind(
        "host endpoint end_offset epoch position size", "", "{endpoint} gives {host} a piece of a metadata snapshot"
    ),
    "advertised": kind("endpoint ranges", "server:", "{endpoint} advertises {ranges}"),
    # of one claim per server: when each API and version was answered last
    "accepts": kind("endpoint", "server:", "{endpoint} answers requests"),
    # which process has a node ID, by the epoch that its registration got
    "registration": kind(
        "broker incarnation endpoint host address error",
        "server:",
        "a process at {host} registers as node {broker}, incarnation {incarnation}, and is answered {error}",
    ),
    "broker_epoch": kind(
        "broker epoch endpoint host error",
        "server:",
        "node {broker} sends heartbeats of broker epoch {epoch} to {endpoint}, answered with {error}",
    ),
    "control": kind(
        "endpoint controller controller_epoch kraft api version error host",
        "server:",
        "controller {controller} of epoch {controller_epoch} sends {api} v{version}, answered with {error}",
    ),
    # who speaks what
    "client": kind("client_id host endpoint", "client:client_id:host", "{client_id} at {host} sends requests"),
    "software": kind(
        "client_id host endpoint name version", "client:client_id:host", "{client_id} calls itself {name} {version}"
    ),
    "spoken": kind(
        "host endpoint client started_ns client_id",
        "connection:endpoint:client:started_ns",
        "{client_id} sends requests on connection {client}>{endpoint}",
    ),
    "ranges_told": kind(
        "host endpoint client started_ns digest",
        "connection:endpoint:client:started_ns",
        "{endpoint} advertises versions on connection {client}>{endpoint}",
    ),
    "request_version": kind(
        "client_id host endpoint api version", "client:client_id:host", "{client_id} sends {api} v{version}"
    ),
    "closed_on": kind(
        "client_id host endpoint api version",
        "client:client_id:host",
        "{endpoint} closes the connection instead of answering {api} v{version}",
    ),
    "version_error": kind(
        "client_id host endpoint api version",
        "client:client_id:host",
        "{endpoint} answers {api} v{version} with UNSUPPORTED_VERSION (35)",
    ),
    "tolerated": kind("client_id host endpoint api tolerance", "wire:", "{client_id} sends {api} with {tolerance}"),
    "zero_use": kind(
        "client_id host endpoint api", "client:client_id:host", "{client_id} sends {api} with no topic id"
    ),
    "answer": kind("client_id host endpoint api", "client:client_id:host", "{endpoint} answers {api} of {client_id}"),
    "odd_request": kind(
        "client_id host endpoint what", "client:client_id:host", "{client_id} asks for metadata {what}"
    ),
    "create_rule": kind(
        "client_id host endpoint name rule error",
        "client:client_id:host",
        "{client_id} creates {name} against rule {rule} and is answered {error}",
    ),
    "cluster_refused": kind(
        "client_id host endpoint api cluster_id",
        "server:",
        "{client_id} presents cluster {cluster_id} in {api} and is answered INCONSISTENT_CLUSTER_ID (104)",
    ),
    "committed": kind(
        "name topic_id group partition endpoint",
        "name:name id:topic_id",
        "group {group} commits offsets of partition {partition} of {name} {topic_id}",
        growing="committed",
    ),
    "offset_gone": kind(
        "topic_id group partition endpoint",
        "id:topic_id",
        "{endpoint} has no offset of group {group} for partition {partition} of {topic_id}",
    ),
    "reaches": kind(
        "topic_id partition endpoint",
        "id:topic_id",
        "{endpoint} shows how far partition {partition} of {topic_id} goes",
        growing="highest latest",
    ),
    "fenced": kind(
        "client_id host endpoint name topic_id partition error",
        "client:client_id:host",
        "{endpoint} answers {client_id} for partition {partition} with {error}",
    ),
    "described": kind("name topic_id group endpoint", "id:topic_id", "group {group} is said to read {name}"),
    "assigned": kind("topic_id group endpoint", "id:topic_id", "group {group} is assigned partitions of {topic_id}"),
    # sets, of which the least members are kept (`claim.py`)
    "session_asks": kind(
        "client_id host endpoint", "client:client_id:host", "{client_id} keeps a fetch session at {endpoint}"
    ),
    "session_forgets": kind(
        "client_id host endpoint", "client:client_id:host", "{client_id} leaves partitions out of its fetch session"
    ),
    "session_answers": kind(
        "client_id host endpoint", "client:client_id:host", "{endpoint} answers in the fetch session of {client_id}"
    ),
    "session_begun": kind(
        "host endpoint client started_ns",
        "connection:endpoint:client:started_ns",
        "{client}>{endpoint} carries a fetch session",
    ),
    "idless": kind("endpoint", "server:", "topics are named without an id"),
    "fetch_odd": kind(
        "client_id host endpoint what", "client:client_id:host", "{endpoint} answers a full fetch: {what}"
    ),
    "wrote": kind("client_id host endpoint", "client:client_id:host", "{client_id} writes to topics by name"),
    "told": kind("client_id host endpoint", "client:client_id:host", "{endpoint} tells {client_id} of topics"),
    # what was seen and read
    "connection": kind(
        "host endpoint client started_ns",
        "connection:endpoint:client:started_ns",
        "connection {client}>{endpoint}",
        growing="frames payload_bytes requests responses overhead_bytes unseen_bytes cut_bytes cut_segments",
    ),
    "gap": kind(
        "host endpoint client started_ns ts_ns side bytes",
        "connection:endpoint:client:started_ns",
        "{bytes} {side} bytes are missing",
    ),
    "answered": kind("endpoint", "link:endpoint", "{endpoint} answers"),
    "unanswered": kind("host endpoint api outcome", "link:endpoint", "{api} was not answered: {outcome}"),
    "malformed": kind(
        "api version side reason client_id host endpoint client started_ns",
        "connection:endpoint:client:started_ns",
        "{api} v{version} {side} is malformed: {reason}",
    ),
    "unknown": kind("key version endpoint reason host", "wire:", "API key {key} v{version} is not in the schemas"),
    "stray": kind(
        "host endpoint client started_ns what", "connection:endpoint:client:started_ns", "{endpoint}: {what}"
    ),
    # what connections add to the sums of their endpoint (`life_cycle.py`); of those that have settled, client
    # and started_ns are null
    "midway": kind("host endpoint client started_ns", "link:endpoint", "the capture joined the connection midway"),
    "encrypted": kind("host endpoint client started_ns", "link:endpoint", "the connection speaks TLS"),
    "unread": kind(
        "host endpoint client started_ns", "link:endpoint", "the connection carries bytes that are not Kafka's"
    ),
    "missing": kind("host endpoint client started_ns", "link:endpoint", "bytes of the connection are missing"),
    "unpaired": kind("host endpoint client started_ns what", "link:endpoint", "{endpoint}: {what}"),
    "outside": kind(
        "host endpoint client started_ns client_id digest",
        "link:endpoint",
        "{client_id} sends {endpoint} versions that it was not told of",
    ),
    "asked": kind(
        "host endpoint client started_ns", "link:endpoint", "{endpoint} closes on a client that it told versions"
    ),
    "partial": kind(
        "host endpoint client started_ns client_id anybodys what",
        "link:endpoint",
        "not all that {client_id} said to {endpoint} was seen: {what}",
    ),
    "unreadable": kind(
        "api version side reason client_id host endpoint client started_ns",
        "wire:",
        "{api} v{version} {side} is malformed: {reason}",
    ),
    "busy": kind("endpoint", "link:endpoint", "connections to {endpoint} carry requests"),
    "dialect": kind("host endpoint dialect", "link:endpoint", "{host} and {endpoint} speak {dialect}"),
    "draft_code": kind("endpoint error api", "link:endpoint", "{endpoint} answers {api} with {error}"),
    # who is who on the wire, whatever it says
    "peer": kind("host endpoint", "host:host", "{host} speaks to {endpoint}"),
    "serving": kind("server endpoint", "host:server", "{endpoint} answers in Kafka's protocol"),
    "odd_exchange": kind("host endpoint what", "host:host", "{host} sends {endpoint} {what}"),
    "mark": kind("agent what source reason", "agent:", "agent {agent}: {what} {source} {reason}"),
}
TRAFFIC = frozenset(
    {"answer", "client", "committed", "follows", "partition_use", "reaches", "serves", "session_answers"}
)
TRAFFIC |= {"session_asks", "session_begun", "spoken", "told", "use", "wrote"}
"""Kinds that are stated again as long as traffic goes on: without an error among them nobody has to look at once."""
UNANSWERED = "unanswered_"
SENT, FORWARDED = "sent", "forwarded"
"""How a change was seen: from the client itself, or in the Envelope of a broker."""
"""Before the kind of what an order states whose answer was not seen; its key ends with the sender's host."""
ORDERED = ("binding", "deletion", "partition", "unnumbered", "offline", "ordered", "full_order", "stopped")
KINDS: Mapping[str, Kind] = {
    **STATED,
    **{
        f"{UNANSWERED}{name}": Kind(
            (*STATED[name].fields, "host"),
            STATED[name].subjects,
            f"{{host}}, unanswered: {STATED[name].sentence}",
            STATED[name].growing,
        )
        for name in (*ORDERED, "address", "carries")
    },
}
SPACES = {
    "name": 64, "id": 64, "client": 16, "connection": 256, "link": 16, "host": 16, "follower": 16,
    "server": 1, "wire": 1, "agent": 1,
}  # fmt: skip
"""The ledger's spaces and how many shards each is cut into."""
