"""What to do next about a finding, by the code of its check.

Rule: every check has its line, and no line throws data away before it says how to know that others have it.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from wirecheck.story.entries import cause_sentences


@cache
def remedies() -> dict[str, str]:
    """By code, in the order of the catalogue."""
    lines = Path(__file__).with_name("remedies.tsv").read_text("ascii").splitlines()[1:]
    return dict(line.split("\t") for line in lines)


def remedy(code: str) -> str:
    """Empty where the code is none of ours."""
    return remedies().get(code, "")


def remedies_of(findings: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """By finding ID. Where the remedy of its cause ends a finding, that is the remedy: one of its own may do harm."""
    codes = {finding["id"]: finding["code"] for finding in findings}
    ends = cause_sentences()
    found = {}
    for finding in findings:
        cause = codes.get(finding["cause"])
        found[finding["id"]] = remedy(cause if cause is not None and ends[cause].ends else finding["code"])
    return found
