"""The page of each check: what it declares and detects, why that matters, when it is wrong, its source, and what to do
(pages/*.md).

Rule: every check has one, in its family's file and in the order of codes. No remedy throws data away before it says how
to know that others have it.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

WHAT_TO_DO = "What to do"
HEADINGS = ("Detects", "Why it matters", "False positives", "Source", WHAT_TO_DO)
PARAGRAPH = re.compile(r"^\*\*([^*]+)\.\*\* (.+?)$(?=\n\n|\n*\Z)", re.DOTALL | re.MULTILINE)
BEGIN, END = "\n\n```check\n", "\n```\n"
FAMILIES: Mapping[str, str] = {
    "TID": "Topic IDs",
    "VER": "Versions",
    "FET": "Fetching",
    "CTL": "Controllers, leaders and replicas",
    "LOG": "The metadata log",
    "GRP": "Groups, offsets and producers",
    "ADM": "Topic administration",
    "CLU": "Clusters",
    "CLI": "Clients that get nowhere",
    "DRF": "Draft dialects",
    "WIR": "Messages on the wire",
    "VIS": "Blind spots",
}


class Page(NamedTuple):
    """A page as it is written."""

    code: str
    name: str
    declared: str
    """The lines of its block (`declaration.py`)."""
    text: str
    """Its paragraphs."""


@cache
def written() -> Mapping[str, Page]:
    """By code, in the order of the families."""
    found = {}
    for family in FAMILIES:
        file = Path(__file__).with_name("pages") / f"{family}.md"
        for section in file.read_text("ascii").split("\n## ")[1:]:
            heading, _, rest = section.partition(BEGIN)
            code, name = heading.split()
            declared, _, text = rest.partition(END)
            found[code] = Page(code, name, declared, text)
    return found


@cache
def pages() -> Mapping[str, Mapping[str, str]]:
    """By code its paragraphs as one line each, by heading."""
    return {
        code: {heading: " ".join(words.split()) for heading, words in PARAGRAPH.findall(page.text)}
        for code, page in written().items()
    }


def remedy(code: str) -> str:
    """What to do next about a finding; empty for a code that no check has."""
    return pages().get(code, {}).get(WHAT_TO_DO, "")


def explanations(codes: Iterable[str]) -> dict[str, dict[str, str]]:
    """The other paragraphs of some pages; without codes that no check has."""
    known = {code: pages()[code] for code in sorted({*codes} & pages().keys())}
    return {code: {heading: page[heading] for heading in HEADINGS[:-1]} for code, page in known.items()}
