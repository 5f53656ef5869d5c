"""What is known and accepted: cards that a file says are expected count in no exit status, alert or number of clients.

A line of the file is `CODE CLIENT TOPIC UNTIL REASON`, between blanks: globs of a check's code, a client ID and a
topic; the last day (2026-12-31, or `-` for none); and why. `#` begins a comment.

Rule: a card is expected only as a whole: its cause has a line, or each of its findings that needs a look, and so has
each client that it hurts. A new victim of a known fault is news. A line that is of no use, or is over, is named.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.story.entries import BLAMED
from wirecheck.story.verdict import CardEntry, ExpectedLine, Finding, Verdict
from wirecheck.wording import utc

COMMENT, NO_END = "#", "-"
PARTS = 5


@dataclass(frozen=True)
class Expectation:
    number: int
    """Of the line, from 1."""
    code: str
    client: str
    topic: str
    until: dt.date | None
    reason: str

    def is_over(self, day: dt.date) -> bool:
        return self.until is not None and day > self.until

    def fits(self, finding: Finding) -> bool:
        topics = {finding.topic or "", *finding.topic_ids}
        return (
            fnmatchcase(finding.code, self.code)
            and all(map(self.fits_client, finding.client_ids))
            and any(fnmatchcase(topic, self.topic) for topic in topics)
        )

    def fits_client(self, client_id: str | None) -> bool:
        return fnmatchcase(client_id or "", self.client)


def read(path: Path) -> tuple[Expectation, ...]:
    """Raises ValueError with the line and what is wrong with it, OSError if the file cannot be read."""
    lines = enumerate(path.read_text("utf-8").splitlines(), 1)
    return tuple(
        parsed(number, line) for number, line in lines if line.strip() and not line.strip().startswith(COMMENT)
    )


def parsed(number: int, line: str) -> Expectation:
    parts = line.split(None, PARTS - 1)
    if len(parts) < PARTS:
        message = f"line {number}: expected CODE CLIENT TOPIC UNTIL REASON"
        raise ValueError(message)
    code, client, topic, until, reason = parts
    if not any(fnmatchcase(known, code) for known in CHECKS):
        message = f"line {number}: {code} is no check"
        raise ValueError(message)
    try:
        day = None if until == NO_END else dt.date.fromisoformat(until)
    except ValueError:
        message = f"line {number}: {until} is no day such as 2026-12-31, nor {NO_END}"
        raise ValueError(message) from None
    return Expectation(number, code, client, topic, day, reason.strip())


def with_expected(result: Verdict, lines: Sequence[Expectation]) -> Verdict:
    """A verdict whose entries say why they are expected; `expectations` has each line and what it matched."""
    if not lines:
        return result
    findings = result.by_id
    day = last_day(result.findings)
    valid = [line for line in lines if not line.is_over(day)]
    used: dict[int, int] = {}
    entries = []
    for entry in result.entries:
        matched = matches(entry, findings, valid)
        for number in {line.number for line in matched}:
            used[number] = used.get(number, 0) + 1
        entries.append(replace(entry, expected="; ".join(dict.fromkeys(line.reason for line in matched)) or None))
    expectations = (
        ExpectedLine(line.number, line.reason, cards=used.get(line.number, 0), is_over=line not in valid)
        for line in lines
    )
    return replace(result, entries=tuple(entries), expectations=tuple(expectations))


def last_day(findings: Iterable[Finding]) -> dt.date:
    """Of the capture: a replay says the same whenever it runs."""
    last_ns = max((finding.last_ns for finding in findings), default=None)
    return dt.date.min if last_ns is None else utc(last_ns).date()


def matches(entry: CardEntry, findings: Mapping[str, Finding], lines: Sequence[Expectation]) -> list[Expectation]:
    """The lines by which a card is expected; none if a finding or a client of it has none."""
    blamed = [name for one in entry.with_consequences if one.kind in BLAMED for name in one.findings]
    found = [line for ids in (entry.findings, blamed) if ids for line in covering(ids, findings, lines)]
    harm = entry.card.harm
    known = all(any(line.fits_client(one.client_id) for line in found) for one in harm.clients)
    return found if known and not harm.others else []


def covering(ids: Iterable[str], findings: Mapping[str, Finding], lines: Sequence[Expectation]) -> list[Expectation]:
    """The lines that fit these findings; none if one of them has no line."""
    fitting = [[line for line in lines if line.fits(findings[name])] for name in ids]
    return list(dict.fromkeys(line for some in fitting for line in some)) if all(fitting) else []


def remarks(result: Verdict) -> Iterator[str]:
    """What is worth a line: cards that are expected, and lines that match nothing or are over."""
    for entry in result.entries:
        if entry.expected:
            yield f"{entry.card.headline} ({entry.expected})"
    for line in result.expectations:
        if line.is_over:
            yield f"line {line.line} is over: {line.reason}"
        elif not line.cards:
            yield f"line {line.line} covers no card: {line.reason}"
