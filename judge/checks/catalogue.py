"""The catalogue of checks: what exists, what each reads, and its page as people read it.

Rule: a check reads what it declares and nothing else; every case of the lab is held against it. Of its own space it
reads its own subject only; of topics, also the names and IDs that claims have with it in common. Besides, every check
rests on which endpoints are one cluster and which hosts are suspect. Codes and names are final and never reused.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from types import ModuleType

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks import (
    administration,
    agreement,
    clusters,
    controllers,
    fetching,
    groups,
    idle_members,
    listings,
    log_ends,
    lone_readers,
    metadata_log,
    outages,
    progress,
    recreations,
    topic_id_uses,
    topic_ids,
    transactions,
    unserved,
    version_matrix,
    versions,
    wire_checks,
)
from wirecheck.judge.checks.cause_rules import rules
from wirecheck.judge.checks.page import HEADINGS, WHAT_TO_DO, pages
from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.claims.kinds import KINDS as CLAIMS
from wirecheck.judge.claims.kinds import SPACES
from wirecheck.judge.results.finding import Evidence, Rule
from wirecheck.judge.topology.clusters import Group

Function = Callable[[Subject, Group, CheckContext], Iterator[Evidence]]
FAMILIES: Mapping[str, tuple[str, tuple[ModuleType, ...]]] = {
    "TID": ("Topic IDs", (topic_ids, topic_id_uses, agreement, listings, controllers, outages)),
    "VER": ("Versions", (versions, version_matrix)),
    "FET": ("Fetching", (fetching, transactions)),
    "CTL": ("Controllers, leaders and replicas", (controllers, outages, log_ends)),
    "LOG": ("The metadata log", (metadata_log,)),
    "GRP": ("Groups, offsets and producers", (groups, progress, recreations, outages)),
    "ADM": ("Topic administration", (administration,)),
    "CLU": ("Clusters", (clusters, outages)),
    "CLI": ("Clients that get nowhere", (unserved, idle_members, lone_readers)),
    "DRF": ("Draft dialects", (wire_checks,)),
    "WIR": ("Messages on the wire", (wire_checks, outages)),
    "VIS": ("Blind spots", (wire_checks,)),
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
AGREEMENT, WORK, IN_DOUBT = "agreement", "work", "work in doubt"
"""Which of the verdict's two questions a check is about. In doubt: its clients may get nothing done, unless they are
hurt anyway.
"""
SENTENCE = re.compile(r".*?[.](?= [A-Z`]|$)")
Reads = frozenset[str]
TOPIC, WHATEVER, NOTHING, NEEDED = "topic", "*", "-", "!"
OF_TOPIC = ("name:binding", "name:creation", "name:deletion", "id:deletion", "id:partition")
"""What the history of a name is built from: its own claims, and those of its topic IDs (`topic_history.py`)."""


def declared(words: str) -> Reads:
    """From `space:kind`, `space:*` for whatever is filed there, `topic` for a name's history, `-` for nothing. A word
    may be marked as needed (`needed`).
    """
    found: set[str] = set()
    for word in words.replace(NEEDED, "").split():
        found.update(OF_TOPIC if word == TOPIC else () if word == NOTHING else (word,))
    for word in found:
        space, _, kind = word.partition(":")
        filed = kind in CLAIMS and any(there == space for there, *_ in CLAIMS[kind].subjects)
        if space not in SPACES or not (kind == WHATEVER or filed):
            message = f"{word}: nothing of that kind is filed there"
            raise ValueError(message)
    return frozenset(found)


def needed(words: str) -> Reads:
    """The marked words: the check finds nothing about a subject of their space without a claim of these kinds."""
    return frozenset(word.removesuffix(NEEDED) for word in words.split() if word.endswith(NEEDED))


@dataclass(frozen=True)
class Check(Rule):
    question: str
    """agreement, work, or work in doubt."""
    status: str
    """preview or stable."""
    spaces: tuple[str, ...]
    """The spaces of the ledger whose subjects it looks at."""
    reads: Reads
    """What it reads of the ledger, there and elsewhere (`declared`)."""
    needs: Reads
    """Of what it reads about its subject, that without which it finds nothing."""
    one_per: str
    """What makes it one finding."""
    function: Function


def read() -> dict[str, Check]:
    lines = Path(__file__).with_name("catalogue.tsv").read_text("ascii").splitlines()
    checks = {}
    for code, name, kind, question, status, spaces, read, one_per, summary in (line.split("\t") for line in lines[1:]):
        looks_at = () if spaces == NOTHING else tuple(spaces.split(","))
        function = function_of(code, name) if looks_at else made_of_results
        checks[code] = Check(
            code, name, kind, summary, question, status, looks_at, declared(read), needed(read), one_per, function
        )
    return checks


def made_of_results(_subject: Subject, _group: Group, _context: CheckContext) -> Iterator[Evidence]:
    """Of a check that the judge cannot make of one subject: `story/unexplained.py` makes it of open rows."""
    return iter(())


def function_of(code: str, name: str) -> Function:
    function_name = name.replace("-", "_")
    found: list[Function] = [
        vars(module)[function_name] for module in FAMILIES[code[:3]][1] if function_name in vars(module)
    ]
    (function,) = found
    return function


CHECKS = read()


def page(code: str) -> str:
    """One check as a page of Markdown. KeyError for an unknown code."""
    check, written = CHECKS[code], pages()[code]
    parts = [*((heading, written[heading]) for heading in HEADINGS), *relations(code)]
    parts.sort(key=lambda part: part[0] == WHAT_TO_DO)
    head = f"## {check.code} {check.name}\n\n{check.kind}, {check.status}. One finding per: {check.one_per}.\n"
    return "\n".join([head, *(f"{paragraph(f'**{heading}.** {words}')}\n" for heading, words in parts)])


def in_a_sentence(check: Check) -> str:
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
        f"wirecheck has {len(CHECKS)} checks. `wirecheck explain CODE` shows one of them. `make docs` generates",
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
        *(f"| {c.code} | {c.name} | {c.kind} | {c.status} | {in_a_sentence(c)} |" for c in CHECKS.values()),
        "",
    ]
    for family, (title, _) in FAMILIES.items():
        shown = [page(code).replace("## ", "### ", 1) for code in CHECKS if code.startswith(family)]
        lines += [f"## {title}", "", *("\n".join(shown).splitlines()), ""]
    return "\n".join(lines)
