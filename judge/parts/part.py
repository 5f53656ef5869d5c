"""One part of the judge of a label: the directory, or one of its shards.

Knows: which subjects it judges, what other parts asked of it, and what it has to tell them after a batch. Does not know
how messages travel.
Rule: the directory alone tells who belongs together and who is a stranger; a shard takes its word. All else that a part
reads elsewhere it asks for, subject by subject and kind by kind, and is told whenever it changes. Once nobody has
anything to tell any more, the rows of all parts are those of one judge.
"""

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, product
from typing import Any, NamedTuple

import orjson

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.declared_reads import HOMES
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.log_snapshots import CHUNK
from wirecheck.judge.judge import SERVERS, EmittedRow, Judge, as_bytes
from wirecheck.judge.ledger import ageing
from wirecheck.judge.ledger.ledger import Ledger, Load, state_of
from wirecheck.judge.parts.homes import DIRECTORY, part_of, parts_of
from wirecheck.judge.parts.kept_sets import KeptSets
from wirecheck.judge.parts.part_context import PartContext
from wirecheck.judge.parts.part_ledger import PartLedger, stated
from wirecheck.judge.parts.part_message import (
    WHATEVER,
    Identity,
    Message,
    News,
    Shown,
    Wanted,
    as_json,
    clusters_told,
    restored,
    stored,
)
from wirecheck.judge.parts.part_strangers import PartStrangers
from wirecheck.judge.parts.told_clusters import ToldClusters, told
from wirecheck.judge.settlement import WIRE
from wirecheck.judge.thresholds import Settings
from wirecheck.judge.topology.clusters import Clusters

NOTHING = zlib.crc32(b"[]")
OF_ALL = ("log_order", "control", "advertised")
"""Of servers, what every shard rests on: which entries of the metadata log stand, who gives orders, and versions."""
PART = "part"
"""What only a part keeps, by its name in the state; all else is a judge's."""


class Changes(NamedTuple):
    """Of one subject what has changed, and what is gone."""

    changed: dict[Identity, Claim]
    gone: list[Identity]


