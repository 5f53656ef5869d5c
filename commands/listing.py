"""Lists of rows as a person, a program or a spreadsheet reads them, and the options of commands that print them.

Knows: the three forms, how cells stand below each other, and how many lines a terminal shows at once. Refuses to know
what a row is about.
Rule: whatever came from the wire passes `screen.row`, `as_json` or `legible`.
"""

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from wirecheck.commands import completion, fields, names, options
from wirecheck.commands.ending import Stop
from wirecheck.commands.screen import as_json, columns, legible, note, paints
from wirecheck.commands.screen import row as line
from wirecheck.document import document
from wirecheck.wording import clock, several_days, short_id

if TYPE_CHECKING:
    from wirecheck.questions.traffic import Coverage
    from wirecheck.wording import TimeSpan

Row = dict[str, Any]
Cells = list[tuple[str, str]]
One = TypeVar("One")
WIDEST = 40
"""Characters of a column that are aligned; what is longer moves the rest of its line."""
LONGEST = 500
"""Characters of a cell. Kafka's names have 249 at most, client IDs 32,767."""
AROUND_LINES = 6
"""Of a terminal's height that are not rows: the prompt, the command, the lines about those not shown and coverage."""


inputs_argument = click.argument("inputs", nargs=-1, required=True, metavar="INPUT...", shell_complete=completion.path)
answers_argument = click.argument("inputs", nargs=-1, metavar="INPUT...", shell_complete=completion.path)
"""Of commands that take --from in its place."""
SHARED = (names.option, options.keylog, options.dialect, options.strict, options.quiet, options.form("json", "csv"))


def options_of_listing(command: Any) -> Any:
    """What each command that lists messages takes besides its own options."""
    return options.decorated(command, (options.ports, *SHARED))


def options_of_answers(command: Any) -> Any:
    """What each command that lists rows of a result takes besides its own options."""
    return options.decorated(command, (options.tables, options.cluster, fields.options, *SHARED))


def options_of_rows(command: Any) -> Any:
    """The same of those that list messages as rows of one kind."""
    return options_of_listing(fields.options(command))


@dataclass(frozen=True)
class Listing(Generic[One]):
    """How rows of one kind are shown."""

    noun: str
    as_row: Callable[[One], Row]
    """As JSON has it."""
    cells: Callable[[One, bool], Cells]
    """As text has it; whether days are to be named, because there are several. The last cell is not aligned."""
    days: Callable[[One], tuple[int, ...]]
    """Its times, since 1970."""
    newest: bool = False
    """A terminal that cannot show all shows the last rows, not the first."""
    headings: tuple[str, ...] = ()
    """Of the cells, on a first line; none without."""
    spare: tuple[str, ...] = ()
    """Headings of the columns that a narrow terminal does without, the first of them first."""

    def of_clusters(self, cluster: Callable[[One], str | None], rows: Sequence[One], at: int) -> "Listing[One]":
        """The same; where the rows are of several clusters, with a column of these at this place. A terminal shows how
        their IDs begin.
        """
        ids = {one for one in map(cluster, rows) if one is not None}
        if len(ids) < 2:
            return self
        cuts = columns() is not None and len(set(map(short_id, ids))) == len(ids)

        def cells(one: One, dated: bool) -> Cells:
            mine, name = self.cells(one, dated), cluster(one) or "-"
            return [*mine[:at], (short_id(name) if cuts else name, "cluster"), *mine[at:]]

        return replace(self, cells=cells, headings=(*self.headings[:at], "cluster", *self.headings[at:]))

    def show(self, found: Sequence[One], form: str, *, every: bool) -> None:
        picked = fields.asked()
        found = picked.in_order(found, self.as_row)
        rows = [] if form == "text" and not picked.columns else picked.of_rows([*map(self.as_row, found)])
        if form != "text":
            show_rows([names.in_row(row) for row in rows], form)
        elif picked.columns:
            of_fields(self.noun, picked.columns).table(rows, every=every)
        else:
            (replace(self, newest=False) if picked.sort else self).table(found, every=every)

    def table(self, found: Sequence[One], *, every: bool) -> None:
        """Those that fit a terminal, unless all are asked for; a row that is wider than it takes several lines."""
        most_lines = max(1, shutil.get_terminal_size().lines - AROUND_LINES - bool(self.headings))
        cuts = sys.stdout.isatty() and not every
        shown = (found[-most_lines:] if self.newest else found[:most_lines]) if cuts else found
        dated = several_days(time for one in shown for time in self.days(one))
        head, *texts = lines(self.fitting([self.cells(one, dated) for one in shown])) if shown else [""]
        if cuts:
            ends = accumulate(text.count("\n") + 1 for text in (texts[::-1] if self.newest else texts))
            count = max(1, sum(end <= most_lines for end in ends))
            texts = texts[-count:] if self.newest else texts[:count]
        if printed := [text.rstrip() for text in ((head, *texts) if self.headings and texts else texts)]:
            click.echo("\n".join(printed))  # at once: there may be as many as topics and brokers
        if len(texts) < len(found):
            which = "newest" if self.newest else "first"
            note(f"The {which} {len(texts)} of {len(found):,} {self.noun}; --all prints all.")

    def fitting(self, rows: list[Cells]) -> list[Cells]:
        """A line of headings and the rows, without the spare columns that do not fit a terminal."""
        headings = list(self.headings or [""] * len(rows[0]))
        rows = [[(heading.upper(), "head") for heading in headings], *rows]
        kept, wide, available = [*range(len(headings))], widths(rows), columns()
        for heading in self.spare:
            if available is not None and sum(wide[place] + 2 for place in kept) - 2 > available:
                kept.remove(headings.index(heading))
        return [[cells[place] for place in kept] for cells in rows]


