"""One part of the judge of a label: the directory, or one of its shards.

Knows: which subjects it judges, what other parts asked of it, and what it has to tell them after a batch. Does not know
how messages travel.
Rule: the directory alone tells who belongs together and who is a stranger; a shard takes its word. All else that a part
reads elsewhere it asks for, subject by subject and kind by kind, and is told whenever it changes. Once nobody has
anything to tell any more, the rows of all parts are those of one judge.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from wirecheck.judge.check_context import CheckContext, Filed
from wirecheck.judge.checks.declared_reads import HOMES
from wirecheck.judge.claims.claim import Claim, Subject, pack, unpack
from wirecheck.judge.failures import Failure
from wirecheck.judge.judge import SERVERS, EmittedRow, Judge
from wirecheck.judge.ledger.ledger import Ledger, Load
from wirecheck.judge.parts.homes import DIRECTORY, part_of
from wirecheck.judge.parts.part_ledger import WHATEVER, Identity, PartLedger, Wanted, stated
from wirecheck.judge.parts.part_strangers import PartStrangers, StrangersTold
from wirecheck.judge.parts.told_clusters import ClustersTold, ToldClusters, told
from wirecheck.judge.settlement import WIRE
from wirecheck.judge.thresholds import Settings
from wirecheck.judge.topology.clusters import Clusters

OF_ALL = ("log_order", "control", "advertised")
"""Of servers, what every shard rests on: which entries of the metadata log stand, who gives orders, and versions."""


@dataclass
class Message:
    """What one part tells another after a batch."""

    sender: int
    asks: set[Wanted] = field(default_factory=set)
    claims: list[tuple[Subject, bytes, list[Identity]]] = field(default_factory=list)
    """By subject the claims that have changed, packed, and those that are gone."""
    clusters: ClustersTold | None = None
    strangers: StrangersTold | None = None
    failures: list[Failure] | None = None

    def __bool__(self) -> bool:
        others = (self.clusters, self.strangers, self.failures)
        return bool(self.asks or self.claims) or any(one is not None for one in others)


class News(NamedTuple):
    """Of one subject what has changed, and what is gone."""

    changed: dict[Identity, Claim]
    gone: list[Identity]


class PartContext(CheckContext):
    """Reads as checks ask for them; what is remembered of a topic is another subject's and is asked for again."""

    ledger: PartLedger

    def claims(self, kind: str, group: Any, *subject: str) -> list[Claim]:
        self.ledger.want(kind, subject)
        return super().claims(kind, group, *subject)

    def believed(self, subject: Subject, *kinds: str) -> list[Claim]:
        for kind in kinds:
            self.ledger.want(kind, subject)
        with self.ledger.noting(reads=False):
            return super().believed(subject, *kinds)

    def everybody(self, space: str, kind: str) -> Iterator[tuple[Subject, list[Claim]]]:
        self.ledger.want(kind, (space,))
        with self.ledger.noting(reads=False):
            found = [(subject, self.believed(subject, kind)) for subject in sorted(self.ledger.all_known(space))]
        yield from found

    def hears(self, claim: Claim, host: str | None) -> bool:
        with self.ledger.noting(reads=True):  # what a stranger's connections tell of it
            return super().hears(claim, host)

    def filed_in(self, subject: Subject) -> Filed:
        with self.ledger.noting(reads=False):
            return super().filed_in(subject)


