"""What to do next about a finding, by the code of its check.

Knows: the table (remedies.tsv: code, and one or two sentences for whoever is on call). Refuses to know how a check
detects and its false positives: that is its page, `wirecheck explain CODE`.
Rule: every check has its line, and no line throws data away before it says how to know that others have it.
"""

from functools import cache
from pathlib import Path


@cache
def remedies() -> dict[str, str]:
    """By code, in the order of the catalogue."""
    lines = Path(__file__).with_name("remedies.tsv").read_text("ascii").splitlines()[1:]
    return dict(line.split("\t") for line in lines)


def remedy(code: str) -> str:
    """Empty where the code is none of ours."""
    return remedies().get(code, "")
