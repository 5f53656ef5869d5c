"""What a verdict says, as values: who is hurt, why, what to do, and what proves it.

Every output is made of these: the terminal, the page, tickets, metrics and the library read the fields, and JSON has
them by their names (`wirecheck/document.py`).

Rule: a value never changes, and each of its fields has one sentence. Times are nanoseconds since 1970 until they are
printed. No code reads a sentence to learn what a field could tell it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wirecheck.document import left_out
from wirecheck.wording import NS_PER_S

PARTIAL_S = 30.0
"""A client for which something succeeds again within this time is refused in part."""
ROUNDING_S = 0.002


@dataclass(frozen=True, slots=True)
class HurtClient:
    """One client, topic and API: how often it was refused and with which errors."""

    client_id: str | None
    """None where requests carry none."""
    address: str
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
    """Errors, of which each partition of a response counts once."""
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
    def client(self) -> tuple[str | None, str]:
        return self.client_id, self.address

    @property
    def lasted_s(self) -> float:
        return (self.last_ns - self.first_ns) / NS_PER_S

    @property
    def is_partial(self) -> bool:
        """Whether the client is refused now and then, and its other requests of the topic succeed."""
        return self.blocked_ms / 1000 < min(PARTIAL_S, self.lasted_s - ROUNDING_S)


@dataclass(frozen=True, slots=True)
class HurtPartitions:
    """Partitions without a working leader, or that a broker does not replicate."""

    topic: str | None
    """Topic name, or its ID where no message named it."""
    partitions: str
    """As in `partitions 0, 1`; empty where they are not known."""
    what: str
    """What they lack."""
    brokers: tuple[int, ...]
    """IDs of the brokers that do not serve them, or do not replicate them."""
    first_ns: int
    """Since when that was seen."""
    until_ns: int | None
    """When it was seen to be over."""


@dataclass(frozen=True, slots=True)
class CardHarm:
    """Who and what is hurt."""

    sentence: str
    """The worst of it in words, or that no client is affected."""
    clients: tuple[HurtClient, ...]
    """The worst first."""
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
class CardAction:
    """What to do."""

    sentence: str
    """What to do, with names filled in; empty where nothing is to be done."""
    commands: tuple[str, ...]
    """Commands to paste."""


@dataclass(frozen=True, slots=True)
class CardEvidence:
    """The packets that prove it."""

    frames: tuple[Mapping[str, Any], ...]
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


@dataclass(frozen=True, slots=True)
class Entry:
    """Findings that state the same, with what follows from them below."""

    sentence: str
    """What was found, how often, and how many findings follow from it."""
    code: str
    """Code of the check: TID001."""
    name: str
    """Name of the check: topic-recreated."""
    kind: str
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
