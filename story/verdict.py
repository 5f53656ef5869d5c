"""What a verdict says, as values: who is hurt, why, what to do, and what proves it.

Every output is made of these: the terminal, the page, tickets, metrics and the library read the fields, and JSON has
them by their names (`wirecheck/document.py`).

Rule: a value never changes, and each of its fields has one sentence. Times are nanoseconds since 1970 until they are
printed. No code reads a sentence to learn what a field could tell it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from wirecheck.document import HIDDEN, SPREAD, left_out, of_row
from wirecheck.frame import Frame
from wirecheck.story.seen import Activity, Client, Cluster, Coverage, Lasting, NotKept, Recreation, Topic
from wirecheck.wording import rfc3339, several_days

Kind = Literal["violation", "anomaly", "information", "visibility"]
Engine = Literal["spark", "local"]
Lack = Literal["no working leader", "one replica short", "its fetches are rejected"]
"""As the pages of checks have it."""
Act = Literal["restart brokers", "start brokers", "restart clients", "reset offsets", "set a configuration"]
"""What a card may ask for, or forbid, as the pages of checks have it."""
PARTIAL_S = 30.0
"""A client for which something succeeds again within this time is refused in part."""
ROUNDING_S = 0.002


class Blocked(Lasting):
    """The same of a client that is refused."""

    __slots__ = ()
    blocked_ms: int

    @property
    def is_partial(self) -> bool:
        """Whether the client is refused now and then, and its other requests of the topic succeed."""
        return self.blocked_ms / 1000 < min(PARTIAL_S, self.lasted_s - ROUNDING_S)


@dataclass(frozen=True, slots=True)
class Side:
    """One piece of evidence: who sent what."""

    time_ns: int
    """When it was seen."""
    claim: str
    """What the message states, in words."""
    connection: str | None
    """`ip:port>ip:port`, the client first."""
    api: str | None
    """Kafka's name of the API."""
    version: int | None
    """Version of the API."""
    correlation_id: int | None
    """Number that joins the response to its request."""
    frame: Frame | None
    """The packets that carry the message."""

    @property
    def time(self) -> str:
        """RFC 3339, UTC."""
        return rfc3339(self.time_ns)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Side":
        """Of a column `sides`."""
        return of_row(cls, row, frame=Frame(**row["frame"]) if row["frame"] else None)


@dataclass(frozen=True, slots=True)
class Finding(Lasting):
    """What is wrong, or worth knowing, with its evidence."""

    id: str
    """16 characters; the same for the same fault in every capture of it."""
    label: str = field(metadata=HIDDEN)
    """The agent's cluster label."""
    code: str
    """Code of the check: TID002."""
    name: str
    """Name of the check: leader-and-isr-inconsistent-topic-id."""
    kind: Kind
    """violation, anomaly, information or visibility."""
    cluster: str | None
    """Cluster ID, or the label given; None where the cluster is unknown."""
    topic: str | None
    """Topic name, if it is about one topic."""
    topic_ids: tuple[str, ...]
    """Topic IDs in Kafka's base64."""
    client_ids: tuple[str, ...]
    """Client IDs of the clients it is about."""
    brokers: tuple[int, ...]
    """IDs of the brokers it is about."""
    summary: str
    """One sentence: who, what, since when."""
    words: Mapping[str, str]
    """What its check knows besides: the names depend on the check (`judge/checks`), and only story reads them."""
    times: Mapping[str, int] = field(metadata=HIDDEN)
    """Times among these words, in nanoseconds."""
    first_ns: int
    """When it was seen first."""
    last_ns: int
    """When it was seen last."""
    count: int
    """How often it occurred."""
    sides: tuple[Side, ...]
    """Evidence: the messages that contradict each other."""
    others: int | None = left_out(None)
    """None, but of what counts the findings of a check that exceeded its bound: how many were dropped."""
    cause: str | None = None
    """ID of the finding it follows from."""
    possible_causes: tuple[str, ...] = ()
    """IDs of the findings of which it may follow from one."""
    consequences: tuple[str, ...] = ()
    """IDs of the findings that follow from it."""
    next: str | None = left_out(None)
    """What to do; None where only cards say that."""
    commands: tuple[str, ...] | None = left_out(None)
    """Commands that show more of it; None where only cards have some."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Finding":
        """Of a row of the table of findings, linked to no other."""
        words = {word["name"]: word["value"] for word in row["words"] or ()}
        times = {each["name"]: each["time"] for each in row.get("times") or ()}
        return of_row(cls, row, words=words, times=times, sides=tuple(map(Side.of, row["sides"] or ())))


@dataclass(frozen=True, slots=True)
class Harm(Blocked):
    """Requests of one client, with one API and to one topic, that are rejected or not answered."""

    cluster: str | None
    """Cluster ID, or the label given; None where the cluster is unknown."""
    level: str
    """hurt or briefly."""
    client_id: str | None
    """Client ID of the request header."""
    address: str | None
    """IP address, without the port; empty where it is not to be named."""
    api: str
    """API of the requests."""
    topic: str | None
    """Topic name, if known; None for most requests without a response."""
    topic_id: str | None
    """Topic ID, if the request has one."""
    partitions: tuple[int, ...]
    """The first partitions with errors."""
    errors: tuple[str, ...]
    """Kafka's names of the errors, or what stands in their place (`harm.py`)."""
    brokers: tuple[int, ...]
    """IDs of the brokers that rejected them, or did not respond; of a partition without a leader its replicas."""
    metadata_brokers: tuple[int, ...]
    """IDs of the brokers that answered a Metadata request of the client after the first error."""
    count: int
    """Responses with errors, however many partitions they name, or requests without a response."""
    first_ns: int
    """When it was seen first."""
    last_ns: int
    """When it was seen last."""
    blocked_ms: int
    """Longest time in which no request of that topic and API succeeded."""
    granted_before: bool | None
    """Whether the client succeeded with this API and topic before; None in tables of an earlier release."""
    recovered: bool
    """Whether a later request succeeded; without a response, whether the broker answers again."""
    others: int | None = left_out(None)
    """None, but of what counts rows beyond the bound of a topic or client: how many these are."""

    @property
    def client(self) -> tuple[str | None, str | None]:
        return self.client_id, self.address

    @property
    def of_topic(self) -> bool:
        """Whether it is about one topic, and not about all that the API asks for."""
        return self.topic is not None or self.topic_id is not None

    @property
    def client_ids(self) -> tuple[str, ...]:
        """As a finding about it would have them."""
        return (self.client_id or "",)

    @property
    def topic_ids(self) -> tuple[str, ...]:
        """As a finding about it would have them."""
        return () if self.topic_id is None else (self.topic_id,)


