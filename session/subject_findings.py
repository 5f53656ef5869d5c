"""What the checks found about the name of `wirecheck why`, and the rows of other sections that a finding is about.

A row is marked by a finding of its broker or client, with the finding's own offsets and times: that something was not
seen for a while marks nothing.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wirecheck.wording import TimeSpan

if TYPE_CHECKING:
    from wirecheck.decode.show.subject import Subject
    from wirecheck.decode.show.subject_facts import Fact, Sections
    from wirecheck.story.verdict import CardEntry
    from wirecheck.streaming.store.run_result import Result

Row = dict[str, Any]
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

    headlines = dict(card for entry in result.verdict()["entries"] for card in hurting(entry, subject, kind))
    mine = [
        row
        for row in result.rows["findings"]
        if cluster is None or row["cluster"] in {cluster, None}
        if row["id"] in headlines or (row["kind"] != "visibility" and is_about(row, subject, kind))
    ]
    mine.sort(key=lambda row: (KINDS.index(row["kind"]), row["first_seen"], row["id"]))
    if not mine:
        return found
    facts = sorted((fact(row, headlines.get(row["id"])) for row in mine), key=lambda one: not one.wrong)
    return {TITLE: facts, **{title: marked(title, facts, mine) for title, facts in found.items()}}


def hurting(entry: "CardEntry", subject: "Subject", kind: str) -> Iterator[tuple[str, str]]:
    """ID and headline of a card on which the client is hurt."""
    hurt = {one.client_id for one in entry.card.harm.clients}
    if kind == "client" and subject.name in hurt:
        yield entry.findings[0], entry.card.headline


def is_about(row: Row, subject: "Subject", kind: str) -> bool:
    name = subject.name
    if row.get("others") is not None:
        return False
    if kind == "topic":
        return bool(row["topic"] == name)
    if kind == "client":
        return name in row["client_ids"]
    if kind == "broker":
        from wirecheck.decode.show.subject_facts import nodes_of

        return not nodes_of(subject).isdisjoint(map(str, row["brokers"]))
    return words(row).get("group") == name


def words(row: Row) -> dict[str, str]:
    return {pair["name"]: pair["value"] for pair in row["words"]}


def fact(row: Row, headline: str | None) -> "Fact":
    """`headline`: of the card, where the client is hurt."""
    from wirecheck.decode.show.subject_facts import Fact
    from wirecheck.story.entries import BLAMED

    first_ns, last_ns = (TimeSpan.of(row[end]).ns for end in ("first_seen", "last_seen"))
    wrong = headline is not None or row["kind"] in BLAMED or row["code"] == SILENT
    return Fact(row["code"], row["id"], row["count"], first_ns, last_ns, headline or row["summary"], wrong)


def marked(title: str, facts: "list[Fact]", rows: list[Row]) -> "list[Fact]":
    return [next((seen for row in rows if (seen := mark(title, one, row)) is not None), one) for one in facts]


def mark(title: str, one: "Fact", row: Row) -> "Fact | None":
    """The fact with what a finding says of it; None if the finding is not about it."""
    named = words(row)
    if (title, one.what, row["code"]) == ("Follows", METADATA_LOG, STANDS_STILL):
        details = f"stays at offset {named['offset']} since {named['since']}"
    elif row["code"] == SILENT and is_writer(title, one, row):
        details = f"silent since {named['time']}"
    else:
        return None
    return replace(one, wrong=True, details=", ".join(filter(None, (one.details, details, row["code"]))))


def is_writer(title: str, one: "Fact", row: Row) -> bool:
    """Whether a fact is the writing of a finding's client to its topic."""
    if title == "Written by":
        return one.who.rpartition(" ")[0] in row["client_ids"]
    return title == "Topics" and one.what == f"Produce {row['topic']}"
