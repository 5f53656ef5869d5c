"""One text of all that a replay concludes: a line for each finding, harm, card, topic, client and line of the screen.

    PYTHON -m tools.canonical_text FILE < paths        runs in any checkout, by that checkout's own Python

Knows: the command line, which both checkouts have, and the JSON object that it prints. Refuses to know what a line
means. Rule: a line is the same wherever and whenever it was made: no path, no version, and lines are sorted.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner

ABOUT = ("wirecheck", "inputs", "keylogs", "engine", "schema_version")
"""Of the object, what speaks of the run and not of the traffic."""
NAME = "capture"
"""Stands for the path of every input."""


def lines_of(path: Path, *, with_screen: bool) -> list[str]:
    """Each as `part<TAB>JSON`, sorted."""
    from wirecheck.cli import main as command

    def replayed(*options: str) -> Any:
        words = ["replay", "--engine", "local", *options, str(path)]
        return CliRunner().invoke(command, words, catch_exceptions=False)

    json_result = replayed("--format", "json")
    document = json.loads(json_result.stdout) if json_result.stdout.startswith("{") else {}
    screen = replayed().stdout if with_screen else ""
    return canonical(path, document, json_result.exit_code, screen)


def canonical(path: Path, document: dict[str, Any], exit_status: int, screen: str = "") -> list[str]:
    """Of one replay: its JSON object, how it ended, and what it printed."""
    every = [("exit", exit_status), *parts(document), *(("screen", line) for line in screen.splitlines())]
    return sorted(
        f"{part}\t{json.dumps(value, sort_keys=True, ensure_ascii=False)}".replace(str(path), NAME)
        for part, value in every
    )


def parts(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in document.items():
        if name in ABOUT:
            continue
        if isinstance(value, list):
            yield from ((name, row) for row in value)
        else:
            yield name, value


def main(out: Path, captures: list[Path]) -> None:
    """One line of JSON for each input, in the order given, written as soon as it is judged: the path and its lines."""
    with out.open("w", encoding="utf-8") as file:
        for path in captures:
            # cases of tests and damaged captures are many, and their JSON has their cards
            file.write(json.dumps([str(path), lines_of(path, with_screen=path.name.startswith("capture."))]) + "\n")
            file.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(line) for line in sys.stdin.read().splitlines()])
