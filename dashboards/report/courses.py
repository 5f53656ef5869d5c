"""What changed along the axis of the picture: errors by client as areas, offsets and epochs as lines.

A line joins values that were seen; the number at its name is the last of them. An outline is a path in a box as wide as
there are slots and 100 high; templates give it pixels and colors.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wirecheck.judge.checks.listed_checks import LISTED
from wirecheck.story.entries import BLAMED
from wirecheck.story.verdict import Verdict

Row = Mapping[str, Any]
DRAWN = 6
"""Areas, and lines of one kind, at most: the most errors first, and of lines what a finding is about."""
LINES = {code: check.course for code, check in LISTED.items() if check.course is not None}


def outline(values: Sequence[int | None]) -> str:
    """An area below these values, the largest of which is 100 high."""
    most = max(value or 0 for value in values)
    heights = [100 - round(100 * (value or 0) / most) for value in values]
    return "M0 100" + "".join(f"V{height}H{number + 1}" for number, height in enumerate(heights)) + "V100Z"


def line(values: Sequence[int | None], low: int, high: int) -> str:
    """From value to value, between 4 and 96 of the height; a single one is as wide as its slot."""
    known = [
        (number, 96 - 92 * (value - low) / ((high - low) or 1))
        for number, value in enumerate(values)
        if value is not None
    ]
    return "M" + "L".join(f"{number} {height:.1f}" for number, height in known) + "h1"


def errors(courses: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """An area for each client and error."""
    found = [{**one, "count": sum(filter(None, one["values"]))} for one in courses.get("errors", ())]
    found.sort(key=lambda one: (-one["count"], one["who"], one["what"]))
    return [{**one, "path": outline(one["values"])} for one in found[:DRAWN]]


def charts(result: Verdict, courses: Mapping[str, Sequence[Row]]) -> Iterator[dict[str, Any]]:
    """Lines that show what findings are about: heading, lowest and highest value, and a row for each line."""
    for code, (kind, noun, heading) in LINES.items():
        about = {one.words.get(noun) for one in result.findings if one.code == code and one.kind in BLAMED}
        every = [one for one in courses.get(kind, ()) if any(value is not None for value in one["values"])]
        if not about or not every:
            continue
        every.sort(key=lambda one: (one["who"] not in about, one["who"]))
        shown = every[:DRAWN]
        known = [value for one in shown for value in one["values"] if value is not None]
        low, high = min(known), max(known)
        rows = [
            {
                "name": f"{noun} {one['who']}",
                "odd": one["who"] in about,
                "number": number,
                "last": next(value for value in reversed(one["values"]) if value is not None),
                "path": line(one["values"], low, high),
            }
            for number, one in enumerate(shown)
        ]
        yield {"heading": heading, "low": low, "high": high, "rows": rows, "left": len(every) - len(shown)}
