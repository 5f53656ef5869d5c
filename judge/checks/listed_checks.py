"""The catalogue as text: what each check declares, and its page as people read it. Nothing here judges.

So what only prints, such as `wirecheck explain`, starts without the checks and what they import.
"""

import re
from collections.abc import Iterator, Mapping
from textwrap import fill

from wirecheck.judge.checks.cause_rules import rules
from wirecheck.judge.checks.declaration import AGREEMENT, IN_DOUBT, WORK, ListedCheck, declared
from wirecheck.judge.checks.page import FAMILIES, HEADINGS, WHAT_TO_DO, Page, pages, written

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
PLACE = "judge/checks/pages"
"""Where the texts are in the repository."""
SENTENCE = re.compile(r".*?[.](?= [A-Z`]|$)")
LISTED: Mapping[str, ListedCheck] = {code: declared(page) for code, page in written().items()}
OF_A_LATER_RELEASE = declared(
    Page("", "", "kind: information\nstatus: preview\nquestion: agreement\none per: finding\nsays: -", "")
)


LINES: Mapping[str, str] = {
    check.code: check.line
    for check in sorted(LISTED.values(), key=lambda one: (WORK, IN_DOUBT, AGREEMENT).index(one.question))
    if check.line
}
"""By check the label of its line on the first screen, because no card shows what it finds: what stops work first."""


def check_of(code: str) -> ListedCheck:
    """The check of a finding; one of a later release, in results that it wrote, is about agreement."""
    return LISTED.get(code, OF_A_LATER_RELEASE)


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
    """CHECKS.md: a line a check, by family, which leads to its page."""
    lines = [
        "# Checks",
        "",
        f"wirecheck has {len(LISTED)} checks. Each code leads to the text of its check; `wirecheck explain CODE` shows",
        "it on a terminal, with what it can follow from. `make docs` generates this index.",
        "",
        *(f"- **{kind}**: {meaning}." for kind, meaning in KINDS.items()),
        "",
        "Every check is tested with traffic in which it fires, nearly fires, and cannot know. Its status is:",
        "",
        *(f"- **{status}**: {meaning}." for status, meaning in STATUSES.items()),
        "",
        "Only CLU002 considers traffic from hosts that were never authorized. For exceptions, see",
        "[docs/limits.md](docs/limits.md#what-can-an-unauthenticated-host-cause).",
        "",
    ]
    for family, title in FAMILIES.items():
        lines += [f"## {title}", "", "| check | kind | detects |", "|---|---|---|"]
        lines += [row(check, place(check)) for check in LISTED.values() if check.code.startswith(family)]
        lines += [""]
    return "\n".join(lines)


def place(check: ListedCheck) -> str:
    """Its text in the repository, as Markdown readers name a heading."""
    return f"{PLACE}/{check.code[:3]}.md#{check.code.lower()}-{check.name}"


def row(check: ListedCheck, link: str) -> str:
    """Its line in an index."""
    status = "" if check.status == "stable" else f", {check.status}"
    return f"| [{check.code}]({link}) {check.name} | {check.kind}{status} | {in_a_sentence(check)} |"
