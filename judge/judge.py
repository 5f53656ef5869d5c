"""The judge of one cluster label: claims and progress in, revisions of rows out.

Rule: rows are a pure function of the ledger, the settings and the watermark; one is emitted again only if it differs,
and withdrawn when nothing makes it any more. Time is capture time. What raises is a value (`failures.py`): it ends
nothing else, and the rows of its subject stand.
"""

from collections.abc import Container, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import orjson

from wirecheck.judge.agents import AgentFrontiers, Marks, claims_of
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks import evaluate
from wirecheck.judge.claims.claim import LAST, SLOT_NS, SUCCESS, Claim, Subject, every_run
from wirecheck.judge.claims.extract.log_entries import CHUNK, Snapshots
from wirecheck.judge.claims.kinds import SPACES
from wirecheck.judge.failures import AGEING, ASSEMBLY, FILING, STRANGERS, Failures, failure
from wirecheck.judge.ledger import ageing
from wirecheck.judge.ledger.emitted_rows import NEVER, EmittedRows, table_of, withdrawn
from wirecheck.judge.ledger.ledger import Ledger, Load, state_of, stored
from wirecheck.judge.life_cycle import CONNECTION, CONNECTION_NS, EVERY_NS, Agenda, Settlement
from wirecheck.judge.results.result_table import Body
from wirecheck.judge.subject_eviction import Overflow, SubjectEvictor, too_many_connections
from wirecheck.judge.thresholds import Settings
from wirecheck.judge.topic_history import REPORTS
from wirecheck.judge.topology.clusters import Clusters, separate
from wirecheck.judge.topology.strangers import Strangers

MAIN, SNAPSHOTS, OVERFLOW = "main", "snapshots", "beyond"
SERVERS: Subject = ("server",)
AGENTS: Subject = ("agent",)
EMPTY: Any = {"agents": {}, "pending": [], "late": 0, "aged_ns": 0, "strangers": None}


class EmittedRow(NamedTuple):
    table: str
    key: str
    revision: int
    body: Body