@dataclass(frozen=True, slots=True)
class HurtClient(Blocked):
    """One client, topic and API: how often it was refused and with which errors."""

    client_id: str | None
    """None where requests carry none."""
    address: str | None
    """IP address, without the port; empty where it is not to be named."""
    topic: str | None
    """Topic name, or its ID where no message named it."""
    partitions: tuple[int, ...]
    """The first partitions with errors."""
    api: str
    """API of the requests."""
    error: str
    """Kafka's names of the errors, or what stands in their place (`harm.py`)."""
    count: int
    """Responses with these errors, or requests without one, however many partitions they name."""
    first_ns: int
    """When it was refused first."""
    last_ns: int
    """When it was refused last."""
    blocked_ms: int
    """Longest time in which no request of that topic and API succeeded."""
    granted_before: bool
    """Whether the client succeeded with this API and topic before."""
    ongoing: bool
    """Whether it is still refused where the capture ends."""

    @property
    def client(self) -> tuple[str | None, str | None]:
        return self.client_id, self.address


@dataclass(frozen=True, slots=True)
class HurtPartitions:
    """Partitions without a working leader, or that a broker does not replicate."""

    topic: str | None
    """Topic name, or its ID where no message named it."""
    partitions: str
    """As in `partitions 0, 1`; empty where they are not known."""
    what: Lack
    """What they lack."""
    brokers: tuple[int, ...]
    """IDs of the brokers that do not serve them, or do not replicate them."""
    first_ns: int
    """Since when that was seen."""
    until_ns: int | None
    """When it was seen to be over."""


@dataclass(frozen=True, slots=True)
class HurtRequests:
    """What came of requests of all hurt clients of a card."""

    api: str
    """API of the requests."""
    error: str
    """As in the rows of the clients."""
    count: int
    """Responses with these errors, or requests without one, each counted once, however many topics it names."""


