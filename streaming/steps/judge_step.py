"""Stateful, by cluster label: claims in, rows of the result tables out.

An agent's progress counts once every bucket has passed it; only changed state is written. Exceptions of checks are
counted, and logged once per process.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from wirecheck.capture import frames
from wirecheck.decode.collector_pause import collector_paused
from wirecheck.judge.ledger.emitted_rows import EmittedRow
from wirecheck.judge.ledger.failures import Failure, attempted, failure
from wirecheck.judge.revisions.judge import Judge
from wirecheck.streaming.steps import tagged
from wirecheck.streaming.steps.cells import from_cell, to_cell
from wirecheck.streaming.steps.decode_step import Claimed, Stated
from wirecheck.streaming.steps.follow_step import Marks, Progress
from wirecheck.streaming.steps.request_counts import Counts
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.tagged import Tagged
from wirecheck.streaming.steps.totals import Totals
from wirecheck.streaming.store.result_tables import to_ipc

FRONTIERS, TOTALS = "frontiers", "totals"  # the shards this step keeps for itself, by their names in checkpoints
ROWS_TOGETHER = 10_000
"""That are made into cells together."""
Load = Callable[[str], bytes | None]
Shards = dict[str, bytes]
LOG = logging.getLogger("wirecheck.judge")
LOGGED: set[str] = set()


class Frontiers:
    """How far each agent has come in each bucket."""

    def __init__(self, buckets: int, cell: bytes | None) -> None:
        self.buckets = buckets
        self.by_agent: dict[str, dict[int, Progress]] = from_cell(cell, Progress) if cell else {}
        self.touched: set[str] = set()

    def moved(self, bucket: int, progress: Progress) -> None:
        self.by_agent.setdefault(progress.agent, {})[bucket] = progress
        self.touched.add(progress.agent)

    def moves(self) -> Iterator[Progress]:
        """The agents that moved since this was asked last, as far as every bucket has come."""
        touched, self.touched = sorted(self.touched), set()
        for agent in touched:
            frontiers = self.by_agent[agent].values()
            if len(frontiers) == self.buckets:
                yield Progress(agent, min(one.ts_ns for one in frontiers), all(one.ended for one in frontiers))

    def cell(self) -> bytes:
        return to_cell(self.by_agent)


class Opened(NamedTuple):
    """A row out of its cell."""

    bucket: int
    route: str
    value: Any
    """Stated, Progress or Marks; of another route the cell."""


def opened(row: Tagged) -> Opened:
    match row.route:
        case tagged.CLAIMS:
            return Opened(row.bucket, row.route, from_cell(row.cell, Claimed).stated())
        case tagged.PROGRESS:
            return Opened(row.bucket, row.route, from_cell(row.cell, Progress))
        case tagged.MARKS:
            return Opened(row.bucket, row.route, from_cell(row.cell, Marks, frames.Mark))
    return Opened(row.bucket, row.route, row.cell)


def judge_rows(label: str, rows: Iterable[Tagged], load: Load, settings: Settings) -> tuple[list[Tagged], Shards]:
    """One batch of one label: the rows to write, those of other routes among them, and the shards that changed."""
    return judge_opened(label, map(opened, rows), load, settings)


@collector_paused()
def judge_opened(label: str, rows: Iterable[Opened], load: Load, settings: Settings) -> tuple[list[Tagged], Shards]:
    """The same of rows that are out of their cells."""
    judge = LabelJudge(label, settings, load)
    written = judge.judged(rows)
    return written, judge.shards()


def nothing(_: str) -> None:
    return None


class LabelJudge:
    """The judge of one label, and what this step keeps for itself: for one batch, or in one process for a run."""

    def __init__(self, label: str, settings: Settings, load: Load = nothing) -> None:
        self.judge = Judge(label, load, settings.judge)
        self.judge.agents.awaited = settings.awaited(label)
        self._frontiers, self._totals = Frontiers(settings.buckets, load(FRONTIERS)), Totals(load(TOTALS))
        self._requests: Counts = Counts()
        self._passing: list[Tagged] = []

    @collector_paused()
    def judged(self, rows: Iterable[Opened], *, waiting: bool = False, last: bool = False) -> list[Tagged]:
        """The rows to write of one batch. `waiting`: more comes, and most rows wait, while they come out the same.
        `last`: nothing more comes.
        """
        found: list[Tagged] = []
        for row in rows:
            if row.route == tagged.CLAIMS and not self.judge.may_come(row.value.claims):
                found += self._written(self.judge.rows_that_wait())
            self._take(row)
            del row  # none of them is held while claims are judged: the ledger has copies
        self._move()
        return found + self._written(self.judge.revisions(waiting=waiting and self.judge.may_wait(), last=last))

    def _take(self, row: Opened) -> None:
        judge, totals = self.judge, self._totals
        match row.route:
            case tagged.CLAIMS:
                stated: Stated = row.value
                totals.claims(stated.claims, judge.oldest_ns, judge.ledger)
                judge.absorb(stated.claims)
                self._requests.update(stated.requests)
                self._passing.extend(Tagged(judge.label, -1, table, cell) for table, cell in stated.rows.items())
            case tagged.PROGRESS:
                self._frontiers.moved(row.bucket, row.value)
            case tagged.MARKS:
                marks: Marks = row.value
                judge.on_marks(marks)
                totals.on_marks(marks)
                if marks.file_seq:  # 0 in marks that a bucket adds to those of the files
                    totals.put("followed_files", marks.agent, marks.file_seq)
            case _:
                self._passing.append(Tagged(judge.label, row.bucket, row.route, row.value))

    def _move(self) -> None:
        for frontier in self._frontiers.moves():
            if frontier.ts_ns or frontier.ended:  # an agent with no readable file ends, too, and is not waited for
                self.judge.progress(frontier.agent, frontier.ts_ns, frontier.ended)
            if frontier.ts_ns:
                self._totals.put("judged_ns", frontier.agent, frontier.ts_ns)

    def _written(self, emitted: Iterable[EmittedRow]) -> list[Tagged]:
        written = [cell for some in in_pieces(emitted) for cell in cells_of(some, self.judge, self._totals)]
        totals = totals_of(self.judge, self._totals, self._requests)
        passing, self._passing, self._requests = self._passing, [], Counts()
        return written + totals + passing

    def shards(self) -> Shards:
        """The state that changed, behind the last batch."""
        changed = self.judge.shards()
        self.judge.ledger.leave(changed)
        return {**changed, FRONTIERS: self._frontiers.cell(), TOTALS: self._totals.cell()}


def in_pieces(emitted: Iterable[EmittedRow]) -> Iterator[list[EmittedRow]]:
    """Many at a time: as cells they take a tenth of the memory."""
    rows = iter(emitted)
    while piece := [*islice(rows, ROWS_TOGETHER)]:
        yield piece


def cells_of(emitted: list[EmittedRow], judge: Judge, totals: Totals) -> Iterator[Tagged]:
    totals.count(emitted)
    for table, lines in by_table(judge.label, emitted).items():
        yield from written(judge.label, table, lines, judge)


def totals_of(judge: Judge, totals: Totals, requests: Counts) -> list[Tagged]:
    """Those that changed with a batch."""
    totals.requests(requests, lambda endpoint: judge.clusters.broker(endpoint, judge.watermark_ns))
    totals.left(judge.evictor.left())
    for one in judge.failures.new_ones():
        totals.add("check_failures", one.check, 1)
        log(one)
    sums = [{"label": judge.label, **total, "id": f"{judge.label}|{total['id']}"} for total in totals.rows()]
    return [Tagged(judge.label, -1, "totals", to_ipc("totals", sums))] if sums else []


def by_table(label: str, emitted: Iterable[EmittedRow]) -> dict[str, list[dict[str, Any]]]:
    lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in emitted:
        lines[row.table].append({"id": row.key, "revision": row.revision, "label": label, **row.body})
    return lines


def written(label: str, table: str, lines: list[dict[str, Any]], judge: Judge) -> Iterator[Tagged]:
    """Rows as one cell; those with a value that does not fit its column are omitted and counted."""
    made, error = attempted(lambda: [to_ipc(table, lines)])
    if error is not None:
        fitting = []
        for line in lines:
            _, wrong = attempted(lambda line=line: [to_ipc(table, [line])])
            if wrong is None:
                fitting.append(line)
            else:
                judge.failures.add(failure(str(line.get("code", "rows")), ("rows", table), wrong))
        made = [to_ipc(table, fitting)]
    yield from (Tagged(label, -1, table, cell) for cell in made)


def log(one: Failure) -> None:
    """Where workers log, and no more than once of a check: one that fails does so over many subjects."""
    if one.check not in LOGGED:
        LOGGED.add(one.check)
        LOG.warning("%s over %s: %s; further ones are counted only\n%s", one.check, one.about, one.error, one.trace)
