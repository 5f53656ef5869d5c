"""Which checks and tables are made from which subjects of the ledger.

Rule: each row is made from one subject, so that its revisions have one owner. What a check reads besides is in a
neighbour of its subject. If a check or table raises an exception about a subject, it makes no row of that subject at
all: its earlier rows remain (`undecided`), and all other rows are made as usual.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks import catalogue
from wirecheck.judge.checks.filed import TOPIC_SPACES, neighbours, words_about
from wirecheck.judge.checks.listed_checks import check_of
from wirecheck.judge.claims.claim import Sighting, Subject
from wirecheck.judge.claims.kinds import SPACES
from wirecheck.judge.ledger.failures import SORTING, failure
from wirecheck.judge.results.finding import Evidence, finding, identity
from wirecheck.judge.results.judged_tables import FINDINGS, JUDGED, OF_AGREEMENT, OF_STATES
from wirecheck.judge.results.result_table import Body, ResultRow
from wirecheck.judge.topology.clusters import Group

Rows = Callable[[Subject, CheckContext], Iterator[ResultRow]]
ACCUSE = frozenset({"violation", "anomaly"})
DOUBTFUL = "doubtful"
"""The state of a finding that may come of clocks alone that differ. It is no row, and still explains others."""


def function_of(name: str) -> Rows:
    module, _, function = name.partition(".")
    found: Rows = vars(import_module(f"wirecheck.judge.results.{module}"))[function]
    return found


ROWS: Mapping[str, list[tuple[str, Rows]]] = {
    space: [(table.name, function_of(table.rows[space])) for table in JUDGED if space in table.rows] for space in SPACES
}
"""By space of the ledger: the tables that its subjects make rows of, and how."""

NEWS = {table.name: table.news for table in JUDGED if table.news is not None}
"""By table the part of a row of which each change is emitted at once."""


@cache
def codes_of(space: str) -> list[str]:
    return [code for code, check in catalogue.CHECKS.items() if space in check.spaces]


@lru_cache(maxsize=1 << 12)
def codes_among(space: str, filed: frozenset[str]) -> list[str]:
    """The checks that may find something about a subject about which only these words are filed (`filed.py`). A check
    finds nothing if none of the words that it needs (or, if it needs none, reads) in this space is there.
    """
    checks = {code: catalogue.CHECKS[code] for code in codes_of(space)}
    return [code for code, check in checks.items() if is_any(check.needs, space, filed, or_else=check.reads)]


@lru_cache(maxsize=1 << 12)
def tables_among(space: str, filed: frozenset[str], left_out: tuple[str, ...] = ()) -> list[tuple[str, Rows]]:
    """The same for tables: those that need none of the words are always asked."""
    made = [table for table in JUDGED if space in table.rows and table.name not in left_out]
    needed = {table.name: catalogue.needed(table.reads[space]) for table in made}
    return [(name, rows) for name, rows in ROWS[space] if name in needed and is_any(needed[name], space, filed)]


def is_any(needs: catalogue.Reads, space: str, filed: frozenset[str], or_else: catalogue.Reads = frozenset()) -> bool:
    """Whether any of the words that a check needs of a subject is filed; or it needs none. Words of its own space, and
    of a topic those of names and IDs.
    """
    near = TOPIC_SPACES if space in TOPIC_SPACES else {space}
    asked = {word for word in needs if word == catalogue.SEVERAL or word.partition(":")[0] in near}
    asked = asked or {word for word in or_else if word.partition(":")[0] == space}
    return not asked or not asked.isdisjoint({*filed, f"{space}:{catalogue.WHATEVER}"})


def rows_of(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    """Every row that one subject makes now; what raised instead is among the context's failures."""
    kinds = frozenset([claim.kind for claim in context.ledger.claims_of(*subject).values()])
    filed = words_about(subject, kinds, context.ledger, context.words)
    left_out = () if context.settings.agreement_rows else OF_AGREEMENT
    left_out = left_out if context.settings.detail_rows else (*left_out, *OF_STATES)
    for table, rows in tables_among(subject[0], filed, left_out):
        yield from contained(table, subject, context, rows, subject, context)
    if not codes_of(subject[0]):
        return
    groups = contained(SORTING, subject, context, context.groups, subject)
    found = {
        code: contained(code, subject, context, findings, catalogue.CHECKS[code], subject, groups, context)
        for code in (codes_among(subject[0], filed) if groups else ())
    }
    for code, made in found.items():
        explained = {about(row) for other in check_of(code).gives_way_to for row in found.get(other, ())}
        yield from (row for row in made if about(row) not in explained and row.body["state"] != DOUBTFUL)


