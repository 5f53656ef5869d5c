"""`--sort` and `--columns`: in which order rows are listed, and which of their fields.

Knows: how a field of a row is found and compared. Refuses to know what a row is about.
Rule: fields have the names that JSON has, in every form; `frame.first` is a field of a field.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import click

from wirecheck.commands.ending import Stop

SORT, COLUMNS = "wirecheck.sort", "wirecheck.columns"
"""Where the context keeps what was asked for."""
One = TypeVar("One")
Row = Mapping[str, Any]


class Fields(NamedTuple):
    """What was asked for: nothing of either by default."""

    sort: str = ""
    columns: tuple[str, ...] = ()

    def in_order(self, found: Sequence[One], as_row: Callable[[One], Row]) -> Sequence[One]:
        """By the field, what lacks it last. Raises Stop if no row has such a field."""
        if not self.sort or not found:
            return found
        name, falls = self.sort.removeprefix("-"), self.sort.startswith("-")
        rows = [as_row(one) for one in found]
        known(rows, name, "--sort")
        having = [
            (value, one) for row, one in zip(rows, found, strict=True) if (value := value_of(row, name)) is not None
        ]
        numbers = all(isinstance(value, int | float) for value, _ in having)
        having.sort(key=lambda pair: pair[0] if numbers else text_of(pair[0]), reverse=falls)
        lacking = [one for row, one in zip(rows, found, strict=True) if value_of(row, name) is None]
        return [*(one for _, one in having), *lacking]

    def of_rows(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """The fields that were asked for, or all. Raises Stop if no row has one of them."""
        for name in self.columns if rows else ():
            known(rows, name, "--columns")
        return [{name: value_of(row, name) for name in self.columns} if self.columns else dict(row) for row in rows]


def asked() -> Fields:
    """Of the command that runs; nothing without one."""
    context = click.get_current_context(silent=True)
    meta = context.meta if context is not None else {}
    return Fields(meta.get(SORT) or "", meta.get(COLUMNS) or ())


def value_of(row: Row, name: str) -> Any:
    """None where the row has no such field."""
    found: Any = row
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def text_of(value: Any) -> str:
    """As a cell of a table: items of a list in turn."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return " ".join(f"{name}={text_of(one)}" for name, one in value.items())
    return ", ".join(map(text_of, value)) if isinstance(value, list | tuple) else str(value)


def known(rows: Iterable[Row], name: str, option: str) -> None:
    names = dict.fromkeys(field for row in rows for field in fields_of(row))
    if name not in names:
        raise Stop(f"{option}: no row has a field {name}; fields are {', '.join(names)}")


def fields_of(row: Row, before: str = "") -> Iterable[str]:
    for name, value in row.items():
        yield before + name
        if isinstance(value, Mapping):
            yield from fields_of(value, f"{before}{name}.")


def _sort(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    ctx.meta[SORT] = value


def _columns(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    ctx.meta[COLUMNS] = tuple(name for part in (value or "").split(",") if (name := part.strip()))
    if value is not None and not ctx.meta[COLUMNS]:
        raise click.BadParameter("names no field", ctx, param)


def options(command: Any) -> Any:
    sort = click.option(
        "--sort",
        metavar="FIELD",
        expose_value=False,
        callback=_sort,
        help="Sort rows by a field, named as in JSON; -FIELD for the greatest first.",
    )
    columns = click.option(
        "--columns",
        metavar="FIELD,...",
        expose_value=False,
        callback=_columns,
        help="Print only these fields, named as in JSON.",
    )
    return sort(columns(command))
