"""Keeps Parquet result tables small: batches become one file an hour, hours larger ones, old revisions leave.

Of every ID only the last revision is needed, and a withdrawn one only while an earlier one can be seen. Rows move to
the file of the last batch among them in one step, which states the first in its metadata; the other files leave
PATIENCE_S later. So a reader sees every row at any moment, for that long maybe twice. Batches that Spark may still
repeat stay.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.streaming.store.batches import Folders
from wirecheck.streaming.store.result_tables import BY_MINUTE, OF_GROUPS, TABLES, latest_revisions
from wirecheck.streaming.store.run_result import LatestRows

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
"""A file joins younger ones of at least half its rows: each row is written again a few times at most."""
NOTES = b"wirecheck"
"""Key in a merged file's metadata: facts about its rows that are stored nowhere else, as JSON."""


@dataclass(frozen=True)
class Part:
    """A file with the rows of some batches, under the number of the last."""

    first: int
    last: int
    rows: int
    begun_s: float
    """When the first of its rows were written, in seconds since 1970."""
    written_s: float
    """When the last were."""
    made_s: float | None = None
    """When they were put together; None for a batch as it was written."""
    thinned: bool = False
    """Whether revisions that were replaced within it have left."""

    @property
    def hour(self) -> float:
        return self.written_s // HOUR_S


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

    def settled(self, part: Part) -> bool:
        """Whether its hour is over, and whatever it replaces or has replaced may leave."""
        return part.hour < self.now_s // HOUR_S and part.written_s <= self.now_s - self.retain_s


def parts_of(run: Folders, committed: int) -> list[Part]:
    """All files up to that batch, in order."""
    return [part_of(run, number) for number in run.numbers() if number <= committed]


def part_of(run: Folders, number: int) -> Part:
    rows, metadata = run.footer(number)
    written_s = run.written_s(number)
    notes = {"first": number, "begun_s": written_s, **json.loads(metadata.get(NOTES, b"{}"))}
    return Part(last=number, rows=rows, written_s=written_s, **notes)


def replaced(parts: Sequence[Part]) -> dict[int, Part]:
    """The files whose rows lie in another one by now, by number, with that one."""
    merged = [part for part in parts if part.first < part.last]
    covering = {part.last: [other for other in merged if other.first <= part.last < other.last] for part in parts}
    return {number: others[-1] for number, others in covering.items() if others}


def compact(out: Path | str, run: str, terms: CompactionTerms, committed: int) -> None:
    """All tables of a run that have revisions. Only batches up to `committed` are touched."""
    for table in TABLES.values():
        if table.revised:
            longest_s = DAY_S if table.name in BY_FILE else math.inf
            place = Folders(f"{out}/{table.name}/run={run}")
            compact_table(place, replace(terms, longest_s=longest_s), committed)


def compact_table(run: Folders, terms: CompactionTerms, committed: int) -> None:
    """Remove files whose rows were merged into others PATIENCE_S ago, when readers have closed them; then merge."""
    for number, into in replaced(parts_of(run, committed)).items():
        if into.made_s is not None and abs(terms.now_s - into.made_s) >= PATIENCE_S:
            run.remove(number)
    while merge(run, terms, committed):
        pass


def merge(run: Folders, terms: CompactionTerms, committed: int) -> bool:
    """Whether there were files to merge, or to rewrite without revisions that were replaced."""
    all_parts = parts_of(run, committed)
    replaced_parts = replaced(all_parts)
    parts = [part for part in all_parts if part.last not in replaced_parts]
    settled = list(takewhile(terms.settled, parts))
    old = groups(settled, terms.most_rows, terms.longest_s)
    old = [group for group in old if len(group) > 1 or not group[0].thinned]
    for group in old:
        put(run, group, latest(run, group, nothing_before=group[0] is all_parts[0]), terms.now_s, thinned=True)
    young = list(unsettled(parts[len(settled) :], terms))
    for group in young:
        put(run, group, together(rows_of(run, part) for part in group), terms.now_s, thinned=False)
    return bool(old or young)


def groups(parts: Sequence[Any], most_rows: int, longest_s: float) -> list[list[Any]]:
    """Neighbours that become one file, the youngest first."""
    grouped: list[list[Any]] = []
    for part in reversed(parts):
        group = grouped[-1] if grouped else []
        many = sum(one.rows for one in group)
        fits = bool(group) and part.rows <= TWICE * many and part.rows + many <= most_rows
        if fits and group[-1].written_s - part.begun_s <= longest_s:
            group.insert(0, part)
        else:
            grouped.append([part])
    return grouped


