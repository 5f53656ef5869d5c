"""The table of agreement with its marks: each row agrees or not, and the last line is the verdict's own mark.

Knows: which findings are about which row. Does not know how a finding is made, or where rows come from.
Rule: a finding that contradicts something is in at least one row, or among the others. So the worst of these is the
mark of IDs and versions; where nothing contradicts and most messages were not decoded, that is not known.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from wirecheck.decode.peer import Conversation
from wirecheck.judge.checks.listed_checks import check_of
from wirecheck.judge.results.agreement_rows import ApiVersions, TopicStatement
from wirecheck.story.marks import agreement, is_of_work, is_outage, unexpected
from wirecheck.story.verdict import Finding, Mark, MarkKind, Verdict

WORST: tuple[MarkKind, ...] = ("violation", "anomaly", "visibility", "clear")
CONTRADICTS = frozenset({"violation", "anomaly"})
OF_IDS, OF_VERSIONS = "TID", "VER"
"""Families of checks that are about rows of the table."""


@dataclass(frozen=True)
class Marked:
    """What is found about a row."""

    mark: MarkKind
    codes: tuple[str, ...]


@dataclass(frozen=True)
class ServerRelease:
    """A server that said which versions it has."""

    cluster: str | None
    server: str
    release: str
    """As of ApiVersions."""
    differences: tuple[str, ...]
    """From that release, as `Fetch 0-11, not 0-17`."""


@dataclass(frozen=True)
class AgreementTable:
    topics: Sequence[tuple[TopicStatement, Marked]]
    apis: Sequence[tuple[ApiVersions, Marked]]
    others: Sequence[Finding]
    """Findings that are in no row."""
    mark: Mark
    """The verdict's."""

    @property
    def servers(self) -> list[ServerRelease]:
        """Those whose ranges were captured."""
        by_server: dict[tuple[str | None, str, str], list[str]] = {}
        for one, _ in self.apis:
            if one.release:
                found = by_server.setdefault((one.cluster, one.server, one.release), [])
                found += [one.difference] if one.difference else []
        return [ServerRelease(*which, tuple(found)) for which, found in by_server.items()]


def mark_of(finding: Finding) -> MarkKind:
    """An event that contradicts nothing and leaves no tick is worth a look."""
    return "violation" if finding.kind == "violation" else "anomaly"


def agreement_table(verdict: Verdict, topics: Iterable[TopicStatement], apis: Iterable[ApiVersions]) -> AgreementTable:
    found = contradictions(verdict)
    left = {one.id for one in found}
    of_topic, of_id, of_server = (by(found, named) for named in (topics_of, ids_of, servers_of))

    def marked(near: Iterable[Finding], about: Callable[[Finding], bool]) -> Marked:
        mine = [one for one in near if about(one)]
        left.difference_update(one.id for one in mine)
        codes = tuple(sorted({one.code for one in mine}))
        return Marked(min(map(mark_of, mine), key=WORST.index, default="clear"), codes)

    of_topics = [
        (one, marked(chain(of_topic.get(one.topic, ()), of_id.get(one.topic_id, ())), about_statement(one)))
        for one in topics
    ]
    of_apis = [(one, marked(of_server.get(one.server, ()), about_api(one))) for one in apis]
    return AgreementTable(of_topics, of_apis, [one for one in found if one.id in left], agreement(verdict))


def by(found: Iterable[Finding], named: Callable[[Finding], Iterable[str]]) -> dict[str | None, list[Finding]]:
    """Findings by what they name: there may be as many as rows."""
    known: dict[str | None, list[Finding]] = defaultdict(list)
    for one in found:
        for name in named(one):
            known[name].append(one)
    return known


def topics_of(finding: Finding) -> set[str]:
    return {finding.topic} if finding.topic is not None else set()


def ids_of(finding: Finding) -> set[str]:
    return {*finding.topic_ids}


def servers_of(finding: Finding) -> set[str]:
    return {str(Conversation.of(side.connection).server) for side in finding.sides if side.connection}


def contradictions(verdict: Verdict) -> list[Finding]:
    """What the mark of IDs and versions is made of."""
    names = {name for entry in unexpected(verdict) for name in entry.finding_ids}
    found = [one for one in verdict.findings if one.id in names and not is_of_work(one.code)]
    return [one for one in found if one.kind in CONTRADICTS or is_outage(one)]


def about_statement(one: TopicStatement) -> Callable[[Finding], bool]:
    """Of findings about topic IDs those about the ID that is stated; of those that name no ID all of the topic."""

    def about(finding: Finding) -> bool:
        if not (finding.code.startswith(OF_IDS) or check_of(finding.code).about_ids):
            return False
        ids: Collection[str | None] = finding.topic_ids
        if finding.cluster not in {None, one.cluster} or (not ids and finding.topic is None):
            return False
        if one.topic_id is not None and ids:
            return one.topic_id in ids
        return finding.topic is not None and finding.topic == one.topic

    return about


def about_api(one: ApiVersions) -> Callable[[Finding], bool]:
    """Findings about versions that were seen at the server, and name this API or none."""

    def about(finding: Finding) -> bool:
        if not finding.code.startswith(OF_VERSIONS):
            return False
        return one.server in servers_of(finding) and finding.words.get("api", one.api) == one.api

    return about
