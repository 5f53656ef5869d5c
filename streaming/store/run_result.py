"""The result tables of one run as the one value for people and programs. It computes nothing of its own.

It is a view of the tables; those of a running query can be read too.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.decode.api_names import key_of
from wirecheck.decode.collector_pause import collector_paused
from wirecheck.document import document, of_row
from wirecheck.judge.results.agreement_rows import ApiVersions, TopicStatement
from wirecheck.judge.results.judged_tables import (
    ACTIVITIES,
    API_VERSIONS,
    CLIENTS,
    CLUSTERS,
    FINDINGS,
    HARMS,
    OF_AGREEMENT,
    RECREATIONS,
    TOPIC_STATEMENTS,
    TOPICS,
)
from wirecheck.judge.results.result_table import ResultTable, rows_of
from wirecheck.story.agreement import AgreementTable, agreement_table
from wirecheck.story.card_context import CardContext
from wirecheck.story.cards import with_cards
from wirecheck.story.causes import linked
from wirecheck.story.choice import EVERYTHING, Choice
from wirecheck.story.entries import entries
from wirecheck.story.harm import HURT, covered
from wirecheck.story.marks import with_states
from wirecheck.story.reading_options import dialects_read
from wirecheck.story.seen import (
    Activity,
    Client,
    Cluster,
    ConnectionRead,
    Coverage,
    NotKept,
    Read,
    Recreation,
    Statement,
    Topic,
)
from wirecheck.story.unexplained import unexplained
from wirecheck.story.verdict import Finding, Harm, Verdict
from wirecheck.streaming.store import minute_sums, result_folder
from wirecheck.streaming.store.batches import Tables
from wirecheck.streaming.store.result_damage import DamagedResultError
from wirecheck.streaming.store.result_tables import TABLES, latest_revisions

Row = dict[str, Any]
One = TypeVar("One")
INPUT_ERRORS = "input_errors"
READ = {column.name for column in fields(Read)}
MEASURES = {column.name for column in fields(Coverage)} - {INPUT_ERRORS, "measures", "details"}
"""Of the table of coverage those that have a field."""
UNASSIGNED = ("unassigned_endpoints", "unassigned_topics", "unassigned_clients")
"""Measures of what is of no known cluster; the JSON names so many of each."""
OTHERS, MOST_DETAILS = "(others)", 100
IN_RESULT = tuple(name for name, table in TABLES.items() if table.in_result)
USUAL = tuple(name for name in IN_RESULT if name not in OF_AGREEMENT)
"""Those that a verdict needs."""
BOUNDED = tuple(name for name, table in TABLES.items() if table.bounded)
"""Tables whose row `others` counts rows that were not kept. The row `others` of findings is a finding of a check."""
CAUSES = frozenset({"findings", "harms"})
"""What has to be known to say that nothing explains a refusal."""
SPANNED = ("findings", "harms", "clients", "topics")
"""Tables whose rows show until when something was seen."""


@dataclass(frozen=True)
class Result:
    """Open last revisions, by table."""

    rows: "MadeRows"
    """Without the rows `others` of topics and clients, which stand for many and describe none."""
    measured: tuple[Row, ...] | None = None
    """Coverage by measure and detail, where its rows need not be made for that."""

    @classmethod
    def read(cls, out: Path | str, run: str, tables: Collection[str] = USUAL) -> "Result":
        """`tables`: the others are taken as empty. Each is read when it is first asked for."""

        def made(table: str) -> list[Row]:
            if table not in IN_RESULT or table not in tables:
                return []
            with collector_paused():
                return list(last(revisions(out, table, run)))

        return cls(MadeRows(made, whole={*tables} >= CAUSES))

    @classmethod
    def read_whole(cls, out: Path | str, run: str) -> "Result":
        """All tables, at once: where the folder goes before they are asked for."""
        found = cls.read(out, run, IN_RESULT)
        for table in IN_RESULT:
            _ = found.rows[table]
        return found

    @classmethod
    def latest(cls, out: Path, tables: Collection[str] = USUAL) -> "Result":
        """The run that wrote last. Raises LookupError where no run wrote anything."""
        return cls.read(out, result_folder.latest_run(out), tables)

    @classmethod
    def of(cls, rows: Mapping[str, Iterable[Row]]) -> "Result":
        """From all revisions, in the order of their batches. A table that is not given is empty."""
        return cls(MadeRows(lambda table: list(last(rows.get(table, ())))))

    def coverage(self) -> Coverage:
        """What a verdict rests on."""
        return coverage(self.rows["coverage"] if self.measured is None else self.measured)

    def json(self) -> Row:
        """As `replay --format json` has it, without what a verdict says of itself."""
        found: Row = document(self.verdict())
        return found

    def verdict(
        self,
        choice: Choice = EVERYTHING,
        inputs: Sequence[str] = (),
        keylogs: Sequence[str] = (),
        *,
        tables_in: str = "",
        principals: bool = True,
    ) -> Verdict:
        """`inputs`, `keylogs` and `tables_in` (the folder of the tables) are for the commands of cards; without
        `principals` these name no client's address, findings not who changed a topic, and clients no principal.
        """
        every = linked(self.findings())
        every = every if principals else list(map(without_principals, every))
        findings = tuple(filter(choice.fits, every))
        found = Verdict(
            coverage=self.coverage(),
            clusters=self.values(CLUSTERS, partial(of_row, Cluster)),
            topics=self.topics(),
            activities=self.values(ACTIVITIES, partial(of_row, Activity)),
            recreations=self.values(RECREATIONS, Recreation.of),
            harms=self.harms(),
            findings=findings,
            dialects=tuple(dialects_read(every)),
            not_listed=len(every) - len(findings) if choice else None,
            others=self.not_kept(*BOUNDED),
        )
        clients = with_states(self.clients(), found.activities, found.harms, every, found.clusters)
        found = replace(found, clients=clients if principals else tuple(replace(one, principals=()) for one in clients))
        context = CardContext(
            {finding.id: finding for finding in every},
            found.last_ns,
            dated=found.of_several_days,
            inputs=inputs,
            keylogs=keylogs,
            hosts=principals,
            tables=tables_in,
            recreations=found.recreations,
            changes=self.rows["changes"],
            clusters=found.clusters,
            activities=found.activities,
        )
        listed = entries(findings, every, dated=context.dated)
        return replace(found, entries=tuple(with_cards(listed, found.harms, context)))

    def values(self, table: ResultTable, of: Callable[[Row], One]) -> tuple[One, ...]:
        """The rows of a table in the order of the JSON."""
        return tuple(map(of, in_order(table, self.rows[table.name])))

    def topics(self) -> tuple[Topic, ...]:
        return self.values(TOPICS, partial(of_row, Topic))

    def clients(self) -> tuple[Client, ...]:
        return self.values(CLIENTS, Client.of)

    def findings(self) -> tuple[Finding, ...]:
        """In their order, linked to no other."""
        return self.values(FINDINGS, Finding.of)

    def harms(self) -> tuple[Harm, ...]:
        every = self.values(HARMS, partial(of_row, Harm))
        known = covered(every)
        return tuple(one for one in every if one not in known)

    def not_kept(self, *tables: str) -> tuple[NotKept, ...]:
        """Of each table and label how many more there were than are kept; nothing where all are."""
        others = [row for table in tables for row in self.rows.others_of(table)]
        return tuple(of_row(NotKept, row, count=row["others"]) for row in others)

    def statements(self) -> list[Statement]:
        """Who states, uses or rejects which disputed topic ID."""
        rows = by_columns(self.rows["statements"], "cluster", "name", "topic_id", "speaker", "broker", "who", "does")
        return [of_row(Statement, row) for row in rows]

    def agreement(self, verdict: Verdict | None = None) -> AgreementTable:
        """Who states which ID and which versions, beside what the verdict says of it."""
        topics = self.values(TOPIC_STATEMENTS, partial(of_row, TopicStatement))
        apis = list(map(partial(of_row, ApiVersions), self.rows[API_VERSIONS.name]))
        apis.sort(key=lambda one: (one.cluster is None, one.cluster or "", one.server, key_of(one.api), one.api))
        return agreement_table(verdict or self.verdict(), topics, apis)

    def last_ns(self) -> int:
        """When anything was seen last that it lists; 0 where that is nothing."""
        return max((row["last_seen"] for table in SPANNED for row in self.rows[table]), default=0)

    def totals(self) -> list[Row]:
        """The counters of the run, as the table has them."""
        return self.rows["totals"]

    def connections(self) -> list[ConnectionRead]:
        """How much of each connection was read."""
        by_connection: dict[str, Row] = {}
        for row in self.rows["coverage"]:
            name, measure = row["connection"], row["measure"]
            if name is not None:
                counts = by_connection.setdefault(row["id"].partition("|")[0], {"connection": name})
                if measure == "connections":
                    counts["protocol"] = row["detail"]
                elif measure in READ:
                    counts[measure] = counts.get(measure, 0) + row["count"]
        return [ConnectionRead(**counts) for counts in by_connection.values()]


def names_of_ids(result: Result, texts: Iterable[str | None]) -> dict[str, str]:
    """Names by topic ID, if one of these texts may be an ID: there are as many rows as topics."""
    if not any(text is not None and len(text) == ID_LENGTH for text in texts):
        return {}
    return {row["topic_id"]: row["name"] for row in result.rows["topics"] if row["topic_id"] and row["name"]}


ID_LENGTH = 22
"""Of a topic ID as Kafka prints it."""


def refused_without_cause(rows: Mapping[str, list[Row]]) -> list[Row]:
    """Rows of findings that no judge can make alone (CLI006)."""
    if not any(row["level"] == HURT for row in rows["harms"]):
        return []
    return unexplained(
        linked(list(map(Finding.of, rows["findings"]))), [(of_row(Harm, row), row) for row in rows["harms"]]
    )


def without_principals(finding: Finding) -> Finding:
    """Of who changed a topic the client ID stays."""
    words = {name: text for name, text in finding.words.items() if not name.endswith(("_by_principal", "_by_host"))}
    return replace(finding, words=words)


def coverage(rows: Iterable[Row]) -> Coverage:
    """Totals of every measure, and of its details where it has some."""
    totals: Counter[str] = Counter()
    details: dict[str, dict[str, int]] = {}
    for row in rows:
        measure, detail = row["measure"], row["detail"]
        totals[measure] += row["count"]
        if detail is not None:
            by_detail = details.setdefault(measure, {})
            by_detail[detail] = by_detail.get(detail, 0) + row["count"]
    del totals[INPUT_ERRORS]
    return Coverage(
        seen_percent=seen_percent(totals),
        **{name: totals.pop(name) for name in MEASURES & totals.keys()},
        measures=dict(totals),
        input_errors=tuple(sorted(details.pop(INPUT_ERRORS, {}))),
        details={
            name: first(found) if name in UNASSIGNED else dict(sorted(found.items())) for name, found in details.items()
        },
    )


def seen_percent(totals: Mapping[str, int]) -> float:
    """To a tenth, cut and not rounded: 100 means all."""
    payload, unseen = totals["payload_bytes"], totals["unseen_bytes"]
    connections = totals["connections"]
    shares = (
        (totals["decoded_messages"], totals["messages"]),
        (payload, payload + unseen),
        (connections - totals["encrypted_connections"], connections),
    )
    return min((part * 1000 // whole / 10 for part, whole in shares if whole), default=0.0)


def first(counts: Mapping[str, int]) -> dict[str, int]:
    """The first by name, and how many more there are: the table has them all."""
    names = sorted(counts.keys() - {OTHERS})
    more = sum(counts[name] for name in names[MOST_DETAILS:]) + counts.get(OTHERS, 0)
    return {name: counts[name] for name in names[:MOST_DETAILS]} | ({OTHERS: more} if more else {})


def in_order(table: ResultTable, rows: list[Row]) -> list[Row]:
    return by_columns(rows, *table.order_by)


def by_columns(rows: list[Row], *columns: str) -> list[Row]:
    """Sorted; what is not known comes last."""
    return sorted(
        rows, key=lambda row: [(row[name] is None, "" if row[name] is None else row[name]) for name in columns]
    )


def revisions(out: Path | str, table: str, run: str, **equal: str) -> Iterator[Row]:
    """Every row of a run, in the order of its batches; those in which these columns, which are the same in every
    revision, have these values.
    """
    for part in result_folder.read(out, table, run):
        need_columns(part, table, out)
        for column, value in equal.items():
            part = part.filter(pc.equal(part[column], value))  # noqa: PLW2901
        for some in part.to_batches(max_chunksize=ROWS_AT_ONCE):
            try:
                yield from rows_of(pa.Table.from_batches([some]))
            except UnicodeDecodeError as error:
                raise DamagedResultError(f"{out}/{table}", error) from error


def need_columns(part: pa.Table, table: str, out: Path | str) -> None:
    """Raises DamagedResultError where it is another table's. Releases add columns, and know fewer."""
    known = {column.name for column in TABLES[table].columns}
    lacking = known - {*part.column_names}
    if 2 * len(lacking) > len(known) or lacking & OF_EVERY_ROW:
        raise DamagedResultError(f"{out}/{table}", "a file in it is that of another table")


