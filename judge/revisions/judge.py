"""The judge of one cluster label: claims and progress in, revisions of rows out.

Rule: rows are a pure function of the ledger, the settings and the watermark. A row is emitted again only if it differs,
and is withdrawn when it is no longer made. Time is capture time. Exceptions become values (`failures.py`): they stop
nothing else, and the earlier rows of their subject remain.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from functools import partial
from typing import Any

import orjson

from wirecheck.judge.agents import AgentFrontiers, Marks, claims_of, clock_groups
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks import evaluate
from wirecheck.judge.checks.filed import neighbours
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.extract.log_entries import CHUNK, Snapshots
from wirecheck.judge.claims.kinds import SPACES
from wirecheck.judge.claims.outcomes import SLOT_NS, SUCCESS
from wirecheck.judge.connections import Connections
from wirecheck.judge.ledger import ageing
from wirecheck.judge.ledger.emitted_rows import NEVER, EmittedRow, EmittedRows, withdrawn
from wirecheck.judge.ledger.failures import (
    AGEING,
    ASSEMBLY,
    FILING,
    FORWARDERS,
    HOST_NAMES,
    UNAUTHENTICATED_HOSTS,
    Failures,
    failure,
)
from wirecheck.judge.ledger.ledger import Ledger, Load, state_of, stored
from wirecheck.judge.results import coverage_rows
from wirecheck.judge.results.judged_tables import COVERAGE
from wirecheck.judge.revisions.schedule import CONNECTION, CONNECTION_NS, MINUTE_NS, NEVER_NS, Schedule
from wirecheck.judge.revisions.subject_eviction import SubjectEvictor, too_many_connections
from wirecheck.judge.thresholds import SECOND_NS, Settings
from wirecheck.judge.topic_history import REPORTS
from wirecheck.judge.topology.clusters import Clusters, Doubted, separate
from wirecheck.judge.topology.forwarding import SENT_ON, forwarding_of, serving_hosts
from wirecheck.judge.topology.host_names import HostNames
from wirecheck.judge.topology.unauthenticated_hosts import UnauthenticatedHosts

MAIN, SCHEDULE, SNAPSHOTS, OVERFLOW = "main", "schedule", "snapshots", "overflow"
SERVERS: Subject = ("server",)
AGENTS: Subject = ("agent",)
MANY_CONNECTIONS = 10_000
"""Of more, those that have closed are kept as bytes until they settle, which takes a tenth more time."""
EMPTY: Any = {"agents": {}, "watching": [], "late": 0, "aged_ns": 0, "failing": (), "unauthenticated_hosts": None}


class Judge:
    def __init__(self, label: str, load: Load | None = None, settings: Settings | None = None) -> None:
        self.label, self.settings = label, settings or Settings()
        self.load: Load = load or (lambda _name: None)
        self.stored = partial(state_of, self.load)  # no method: a ring of objects is not freed at once
        main, overflow = self.stored(MAIN) or EMPTY, self.stored(OVERFLOW)
        self.agents = AgentFrontiers(main["agents"], self.settings.agent_silent_s)
        self.schedule = Schedule(self.stored(SCHEDULE), self.agents)
        self.watching: set[Subject] = {tuple(subject) for subject in main["watching"]}
        """Subjects that depend on what any server states."""
        self.late: int = main["late"]
        self.aged_ns: int = main["aged_ns"]
        """Up to which capture time expired claims were looked for."""
        self.folded_ns: int = main.get("folded_ns", 0)
        """The same of successes that are counted by blocks."""
        self.failures = Failures(main["failing"])
        self.ledger = Ledger(self.load, overflow["sizes"] if overflow else None, label)
        self.emitted = EmittedRows(self.stored)
        self.evictor = SubjectEvictor(self.ledger, self.emitted, self.settings, overflow)
        self.snapshots = Snapshots(self.stored(SNAPSHOTS))
        self.connections = Connections(self.ledger, self.failures)
        self.unauthenticated_hosts = UnauthenticatedHosts(self.ledger, main["unauthenticated_hosts"])
        self.host_names = HostNames(self.ledger, main.get("host_names"))
        self.excluded: str | None = None
        """The endpoint without which alone the clusters could be separated."""
        self.clusters = Clusters(label)
        self.sent_on: list[Claim] = []
        """Samples of what clients' hosts send, until it is known which of these hosts serve, too."""
        context = self.context()
        self.log_generations = context.generation_facts()
        """The metadata logs that have more than one generation."""
        self.through, self.clocks = context.forwarding.through, context.clocks
        """The back legs of forwarders."""
        self.dirty: set[Subject] = set()
        """Subjects to judge again."""
        self.all_dirty = False
        self.expired: set[Subject] = set()
        """Subjects that lost claims since they were judged."""
        self.counts_together = not self.settings.detail_rows
        """Whether connections that leave have rows together. Not once there are too many: of those some come back."""
        self.summed = 0
        """How often that was."""
        self.open: set[Subject] = set()
        """Connections with news in this batch that go on."""
        self.began_ns, self.judged_ns = NEVER_NS if main is EMPTY else 0, 0
        """The first that was seen in the time of this judge, 0 where it is not the first; and up to where subjects were
        judged in it.
        """

    # -- claims and progress in ---------------------------------------------------------------------------------------

    def absorb(self, claims: Iterable[Claim]) -> None:
        """File claims; chunks of snapshots of the metadata log as what they come to."""
        oldest_ns, claims = self.oldest_ns, [*claims]
        self.began_ns = min(self.began_ns, min((claim.first.ts_ns for claim in claims), default=NEVER_NS))
        timely = [claim for claim in claims if claim.last.ts_ns >= oldest_ns]
        self.late += len(claims) - len(timely)
        kept = [claim for claim in timely if claim.kind not in {CHUNK, SENT_ON}]
        self.ledger.absorb_all(kept, partial(self.raised, FILING))
        self.sent_on += [claim for claim in timely if claim.kind == SENT_ON]
        for chunk in [claim for claim in timely if claim.kind == CHUNK]:
            try:
                self.ledger.absorb_all(self.snapshots.receive(chunk), partial(self.raised, ASSEMBLY))
            except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
                self.raised(ASSEMBLY, chunk, error)

    def file_samples(self) -> None:
        """Keep samples of what a host sends only if it serves: no other host forwards."""
        samples, self.sent_on = self.sent_on, []
        serving = serving_hosts(self.ledger) if samples else ()
        self.ledger.absorb_all([one for one in samples if one["host"] in serving], partial(self.raised, FILING))

    def raised(self, step: str, claim: Claim, error: Exception) -> None:
        self.failures.add(failure(step, (step, str(claim.kind)), error, seen=[claim.last]))

    @property
    def oldest_ns(self) -> int:
        """The horizon: a claim that was last seen before it is counted as late, and not judged. Agents whose files are
        all known are waited for, so that a fast clock of another agent makes none of their frames late.
        """
        return self.agents.passed_ns - self.settings.horizon_s * 1_000_000_000

    def on_marks(self, marks: Marks) -> None:
        """What an agent reports about itself: skipped or dropped frames, input that it could not read."""
        for claim in claims_of(marks, self.watermark_ns):
            self.ledger.absorb(claim)

    def progress(self, agent: str, last_ts_ns: int, ended: bool) -> None:
        """The agent has shown everything up to this capture time, in every bucket."""
        self.agents.progress(agent, last_ts_ns, ended=ended)
        if ended:
            self.ledger.touched.add(AGENTS)

    @property
    def watermark_ns(self) -> int:
        return self.agents.watermark_ns

    # -- rows out -----------------------------------------------------------------------------------------------------

    def rows(self) -> list[EmittedRow]:
        return [*self.revisions()]

    def revisions(self, *, waiting: bool = False, last: bool = False) -> Iterator[EmittedRow]:
        """The revisions of rows that are new or have changed since the last call. `waiting`: of connections that settle
        alone, because they leave; all others wait for a later call. `last`: there is none, and all connections leave.
        """
        self.emitted.last = last and not self.ages
        self.failures.attempt(FORWARDERS, (), self.file_samples)
        for subject in self.evictor.evict_subjects():
            yield from self.withdraw(subject)
        self.expired |= self.evictor.evict_claims()
        self.schedule_repeated()
        due = self.schedule.due()
        settled = self.settle(due)
        context = self.look_around(due, settled)
        growing = {subject for subject in due if subject[0] == CONNECTION} - settled
        subjects = settled if waiting else self.taken_dirty() | settled
        connections = {subject for subject in subjects if subject[0] == CONNECTION}
        yield from self.of_connections(connections, context, connections if last else settled)
        yield from self.judged(subjects - connections, context, expired=self.expired)
        for subject in due - subjects:
            self.schedule.drop(subject)
        self.expired -= subjects
        self.schedule_settling(growing)  # all others wait for it already
        self.connections.forget_added()
        if waiting and self.has_many_connections:
            self.ledger.put_away(CONNECTION, self.open)
        yield from self.age(last=last)
        self.schedule.before_ns = self.watermark_ns
        yield from self.evictor.rows(self.label, self.clusters.unknown.cluster)

    def look_around(self, due: set[Subject], settled: set[Subject]) -> CheckContext:
        """The context of this batch. Notes what is to be judged again because of it; connections that only grow are
        emitted in their minute.
        """
        changed = self.ledger.touched | due
        self.open = {subject for subject in changed if subject[0] == CONNECTION and self.connections.is_open(subject)}
        dependents = self.update_hosts(changed)
        context, regrouped = self.regroup(changed)
        self.all_dirty |= regrouped or dependents is None
        self.dirty |= (changed | (dependents or set())) - settled
        self.dirty -= {subject for subject in self.ledger.touched if subject[0] == CONNECTION} - due
        self.ledger.touched.clear()
        return context

    def taken_dirty(self) -> set[Subject]:
        """All that is to be judged again."""
        dirty, self.dirty = self.dirty, set()
        if self.all_dirty:
            dirty |= self.every_subject()
        if SERVERS in dirty or self.agents.over:
            dirty |= self.watching
        self.all_dirty, self.judged_ns = False, self.watermark_ns
        return self.with_neighbours(dirty)

    def rows_that_wait(self) -> list[EmittedRow]:
        """Their revisions, as of the batch before: nothing is evicted for it, and nothing settles."""
        rows = list(self.judged(self.taken_dirty(), self.context(), expired=self.expired))
        self.expired.clear()
        return rows

    @property
    def has_many_connections(self) -> bool:
        """Whether what is known of connections takes most of the memory."""
        return self.ledger.count(CONNECTION) > MANY_CONNECTIONS

    def may_wait(self) -> bool:
        """Whether rows that wait come out the same: until claims expire, which is a horizon after the first. From then
        on they wait for so long as successes are kept apart.
        """
        ageing_ns = self.aged_ns + self.settings.ageing_s * SECOND_NS
        if self.watermark_ns < self.began_ns + self.settings.horizon_s * SECOND_NS:
            return True
        return self.watermark_ns < min(ageing_ns, self.judged_ns + ageing.FOLDED_NS)

    def may_come(self, claims: Iterable[Claim]) -> bool:
        """Whether these can come before what waits is judged: no bound changes what its rows are."""
        waiting = self.dirty | self.every_subject() if self.all_dirty else self.dirty
        return not waiting or self.evictor.may_come(claims, waiting)

    def withdraw(self, subject: Subject) -> Iterator[EmittedRow]:
        """The rows of a topic or client that was evicted."""
        self.schedule.drop(subject)
        self.watching.discard(subject)
        self.dirty.discard(subject)
        return self.evictor.withdraw(subject)

    def schedule_repeated(self) -> None:
        """Subjects of which nothing new was stated wait for their slot, or their minute."""
        ledger = self.ledger
        periods = dict.fromkeys(ledger.flowing, MINUTE_NS) | dict.fromkeys(ledger.repeated, SLOT_NS)
        for subject in periods.keys() - ledger.touched:
            if subject[0] == CONNECTION:
                self.schedule.within(subject, CONNECTION_NS)
            elif subject[0] != "host" or self.unauthenticated_hosts.doubted(subject[1]):
                self.schedule.within(subject, periods[subject])
        connections = [subject for subject in ledger.touched if subject[0] == CONNECTION]
        for subject in connections:
            self.schedule.within(subject, MINUTE_NS)
        self.schedule_settling(connections)
        ledger.repeated.clear()
        ledger.flowing.clear()

    def schedule_settling(self, connections: Iterable[Subject]) -> None:
        for subject in connections:
            settles_ns = self.connections.settles_ns(subject)
            if settles_ns is not None:
                self.schedule.at(subject, settles_ns)

    def settle(self, due: set[Subject]) -> set[Subject]:
        """Connections that settle with this batch; what they and all that changed add to sums is added."""
        early = {*too_many_connections(self.ledger, self.settings.most_connections)}
        self.counts_together &= not early
        self.evictor.evicted.update({CONNECTION: len(early)} if early else {})
        changed = self.ledger.touched | due | early
        self.connections.add_up(subject for subject in changed if subject[0] == CONNECTION)
        settles_ns = {subject: self.connections.settles_ns(subject) for subject in due if subject[0] == CONNECTION}
        settled = {one for one, ns in settles_ns.items() if ns is not None and ns <= self.agents.passed_ns} | early
        self.connections.settle(settled)
        return settled

    def of_connections(
        self, connections: Iterable[Subject], context: CheckContext, leaving: Container[Subject]
    ) -> Iterator[EmittedRow]:
        """The rows of connections. There may be very many: one that leaves does so before the next is looked at. Where
        no single connection is asked for, those that leave have rows together.
        """
        sums: Counter[tuple[str, str | None]] = Counter()
        for subject in sorted(connections):
            if not self.counts_together or subject not in leaving or self.emitted.rows(subject):
                yield from self.re_evaluate(subject, context, expired=subject in self.expired)
            else:
                self.count(subject, context, sums)
            context.filed.pop(subject, None)
            if subject in leaving:
                self.close(subject)
        self.summed += bool(sums)
        for row in coverage_rows.summed(sums, self.summed):
            yield EmittedRow(row.table, row.id, 1, row.body)

    def count(self, connection: Subject, context: CheckContext, sums: Counter[tuple[str, str | None]]) -> None:
        """Add what a connection would have as rows."""
        context.subject, context.failed = connection, []
        for measure, detail, count in evaluate.contained(
            COVERAGE.name, connection, context, coverage_rows.of_connection, connection, context
        ):
            sums[measure, detail] += count
        self.failures.judged(connection, context.failed)

    def close(self, connection: Subject) -> None:
        """Remove a connection. Its rows remain as emitted and are forgotten."""
        for name in sorted(self.emitted.rows(connection)):
            self.emitted.forget(connection, name)
        self.schedule.drop(connection)
        self.dirty.discard(connection)
        if connection in self.ledger:
            self.ledger.forget(connection)

    def update_hosts(self, dirty: Iterable[Subject]) -> set[Subject] | None:
        """The subjects to judge again because the claims of other hosts count now, None for all; empty if that is
        unknown.
        """
        self.failures.forget(UNAUTHENTICATED_HOSTS)
        try:
            return self.unauthenticated_hosts.look(dirty)
        except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
            self.failures.add(failure(UNAUTHENTICATED_HOSTS, (UNAUTHENTICATED_HOSTS,), error))
            return set()

    def regroup(self, news: Iterable[Subject]) -> tuple[CheckContext, bool]:
        """The context of this batch; and whether an endpoint moved to another cluster, a metadata log has a new
        generation, or other clients are behind a forwarder.
        """
        clusters, before = self.clusters, self.for_all
        context = self.context(news)
        self.log_generations, self.through = context.generation_facts(), context.forwarding.through
        self.clocks = context.clocks
        return context, self.clusters.moved(clusters) or self.for_all != before

    @property
    def for_all(self) -> tuple[Any, ...]:
        """What all subjects are judged by, besides the clusters."""
        return self.excluded, self.log_generations, self.through, self.clocks

    def context(self, news: Iterable[Subject] = ()) -> CheckContext:
        stated = self.ledger.claims_of(*SERVERS).values()
        unnamed = self.unauthenticated_hosts
        doubted = Doubted(frozenset(unnamed.servers), frozenset(unnamed.unlisted))
        self.clusters, self.excluded = separate(
            self.label,
            stated,
            self.busy,
            self.failures,
            reports=self.reports,
            doubted=doubted,
        )
        resolved = self.failures.retry(HOST_NAMES, (), self.host_names.look, news, self.clusters) or {}
        self.clusters.resolve(resolved, self.host_names.serving())
        return CheckContext(
            self.ledger,
            self.clusters,
            self.settings,
            self.watermark_ns,
            self.unauthenticated_hosts,
            failures=self.failures,
            agents=self.agents,
            forwarding=self.failures.retry(FORWARDERS, (), forwarding_of, self.ledger, self.clusters.addresses),
            clocks=clock_groups(self.ledger.claims("mark", "agent")),
        )

    def busy(self, endpoint: str) -> Iterator[tuple[int, int]]:
        """When connections to an endpoint carried requests."""
        for busy in self.ledger.claims("busy", "link", endpoint):
            yield from ((first_ns, last_ns) for first_ns, last_ns in busy.peak["spans"])

    def reports(self, endpoint: str, topic_id: str) -> tuple[Claim, int] | None:
        """An endpoint's first report of a topic ID, and when it reported or served it last."""
        own = [claim for claim in self.ledger.claims_of("id", topic_id).values() if claim.server() == endpoint]
        reported = [claim for claim in own if claim.kind == "binding" and claim["source"] in REPORTS]
        served = (run.last_ns for claim in own if claim.kind == "use" for run in claim.outcomes.runs({SUCCESS}))
        first = min(reported, key=lambda claim: (claim.first, repr(claim.key)), default=None)
        return (first, max([*(claim.last.ts_ns for claim in reported), *served])) if first is not None else None

    def every_subject(self) -> set[Subject]:
        return {subject for space in SPACES if space != CONNECTION for subject in self.ledger.subjects(space)}

    def with_neighbours(self, subjects: set[Subject]) -> set[Subject]:
        return subjects | {near for subject in subjects for near in neighbours(subject, self.ledger)}

    def judged(
        self, subjects: set[Subject], context: CheckContext, *, expired: Container[Subject] = ()
    ) -> Iterator[EmittedRow]:
        """The rows of some subjects. `expired`: subjects that lost claims. The servers come last, because their rows
        list the failures of all others.
        """
        for subject in sorted(subjects - {SERVERS}):
            yield from self.re_evaluate(subject, context, expired=subject in expired)
        if SERVERS in subjects or self.failures.changed:
            yield from self.re_evaluate(SERVERS, context, expired=SERVERS in subjects and SERVERS in expired)
            self.failures.changed = False
        for subject, due_ns in context.due.items():
            self.schedule.at(subject, due_ns)
        self.watching |= context.pending
        context.topics.clear()
        context.topic_logs.clear()  # they point back: a ring is not freed before it is looked for

    def re_evaluate(self, subject: Subject, context: CheckContext, *, expired: bool = False) -> Iterator[EmittedRow]:
        """Judge one subject again and compare with its earlier rows. A row that is no longer made is withdrawn, or,
        after claims have expired, forgotten: then it remains as it was emitted last.
        """
        context.subject = subject
        self.schedule.drop(subject)
        self.watching.discard(subject)
        context.failed = []
        context.topic_logs.clear()
        emitted = self.emitted.rows(subject)
        rows = {f"{row.table}|{row.id}": row for row in evaluate.rows_of(subject, context)}
        self.failures.judged(subject, context.failed)
        failed = {one.check for one in context.failed}
        unanswered = self.evictor.admit(subject, emitted, rows)
        for name in sorted({*emitted, *rows}):
            before, row = emitted.get(name, NEVER), rows.get(name)
            if row is None:
                if failed and evaluate.undecided(name, before.body, failed):
                    continue  # it stands as it was emitted: nobody knows better now
                self.evictor.closes(name, before)
                if expired:
                    self.emitted.forget(subject, name)
                    continue
            body = row.body if row else withdrawn(before.body)
            if (not row and not before.open) or body == before.body:
                continue
            if before.open:
                if row and not expired and self.schedule.may_wait(subject, before, row):
                    continue
            elif before.unanswered != unanswered:
                before = before._replace(unanswered=unanswered)
            yield self.emitted.emit(subject, name, before, body, is_open=row is not None)

    @property
    def ages(self) -> bool:
        """Whether claims expire with this batch."""
        return 0 < self.aged_ns <= self.watermark_ns - self.settings.ageing_s * SECOND_NS

    def age(self, *, last: bool) -> list[EmittedRow]:
        """Remove expired claims from the ledger, once per `ageing_s`. Rows that only rested on them remain."""
        attempt = partial(self.failures.attempt, AGEING)
        if not last and self.schedule.before_ns // ageing.FOLDED_NS < self.watermark_ns // ageing.FOLDED_NS:
            folded_ns, passed_ns = self.folded_ns, self.agents.passed_ns - ageing.FOLDED_NS
            if self.began_ns < passed_ns:  # else nothing is so old
                ageing.fold(self.ledger, folded_ns, passed_ns, attempt)
            self.folded_ns = passed_ns
        before_ns, ages = self.aged_ns, self.ages
        if ages or not before_ns:
            self.aged_ns = self.watermark_ns
        if not ages:
            return []
        self.failures.forget(AGEING)
        horizon_ns = self.settings.horizon_s * 1_000_000_000
        oldest_ns = self.watermark_ns - horizon_ns
        subjects = self.with_neighbours(ageing.age(self.ledger, oldest_ns, attempt))
        if before_ns // horizon_ns < self.aged_ns // horizon_ns:
            shortened = self.with_neighbours(ageing.shorten(self.ledger, oldest_ns, attempt))
            subjects |= {one for one in shortened if self.emitted.has_finding(one)}  # only findings rest on slots
        self.update_hosts(subjects)
        return list(self.judged(subjects, self.context(), expired=subjects))

    # -- state --------------------------------------------------------------------------------------------------------

    def shards(self) -> dict[str, bytes]:
        """State that has changed since the last call, by the name it is loaded by."""
        ledger = self.ledger.shards()
        states: dict[str, Any] = {
            MAIN: {
                "agents": self.agents,
                "watching": sorted(self.watching),
                "late": self.late,
                "aged_ns": self.aged_ns,
                "folded_ns": self.folded_ns,
                "failing": self.failures.stored(),
                "unauthenticated_hosts": self.unauthenticated_hosts.state(),
                "host_names": self.host_names.left,
            },
            OVERFLOW: self.evictor.state(),
            **self.emitted.changed_shards(),
        }
        if self.schedule.changed:
            states[SCHEDULE], self.schedule.changed = self.schedule.state(), False
        if self.snapshots.changed:
            states[SNAPSHOTS], self.snapshots.changed = self.snapshots.state(), False
        # named tuples are none of orjson's own
        return {**ledger, **{name: stored(orjson.dumps(state, default=tuple)) for name, state in states.items()}}
