"""Which checks and tables look at which cells of the ledger.

Knows: for each space, the rows that its cells tell, and which other cells a change may concern. Does not know what a
check thinks.
Rule: a row is told by one cell only, so that its revisions have one owner; what a check reads beyond its own cell lies
in a neighbour.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from streaming.judge import catalogue, coverage, descriptions, tables
from streaming.judge.claim import Cell
from streaming.judge.clusters import Group
from streaming.judge.evidence import Evidence, finding, identity
from streaming.judge.kinds import UNANSWERED
from streaming.judge.ledger import Ledger
from streaming.judge.scene import Scene
from streaming.judge.tables import Told

TABLES: Mapping[str, Callable[[Cell, Scene], Iterator[Told]]] = {
    "name": lambda cell, scene: chain(tables.topics_of_name(cell, scene), descriptions.of_name(cell, scene)),
    "id": lambda cell, scene: chain(tables.topics_of_id(cell, scene), descriptions.of_id(cell, scene)),
    "client": tables.clients,
    "link": coverage.connections,
    "server": lambda _cell, scene: tables.clusters(scene),
    "agent": lambda _cell, scene: coverage.marks(scene),
}


def told(cell: Cell, scene: Scene) -> Iterator[Told]:
    """Every row that one cell tells now."""
    if cell[0] in TABLES:
        yield from TABLES[cell[0]](cell, scene)
    groups = scene.groups(cell)
    for check in catalogue.CHECKS.values():
        if check.function is not None and cell[0] in check.units:
            yield from findings(check, cell, groups, scene)


def findings(check: catalogue.Check, cell: Cell, groups: list[Group], scene: Scene) -> Iterator[Told]:
    """One check's findings about one cell; what two groups of one name say is one finding."""
    assert check.function is not None
    found: dict[tuple[str | None, str], Evidence] = {}
    for group in groups:
        if group.stranger and check.kind != "visibility":
            continue  # what it says of topics, clients and itself is nobody's
        for evidence in check.function(cell, group, scene):
            key = (group.cluster, identity(check.code, group.key, evidence.subject))
            found[key] = both(found[key], evidence) if key in found else evidence
    for (cluster, name), evidence in found.items():
        row = finding(check, cluster, evidence)
        kind = evidence.kind or check.kind
        yield Told("findings", name, {"state": "open", **row, "kind": kind if cluster else lesser(kind)})


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