class Part(Judge):
    ledger: PartLedger
    strangers: PartStrangers

    def __init__(
        self, label: str, number: int, shards: int, load: Load | None = None, settings: Settings | None = None
    ) -> None:
        self.number, self.count = number, shards
        self.separated = False
        """Whether clusters were told apart in this batch."""
        kept = state_of(load, PART) if load else None
        kept = kept or {"clusters": None, "told": {}, "failures": [], "heard": [[], [], False]}
        self.clusters_told: Any = kept["clusters"]
        """On a shard, what the directory said last; None as long as it has said nothing."""
        self.clusters = self.told_clusters = self.clusters_of(label)
        self.new_subscribers: set[tuple[int, Wanted]] = set()
        """Who has asked since the last messages, and is told all there is."""
        self.failures_of = {sender: restored(failed) for sender, failed in kept["failures"]}
        """On the directory, what each shard could not judge."""
        self.told_last: dict[str, int] = kept["told"]
        """Sums of what is told as a whole."""
        self.filed: dict[int, list[Claim]] = defaultdict(list)
        """What was put together here since the last messages and is at home there."""
        self.shown: dict[str, Shown] = {}
        """How far agents have come, since the last messages."""
        super().__init__(label, load, settings)
        self.subscribers: KeptSets[int] = KeptSets("subscribers", self.stored, int)
        """Who is told of what is at home here."""
        self.strangers = PartStrangers(self.ledger, self.strangers.state())
        known = self.strangers.known
        known.kafka, known.raft, known.by_name = set(kept["heard"][0]), set(kept["heard"][1]), kept["heard"][2]
        self.source = f"{label}|{number}"
        self.agents.expected = number != DIRECTORY  # it hears of them from there, after what they showed
        self.follow_all()

    def follow_all(self) -> None:
        """What is told without being asked for."""
        if self.number == DIRECTORY:
            self.ledger.readers.add(Wanted(WIRE, WHATEVER), WIRE)
            for kind, number in product(OF_ALL, range(1, self.count + 1)):
                self.subscribers.add(Wanted(SERVERS, kind), number)
        else:
            self.subscribers.add(Wanted(WIRE, WHATEVER), DIRECTORY)

    def clusters_of(self, label: str) -> Clusters:
        return ToldClusters(label, clusters_told(self.clusters_told)) if self.clusters_told else Clusters(label)

    def new_ledger(self) -> Ledger:
        return PartLedger(self.load, self.overflow.sizes, self.keeps)

    def is_home(self, subject: Subject) -> bool:
        return part_of(subject, self.count) == self.number

    def keeps(self, subject: Subject) -> bool:
        """What connections add to what cannot be read is kept where they are, and told to the directory."""
        return subject == WIRE or (not is_everybody(subject) and self.is_home(subject))

    def take(self, claim: Claim, oldest_ns: int) -> None:
        if claim.kind != CHUNK or claim.last.ts_ns < oldest_ns:
            super().take(claim, oldest_ns)
            return
        for said in self.snapshots.receive(claim):
            self.ledger.absorb(said)
            for number in {*parts_of(said, self.count)} - {self.number}:
                self.filed[number].append(said)

    def show(self, agent: str, ts_ns: int, *, ended: bool) -> None:
        """An agent's progress, to this part and, with the next messages, to all shards."""
        self.progress(agent, ts_ns, ended)
        self.shown[agent] = Shown(agent, ts_ns, ended)

    # -- judging ------------------------------------------------------------------------------------------------------

    def separate_clusters(self) -> None:
        """On the directory only where what servers say of themselves, or what was read for it, has changed since."""
        if self.number == DIRECTORY:
            if self.separated and SERVERS not in self.ledger.touched and SERVERS not in self.ledger.moved:
                return
            self.ledger.reader = SERVERS
            super().separate_clusters()
            self.ledger.reader = ()
            self.separated = True
        else:
            self.clusters, self.without = self.told_clusters, None

    def strange(self, touched: Iterable[Subject]) -> set[Subject] | None:
        if self.number == DIRECTORY:
            return super().strange(touched)
        return self.strangers.news()

    def attempt(self, age: Callable[[Ledger, int, ageing.Raised], set[Subject]]) -> set[Subject]:
        self.separated = False  # what was read for it may have left
        return super().attempt(age)

    def every_subject(self) -> set[Subject]:
        return super().every_subject() | ({WIRE} if WIRE in self.ledger.replicas else set())

    def aged(self) -> list[EmittedRow]:
        before_ns = self.aged_ns
        rows = super().aged()
        horizon_ns = self.settings.horizon_s * 1_000_000_000
        if before_ns // horizon_ns < self.aged_ns // horizon_ns:
            self.ledger.let_go(lambda reader: reader in {SERVERS, WIRE} or reader in self.ledger)
        return rows

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
        for wanted in message.unasks:
            self.subscribers.discard(wanted, message.sender)
        for wanted in message.asks:
            self.new_subscribers.add((message.sender, wanted))
            self.subscribers.add(wanted, message.sender)
        for news in message.claims:
            self.ledger.receive(message.sender, news)
            if news.subject == SERVERS:
                self.ledger.touched.add(SERVERS)
        for claim in message.filed:
            self.ledger.absorb(claim)
        for shown in message.shown:
            self.progress(*shown)
        if message.clusters is not None:
            self.clusters_told = orjson.loads(as_json(message.clusters))
            self.told_clusters = self.clusters_of(self.label)
            self.ledger.touched.add(SERVERS)
        if message.strangers is not None:
            self.strangers.hear(message.strangers)
        if message.failures is not None:
            self.failures_of[message.sender], self.failures.changed = message.failures, True

    def messages(self) -> dict[int, Message]:
        """What is to be told since the last time, by the part that it is for."""
        found = {number: Message(self.number) for number in range(self.count + 1) if number != self.number}
        asks, self.ledger.asks = self.ledger.asks, set()
        unasks, self.ledger.unasks = self.ledger.unasks, set()
        for wanted in asks:
            for number in self.owners(wanted.subject):
                found[number].asks.add(wanted)
        for wanted in unasks:
            for number in self.owners(wanted.subject):
                found[number].unasks.add(wanted)
        for (part, subject), (changed, gone) in self.news().items():
            found[part].claims.append(News(subject, [*changed.values()], gone))
        for part, filed in self.filed.items():
            found[part].filed = filed
        self.filed = defaultdict(list)
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
        news = self.has_changed("clusters", clusters), self.has_changed("strangers", strangers) or strangers.everything
        for message in messages:
            message.clusters = clusters if news[0] else None
            message.strangers = strangers if news[1] else None
            message.shown = [*self.shown.values()]
        self.shown = {}

    def has_changed(self, what: str, now: Any) -> bool:
        """Since it was told last; nothing was before the first time."""
        before, self.told_last[what] = self.told_last.get(what, NOTHING), zlib.crc32(as_json(now))
        return before != self.told_last[what]

    def news(self) -> dict[tuple[int, Subject], Changes]:
        """By part and subject the claims that it asked for and that have changed, and those that are gone."""
        found: dict[tuple[int, Subject], Changes] = {}
        for part, (about, kind) in self.new_subscribers:
            for subject in [*self.ledger.subjects(about[0])] if is_everybody(about) else [about]:
                said = found.setdefault((part, subject), Changes({}, []))
                for claim in self.ledger.claims_of(*subject).values():
                    if kind in {stated(claim.kind), WHATEVER}:
                        said.changed[claim.identity] = claim
        self.new_subscribers.clear()
        moved, self.ledger.moved = self.ledger.moved, defaultdict(set)
        of_all = {space: self.subscribers.kinds((space,)) for space in {subject[0] for subject in moved}}
        for subject, identities in moved.items():
            asked = [kinds for kinds in (self.subscribers.kinds(subject), of_all[subject[0]]) if kinds]
            if not asked:
                continue
            claims = self.ledger.claims_of(*subject)
            for identity in identities:
                kind = stated(identity[0])
                for part in {part for kinds in asked for one in (kind, WHATEVER) for part in kinds.get(one, ())}:
                    said = found.setdefault((part, subject), Changes({}, []))
                    if identity in claims:
                        said.changed[identity] = claims[identity]
                    else:
                        said.gone.append(identity)
        return {about: said for about, said in found.items() if any(said)}

    def shards(self) -> dict[str, bytes]:
        known = self.strangers.known
        kept = {
            "clusters": self.clusters_told,
            "told": self.told_last,
            "failures": [(sender, stored(failed)) for sender, failed in sorted(self.failures_of.items())],
            "heard": (sorted(known.kafka), sorted(known.raft), known.by_name),
        }
        states = {PART: kept, **self.subscribers.changed_shards(), **self.ledger.readers.changed_shards()}
        return {**super().shards(), **{name: as_bytes(name, state) for name, state in states.items()}}


def is_everybody(subject: Subject) -> bool:
    """Whether a space is named and nobody in it: every subject of it, on every shard."""
    return len(subject) == 1 and HOMES[subject[0]] != "directory"
