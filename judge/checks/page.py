"""The page of each check: what it detects, why that matters, when it is wrong, its source, and what to do (pages/*.md).

Rule: every check has one, in its family's file and in the catalogue's order. No remedy throws data away before it says
how to know that others have it.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

WHAT_TO_DO = "What to do"
HEADINGS = ("Detects", "Why it matters", "False positives", "Source", WHAT_TO_DO)
PARAGRAPH = re.compile(r"^\*\*([^*]+)\.\*\* (.+?)$(?=\n\n|\n*\Z)", re.DOTALL | re.MULTILINE)


@cache
def pages() -> Mapping[str, Mapping[str, str]]:
    """By code its paragraphs as one line each, by heading."""
    found = {}
    for path in sorted(Path(__file__).with_name("pages").glob("*.md")):
        for page in path.read_text("ascii").split("\n## ")[1:]:
            code = page[: page.index(" ")]
            found[code] = {heading: " ".join(words.split()) for heading, words in PARAGRAPH.findall(page)}
    return found


def remedy(code: str) -> str:
    """What to do next about a finding; empty for a code that no check has."""
    return pages().get(code, {}).get(WHAT_TO_DO, "")


def explanations(codes: Iterable[str]) -> dict[str, dict[str, str]]:
    """The other paragraphs of some pages; without codes that no check has."""
    known = {code: pages()[code] for code in sorted({*codes} & pages().keys())}
    return {code: {heading: page[heading] for heading in HEADINGS[:-1]} for code, page in known.items()}
