"""A list with commas in a cell or a line of a terminal.

Knows how it wraps: between its items. Refuses to know what they are. Rule: no item is broken that fits a line.
"""

from collections.abc import Iterable, Iterator
from textwrap import wrap

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.text import Text

GLUE = "\u00a0"
"""A space at which textwrap does not break."""


class Items:
    """A list with commas that wraps between its items: no version stands on another line than its API."""

    def __init__(self, items: Iterable[str], before: str = "") -> None:
        self.text = before + ", ".join(item.replace(" ", GLUE) for item in items)

    def __rich_measure__(self, _console: Console, options: ConsoleOptions) -> Measurement:
        longest = max(map(len, self.text.split(" ")), default=0)
        return Measurement(min(longest, options.max_width), min(len(self.text), options.max_width))

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> Iterator[Text]:
        lines = wrap(self.text, max(options.max_width, 1), break_on_hyphens=False)
        yield Text("\n".join(lines).replace(GLUE, " "))