@dataclass(frozen=True, slots=True)
class CardHarm:
    """Who and what is hurt."""

    sentence: str
    """The worst of it in words, or that no client is affected."""
    clients: tuple[HurtClient, ...]
    """The worst first."""
    requests: tuple[HurtRequests, ...]
    """Of these clients."""
    briefly: tuple[HurtClient, ...]
    """Clients that were refused for a moment, as by any change of a leader."""
    partitions: tuple[HurtPartitions, ...]
    """Those without a working leader first."""
    possibly: tuple[str, ...]
    """Client IDs of other cards that may be refused because of this."""
    others: int
    """How many more there are than are listed."""


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asked for a change, as far as it was seen."""

    principal: str | None
    """From the Envelope by which a broker forwarded the request."""
    client_id: str | None
    """Client ID of the request."""
    host: str | None
    """IP address of the client."""


@dataclass(frozen=True, slots=True)
class CardCause:
    """What happened, and when."""

    sentence: str
    """What happened."""
    time_ns: int
    """When; never later than the harm."""
    by: Requester | None
    """Who did it: None where no client was seen to, or several may have."""


@dataclass(frozen=True, slots=True)
class Fix:
    """One thing that a card asks for, or forbids."""

    act: Act
    """What is done."""
    of: tuple[str, ...]
    """To whom: `broker 2`, a client ID, `group readers`; empty for all, or where that is not known."""

    def against(self, other: "Fix") -> bool:
        """Whether both are the same act, and may be of the same one."""
        return self.act == other.act and (not self.of or not other.of or not {*self.of}.isdisjoint(other.of))


@dataclass(frozen=True, slots=True)
class CardAction:
    """What to do."""

    sentence: str
    """What to do, with names filled in; empty where nothing is to be done."""
    commands: tuple[str, ...]
    """Commands to paste."""
    asks: tuple[Fix, ...] = left_out(())
    """What it says to do that another card may forbid."""
    forbids: tuple[Fix, ...] = left_out(())
    """What must not be done before: no other card of the cluster asks for it without saying so."""


@dataclass(frozen=True, slots=True)
class CardEvidence:
    """The packets that prove it."""

    frames: tuple[Frame, ...]
    """The first packets of the finding that shows the harm."""
    command: str
    """What cuts them out of the capture."""


@dataclass(frozen=True, slots=True)
class Card:
    """Who is hurt, why, what to do, and what proves it: the same words in every output."""

    headline: str
    """The harm if a client or a partition is hurt, else the cause."""
    harm: CardHarm
    cause: CardCause
    action: CardAction
    evidence: CardEvidence
    just_before: tuple[str, ...] = left_out(())
    """Changes that were granted within 60 s before the first rejection and are about the same topic, user or right; not
    a cause that is known.
    """
    since_then: tuple[str, ...] = left_out(())
    """Where the cause is that a topic was created again: what its clients have done since, a sentence each, those that
    lost something first. `recreations` has all of them.
    """


@dataclass(frozen=True, slots=True)
class Entry:
    """Findings that state the same, with what follows from them below."""

    sentence: str
    """What was found, how often, and how many findings follow from it."""
    code: str
    """Code of the check: TID001."""
    name: str
    """Name of the check: topic-recreated."""
    kind: Kind
    """violation, anomaly, information or visibility."""
    cluster: str | None
    """Cluster ID, or the label given; None where the cluster is unknown."""
    role: str
    """cause, consequence or alone."""
    count: int
    """How many findings it stands for."""
    findings: tuple[str, ...]
    """Their IDs, the earliest first."""
    topics: tuple[str, ...]
    """Names of the topics that they are about."""
    client_ids: tuple[str, ...]
    """Client IDs of the clients that they are about."""
    brokers: tuple[int, ...]
    """IDs of the brokers that they are about."""
    own_next: bool
    """Whether something is to be done about it besides what ends its cause."""
    follows_from: str | None
    """The cause, in words, where that is not listed."""
    consequences: tuple["Entry", ...]
    """What follows from it, the worst first."""

    @property
    def with_consequences(self) -> tuple["Entry", ...]:
        return self, *self.consequences

    @property
    def finding_ids(self) -> list[str]:
        """Of an entry and of what follows from it."""
        return [name for one in self.with_consequences for name in one.findings]


@dataclass(frozen=True, slots=True)
class CardEntry(Entry):
    """An entry that follows from nothing that is listed, with its card."""

    card: Card
    expected: str | None = left_out("")
    """Why it is expected (`expectations.py`): such a card counts in no exit status. None for all others; empty where
    nothing was said to be expected.
    """


@dataclass(frozen=True, slots=True)
class ListedCard:
    """A card in the words of the terminal, as one row."""

    id: str
    """ID of its first finding."""
    code: str
    """Code of the check: TID001."""
    mark: Literal["violation", "anomaly"]
    """violation where the replay fails by it."""
    cluster: str | None
    """Cluster ID, or the label given; None where the cluster is unknown."""
    headline: str
    """The harm if a client or a partition is hurt, else the cause."""
    since_ns: int
    """Since when: of the harm, else of the cause."""
    until_ns: int | None
    """When the harm was over; None where it lasts, or where that is not known."""
    ongoing: bool | None
    """Whether a client is still refused where the capture ends; None where no client is known to be hurt."""
    cause: str
    """What happened."""
    impact: str
    """How many requests of how many clients, and who was affected briefly."""
    just_before: tuple[str, ...]
    """Changes that were granted just before the first rejection."""
    since_then: tuple[str, ...]
    """What the clients of a topic that was created again have done since."""
    fix: str
    """What to do; empty where nothing is to be done."""
    look: tuple[str, ...]
    """Commands that show more of it."""
    evidence: str
    """The command that cuts its packets out of the capture."""
    clients: tuple[str, ...]
    """Client IDs of the hurt clients, the worst first; empty for one without an ID."""
    findings: tuple[str, ...]
    """IDs of its findings, and of those that follow from them."""


MarkKind = Literal["violation", "anomaly", "visibility", "clear"]


@dataclass(frozen=True, slots=True)
class Mark:
    """The answer to one question."""

    mark: MarkKind
    """violation (exit status 1), anomaly, visibility (it cannot be known) or clear."""
    sentence: str
    """What it rests on, in a few words."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The verdict's two questions."""

    ids_and_versions: Mark
    """Whether all brokers and clients agree on topic IDs and versions."""
    work: Mark
    """Whether every client gets its work done."""

    @property
    def both(self) -> tuple[tuple[str, Mark], ...]:
        """With the words of the screen."""
        return ("IDs and versions", self.ids_and_versions), ("work", self.work)