class Part(Judge):
    ledger: PartLedger
    strangers: PartStrangers

    def __init__(
        self, label: str, number: int, shards: int, load: Load | None = None, settings: Settings | None = None
    ) -> None:
        self.number, self.count = number, shards
        self.clusters = self.told_clusters = Clusters(label)
        """On a shard, what the directory said last."""
        self.subscribers: dict[Wanted, set[int]] = defaultdict(set)
        """Who is told of what is at home here."""
        self.new_subscribers: set[tuple[int, Wanted]] = set()
        """Who has asked since the last messages, and is told all there is."""
        self.failures_of: dict[int, list[Failure]] = {}
        """On the directory, what each shard could not judge."""
        self.last_told: dict[str, Any] = {}
        super().__init__(label, load, settings)
        self.strangers = PartStrangers(self.ledger)
        if number == DIRECTORY:
            self.ledger.readers[Wanted(WIRE, WHATEVER)] = {WIRE}
            for kind in OF_ALL:
                self.subscribers[Wanted(SERVERS, kind)] = set(range(1, shards + 1))
        else:
            self.subscribers[Wanted(WIRE, WHATEVER)] = {DIRECTORY}

    def new_ledger(self) -> Ledger:
        return PartLedger(self.load, self.overflow.sizes, self.keeps)

    def is_home(self, subject: Subject) -> bool:
        return part_of(subject, self.count) == self.number

    def keeps(self, subject: Subject) -> bool:
        """What connections add to what cannot be read is kept where they are, and told to the directory."""
        return subject == WIRE or (not is_everybody(subject) and self.is_home(subject))

    # -- judging ------------------------------------------------------------------------------------------------------

    def separate_clusters(self) -> None:
        if self.number == DIRECTORY:
            self.ledger.reader = SERVERS
            super().separate_clusters()
            self.ledger.reader = ()
        else:
            self.clusters, self.without = self.told_clusters, None

    def strange(self, touched: Iterable[Subject]) -> set[Subject] | None:
        if self.number == DIRECTORY:
            return super().strange(touched)
        return self.strangers.news()

    def every_subject(self) -> set[Subject]:
        return super().every_subject() | ({WIRE} if WIRE in self.ledger.replicas else set())

    def context(self) -> CheckContext:
        self.separate_clusters()
        context = PartContext(self.ledger, self.clusters, self.settings, self.watermark_ns, self.strangers)
        context.failures = [*self.failures, *chain.from_iterable(self.failures_of.values())]
        context.agents = self.agents
        return context

    def re_evaluate(self, subject: Subject, context: CheckContext, *, forget: bool = False) -> Iterator[EmittedRow]:
        if not self.is_home(subject):
            return
        if subject == SERVERS:
            context.failures = [*self.failures, *chain.from_iterable(self.failures_of.values())]
        context.topics.clear()
        context.writers = None
        self.strangers.links.clear()
        self.ledger.reader = subject
        try:
            yield from super().re_evaluate(subject, context, forget=forget)
        finally:
            self.ledger.reader = ()

    # -- telling each other -------------------------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        for wanted in message.asks:
            self.new_subscribers.add((message.sender, wanted))
            self.subscribers[wanted].add(message.sender)
        for subject, packed, gone in message.claims:
            self.ledger.receive(message.sender, subject, unpack(packed), gone)
            if subject == SERVERS:
                self.ledger.touched.add(SERVERS)
        if message.clusters is not None:
            self.told_clusters = ToldClusters(self.label, message.clusters)
            self.ledger.touched.add(SERVERS)
        if message.strangers is not None:
            self.strangers.hear(message.strangers)
        if message.failures is not None:
            self.failures_of[message.sender], self.failures.changed = message.failures, True

    def messages(self) -> dict[int, Message]:
        """What is to be told since the last time, by the part that it is for."""
        found = {number: Message(self.number) for number in range(self.count + 1) if number != self.number}
        for wanted in self.ledger.asks:
            for number in self.owners(wanted.subject):
                found[number].asks.add(wanted)
        self.ledger.asks = set()
        for (part, subject), (changed, gone) in self.news().items():
            found[part].claims.append((subject, pack(changed.values()), gone))
        if self.number == DIRECTORY:
            self.tell_all(found.values())
        elif self.has_changed("failures", failing := [*self.failures]):
            found[DIRECTORY].failures = failing
        return {number: message for number, message in found.items() if message}

    def owners(self, subject: Subject) -> set[int]:
        """Whom to ask about a subject, or about all of a space."""
        if is_everybody(subject):
            return set(range(1, self.count + 1)) - {self.number}
        return {part_of(subject, self.count)}

    def tell_all(self, messages: Iterable[Message]) -> None:
        """Who belongs together, and who is a stranger, where that has changed."""
        clusters, strangers = told(self.clusters), self.strangers.told()
        news = self.has_changed("clusters", clusters), self.has_changed("strangers", strangers)
        for message in messages:
            message.clusters = clusters if news[0] else None
            message.strangers = strangers if news[1] else None

    def has_changed(self, what: str, now: Any) -> bool:
        before, self.last_told[what] = self.last_told.get(what), now
        return bool(before != now)

    def news(self) -> dict[tuple[int, Subject], News]:
        """By part and subject the claims that it asked for and that have changed, and those that are gone."""
        found: dict[tuple[int, Subject], News] = {}
        for part, (about, kind) in self.new_subscribers:
            for subject in [*self.ledger.subjects(about[0])] if is_everybody(about) else [about]:
                said = found.setdefault((part, subject), News({}, []))
                for claim in self.ledger.claims_of(*subject).values():
                    if kind in {stated(claim.kind), WHATEVER}:
                        said.changed[claim.identity] = claim
        self.new_subscribers.clear()
        moved, self.ledger.moved = self.ledger.moved, defaultdict(set)
        for subject, identities in moved.items():
            claims = self.ledger.claims_of(*subject)
            for identity in identities:
                for part in self.asked_by(subject, stated(identity[0])):
                    said = found.setdefault((part, subject), News({}, []))
                    if identity in claims:
                        said.changed[identity] = claims[identity]
                    else:
                        said.gone.append(identity)
        return {about: said for about, said in found.items() if any(said)}

    def asked_by(self, subject: Subject, kind: str) -> set[int]:
        wanted = [Wanted(about, one) for about in {subject, subject[:1]} for one in (kind, WHATEVER)]
        return {part for one in wanted for part in self.subscribers.get(one, ())}


def is_everybody(subject: Subject) -> bool:
    """Whether a space is named and nobody in it: every subject of it, on every shard."""
    return len(subject) == 1 and HOMES[subject[0]] != "directory"
