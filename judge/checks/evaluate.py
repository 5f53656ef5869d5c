"""Which checks and tables look at which cells of the ledger.

Knows: for each space, the rows that its cells tell, and which other cells a change may concern. Does not know what a
check thinks.
Rule: a row is told by one cell only, so that its revisions have one owner; what a check reads beyond its own cell lies
in a neighbour. A check or table that raises about a cell says nothing of it, not even what it had said before it
raised: its rows there stay as they were told (`untold`), and all others are told as if it were not there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from wirecheck.judge.check_context import Scene
from wirecheck.judge.checks import catalogue
from wirecheck.judge.claims.claim import Cell, Sighting
from wirecheck.judge.claims.kinds import SPACES, UNANSWERED
from wirecheck.judge.failures import SORTING, attempted, failure
from wirecheck.judge.ledger.ledger import Ledger
from wirecheck.judge.results.finding import Evidence, finding, identity
from wirecheck.judge.results.judged_tables import FINDINGS, JUDGED
from wirecheck.judge.results.result_table import Body, ResultRow
from wirecheck.judge.topology.clusters import Group

Rows = Callable[[Cell, Scene], Iterator[ResultRow]]


def function_of(name: str) -> Rows:
    """What makes rows, by the name that a table's value says."""
    module, _, function = name.partition(".")
    found: Rows = vars(import_module(f"wirecheck.judge.results.{module}"))[function]
    return found


ROWS: Mapping[str, list[tuple[str, Rows]]] = {
    space: [(table.name, function_of(table.rows[space])) for table in JUDGED if space in table.rows] for space in SPACES
}
"""By space of the ledger: the tables that its subjects make rows of, and how."""


def told(cell: Cell, scene: Scene) -> Iterator[ResultRow]:
    """Every row that one cell tells now; what raised instead is among the scene's failures."""
    for table, rows in ROWS[cell[0]]:
        yield from contained(table, cell, scene, rows, cell, scene)
    groups = contained(SORTING, cell, scene, scene.groups, cell)
    for check in catalogue.CHECKS.values():
        if check.function is not None and cell[0] in check.units:
            yield from contained(check.code, cell, scene, findings, check, cell, groups, scene)


def contained(name: str, cell: Cell, scene: Scene, tell: Callable[..., Iterable[Any]], *about: Any) -> list[Any]:
    """All that a check or table tells of a cell; nothing if it raises. The one place that catches what either does."""
    rows, error = attempted(tell, *about)
    if error is not None:
        seen = [claim.last for claim in scene.ledger.cell(*cell).values() if isinstance(claim.last, Sighting)]
        groups = scene.filed[cell].groups if cell in scene.filed else []
        scene.failed.append(failure(name, cell, error, cluster=groups[0].key if groups else "", seen=seen))
        scene.watch()  # it is tried again whenever anything is learned of the servers
    return rows


def untold(row: str, body: Body, failed: set[str]) -> bool:
    """Whether a row that nothing tells now is of what failed: nobody knows whether it still holds."""
    table = row.partition("|")[0]
    if table == FINDINGS.name:
        return SORTING in failed or body.get("code") in failed
    return table in failed


def findings(check: catalogue.Check, cell: Cell, groups: list[Group], scene: Scene) -> Iterator[ResultRow]:
    """One check's findings about one cell; what two groups of one name say is one finding."""
    assert check.function is not None
    found: dict[tuple[str | None, str], Evidence] = {}
    for group in groups:
        if group.stranger and check.kind != "visibility" and cell[0] != "host":
            continue  # what it says of topics, clients and itself is nobody's; that it is one is told
        for evidence in check.function(cell, group, scene):
            key = (group.cluster, identity(check.code, group.key, evidence.subject))
            found[key] = both(found[key], evidence) if key in found else evidence
    for (cluster, name), evidence in found.items():
        row = finding(check, cluster, evidence)
        kind = evidence.kind or check.kind
        yield ResultRow(FINDINGS.name, name, {"state": "open", **row, "kind": kind if cluster else lesser(kind)})


def lesser(kind: str) -> str:
    """Of an unknown cluster nothing is called a violation: whose rule was broken is not known."""
    return "anomaly" if kind == "violation" else kind


def both(one: Evidence, other: Evidence) -> Evidence:
    return replace(
        one,
        sides=one.sides + other.sides,
        count=one.count + other.count,
        client_ids=tuple(sorted({*one.client_ids, *other.client_ids}, key=str)),
        brokers=tuple(sorted({*one.brokers, *other.brokers}, key=str)),
    )


def neighbours(cell: Cell, ledger: Ledger) -> Iterator[Cell]:
    """Cells whose rows may change when this one does: a name and its ids look at each other, the wire at links."""
    if cell[0] == "link":
        yield ("wire",)
    if cell[0] not in {"name", "id"}:
        return
    for claim in list(ledger.cell(*cell).values()):
        if claim.kind.removeprefix(UNANSWERED) in {"binding", "deletion", "creation"}:
            yield from claim.cells()
