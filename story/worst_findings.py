"""The open findings that are named one by one in the metrics: the worst, and only so many.

Rule: at most MOST, whatever is on the wire: what traffic chose (names of topics) appears in a label nowhere else, is
cut at LONGEST characters, and holds nothing that cannot be printed.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from wirecheck.judge.checks import listed_checks
from wirecheck.story.verdict import Finding
from wirecheck.wording import NS_PER_S

MOST, LONGEST, LONGEST_SENTENCE = 50, 200, 500
NOW_S = 120
"""Findings that were seen within this time of the newest count as equally recent. The last time of a continuing finding
is emitted once per minute (`schedule.py`), so the choice does not depend on which was emitted last.
"""
KINDS = tuple(listed_checks.KINDS)
"""From worst to mildest."""
ALONE, CAUSE, CONSEQUENCE, AFTER_EVENT = "alone", "cause", "consequence", "after_event"
EXPECTED = "expected"
"""The role of all findings of a card that a file of expectations names."""


class Named(NamedTuple):
    """One open finding, by its labels."""

    cluster: str
    code: str
    kind: str
    topic: str
    """For a cause without a topic, the topics of its consequences."""
    broker: str
    """Numbers, where it is about several."""
    id: str
    sentence: str
    """Of its card, as `severity.label` shortens it; without a card the name of its check as words."""
    clients: str = ""
    """Those that are hurt, at most three by name."""


class Open(NamedTuple):
    """What is kept of an open finding."""

    named: Named
    first_seen_s: float
    last_seen_s: float


def kept(row: Mapping[str, Any]) -> Open:
    """Of a row of the findings table."""
    brokers = ", ".join(map(str, row["brokers"] or ()))
    about = (row["code"], row["kind"], label(row["topic"] or ""), label(brokers), row["id"])
    seen_s = (row[column] / NS_PER_S for column in ("first_seen", "last_seen"))
    return Open(Named(row["label"], *about, row["name"].replace("-", " ").capitalize()), *seen_s)


def under(named: Named, sentence: str, clients: str) -> Named:
    """With the sentence of its card, and who is hurt."""
    return named._replace(sentence=label(sentence, LONGEST_SENTENCE), clients=label(clients))


def label(text: str, most: int = LONGEST) -> str:
    shown = "".join(character if character.isprintable() else "\ufffd" for character in text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "\u2026"


def worst(
    findings: Mapping[str, Open], roles: Mapping[str, str], follow: Mapping[str, Iterable[str]] = MappingProxyType({})
) -> Iterable[Named]:
    """The worst findings: by kind; causes and single findings before consequences; then those seen most recently.

    `follow`: by name the findings that follow from it.
    """
    now_s = max((one.last_seen_s for one in findings.values()), default=0) - NOW_S

    def rank(item: tuple[str, Open]) -> tuple[int, bool, float, str]:
        name, one = item
        return (
            KINDS.index(one.named.kind),
            roles.get(name) in {CONSEQUENCE, EXPECTED},
            max(0, now_s - one.last_seen_s),
            one.named.id,
        )

    ranked = sorted(findings.items(), key=rank)[:MOST]
    return [
        hitting(one.named, [findings[other].named.topic for other in follow.get(name, ()) if other in findings])
        if roles.get(name) == CAUSE
        else one.named
        for name, one in ranked
    ]


def hitting(cause: Named, topics: Iterable[str]) -> Named:
    """A cause with the topics that it affects. A stuck broker, for example, has no topic of its own, and the operator
    has to know which are affected.
    """
    return cause if cause.topic else cause._replace(topic=label(", ".join(sorted({*topics} - {""}))))


def role_of(finding: Finding, cause: str | None) -> str:
    """The role of a finding. A consequence of a normal event, such as a recreation, has a role of its own, because the
    event causes no alert.

    `cause`: the kind of its cause.
    """
    if cause is None:
        return CAUSE if finding.consequences else ALONE
    return AFTER_EVENT if KINDS.index(cause) > KINDS.index(finding.kind) else CONSEQUENCE
