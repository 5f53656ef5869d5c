"""Keeps Parquet result tables small: batches become one file an hour, hours larger ones, old revisions leave.

Of every ID only the last revision is needed, and a withdrawn one only while an earlier one can be seen. Rows move to
the file of the last batch among them in one step, and their old files leave PATIENCE_S later: a reader sees every row
at any moment, for that long maybe twice. Batches that Spark may still repeat stay.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.streaming.store.batches import Folders, run_at
from wirecheck.streaming.store.result_tables import TABLES, latest_revisions
from wirecheck.streaming.store.run_result import LatestRows

VERSION = 1


@dataclass(frozen=True)
class Span:
    """Batches whose rows lie in the file of the last of them."""

    first: int
    last: int
    rows: int
    begun_s: float
    """When the first of its rows were written, in seconds since 1970; never later than they were first seen here."""
    written_s: float
    """When the last were."""
    thinned: bool = False
    """Whether revisions that were replaced within it have left."""
    made_s: float | None = None
    """When its rows were put together; None once the files they came from have left."""


def read_spans(run: Folders, numbers: Sequence[int]) -> list[Span]:
    """Those whose file is there, in order. What is not known is read once more, like a batch that came since."""
    there = set(numbers)
    try:
        content = json.loads(run.summary() or b"{}")
        known = [Span(**one) for one in content["spans"]] if content.get("version") == VERSION else []
    except (ValueError, KeyError, TypeError, AttributeError):  # cut off, or of another release
        return []
    return [span for span in known if span.last in there]


def keep_spans(run: Folders, known: Sequence[Span]) -> None:
    content = {"version": VERSION, "spans": [asdict(span) for span in known]}
    run.keep_summary(json.dumps(content).encode())


BY_FILE = ("coverage", "exchanges")
"""Their rows are old when they were written long ago: of a connection that is open they are told again and again."""
BY_ROW = ("findings", "clients", "topics")
"""Theirs when that of which they tell was seen for the last time long ago, by capture time."""
OVER = ("deleted", "former", "replaced")
"""Topics of other states stay."""


def retire(out: Path | str, run: str, before_s: float, committed: int) -> None:
    """What is older than this time, in seconds since 1970. Only batches up to `committed` are touched.

    What may still change, or still holds, stays. A row leaves with all its revisions, the oldest first, so that no
    reader at any moment takes one that was replaced for the last. Frames that come later may bring it back, whole.
    """
    for table in BY_FILE:
        retire_files(run_at(f"{out}/{table}/run={run}"), before_s, committed)
    for table in BY_ROW:
        retire_rows(run_at(f"{out}/{table}/run={run}"), table, before_s, committed)


def retire_files(run: Folders, before_s: float, committed: int) -> None:
    numbers = [number for number in run.numbers() if number <= committed]
    known = read_spans(run, numbers)
    for span in known:
        if span.written_s < before_s:
            for number in [number for number in numbers if span.first <= number <= span.last]:
                run.remove(number)
                numbers.remove(number)
    upto = known[-1].last if known else -1
    for number in (number for number in numbers if number > upto):
        if run.written_s(number) >= before_s:
            return
        run.remove(number)


def retire_rows(run: Folders, table: str, before_s: float, committed: int) -> None:
    numbers = [number for number in run.numbers() if number <= committed]
    held = LatestRows()
    for number in numbers:
        if (rows := run.rows(number, ("id", "revision", "last_seen", "state"))) is not None:
            held.add(table, rows)
    gone = expired(table, held.tables().get(table), before_s)
    if gone is None or not len(gone):
        return
    for number in numbers:
        rows = run.rows(number)
        stays = pc.invert(pc.is_in(rows["id"], gone)) if rows is not None else None
        if rows is not None and not pc.all(stays, min_count=0).as_py():
            run.put(rows.filter(stays), number, run.written_s(number))
            run.sweep([number])


def expired(table: str, rows: pa.Table | None, before_s: float) -> pa.Array | None:
    """The ids of those that leave."""
    if rows is None:
        return None
    old = pc.less(rows["last_seen"], pa.scalar(round(before_s * 1e6)).cast(rows["last_seen"].type))
    if table == "topics":
        old = pc.and_(old, pc.is_in(rows["state"], pa.array(OVER)))
    return rows["id"].filter(pc.fill_null(old, False)).combine_chunks()


HOUR_S = 3600
DAY_S = 24 * HOUR_S
"""A file that leaves as a whole holds no more."""
PATIENCE_S = 600
"""So long a reader that has listed the files may take to open them."""
MOST_ROWS = 200_000
"""Of a file that is written here, some 40 MB in memory: what has come to that is left alone."""
MANY_BATCHES = 100
"""So many come together before their hour is over: a start reads them all."""
TWICE = 2
"""A file joins a younger one of at least half its rows: each row is written again a few times at most."""


@dataclass(frozen=True)
class CompactionTerms:
    """By when what goes."""

    now_s: float
    """Seconds since 1970."""
    retain_s: float
    """Revisions that were replaced stay for so long."""
    most_rows: int = MOST_ROWS
    many_batches: int = MANY_BATCHES
    longest_s: float = math.inf
    """From the first to the last row of a file."""

    def over(self, span: Span) -> bool:
        """Whether its hour is, and whatever it replaces or has replaced may leave."""
        return hour(span) < self.now_s // HOUR_S and span.written_s <= self.now_s - self.retain_s


def hour(span: Span) -> float:
    return span.written_s // HOUR_S


def compact(out: Path | str, run: str, terms: CompactionTerms, committed: int) -> None:
    """All tables of a run that have revisions. Only batches up to `committed` are touched."""
    for table in TABLES.values():
        if table.revised:
            longest_s = DAY_S if table.name in BY_FILE else math.inf
            place = run_at(f"{out}/{table.name}/run={run}")
            compact_table(place, replace(terms, longest_s=longest_s), committed)


def compact_table(run: Folders, terms: CompactionTerms, committed: int) -> None:
    numbers = [number for number in run.numbers() if number <= committed]
    one = CompactionPass(run, terms, numbers, read_spans(run, numbers))
    one.leave()
    one.gather()
    one.thin()
    one.join()


@dataclass
class CompactionPass:
    """One table's. `known` is kept with each step, behind what it says."""

    run: Folders
    terms: CompactionTerms
    numbers: list[int]
    known: list[Span]

    def keep(self, known: list[Span]) -> None:
        self.known = known
        keep_spans(self.run, known)

    def leave(self) -> None:
        """The files whose rows lie in others by now, once nobody opens them any more."""
        due = [span for span in self.known if span.made_s and abs(self.terms.now_s - span.made_s) >= PATIENCE_S]
        if not due:
            return
        for span in due:
            for number in self.before(span):
                self.run.remove(number)
                self.numbers.remove(number)
            self.run.sweep([span.last])
        self.keep([replace(span, made_s=None) if span in due else span for span in self.known])

    def before(self, span: Span) -> list[int]:
        return [number for number in self.numbers if span.first <= number < span.last]

    def gather(self) -> None:
        """Batches that came since the last pass, where there are many or their hour is over."""
        upto = self.known[-1].last if self.known else -1
        groups = groupby(self.batches(number for number in self.numbers if number > upto), key=lambda one: hour(one[0]))
        for _, batches in groups:
            held: list[tuple[Span, pa.Table]] = []
            for span, rows in batches:
                if held and sum(other.rows for other, _ in held) + span.rows > self.terms.most_rows:
                    self.together(held)
                    held = []
                held.append((span, rows))
            if len(held) >= self.terms.many_batches or hour(held[-1][0]) < self.terms.now_s // HOUR_S:
                self.together(held)
            else:
                return

    def batches(self, numbers: Iterator[int]) -> Iterator[tuple[Span, pa.Table]]:
        for number in list(numbers):
            rows = self.run.rows(number)
            assert rows is not None, number  # nobody else removes one
            written_s = min(self.run.written_s(number), self.terms.now_s)  # a clock may have gone back since
            yield Span(number, number, rows.num_rows, written_s, written_s), rows

    def together(self, held: list[tuple[Span, pa.Table]]) -> None:
        found = [span for span, _ in held]
        if len(held) == 1:
            self.keep([*self.known, *found])
            return
        rows = pa.concat_tables([rows for _, rows in held], promote_options="default")
        held.clear()
        self.keep([*self.known, self.put(found, rows, thinned=False)])

    def put(self, parts: list[Span], rows: pa.Table, *, thinned: bool) -> Span:
        """Their rows in the file of the last of them."""
        begun_s, written_s = min(span.begun_s for span in parts), max(span.written_s for span in parts)
        last = parts[-1].last
        self.run.put(rows, last, written_s)
        return Span(parts[0].first, last, rows.num_rows, begun_s, written_s, thinned, self.terms.now_s)

    def thin(self) -> None:
        """Hours that are over, the oldest first: of each id the last revision."""
        at = 0
        while at < len(self.known) and (self.known[at].thinned or self.terms.over(self.known[at])):
            whose = hour(self.known[at])
            end = at + 1
            while end < len(self.known) and hour(self.known[end]) == whose and self.terms.over(self.known[end]):
                end += 1
            at = at + 1 if self.known[at].thinned else self.stand(at, end)

    def join(self) -> None:
        """Hours of few rows with those before them."""
        at = 1
        while at < len(self.known) and self.known[at].thinned:
            older, younger = self.known[at - 1], self.known[at]
            small = older.rows + younger.rows <= self.terms.most_rows
            small = small and younger.written_s - older.begun_s <= self.terms.longest_s
            if small and older.rows <= TWICE * younger.rows:
                self.stand(at - 1, at + 1)
                at = max(1, at - 1)
            else:
                at += 1

    def stand(self, at: int, end: int) -> int:
        """What stands of these in one file, or in several where that is too much; the place behind them."""
        while at < end:
            rows, upto = self.latest_of(at), at + 1
            while upto < end and rows.num_rows + self.known[upto].rows <= self.terms.most_rows:
                both = pa.concat_tables([rows, self.latest_of(upto)], promote_options="default")
                rows, upto = latest_revisions(both), upto + 1
            parts = self.known[at:upto]
            same = len(parts) == 1 and parts[0].rows == rows.num_rows
            made = replace(parts[0], thinned=True) if same else self.put(parts, rows, thinned=True)
            self.keep([*self.known[:at], made, *self.known[upto:]])
            at, end = at + 1, end - len(parts) + 1
        return at

    def latest_of(self, at: int) -> pa.Table:
        """A file's last revisions; of the first, where nothing earlier can be seen, without those withdrawn."""
        rows = self.run.rows(self.known[at].last)
        assert rows is not None, self.known[at]
        rows = latest_revisions(rows)
        return rows if at or self.before(self.known[0]) else rows.filter(pc.invert(withdrawn(rows)))


def withdrawn(rows: pa.Table) -> pa.ChunkedArray:
    if "withdrawn" in rows.column_names:
        return pc.fill_null(rows["withdrawn"], False)
    if "state" in rows.column_names:
        return pc.fill_null(pc.equal(rows["state"], "withdrawn"), False)
    return pa.chunked_array([pa.repeat(pa.scalar(False), rows.num_rows)])