def of_fields(noun: str, columns: tuple[str, ...]) -> Listing[Row]:
    """Rows of which only some fields are shown."""

    def cells(row: Row, dated: bool) -> Cells:  # noqa: ARG001 - as Listing calls it
        return [(fields.text_of(row[name]), "count") for name in columns]

    return Listing(noun, lambda row: row, cells, lambda _row: (), headings=columns)


def widths(rows: list[Cells]) -> list[int]:
    """Of the columns, as far as they are aligned."""
    return [min(WIDEST, max(len(text) for text, _ in column)) for column in zip(*rows, strict=True)]


def show_fields(noun: str, found: Sequence[Any], form: str) -> None:
    """The fields that `--columns` names, of dataclasses."""
    every: Listing[Any] = Listing(noun, document, lambda _one, _dated: [], lambda _one: ())
    every.show(found, form, every=True)


def show_rows(rows: Sequence[Row], form: str) -> None:
    """As JSON, a line each, or as CSV."""
    if form == "json":
        for row in rows:
            click.echo(as_json(row))
    else:
        show_csv([*map(flat, rows)])


def show_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    from wirecheck.dashboards.spreadsheets import csv_of

    click.echo(csv_of(legible([*rows])), nl=False)


def flat(found: Row) -> Row:
    """As CSV has it: a frame in two columns."""
    frame = found.get("frame")
    return found if frame is None else found | {"frame": frame["first"], "source": frame["source"]}


def lines(rows: list[Cells]) -> list[str]:
    """Rows as text, painted and folded as the terminal on stdout takes them."""
    return [line(cells, paint=paints(), columns=columns()) for cells in aligned(rows)]


def aligned(rows: list[Cells]) -> Iterator[Cells]:
    """Rows whose cells stand below each other, as far as these are not longer than WIDEST."""
    rows = [[(shortened(text), role) for text, role in cells] for cells in rows]
    columns_wide = widths(rows)
    for row_of_cells in rows:
        *padded, (details, role) = row_of_cells
        found = [(text.ljust(width), kind) for (text, kind), width in zip(padded, columns_wide, strict=False)]
        yield [*found, (details, role)] if details else [*found[:-1], (found[-1][0].rstrip(), found[-1][1])]


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text):,} characters)"


def span(first_ns: int | None, last_ns: int | None, *, dated: bool) -> str:
    """`00:44:48 to 00:45:10`, with the day where there are several; one time if they are the same to the second."""
    times = dict.fromkeys(clock(time, dated=dated) for time in (first_ns, last_ns) if time is not None)
    return " to ".join(times)


def note_end(shown: str, hidden: Mapping[str, int], coverage: "Coverage") -> None:
    """What a list rests on: `3 errors, 1 ongoing; 9,620 messages, all decoded, 00:36:10 to 00:37:52 UTC`.

    `hidden`: how many rows of each kind are not shown.
    """
    note_hidden(shown, hidden, coverage.text())


def note_hidden(shown: str, hidden: Mapping[str, int], basis: str) -> None:
    parts = [f"{count:,} {what} not shown" for what, count in hidden.items() if count]
    note("; ".join([shown, *parts, basis]))


def need_no_times(*times: "TimeSpan | None") -> None:
    """Captures are listed whole."""
    if any(times):
        raise click.UsageError("--since and --until take the --out folder of a replay or a monitor")


def need_messages(coverage: "Coverage", names: Sequence[str]) -> None:
    """Stop if no Kafka message was read: then an empty list would say nothing."""
    if not coverage.messages:
        raise Stop(f"{', '.join(names)}: {coverage.text()}")