def about(row: ResultRow) -> tuple[str | None, frozenset[str]]:
    """Of a finding its cluster and its topic IDs."""
    return row.body["cluster"], frozenset(row.body["topic_ids"])


def contained(
    name: str, subject: Subject, context: CheckContext, make: Callable[..., Iterable[Any]], *about: Any
) -> list[Any]:
    """All rows that a check or table makes of a subject; none if it raises. Exceptions are caught only here."""
    try:
        return list(make(*about))
    except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
        seen = [claim.last for claim in context.ledger.claims_of(*subject).values() if isinstance(claim.last, Sighting)]
        groups = context.filed[subject].groups if subject in context.filed else []
        context.failed.append(failure(name, subject, error, cluster=groups[0].key if groups else "", seen=seen))
        context.watch()  # it is tried again whenever anything is learned of the servers
        return []


def undecided(row: str, body: Body, failed: set[str]) -> bool:
    """Whether a row that was not made now belongs to a check or table that failed. Then it is unknown whether it still
    holds.
    """
    table = row.partition("|")[0]
    if table == FINDINGS.name:
        return SORTING in failed or body.get("code") in failed
    return table in failed


def findings(
    check: catalogue.Check, subject: Subject, groups: list[Group], context: CheckContext
) -> Iterator[ResultRow]:
    """One check's findings about one subject; findings with the same key in two groups of one name are one finding."""
    found: dict[tuple[str | None, str], Evidence] = {}
    for group in groups:
        if group.outsider and check.kind != "visibility" and subject[0] != "host":
            continue  # what it says of topics, clients and itself is nobody's; that it is one is CLU002
        for evidence in check.function(subject, group, context):
            key = (group.cluster, identity(check.code, group.key, evidence.key))
            found[key] = both(found[key], evidence) if key in found else evidence
    if not found:
        return
    unsure = doubtful(found, check, subject, groups, context)
    for (cluster, name), evidence in found.items():
        row = finding(check, cluster, evidence)
        kind = evidence.kind or check.kind
        if cluster is None and kind == "violation":  # whose rule was broken is not known
            kind = "anomaly"
        row |= {"state": DOUBTFUL if (cluster, name) in unsure else "open", "kind": kind}
        yield ResultRow(FINDINGS.name, name, row)


def doubtful(
    found: Iterable[tuple[str | None, str]],
    check: catalogue.Check,
    subject: Subject,
    groups: list[Group],
    context: CheckContext,
) -> set[tuple[str | None, str]]:
    """Which findings do not hold if the clocks that may differ do."""
    if not context.clocks or check.kind not in ACCUSE or not is_of_several_clocks(subject, context):
        return set()
    apart = context.with_clocks_apart()
    hold = (
        (group.cluster, identity(check.code, group.key, evidence.key))
        for group in groups
        for evidence in check.function(subject, group, apart)
    )
    return {*found} - {*hold}


def is_of_several_clocks(subject: Subject, context: CheckContext) -> bool:
    """Whether what is known of a subject and of its neighbours was captured by clocks that may differ."""
    near = (subject, *neighbours(subject, context.ledger))
    claims = (claim for one in near for claim in context.ledger.claims_of(*one).values())
    found = {context.clocks.get(seen.source) for claim in claims for seen in (claim.first, claim.last) if seen.source}
    return len(found) > 1


def both(one: Evidence, other: Evidence) -> Evidence:
    return replace(
        one,
        sides=one.sides + other.sides,
        count=one.count + other.count,
        client_ids=tuple(sorted({*one.client_ids, *other.client_ids}, key=str)),
        brokers=tuple(sorted({*one.brokers, *other.brokers}, key=str)),
    )
