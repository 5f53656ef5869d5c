"""What a command shows on a terminal: progress, text, tables.

Everything from the wire passes `legible` or `as_json` before it is printed: it may hold control characters.
"""

import json
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Self

import click

from wirecheck import colours
from wirecheck.document import PLAIN, document, inner

if TYPE_CHECKING:
    from rich.console import Console

    from wirecheck.story.seen import NotKept

ORDERS = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f"
    "\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff"
    "\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff]"
)
"""Control characters but tab and newline, those that turn the direction of text or break its lines, what XML forbids,
and what shows nothing, so that two names look alike: Unicode's Default_Ignorable_Code_Point, and the blank of Braille.
"""


PIPED_COLUMNS = 160
"""What tables may take where nobody says how wide a line is: names are not folded away from grep."""


def console() -> "Console":
    from rich.console import Console

    has_size = sys.stdout.isatty() or "COLUMNS" in os.environ

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with 1, which says that something was found

    return Terminal(width=None if has_size else PIPED_COLUMNS)


PAINT: dict[str, dict[str, Any]] = {
    "time": {"dim": True},
    "api": {"fg": colours.TEAL},
    "topic": {"bold": True},
    "error": {"fg": colours.RED, "bold": True},
    "unread": {"fg": colours.PURPLE},
    "latency": {"fg": colours.AMBER},
    "frame": {"dim": True},
    **{kind: {"fg": colour, "bold": kind == "violation"} for kind, colour in colours.KINDS.items()},
}
"""How cells look on a terminal, by their role."""


def paints() -> bool:
    """Whether stdout is a terminal and NO_COLOR (no-color.org) is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


Cells = list[tuple[str, str]]
MANY_COLUMNS = 20
"""On a narrower terminal nothing is worth breaking by hand."""
HANGING = " " * 15
"""Below the first cell of a row, which is a time: the next begins there."""


def columns() -> int | None:
    """How wide the terminal on stdout is; a file or a pipe has no end of its rows."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def row(cells: Sequence[tuple[str, str]], *, paint: bool, columns: int | None = None) -> str:
    """Cells (text, role) as one row, harmless, and the same words with paint and without; where it ends, it hangs."""
    if not paint and columns is None and (line := "  ".join(text for text, _ in cells)).isprintable():
        return line  # as almost all are
    texts = [(str(inside(text)), role) for text, role in cells]
    fits = columns is None or sum(len(text) + 2 for text, _ in texts) - 2 <= columns
    lines = [texts] if columns is None or fits else hung(texts, columns)
    return f"\n{HANGING}".join("  ".join(painted(*cell) if paint else cell[0] for cell in line) for line in lines)


def painted(text: str, role: str) -> str:
    return click.style(text, **PAINT.get(role, {}))


def hung(cells: Cells, columns: int) -> list[Cells]:
    """The same in lines that fit; a cell is broken, between words, only where a line is too short for it alone."""
    from textwrap import wrap

    lines: list[Cells] = [[]]
    used, width = 0, max(columns - len(HANGING), len(HANGING))
    for text, role in cells:
        for part in [text] if len(text.rstrip()) <= width else wrap(text, width, break_on_hyphens=False):
            if lines[-1] and used + 2 + len(part.rstrip()) > columns:
                lines[-1][-1] = (lines[-1][-1][0].rstrip(), lines[-1][-1][1])
                lines.append([])
                used = len(HANGING)
            used += len(part) + (2 if lines[-1] else 0)
            lines[-1].append((part, role))
    return lines


def legible(value: Any) -> Any:
    """The same with every character that a terminal would obey written out, as \\x1b.

    Inside lists and objects too, and there tabs and newlines as well: no name begins a line of its own.
    """
    if isinstance(value, str):
        if value.isascii() and value.isprintable():  # as almost all is
            return value
        return ORDERS.sub(lambda found: written_out(found[0]), value)
    return inside(value)


def inside(value: Any) -> Any:
    if type(value) in PLAIN and (type(value) is not str or (value.isascii() and value.isprintable())):
        return value  # as almost all is
    match value:
        case str():
            return legible(value).replace("\t", "\\t").replace("\n", "\\n")
        case dict():
            return {inside(name): inside(item) for name, item in value.items()}
    return inner(value, inside)


