"""`make bench [ONLY=decode|recovery|…]`, as in MEASUREMENTS: every measurement, its peer, its bar.

Knows which measurements exist; each module of this folder measures one thing in `measure() -> list[dict]` with the keys
name, value, unit, peer, peer_value, ratio, bar, met. A peer that is not installed has peer_value null and says so.
Rule: a figure is measured in the same run as its peer and written to bench.json as it came.
"""

import importlib
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.contained import nothing_contained

MEASUREMENTS = (
    "decode",
    "capture",
    "recovery",
    "replay",
    "monitor",
    "month",
    "wide",
    "log_readers",
    "cost",
    "spreading",
)


def main(only: list[str]) -> int:
    unknown = [name for name in only if name not in MEASUREMENTS]
    if unknown:
        print(f"bench: no measurement {unknown[0]}; there are {', '.join(MEASUREMENTS)}", file=sys.stderr)
        return 2
    with nothing_contained():
        rows = [row for name in only or MEASUREMENTS for row in importlib.import_module(f"bench.{name}").measure()]
    Path("bench.json").write_text(json.dumps(rows, indent=1) + "\n")
    Console().print(table(rows))
    return 0


def table(rows: list[dict]) -> Table:
    page = Table(box=None, header_style="bold")
    for heading in ("what", "we", "unit", "peer", "its", "ratio", "bar", "met"):
        page.add_column(heading)
    for row in rows:
        peer_value = "missing" if row["peer"] and row["peer_value"] is None else number(row["peer_value"])
        met = {True: "yes", False: "NO", None: ""}[row["met"]]
        page.add_row(
            row["name"], number(row["value"]), row["unit"], row["peer"] or "", peer_value,
            number(row["ratio"]), str(row["bar"] or ""), met,
        )  # fmt: skip
    return page


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
