"""What the checks found about the name of `wirecheck why`, and the rows of other sections that a finding is about.

A row is marked by a finding of its broker or client, with the finding's own offsets and times: that something was not
seen for a while marks nothing.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirecheck.questions.subject import Subject
    from wirecheck.questions.subject_facts import Fact, Sections
    from wirecheck.story.verdict import CardEntry, Finding, Verdict
    from wirecheck.streaming.store.run_result import Result

TITLE = "Findings"
METADATA_LOG = "__cluster_metadata"
STANDS_STILL, SILENT = "LOG003", "CLI005"
"""The checks whose findings mark a row: a broker that stopped following the metadata log, a writer that fell silent."""


def with_findings(
    found: "Sections", subject: "Subject", kind: str, result: "Result", cluster: str | None = None
) -> "Sections":
    """The sections with what was found about the name: a section of its own, first, and marks. `cluster`: of this one,
    or of none that is known.
    """
    from wirecheck.story.entries import KINDS

    found = with_principals(found, subject, kind, result, cluster)
    verdict = result.verdict()
    headlines = dict(card for entry in verdict.entries for card in hurting(entry, subject, kind))
    mine = [
        one
        for one in result.findings()
        if cluster is None or one.cluster in {cluster, None}
        if one.id in headlines or (one.kind != "visibility" and is_about(one, subject, kind))
    ]
    mine.sort(key=lambda one: (KINDS.index(one.kind), one.first_ns, one.id))
    found = with_recreations(found, subject, kind, verdict, cluster)
    if not mine:
        return found
    facts = sorted((fact(one, headlines.get(one.id)) for one in mine), key=lambda one: not one.wrong)
    return {TITLE: facts, **{title: marked(title, facts, mine) for title, facts in found.items()}}


def with_recreations(
    found: "Sections", subject: "Subject", kind: str, verdict: "Verdict", cluster: str | None
) -> "Sections":
    """The sections of a topic that was created again with what each of its clients did then, as the first."""
    from wirecheck.questions.subject_facts import Fact

    facts = [
        Fact(one.does, one.client, one.never_read or None, None, one.last_ns, one.what, one.is_lost)
        for one in (verdict.recreations if kind == "topic" else ())
        if one.topic == subject.name and cluster in {one.cluster, None}
    ]
    return {"Since it was created again": facts, **found} if facts else found


def with_principals(
    found: "Sections", subject: "Subject", kind: str, result: "Result", cluster: str | None
) -> "Sections":
    """The sections of a client with its principals, behind its software."""
    from wirecheck.questions.subject_facts import Fact

    facts = [
        Fact(principal, one.address or "", None, None, None, "")
        for one in result.clients()
        if kind == "client" and one.client_id == subject.name and cluster in {one.cluster, None}
        for principal in one.principals
    ]
    if not facts:
        return found
    first = {title: rows for title, rows in found.items() if title in {"Errors", "Software"}}
    return {**first, "Principals": facts, **{title: rows for title, rows in found.items() if title not in first}}


def hurting(entry: "CardEntry", subject: "Subject", kind: str) -> Iterator[tuple[str, str]]:
    """ID and headline of a card on which the client is hurt."""
    hurt = {one.client_id for one in entry.card.harm.clients}
    if kind == "client" and subject.name in hurt:
        yield entry.findings[0], entry.card.headline


def is_about(finding: "Finding", subject: "Subject", kind: str) -> bool:
    name = subject.name
    if finding.others is not None:
        return False
    if kind == "topic":
        return finding.topic == name
    if kind == "client":
        return name in finding.client_ids
    if kind == "broker":
        from wirecheck.questions.subject_facts import nodes_of

        return not nodes_of(subject).isdisjoint(map(str, finding.brokers))
    return finding.words.get("group") == name


def fact(finding: "Finding", headline: str | None) -> "Fact":
    """`headline`: of the card, where the client is hurt."""
    from wirecheck.questions.subject_facts import Fact
    from wirecheck.story.entries import BLAMED

    wrong = headline is not None or finding.kind in BLAMED or finding.code == SILENT
    times = finding.first_ns, finding.last_ns
    return Fact(finding.code, finding.id, finding.count, *times, headline or finding.summary, wrong)


def marked(title: str, facts: "list[Fact]", findings: "list[Finding]") -> "list[Fact]":
    return [next((seen for each in findings if (seen := mark(title, one, each)) is not None), one) for one in facts]


def mark(title: str, one: "Fact", finding: "Finding") -> "Fact | None":
    """The fact with what a finding says of it; None if the finding is not about it."""
    named = finding.words
    if (title, one.what, finding.code) == ("Follows", METADATA_LOG, STANDS_STILL):
        details = f"stays at offset {named['offset']} since {named['since']}"
    elif finding.code == SILENT and is_writer(title, one, finding):
        details = f"silent since {named['time']}"
    else:
        return None
    return replace(one, wrong=True, details=", ".join(filter(None, (one.details, details, finding.code))))


def is_writer(title: str, one: "Fact", finding: "Finding") -> bool:
    """Whether a fact is the writing of a finding's client to its topic."""
    if title == "Written by":
        return one.who.rpartition(" ")[0] in finding.client_ids
    return title == "Topics" and one.what == f"Produce {finding.topic}"