def written_out(character: str) -> str:
    code = ord(character)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def as_json(value: Any) -> str:
    """One line of JSON, with the characters that terminals obey as JSON's own escapes."""
    return ORDERS.sub(lambda found: in_json(found[0]), json.dumps(document(value), ensure_ascii=False))


def in_json(character: str) -> str:
    """JSON has four digits: beyond them stand two surrogates."""
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else json.dumps(character)[1:-1]


def warn_of(others: "Sequence[NotKept]") -> None:
    """Say beside an answer what it leaves out."""
    for more in () if Display.quiet else others:
        words = f"{more.count:,} more {more.table} of {more.cluster} were seen and are not kept"
        print(f"note: {legible(words)}; see SECURITY.md", file=sys.stderr)  # noqa: T201 - as click does


STARTED_S = time.monotonic()
"""When this module was imported: when the command began."""
REDRAW_S, BAR_COLUMNS = 0.2, 24
ERASE = "\r\x1b[2K"


class Progress:
    """What goes on, how far it is and since when, on one line of stderr that is drawn again and again.

    Rule: whoever waits sees it at once, before anything is imported for the work, and sees it move where the work is
    slow to say anything. It needs no package for that.
    """

    def __init__(self, what: str, then: str = "") -> None:
        self._what, self._then = what, then
        self._share: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._redraw, daemon=True)

    def __call__(self, done: int, total: int) -> None:
        """So much of it is done; where a second stage was named, it has begun."""
        self._what, self._then = self._then or self._what, ""
        self._share = min(done / total, 1.0) if total else None

    def __enter__(self) -> Self:
        self._draw()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        write_error(ERASE)

    def _redraw(self) -> None:
        while not self._over.wait(REDRAW_S):
            self._draw()

    def _draw(self) -> None:
        write_error(ERASE + self.line(time.monotonic() - STARTED_S, shutil.get_terminal_size().columns))

    def line(self, elapsed_s: float, columns: int) -> str:
        """As in `judging  [======      ] 48 %  0:03`, cut where the terminal ends: a longer one would not be erased."""
        clock = f"{int(elapsed_s) // 60}:{int(elapsed_s) % 60:02d}"
        if self._share is None:
            return f"{self._what} ...  {clock}"[: columns - 1]
        full = int(self._share * BAR_COLUMNS)
        bar = "=" * full + " " * (BAR_COLUMNS - full)
        return f"{self._what}  [{bar}] {self._share * 100:.0f} %  {clock}"[: columns - 1]


def write_error(text: str) -> None:
    with suppress(OSError, ValueError):  # a terminal that is gone, or a stream that was closed
        sys.stderr.write(text)
        sys.stderr.flush()


class Display:
    """Settings of what a command shows."""

    quiet = False


def be_quiet(*, quiet: bool) -> None:
    """From now on neither progress nor notes; or both again."""
    Display.quiet = quiet


def draws() -> bool:
    """Whether stderr is a terminal that can take back what it shows, and progress is wanted."""
    return not Display.quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def tell(line: str) -> None:
    """A line on stderr, in place of the progress that may stand there."""
    if draws():
        write_error(ERASE)
    print(worded(line), file=sys.stderr)  # noqa: T201 - as click does


def note(line: str) -> None:
    """The same of what only says that all is well: not where `-q` asked for silence."""
    if not Display.quiet:
        tell(line)


def worded(line: str) -> str:
    """A line for stderr without control characters; on a terminal, wrapped between words with a hanging indent."""
    text = str(legible(line))
    if not sys.stderr.isatty():
        return text
    try:
        wide = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        wide = shutil.get_terminal_size().columns
    if wide < MANY_COLUMNS or len(text) <= wide:
        return text
    from textwrap import fill

    return "\n".join(
        fill(part, wide, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for part in text.split("\n")
    )


def progress(what: str, then: str = "") -> AbstractContextManager[Callable[[int, int], None]]:
    """Give a callable (done, total) that shows how far it is, on a terminal; elsewhere nothing is shown.

    `then` is what goes on from the first time it is called.
    """
    if not draws():
        return nullcontext(lambda _done, _total: None)
    return Progress(what, then)