OF_EVERY_ROW = {"id", "revision"}


def last(rows: Iterable[Row]) -> Iterator[Row]:
    """The last revision of each id, where it still holds."""
    newest: dict[str, Row] = {}
    for row in rows:
        newest_known = newest.get(row["id"])
        if newest_known is None or row["revision"] >= newest_known["revision"]:
            newest[row["id"]] = row
    return (row for row in newest.values() if not is_withdrawn(row))


def is_withdrawn(row: Mapping[str, Any]) -> bool:
    return bool(row.get("withdrawn")) or row.get("state") == "withdrawn"


ROWS_AT_ONCE = 4096
"""As Python objects; a compacted file holds many more."""
SPARE_ROWS = 10_000
"""So many revisions may be held beyond twice the rows that hold, or looking through them would cost more than they."""


class MadeRows(dict[str, list[Row]]):
    """Rows of each table that hold, made when they are first asked for: most answers need few tables."""

    def __init__(self, made: Callable[[str], list[Row]], *, whole: bool = True) -> None:
        """`whole`: the tables of findings and harms are not left out."""
        self.made, self.whole = made, whole
        self.others: dict[str, list[Row]] = {}
        """By table the rows that stand for many, each with the table."""

    def others_of(self, table: str) -> list[Row]:
        """Once the table was made."""
        _ = self[table]
        return self.others.get(table, [])

    def __missing__(self, table: str) -> list[Row]:
        rows = self.made(table)
        if table in BOUNDED:
            self.others[table] = [{"table": table, **row} for row in rows if row.get("others") is not None]
            rows = [row for row in rows if row.get("others") is None]
        self[table] = rows
        if table == "findings" and self.whole:
            rows += refused_without_cause(self)
        return rows