class Judge:
    def __init__(self, label: str, load: Load | None = None, settings: Settings | None = None) -> None:
        self.label, self.settings = label, settings or Settings()
        self.load: Load = load or (lambda _name: None)
        self.stored = partial(state_of, self.load)  # no method: a ring of objects is not freed at once
        self.overflow = Overflow(self.settings, self.stored(OVERFLOW))
        self.ledger = Ledger(self.load, self.overflow.sizes)
        self.emitted = EmittedRows(self.stored)
        self.evictor = SubjectEvictor(self.ledger, self.emitted, self.overflow)
        main = self.stored(MAIN) or EMPTY
        self.agents = AgentFrontiers(main["agents"], self.settings.agent_silent_s)
        self.agenda = Agenda(self.stored, self.agents)
        self.pending: set[Subject] = {tuple(subject) for subject in main["pending"]}
        self.late: int = main["late"]
        self.aged_ns: int = main["aged_ns"]
        """Up to which capture time the ledger was looked through for what has left."""
        self.snapshots = Snapshots(self.stored(SNAPSHOTS))
        self.failures = Failures(main.get("failing", ()))
        self.ages = partial(self.failures.attempt, AGEING)
        self.settlement = Settlement(self.ledger, self.failures, self.emitted, self.agenda)
        self.without: str | None = None
        """The endpoint that had to be left out to tell who belongs together."""
        self.strangers = Strangers(self.ledger, main["strangers"])
        self.clusters = Clusters(label)
        self.lives = self.context().life_facts()
        """Which metadata logs began another life."""

    def absorb(self, claims: Iterable[Claim]) -> None:
        """File claims; chunks of snapshots of the metadata log as what they come to."""
        oldest_ns, claims = self.oldest_ns, [*claims]
        others = [claim for claim in claims if claim.kind != CHUNK]
        self.late += self.ledger.absorb_all(others, oldest_ns, partial(self.raised, FILING))
        for chunk in [claim for claim in claims if claim.kind == CHUNK]:
            if chunk.last.ts_ns < oldest_ns:
                self.late += 1
                continue
            try:
                for part in self.snapshots.receive(chunk):
                    self.ledger.absorb(part)
            except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
                self.raised(ASSEMBLY, chunk, error)

    def raised(self, step: str, claim: Claim, error: Exception) -> None:
        self.failures.add(failure(step, (step, str(claim.kind)), error, seen=[claim.last]))

    @property
    def oldest_ns(self) -> int:
        """The horizon: a claim that was last seen before it is counted as late, not judged. Agents of which all files
        are known are waited for, so another agent's fast clock makes none of their frames late.
        """
        return self.agents.passed_ns - self.settings.horizon_s * 1_000_000_000

    def on_marks(self, said: Marks) -> None:
        """What an agent says about itself: frames skipped or dropped, input it could not read."""
        for claim in claims_of(said, self.watermark_ns):
            self.ledger.absorb(claim)

    def progress(self, agent: str, last_ts_ns: int, ended: bool) -> None:
        """The agent has shown everything up to this capture time, in every bucket."""
        self.agents.progress(agent, last_ts_ns, ended=ended)
        if ended:
            self.ledger.touched.add(AGENTS)

    @property
    def watermark_ns(self) -> int:
        return self.agents.watermark_ns

    def rows(self) -> list[EmittedRow]:
        """The revisions of rows that are new or have changed since the last call."""
        left = [row for subject in self.evictor.evict_subjects() for row in self.left(subject)]
        cut_subjects = self.evictor.evict_claims()
        self.repeated()
        due = self.agenda.due_now()
        settled = self.settled(due)
        unsaid = self.strange(self.ledger.touched | due)
        before, without, context = self.clusters, self.without, self.context()
        lives, self.lives = self.lives, context.life_facts()
        moved = self.clusters.moved(before) or self.without != without or lives != self.lives
        subjects = self.dirty(due) | (self.every_subject() if unsaid is None or moved else self.beside(unsaid))
        connections = {one for one in subjects if one[0] == CONNECTION} - settled
        subjects -= connections - due  # no check looks at one
        beyond_doubt = self.strangers.beyond_doubt(subjects) - self.pending  # nearly all hosts, with every batch
        subjects -= {host for host in beyond_doubt if not self.emitted.rows(host)}
        self.ledger.touched.clear()
        changed = list(self.judged(subjects | settled, context, forget=cut_subjects))
        self.settlement.schedule(connections)
        self.settlement.leave(settled)
        changed += self.aged()
        self.agenda.before_ns = self.watermark_ns
        others = self.overflow.rows(self.label, self.clusters.unknown.cluster)
        return [*left, *changed, *(EmittedRow(*row) for row in others)]

    def settled(self, due: set[Subject]) -> set[Subject]:
        """Connections that settle with this batch; what they add to sums is added."""
        lacking = {one for one in due if one[0] == CONNECTION and not self.agenda.due[one]}
        early = {*too_many_connections(self.ledger, self.settings.most_connections)}
        self.settlement.take_account(self.ledger.touched | due | early, lacking)
        if early:
            self.overflow.left["connection"] += len(early)
        passed_ns = self.agents.passed_ns
        found = {one for one in due if one[0] == CONNECTION and self.settlement.settled(one, passed_ns)} | early
        self.settlement.settle(found)
        return found

    def repeated(self) -> None:
        """Subjects of which nothing new was stated wait for their slot, or their minute."""
        ledger, connections = self.ledger, {one for one in self.ledger.touched if one[0] == CONNECTION}
        paces = dict.fromkeys(ledger.flowing, EVERY_NS) | dict.fromkeys(ledger.repeated, SLOT_NS)
        for subject in paces.keys() - ledger.touched:
            if subject[0] == CONNECTION:
                self.agenda.repeats(subject, CONNECTION_NS)
            elif subject[0] != "host" or self.strangers.doubted(subject[1]):
                self.agenda.repeats(subject, paces[subject])
        for subject in connections:
            self.agenda.repeats(subject, EVERY_NS)
        self.settlement.schedule(connections)
        ledger.repeated.clear()
        ledger.flowing.clear()

    def left(self, subject: Subject) -> Iterator[EmittedRow]:
        """The rows of a topic or client that there is no room for are withdrawn."""
        self.agenda.drop(subject)
        self.pending.discard(subject)
        for name, number, body in self.evictor.withdraw(subject):
            table, _, key = name.partition("|")
            yield EmittedRow(table, key, number, body)

    def judged(
        self, subjects: set[Subject], context: CheckContext, *, forget: Container[Subject] = ()
    ) -> Iterator[EmittedRow]:
        """The servers come last: with them stands what could not be judged of all others."""
        for subject in sorted(subjects - {SERVERS}):
            yield from self.re_evaluate(subject, context, forget=subject in forget)
        if SERVERS in subjects or self.failures.changed:
            yield from self.re_evaluate(SERVERS, context, forget=SERVERS in subjects and SERVERS in forget)
            self.failures.changed = False
        self.waiting(context)

    def strange(self, touched: Iterable[Subject]) -> set[Subject] | None:
        """What to judge again since who is a stranger has changed; where that cannot be told, it stays as it was."""
        self.failures.forget(STRANGERS)
        try:
            return self.strangers.look(touched)
        except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
            self.failures.add(failure(STRANGERS, (STRANGERS,), error))
            return set()

    def every_subject(self) -> set[Subject]:
        return {subject for space in SPACES if space != CONNECTION for subject in self.ledger.subjects(space)}

    def separate_clusters(self) -> None:
        stated = self.ledger.claims_of(*SERVERS).values()
        self.clusters, self.without = separate(self.label, stated, self.connections, self.failures, self.reports)

    def connections(self, endpoint: str) -> Iterator[tuple[int, int]]:
        for busy in self.ledger.claims("busy", "link", endpoint):
            yield from ((first_ns, last_ns) for first_ns, last_ns in busy.peak["spans"])

    def reports(self, endpoint: str, topic_id: str) -> tuple[Claim, int] | None:
        """An endpoint's first report of a topic ID, and when it reported or served it last."""
        own = [claim for claim in self.ledger.claims_of("id", topic_id).values() if claim.server() == endpoint]
        told = [claim for claim in own if claim.kind == "binding" and claim["source"] in REPORTS]
        served = (run[LAST] for claim in own if claim.kind == "use" for run in every_run(claim.runs, {SUCCESS}))
        first = min(told, key=lambda claim: (claim.first, repr(claim.key)), default=None)
        return (first, max([*(claim.last.ts_ns for claim in told), *served])) if first is not None else None

    def context(self) -> CheckContext:
        self.separate_clusters()
        context = CheckContext(self.ledger, self.clusters, self.settings, self.watermark_ns, self.strangers)
        context.failures = self.failures
        context.agents = self.agents
        return context

    def waiting(self, context: CheckContext) -> None:
        """Remember which subjects must be judged again, and when."""
        for subject, due_ns in context.due.items():
            self.agenda.wait(subject, due_ns)
        self.pending |= context.pending
        context.topics.clear()  # they point back: a ring is not freed before it is looked for

    def aged(self) -> list[EmittedRow]:
        """Take what has left out of the ledger, once in a while; rows that rested on it alone stand."""
        if self.agenda.before_ns // ageing.FOLDED_NS < self.watermark_ns // ageing.FOLDED_NS:
            ageing.fold(self.ledger, self.agents.passed_ns - ageing.FOLDED_NS, self.ages)
        before_ns, due_ns = self.aged_ns, self.aged_ns + self.settings.ageing_s * 1_000_000_000
        if before_ns and self.watermark_ns < due_ns:
            return []
        self.aged_ns = self.watermark_ns
        if not before_ns:
            return []
        self.failures.forget(AGEING)
        horizon_ns = self.settings.horizon_s * 1_000_000_000
        oldest_ns = self.watermark_ns - horizon_ns
        subjects = self.beside(ageing.age(self.ledger, oldest_ns, self.ages))
        if before_ns // horizon_ns < self.aged_ns // horizon_ns:
            shortened = self.beside(ageing.shorten(self.ledger, oldest_ns, self.ages))
            subjects |= {one for one in shortened if self.emitted.has_finding(one)}  # only findings rest on slots
        self.strange(subjects)
        return list(self.judged(subjects, self.context(), forget=subjects))

    def beside(self, subjects: set[Subject]) -> set[Subject]:
        return subjects | {near for subject in subjects for near in evaluate.neighbours(subject, self.ledger)}

    def dirty(self, due: set[Subject]) -> set[Subject]:
        """Subjects of which something is new, whose time has come, or that look at one of these."""
        found = self.ledger.touched | due
        if SERVERS in found or self.agents.over:
            found |= self.pending
        return self.beside(found)

    def re_evaluate(self, subject: Subject, context: CheckContext, *, forget: bool = False) -> Iterator[EmittedRow]:
        """Judge one subject again and compare with its rows of before; what nothing makes any more is withdrawn, or,
        after ageing, forgotten: it stands as it was emitted last.
        """
        context.subject = subject
        self.agenda.drop(subject)
        self.pending.discard(subject)
        context.failed = []
        known = self.emitted.rows(subject)
        later = None if forget else self.agenda.held_back(subject, known)
        now = {f"{row.table}|{row.id}": row for row in evaluate.rows_of(subject, context, later)}
        self.failures.judged(subject, context.failed)
        failed = {one.check for one in context.failed}
        stranger = self.evictor.admitted(subject, known, now)
        for name in sorted({*known, *now}):
            before, row = known.get(name, NEVER), now.get(name)
            if later and row is None and table_of(name) == later:
                continue
            if failed and row is None and evaluate.undecided(name, before.body, failed):
                continue  # it stands as it was emitted: nobody knows better now
            if row is None:
                self.evictor.closes(name, before)
            if forget and row is None:
                self.emitted.forget(subject, name)
                continue
            body = row.body if row else withdrawn(before.body)
            if (row or before.open) and body != before.body:
                if row and not forget and self.agenda.may_wait(subject, before, row):
                    continue
                before = before if before.open else before._replace(stranger=stranger)
                number = self.emitted.emit(subject, name, before, body, is_open=row is not None)
                table, _, key = name.partition("|")
                yield EmittedRow(table, key, number, body)

    def shards(self) -> dict[str, bytes]:
        """State that has changed since the last call, by the name it is loaded by."""
        main = {
            "agents": self.agents,
            "pending": sorted(self.pending),
            "late": self.late,
            "aged_ns": self.aged_ns,
            "failing": self.failures.stored(),
            "strangers": self.strangers.state(),
        }
        ledger = self.ledger.shards()
        states: dict[str, Any] = {
            MAIN: main,
            OVERFLOW: self.overflow.state(),
            **self.agenda.changed_shards(),
        }
        states |= self.emitted.changed_shards()
        if self.snapshots.changed:
            states[SNAPSHOTS], self.snapshots.changed = self.snapshots.state(), False
        # named tuples are none of orjson's own
        return {**ledger, **{name: stored(name, orjson.dumps(state, default=tuple)) for name, state in states.items()}}
