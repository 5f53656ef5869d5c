"""Findings as rows of text, one each: when, what kind, which check, how often, and what it says.

Knows: the order of the cells, and what colours each (its role). Refuses to know evidence and remedies: those are of a
finding in full (terminal.py).
"""

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]
KIND_COLUMNS = len("information")


def cells(finding: Row, codes: Mapping[str, str]) -> list[tuple[str, str]]:
    """`codes`: of the findings that are open, by id."""
    found = [
        (f"{clock(finding['first_seen'])} to {clock(finding['last_seen'])}", "time"),
        (finding["kind"].ljust(KIND_COLUMNS), finding["kind"]),
        (finding["code"], "topic"),
        (finding["id"], "frame"),
        (f"x{finding['count']:,}", "time"),
        (finding["summary"], "summary"),
    ]
    cause = finding.get("cause")
    return [*found, (f"cause {codes.get(cause, '')} {cause}".replace("  ", " "), "time")] if cause else found


def clock(time: str | None) -> str:
    """An RFC 3339 time to the second, without its year: 11-21 00:20:25Z."""
    return f"{time[5:10]} {time[11:19]}Z" if time else ""