@dataclass(frozen=True, slots=True)
class Captured:
    """From when to when there are frames, whether they are Kafka's or not."""

    from_ns: int
    """The first."""
    to_ns: int
    """The last."""


@dataclass(frozen=True, slots=True)
class Grace:
    """How long contradictions may last, in seconds."""

    brokers: int
    """Of brokers."""
    clients: int
    """Of clients."""


@dataclass(frozen=True, slots=True)
class About:
    """What a verdict says of itself."""

    engine: Engine
    """What judged."""
    captured: Captured | None
    """The first and the last sighting of anything; None where nothing was."""
    verdict: str
    """The verdict in one sentence."""
    marks: Marks
    """The verdict's two questions, each with its mark."""
    schema_version: int
    """Of the JSON object."""
    wirecheck: str
    """Version of wirecheck."""
    inputs: tuple[str, ...]
    """As they were named."""
    keylogs: tuple[str, ...]
    """Files whose keys decrypted TLS, as they were named."""
    grace_s: Grace
    """With which it judged."""


@dataclass(frozen=True, slots=True)
class ExpectedLine:
    """A line of a file of expectations (`expectations.py`)."""

    line: int
    """Its number, from 1."""
    reason: str
    """Why it is expected."""
    cards: int
    """How many cards it covers."""
    is_over: bool
    """Whether its last day was before the end of the capture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One verdict. Names may be added; where one goes or means something else, schema_version is raised."""

    coverage: Coverage
    """How much was captured and read."""
    clusters: tuple[Cluster, ...] = ()
    """Clusters, and endpoints of no known one."""
    topics: tuple[Topic, ...] = ()
    """Every topic ID that was seen."""
    clients: tuple[Client, ...] = ()
    """Every client that was seen."""
    activities: tuple[Activity, ...] = ()
    """What came of the requests of each client, by API."""
    recreations: tuple[Recreation, ...] = ()
    """What each client did with a topic that was deleted and created again."""
    harms: tuple[Harm, ...] = ()
    """Whose requests are refused: one object per client, topic and API."""
    findings: tuple[Finding, ...] = ()
    """What was found, each with its evidence."""
    dialects: tuple[str, ...] = ()
    """Drafts by which messages were read: --dialect of the commands that show them."""
    entries: tuple[CardEntry, ...] = ()
    """The findings as they are read: what hurts clients first, equal ones once, what follows under its cause."""
    cards: tuple[ListedCard, ...] = ()
    """What needs a look, in the words of the terminal: one row for each card, the worst first."""
    not_listed: int | None = left_out(None)
    """How many findings were not asked for; None where all were."""
    others: tuple[NotKept, ...] = left_out(())
    """Topics and clients beyond the bounds."""
    expectations: tuple[ExpectedLine, ...] = left_out(())
    """The lines of --expect: how many cards each covers, and whether its last day was before the end of the capture."""
    about: About | None = field(default=None, metadata=SPREAD)
    """None where tables were read that others wrote."""

    @property
    def by_id(self) -> dict[str, Finding]:
        """Its findings."""
        return {finding.id: finding for finding in self.findings}

    @property
    def inputs(self) -> tuple[str, ...]:
        """As they were named; empty where that is not known."""
        return self.about.inputs if self.about else ()

    @property
    def keylogs(self) -> tuple[str, ...]:
        return self.about.keylogs if self.about else ()

    @property
    def dated_rows(self) -> tuple[Lasting, ...]:
        return (*self.findings, *self.harms, *self.clients, *self.topics)

    @property
    def last_ns(self) -> int:
        """When anything was seen last that it lists; 0 where that is nothing."""
        return max((one.last_ns for one in self.dated_rows), default=0)

    @property
    def of_several_days(self) -> bool:
        """Whether its times need their day."""
        return several_days(time_ns for one in self.dated_rows for time_ns in (one.first_ns, one.last_ns) if time_ns)
