"""Findings as rows of text, one each: what is wrong, how long it has been open, which check, and how often.

Knows: the order of the cells, and what colours each (its role). Refuses to know evidence and remedies: those are of a
finding in full (terminal.py).
"""

from collections.abc import Mapping
from typing import Any

from wirecheck.story.cards import duration
from wirecheck.story.harm import seconds

Row = Mapping[str, Any]


def cells(finding: Row, codes: Mapping[str, str], end_s: float) -> list[tuple[str, str]]:
    """`codes`: of the findings that are open, by ID; `end_s`: when anything was seen last."""
    found = [
        (finding["summary"], finding["kind"]),
        (finding["kind"], finding["kind"]),
        (finding["code"], "topic"),
        (finding["id"], "frame"),
        (f"since {clock(finding['first_seen'])}", "time"),
        (f"open for {duration(end_s - seconds(finding['first_seen']))}", "time"),
        (f"x{finding['count']:,}", "time"),
    ]
    cause = finding.get("cause")
    return [*found, (f"cause {codes.get(cause, '')} {cause}".replace("  ", " "), "time")] if cause else found


def clock(time: str | None) -> str:
    """An RFC 3339 time to the second, without its year: 11-21 00:20:25Z."""
    return f"{time[5:10]} {time[11:19]}Z" if time else ""
