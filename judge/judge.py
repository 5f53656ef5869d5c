"""The judge of one cluster label: claims and progress in, revisions of rows out.

Knows: what must be judged again (what was touched, what waited for the watermark, what moved to another cluster), and
which rows were emitted before. Does not know what a finding is: that is each check's affair.
Rule: rows are a pure function of the ledger, the settings and the watermark; one is emitted again only if it differs,
and withdrawn when nothing makes it any more. Time is capture time. What raises is a value (`failures.py`): it
ends nothing else, and the rows of its subject stand.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import orjson

from wirecheck.capture import frames
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks import evaluate
from wirecheck.judge.claims.claim import Claim, Sighting, Subject
from wirecheck.judge.claims.kinds import SPACES
from wirecheck.judge.claims.log_snapshots import CHUNK, Snapshots
from wirecheck.judge.failures import AGEING, ASSEMBLY, FILING, STRANGERS, Failures, failure
from wirecheck.judge.ledger import ageing
from wirecheck.judge.ledger.emitted_rows import NEVER, EmittedRows, withdrawn
from wirecheck.judge.ledger.ledger import Ledger, Load, unversioned, versioned
from wirecheck.judge.results.overflow import Overflow
from wirecheck.judge.results.result_table import Body
from wirecheck.judge.subject_eviction import Room
from wirecheck.judge.thresholds import Settings
from wirecheck.judge.topology.clusters import Clusters
from wirecheck.judge.topology.clusters_apart import separate
from wirecheck.judge.topology.strangers import Strangers

MAIN, SNAPSHOTS, BEYOND = "main", "snapshots", "beyond"
SERVERS: Subject = ("server",)
EMPTY: Any = {"agents": {}, "due": [], "pending": [], "late": 0, "aged_ns": 0, "strangers": None}


class EmittedRow(NamedTuple):
    """One revision of one row of a result table."""

    table: str
    key: str
    revision: int
    body: Body


class Marks(Protocol):
    """What an agent says about itself, in order."""

    @property
    def agent(self) -> str: ...
    @property
    def marks(self) -> tuple[frames.Mark, ...]: ...
    @property
    def missing_files(self) -> int: ...


MARKS = {
    frames.DROPPED: "dropped_frames",
    frames.SKIPPED: "skipped_frames",
    frames.INPUT_ERROR: "input_errors",
    frames.UNDECRYPTED: "undecrypted_connections",
    frames.QUARANTINED: "quarantined_files",
}
"""Marks that are counted, and the measure of coverage each adds to."""


class Frontier(NamedTuple):
    """How far one agent has shown its traffic."""

    ts_ns: int
    ended: bool


class Judge:
    def __init__(self, label: str, load: Load | None = None, settings: Settings | None = None) -> None:
        self.label, self.settings = label, settings or Settings()
        self.load: Load = load or (lambda _name: None)
        self.overflow = Overflow(self.settings, self.stored(BEYOND))
        self.ledger = Ledger(self.load, self.overflow.sizes)
        self.emitted = EmittedRows(self.stored)
        self.room = Room(self.ledger, self.emitted, self.overflow)
        stored = self.stored(MAIN) or EMPTY
        self.agents = {agent: Frontier(*frontier) for agent, frontier in stored["agents"].items()}
        self.due: dict[Subject, int] = {tuple(subject): due_ns for subject, due_ns in stored["due"]}
        self.pending: set[Subject] = {tuple(subject) for subject in stored["pending"]}
        self.late: int = stored["late"]
        self.aged_ns: int = stored["aged_ns"]
        """Up to which capture time the ledger was looked through for what has left."""
        self.snapshots = Snapshots(self.stored(SNAPSHOTS))
        self.failures = Failures(stored.get("failing", ()))
        self.without: str | None = None
        """The endpoint that had to be left out to tell who belongs together."""
        self.strangers = Strangers(self.ledger, stored["strangers"])
        self.clusters = Clusters(label)
        self.separate_clusters()

    def absorb(self, claims: Iterable[Claim]) -> None:
        oldest_ns = self.oldest_ns
        for claim in claims:
            try:
                self.take(claim, oldest_ns)
            except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
                step = ASSEMBLY if claim.kind == CHUNK else FILING
                self.failures.add(failure(step, (step, str(claim.kind)), error, seen=[claim.last]))

    def take(self, claim: Claim, oldest_ns: int) -> None:
        if claim.last.ts_ns < oldest_ns:
            self.late += 1
        elif claim.kind == CHUNK:
            for part in self.snapshots.receive(claim):
                self.ledger.absorb(part)
        else:
            self.ledger.absorb(claim)

    @property
    def oldest_ns(self) -> int:
        """The horizon: what was said last before it is counted as late, not judged."""
        return self.watermark_ns - self.settings.horizon_s * 1_000_000_000

    def hear(self, said: Marks) -> None:
        """What an agent says about itself: frames skipped or dropped, input it could not read."""
        for mark in said.marks:
            if mark.kind in MARKS:
                seen = Sighting(mark.ts_ns, "", "", -1, -1, mark.source or "", 0, 0)
                key = (said.agent, MARKS[mark.kind], mark.source, mark.reason)
                self.ledger.absorb(Claim("mark", key, seen, tally={"count": max(1, mark.count)}))
        if said.missing_files:
            seen = Sighting(self.watermark_ns, "", "", -1, -1, "", 0, 0)
            key = (said.agent, "missing_files", None, None)
            self.ledger.absorb(Claim("mark", key, seen, tally={"count": said.missing_files}))

    def progress(self, agent: str, last_ts_ns: int, ended: bool) -> None:
        """The agent has shown everything up to this capture time (in every bucket); one that ended may begin again."""
        before = self.agents.get(agent, Frontier(0, ended=False))
        self.agents[agent] = Frontier(max(before.ts_ns, last_ts_ns), ended)

    @property
    def watermark_ns(self) -> int:
        """Up to where all agents have shown their traffic; ended and silent agents are not waited for."""
        newest = max((frontier.ts_ns for frontier in self.agents.values()), default=0)
        silent_ns = newest - self.settings.agent_silent_s * 1_000_000_000
        waited = [one.ts_ns for one in self.agents.values() if not one.ended and one.ts_ns >= silent_ns]
        return min(waited, default=newest)

    def rows(self) -> list[EmittedRow]:
        """The revisions of rows that are new or have changed since the last call."""
        left = [row for subject in self.room.crowd() for row in self.left(subject)]
        lessened = self.room.lessen()
        unsaid = self.strange(self.ledger.touched)
        before, without, context = self.clusters, self.without, self.context()
        everything = unsaid is None or self.clusters.moved(before) or self.without != without
        subjects = self.every_subject() if everything else self.dirty() | self.beside(unsaid or set())
        self.ledger.touched.clear()
        changed = [*self.judged(subjects, context, forget=lessened), *self.aged()]
        others = self.overflow.rows(self.label, self.clusters.unknown.cluster)
        return [*left, *changed, *(EmittedRow(*row) for row in others)]

    def left(self, subject: Subject) -> Iterator[EmittedRow]:
        """The rows of a topic or client that there is no room for are withdrawn."""
        self.due.pop(subject, None)
        self.pending.discard(subject)
        for name, number, body in self.room.withdraw(subject):
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
        return {subject for space in SPACES for subject in self.ledger.subjects(space)}

    def separate_clusters(self) -> None:
        stated = self.ledger.claims_of(*SERVERS).values()
        self.clusters, self.without = separate(self.label, stated, self.connections, self.failures)

    def connections(self, endpoint: str) -> Iterator[tuple[int, int]]:
        """When the connections to an endpoint that carried requests began, and were seen last."""
        for claim in self.ledger.claims("connection", "link", endpoint):
            if claim.peak.get("requests"):
                yield claim.first.ts_ns, claim.last.ts_ns

    def context(self) -> CheckContext:
        """What checks see now."""
        self.separate_clusters()
        context = CheckContext(self.ledger, self.clusters, self.settings, self.watermark_ns, self.strangers)
        context.failures = self.failures
        context.agents = {agent: (frontier.ts_ns, frontier.ended) for agent, frontier in self.agents.items()}
        return context

    def waiting(self, context: CheckContext) -> None:
        """Remember which subjects must be judged again, and when."""
        self.due.update(context.due)
        self.pending |= context.pending

    def aged(self) -> list[EmittedRow]:
        """Take what has left out of the ledger, once in a while; rows that rested on it alone stand."""
        before_ns, due_ns = self.aged_ns, self.aged_ns + self.settings.ageing_s * 1_000_000_000
        if before_ns and self.watermark_ns < due_ns:
            return []
        self.aged_ns = self.watermark_ns
        if not before_ns:
            return []
        self.failures.forget(AGEING)
        subjects = self.beside(self.attempt(ageing.age))
        horizon_ns = self.settings.horizon_s * 1_000_000_000
        if before_ns // horizon_ns < self.aged_ns // horizon_ns:
            shortened = self.beside(self.attempt(ageing.shorten))
            subjects |= {one for one in shortened if self.emitted.has_finding(one)}  # only findings rest on slots
        self.strange(subjects)
        return list(self.judged(subjects, self.context(), forget=subjects))

    def attempt(self, age: Callable[[Ledger, int, ageing.Raised], set[Subject]]) -> set[Subject]:
        def raised(subject: Subject, error: Exception) -> None:
            self.failures.add(failure(AGEING, (AGEING, *subject), error))

        return age(self.ledger, self.oldest_ns, raised)

    def beside(self, subjects: set[Subject]) -> set[Subject]:
        """Subjects with those that look at them."""
        return subjects | {near for subject in subjects for near in evaluate.neighbours(subject, self.ledger)}

    def dirty(self) -> set[Subject]:
        """Subjects that were touched, whose time has come, or that look at one that was touched."""
        watermark_ns = self.watermark_ns
        ripe = {subject for subject, due_ns in self.due.items() if due_ns <= watermark_ns}
        logged = self.pending if SERVERS in self.ledger.touched else set()
        return self.beside(self.ledger.touched | ripe | logged)

    def re_evaluate(self, subject: Subject, context: CheckContext, *, forget: bool = False) -> Iterator[EmittedRow]:
        """Judge one subject again and compare with its rows of before; what nothing makes any more is withdrawn, or,
        after ageing, forgotten: it stands as it was emitted last.
        """
        context.subject = subject
        self.due.pop(subject, None)
        self.pending.discard(subject)
        context.failed = []
        now = {f"{row.table}|{row.id}": row for row in evaluate.rows_of(subject, context)}
        self.failures.judged(subject, context.failed)
        failed = {one.check for one in context.failed}
        known = self.emitted.rows(subject)
        stranger = self.room.admitted(subject, known, now)
        for name in sorted({*known, *now}):
            before, row = known.get(name, NEVER), now.get(name)
            if failed and row is None and evaluate.undecided(name, before.body, failed):
                continue  # it stands as it was emitted: nobody knows better now
            if row is None:
                self.room.closes(name, before)
            if forget and row is None:
                self.emitted.forget(subject, name)
                continue
            body = row.body if row else withdrawn(before.body)
            if (row or before.open) and body != before.body:
                before = before if before.open else before._replace(stranger=stranger)
                number = self.emitted.emit(subject, name, before, body, is_open=row is not None)
                table, _, key = name.partition("|")
                yield EmittedRow(table, key, number, body)

    def stored(self, name: str) -> Any:
        blob = self.load(name)
        return orjson.loads(unversioned(blob)) if blob else None

    def shards(self) -> dict[str, bytes]:
        """State that has changed since the last call, by the name it is loaded by."""
        main = {
            "agents": self.agents,
            "due": sorted(([*subject], due_ns) for subject, due_ns in self.due.items()),
            "pending": sorted(self.pending),
            "late": self.late,
            "aged_ns": self.aged_ns,
            "failing": self.failures.stored(),
            "strangers": self.strangers.state(),
        }
        ledger = self.ledger.shards()
        states: dict[str, Any] = {MAIN: main, BEYOND: self.overflow.state(), **self.emitted.changed_shards()}
        if self.snapshots.changed:
            states[SNAPSHOTS], self.snapshots.changed = self.snapshots.state(), False
        return {**ledger, **{name: as_bytes(state) for name, state in states.items()}}


def as_bytes(state: Any) -> bytes:
    return versioned(orjson.dumps(state, default=tuple))  # named tuples are none of its own
