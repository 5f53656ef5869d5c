"""What a command shows while it works and when it is done: a progress bar on terminals, consoles, harmless text.

Knows: rich, imported only when something is shown, and which characters a terminal takes for orders. Refuses to know
what is shown.
Rule: whatever came from the wire (a client id may hold anything) passes `legible` or `as_json` before it is printed.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

ORDERS = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]")
"""Control characters but tab and newline, and those that turn the direction of text or break its lines."""


PIPED_COLUMNS = 160
"""What tables may take where nobody says how wide a line is: names are not folded away from grep."""


def console(*, stderr: bool = False) -> "Console":
    from rich.console import Console

    told = (sys.stderr if stderr else sys.stdout).isatty() or "COLUMNS" in os.environ

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with 1, which says that something was found

    return Terminal(stderr=stderr, width=None if told else PIPED_COLUMNS)


def legible(value: Any) -> Any:
    """The same with every character that a terminal would obey written out, as \\x1b.

    Inside lists and objects too, and there tabs and newlines as well: no name begins a line of its own.
    """
    if isinstance(value, str):
        return ORDERS.sub(lambda found: written_out(found[0]), value)
    return inside(value)


def inside(value: Any) -> Any:
    match value:
        case str():
            return legible(value).replace("\t", "\\t").replace("\n", "\\n")
        case dict():
            return {inside(name): inside(item) for name, item in value.items()}
        case list():
            return [inside(item) for item in value]
    return value


def written_out(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def as_json(value: Any) -> str:
    """One line of JSON, with the characters that terminals obey as JSON's own escapes."""
    return ORDERS.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def warn_of(others: dict[str, list[dict[str, Any]]]) -> None:
    """Say beside an answer what it leaves out: `others` of a result, as it stands in its JSON."""
    for more in others.get("others", []):
        words = f"{more['count']:,} more {more['table']} of {more['cluster']} were seen and are not kept"
        print(f"note: {legible(words)}; the rules stand in docs/limits.md", file=sys.stderr)  # noqa: T201 - as click does


@contextmanager
def progress(what: str) -> Iterator[Any]:
    """Give a callable (done, total) that draws a bar when stderr is a terminal and does nothing otherwise."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.progress import Progress

    with Progress(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