def sums(coverage: pa.Table) -> tuple[Row, ...]:
    """Coverage by measure and detail: there are a few for each connection."""
    still = coverage.filter(pc.invert(pc.fill_null(coverage["withdrawn"], False)))
    found = still.group_by(["measure", "detail"], use_threads=False).aggregate([("count", "sum")])
    return tuple(found.rename_columns(["measure", "detail", "count"]).to_pylist())


class LatestRows:
    """Add each batch's rows, in order."""

    def __init__(self) -> None:
        self._parts: dict[str, list[pa.Table]] = {}
        self._rows: dict[str, int] = {}
        self._limit: dict[str, int] = {}

    def add(self, table: str, rows: pa.Table) -> None:
        self._parts.setdefault(table, []).append(rows)
        self._rows[table] = self._rows.get(table, 0) + rows.num_rows
        if self._is_thinned(table) and self._rows[table] > self._limit.get(table, SPARE_ROWS):
            self._thin(table)

    @staticmethod
    def _is_thinned(table: str) -> bool:
        return TABLES[table].revised or table in minute_sums.KEYS

    def _thin(self, table: str) -> None:
        every = pa.concat_tables(self._parts[table])
        held = minute_sums.together(table, every) if table in minute_sums.KEYS else latest_revisions(every)
        self._parts[table], self._rows[table] = [held], held.num_rows
        self._limit[table] = 2 * held.num_rows + SPARE_ROWS

    def tables(self) -> Mapping[str, pa.Table]:
        for table in self._parts:
            if self._is_thinned(table):
                self._thin(table)
        return {table: pa.concat_tables(parts) for table, parts in self._parts.items()}

    def result(self) -> Result:
        tables = self.tables()

        def made(table: str) -> list[Row]:
            return list(last(rows_of(tables[table]))) if table in tables else []

        return Result(MadeRows(made), sums(tables["coverage"]) if "coverage" in tables else None)

    def write(self, out: Path | str) -> None:
        """As the tables of one run, in one batch."""
        Tables(out, str(uuid4())).write(self.tables(), 0)
