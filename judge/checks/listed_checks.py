"""The catalogue as text: its lines, and each check's page as people read it. Nothing here judges.

So what only prints, such as `wirecheck explain`, starts without the checks and what they import.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from wirecheck.judge.checks.cause_rules import rules
from wirecheck.judge.checks.page import HEADINGS, WHAT_TO_DO, pages

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
KINDS: Mapping[str, str] = {
    "violation": "Kafka's rules forbid it, or two sources contradict each other",
    "anomaly": "legal, but worth an operator's attention",
    "information": "an event or an outage worth knowing; it contradicts nothing",
    "visibility": "data that was not captured or not decoded",
}
STATUSES: Mapping[str, str] = {
    "stable": "verified on captures of real clusters without false positives; messages and IDs stay",
    "preview": "verified on synthetic traffic only",
}
NOTHING = "-"
SENTENCE = re.compile(r".*?[.](?= [A-Z`]|$)")


class ListedCheck(NamedTuple):
    """One line of catalogue.tsv."""

    code: str
    name: str
    kind: str
    question: str
    """agreement, work, or work in doubt."""
    status: str
    """preview or stable."""
    spaces: tuple[str, ...]
    """The spaces of the ledger whose subjects it looks at."""
    reads: str
    """What it reads of the ledger, there and elsewhere (`catalogue.declared`)."""
    one_per: str
    """What makes it one finding."""
    summary: str


def listed() -> dict[str, ListedCheck]:
    lines = Path(__file__).with_name("catalogue.tsv").read_text("ascii").splitlines()
    found = {}
    for code, name, kind, question, status, spaces, reads, one_per, summary in (line.split("\t") for line in lines[1:]):
        looks_at = () if spaces == NOTHING else tuple(spaces.split(","))
        found[code] = ListedCheck(code, name, kind, question, status, looks_at, reads, one_per, summary)
    return found


LISTED = listed()


def page(code: str) -> str:
    """One check as a page of Markdown. KeyError for an unknown code."""
    check, written = LISTED[code], pages()[code]
    parts = [*((heading, written[heading]) for heading in HEADINGS), *relations(code)]
    parts.sort(key=lambda part: part[0] == WHAT_TO_DO)
    head = f"## {check.code} {check.name}\n\n{check.kind}, {check.status}. One finding per: {check.one_per}.\n"
    return "\n".join([head, *(f"{paragraph(f'**{heading}.** {words}')}\n" for heading, words in parts)])


def in_a_sentence(check: ListedCheck) -> str:
    """The first sentence of what the check detects."""
    found = pages()[check.code]["Detects"]
    first = SENTENCE.match(found)
    return (first[0] if first else found).replace("|", "\\|")


def relations(code: str) -> Iterator[tuple[str, str]]:
    """What it can follow from, with the reason, and what can follow from it; each with its heading."""
    reasons: dict[str, list[str]] = {}
    for rule in rules():
        if rule.consequence == code:
            reasons.setdefault(rule.why, []).append(rule.cause)
    if reasons:
        causes = " ".join(f"{', '.join(codes)}: {why}" for why, codes in reasons.items())
        yield "Can follow from", causes
    if after := [rule.consequence for rule in rules() if rule.cause == code]:
        yield "Can cause", f"{', '.join(sorted(after))}."


def paragraph(words: str) -> str:
    return fill(words, 100, break_long_words=False, break_on_hyphens=False)


def document() -> str:
    """CHECKS.md: every check by family."""
    lines = [
        "# Checks",
        "",
        f"wirecheck has {len(LISTED)} checks. `wirecheck explain CODE` shows one of them. `make docs` generates",
        "this page from the catalogue and `judge/checks/pages/`.",
        "",
        *(f"- **{kind}**: {meaning}." for kind, meaning in KINDS.items()),
        "",
        "Every check is tested with traffic in which it fires, nearly fires, and cannot know. Its status is:",
        "",
        *(f"- **{status}**: {meaning}." for status, meaning in STATUSES.items()),
        "",
        "Only CLU002 considers traffic from hosts that were never authorized. For exceptions, see",
        "[docs/limits.md](docs/limits.md#what-an-unauthenticated-host-can-cause).",
        "",
        "| code | name | kind | status | detects |",
        "|---|---|---|---|---|",
        *(f"| {c.code} | {c.name} | {c.kind} | {c.status} | {in_a_sentence(c)} |" for c in LISTED.values()),
        "",
    ]
    for family, title in FAMILIES.items():
        shown = [page(code).replace("## ", "### ", 1) for code in LISTED if code.startswith(family)]
        lines += [f"## {title}", "", *("\n".join(shown).splitlines()), ""]
    return "\n".join(lines)
