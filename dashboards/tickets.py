"""A verdict for tickets and for CI: Markdown, JUnit's XML, SARIF.

Whatever came from the wire is escaped as the format requires. A format states nothing that the replay's JSON object
does not.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from xml.etree import ElementTree as ET

from wirecheck.dashboards.verdict import failing, first_cards
from wirecheck.story.marks import MARK_SIGNS
from wirecheck.story.verdict import About, Finding, ListedCard, Verdict
from wirecheck.wording import rfc3339

LEVELS = {"violation": "error", "anomaly": "warning", "information": "note", "visibility": "note"}
"""SARIF 2.1.0, 3.27.10."""
MARKED = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]<>#|"})
ACTIVE = re.compile(r"@|:(?=//)|www(?=\.)", re.IGNORECASE)
"""Behind which an empty comment stops GitHub's mentions and bare links."""
COMMANDS = ("look", "evidence")
"""Lines of a card that are typed."""
SIDES_SHOWN = 8
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def markdown(result: Verdict) -> str:
    """For a ticket: the cards, then each finding with evidence, what to do, and what shows it."""
    return "\n".join(markdown_lines(result))


def markdown_lines(result: Verdict) -> Iterator[str]:
    coverage, cards, about = result.coverage, first_cards(result), known(result)
    if not cards:
        yield f"**{plain(about.verdict)}**\n"
    for card in cards:
        yield f"**{plain(card.headline)}** {card.since}\n"
        for label, text in card.rows:
            yield f"* {label}: {code(text) if label in COMMANDS else plain(text)}"
        yield ""
    for question, one in about.marks.both:
        yield f"* {question}: {MARK_SIGNS[one.mark]} {plain(one.sentence)}"
    yield ""
    yield f"{plain(', '.join(about.inputs))}: {coverage.frames:,} frames, {coverage.messages:,} messages, "
    yield f"{coverage.decoded_messages:,} decoded; judged by wirecheck {about.wirecheck}."
    for finding in result.findings:
        yield from finding_lines(finding)


def known(result: Verdict) -> About:
    """What it says of itself: a ticket is made of a replay's verdict."""
    assert result.about is not None
    return result.about


def finding_lines(finding: Finding) -> Iterator[str]:
    yield f"\n### {finding.code} {plain(finding.name)} ({finding.kind}, x{finding.count:,}, `{finding.id}`)"
    yield f"\n{plain(finding.summary)}\n"
    for side in finding.sides[:SIDES_SHOWN]:
        where = " ".join(filter(None, (side.connection, side.api)))
        yield f"* {rfc3339(side.time_ns)} {plain(side.claim)} ({plain(where)})"
    if len(finding.sides) > SIDES_SHOWN:
        yield f"* and {len(finding.sides) - SIDES_SHOWN} more"
    if finding.next:
        yield f"\n**Next** {plain(finding.next)}"
    yield "\n" + "\n".join(f"    {command}" for command in finding.commands or ())


def code(text: str) -> str:
    """A code span, whatever the text holds (CommonMark 6.1)."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}"


def plain(text: str) -> str:
    """The same text in Markdown, on one line: @name in it is no mention, and an address no link."""
    return ACTIVE.sub(lambda found: f"{found[0]}<!-- -->", " ".join(text.split()).translate(MARKED))


def junit(result: Verdict) -> str:
    """For CI: a test case for each finding, failed if `replay` fails by it; without findings, one that passed."""
    cases = result.findings
    failed = failing(result) & {finding.id for finding in cases}
    suite = ET.Element("testsuite", name="wirecheck", tests=str(len(cases) or 1), failures=str(len(failed)))
    cards = {card.id: card for card in result.cards}
    for finding in cases:
        case = ET.SubElement(suite, "testcase", classname=finding.code, name=f"{finding.name} {finding.id}")
        if finding.id in failed:
            card = cards.get(finding.id)
            message = card.headline if card else finding.summary
            failure = ET.SubElement(case, "failure", type=finding.kind, message=message)
            sides = ((rfc3339(side.time_ns), side.claim, side.connection) for side in finding.sides)
            failure.text = "\n".join((*lines_of(card), *("  ".join(filter(None, side)) for side in sides)))
        else:
            ET.SubElement(case, "system-out").text = finding.summary
    if not cases:
        ET.SubElement(suite, "testcase", classname="wirecheck", name=known(result).verdict)
    return ET.tostring(suite, "unicode", xml_declaration=False)


def lines_of(card: ListedCard | None) -> list[str]:
    """What a card says below its headline, a line each; nothing without one."""
    if card is None:
        return []
    found = [("cause", card.cause), ("impact", card.impact), ("before", "; ".join(card.just_before))]
    found += [("since", text) for text in card.since_then]
    found += [("fix", card.fix), *(("look", command) for command in card.look), ("evidence", card.evidence)]
    return [f"{label}: {text}" for label, text in found if text and text != card.headline]


def sarif(result: Verdict) -> str:
    """For code scanning (SARIF 2.1.0): a rule for each check, a result for each finding, where in which capture."""
    cards = {card.id: card for card in result.cards}
    rules = {finding.code: finding.name for finding in result.findings}
    driver = {
        "name": "wirecheck",
        "version": known(result).wirecheck,
        "rules": [{"id": code, "name": name} for code, name in sorted(rules.items())],
    }
    results = [
        {
            "ruleId": finding.code,
            "level": LEVELS[finding.kind],
            "message": {"text": message_of(finding, cards.get(finding.id))},
            "partialFingerprints": {"wirecheckFindingId": finding.id},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}}} for uri in sources(finding)],
        }
        for finding in result.findings
    ]
    return json.dumps(
        {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    )


def message_of(finding: Finding, card: ListedCard | None) -> str:
    """The card, where the finding has one."""
    return "\n".join([card.headline, *lines_of(card)]) if card else finding.summary


def sources(finding: Finding) -> list[str]:
    from urllib.parse import quote

    return sorted({quote(side.frame.source) for side in finding.sides if side.frame and side.frame.source})


FORMS: Mapping[str, Callable[[Verdict], str]] = {"markdown": markdown, "junit": junit, "sarif": sarif}