def unsettled(parts: Sequence[Part], terms: CompactionTerms) -> Iterator[list[Part]]:
    """Batches of one hour that are many, or whose hour is over."""
    batches = (part for part in parts if part.made_s is None)
    for hour, some in groupby(batches, key=lambda part: part.hour):
        group: list[Part] = []
        for part in some:
            if sum(one.rows for one in group) + part.rows > terms.most_rows:
                yield from [group] if len(group) > 1 else []
                group = []
            group.append(part)
        if len(group) >= terms.many_batches or (len(group) > 1 and hour < terms.now_s // HOUR_S):
            yield group


def latest(run: Folders, group: Sequence[Part], *, nothing_before: bool) -> pa.Table:
    """Their last revisions; of the first, where nothing earlier can be seen, without those withdrawn."""
    rows = latest_revisions(rows_of(run, group[0]))
    if nothing_before:
        rows = rows.filter(pc.invert(withdrawn(rows)))
    for part in group[1:]:
        rows = latest_revisions(together([rows, rows_of(run, part)]))
    return rows


def together(tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="default")


def rows_of(run: Folders, part: Part) -> pa.Table:
    rows = run.rows(part.last)
    assert rows is not None, part  # only this process removes one
    return rows


def put(run: Folders, group: Sequence[Part], rows: pa.Table, now_s: float, *, thinned: bool) -> None:
    """Their rows in the file of the last of them. A clock may have gone back since they were written."""
    begun_s, written_s = min(part.begun_s for part in group), max(part.written_s for part in group)
    notes = {"first": group[0].first, "begun_s": min(begun_s, now_s), "made_s": now_s, "thinned": thinned}
    run.put(rows, group[-1].last, min(written_s, now_s), {NOTES: json.dumps(notes).encode()})


def withdrawn(rows: pa.Table) -> pa.ChunkedArray:
    if "withdrawn" in rows.column_names:
        return pc.fill_null(rows["withdrawn"], False)
    if "state" in rows.column_names:
        return pc.fill_null(pc.equal(rows["state"], "withdrawn"), False)
    return pa.chunked_array([pa.repeat(pa.scalar(False), rows.num_rows)])


# --- results that are too old

BY_FILE = ("coverage", "exchanges", "changes", *(table.name for table in (*BY_MINUTE, *OF_GROUPS)))
"""Their rows are old when they were written long ago: those of an open connection are written again and again."""
BY_ROW = ("findings", "clients", "topics")
"""Theirs when their subject was seen for the last time long ago, by capture time."""
OVER = ("deleted", "former", "replaced")
"""Topics of other states stay."""


def retire(out: Path | str, run: str, before_s: float, committed: int) -> None:
    """What is older than this time, in seconds since 1970. Only batches up to `committed` are touched.

    What may still change, or still holds, stays. A row leaves with all its revisions, the oldest first, so that no
    reader at any moment takes one that was replaced for the last. Frames that come later may bring it back, whole.
    """
    for table in BY_FILE:
        place = Folders(f"{out}/{table}/run={run}")
        for part in parts_of(place, committed):
            if part.written_s < before_s:
                place.remove(part.last)
    for table in BY_ROW:
        retire_table(Folders(f"{out}/{table}/run={run}"), table, before_s, committed)


def fit(out: Path | str, run: str, most_bytes: int, now_s: float, committed: int) -> int:
    """Of the tables whose files leave whole, the oldest files of a run, until all its files together have at most so
    many bytes; by how many they still have more. What was written within an hour stays, and so does every row of
    other tables: findings are never removed for their size.
    """
    places = {table: Folders(f"{out}/{table}/run={run}") for table in TABLES}
    excess = sum(place.size_bytes(number) for place in places.values() for number in place.numbers()) - most_bytes
    parts = [(part, places[table]) for table in BY_FILE for part in parts_of(places[table], committed)]
    for part, place in sorted(parts, key=lambda one: (one[0].written_s, one[0].last)):
        if excess <= 0 or part.written_s > now_s - HOUR_S:
            break
        excess -= place.size_bytes(part.last)
        place.remove(part.last)
    return max(excess, 0)


def retire_table(run: Folders, table: str, before_s: float, committed: int) -> None:
    def write(part: Part, rows: pa.Table) -> None:
        run.put(rows, part.last, part.written_s, run.footer(part.last)[1])

    def read(part: Part, columns: list[str] | None) -> pa.Table:
        return run.rows(part.last, columns)

    retire_rows(table, parts_of(run, committed), before_s, read, write)


Read = Callable[[Any, list[str] | None], pa.Table]
Write = Callable[[Any, pa.Table], None]


def retire_rows(table: str, parts: Sequence[Any], before_s: float, read: Read, write: Write) -> None:
    """`parts`: the files of a table, in order."""
    revisions = LatestRows()
    for part in parts:
        revisions.add(table, read(part, ["id", "revision", "last_seen", "state"]))
    leaving = expired(table, revisions.tables().get(table), before_s)
    for part in parts if leaving is not None and len(leaving) else ():
        rows = read(part, None)
        stays = rows.filter(pc.invert(pc.is_in(rows["id"], leaving)))
        if stays.num_rows < rows.num_rows:
            write(part, stays)


def expired(table: str, rows: pa.Table | None, before_s: float) -> pa.Array | None:
    """The ids of those that leave."""
    if rows is None:
        return None
    old = pc.less(rows["last_seen"], pa.scalar(round(before_s * 1e6)).cast(rows["last_seen"].type))
    if table == "topics":
        old = pc.and_(old, pc.is_in(rows["state"], pa.array(OVER)))
    return rows["id"].filter(pc.fill_null(old, False)).combine_chunks()
