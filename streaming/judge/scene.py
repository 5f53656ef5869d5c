"""What a check is given besides its subject: the ledger, the clusters, the settings and the watermark.

Knows: how far capture time has come, and which cells must be judged again once it has come further. Knows no check.
Rule: a check asks `passed` and never compares with the watermark itself; so a verdict that waits is never forgotten.
"""

from collections.abc import Iterator

from streaming.judge.claim import Cell, Claim
from streaming.judge.clusters import Clusters, Group
from streaming.judge.ledger import Ledger
from streaming.judge.settings import Settings


class Scene:
    def __init__(self, ledger: Ledger, clusters: Clusters, settings: Settings, watermark_ns: int) -> None:
        self.ledger, self.clusters, self.settings, self.watermark_ns = ledger, clusters, settings, watermark_ns
        self.due: dict[Cell, int] = {}
        """Cells that wait for the watermark, with the earliest time they wait for."""
        self.cell: Cell = ()

    def passed(self, due_ns: int) -> bool:
        """Whether capture time has passed this; if not, the cell in hand is judged again when it has."""
        if self.watermark_ns >= due_ns:
            return True
        self.due[self.cell] = min(due_ns, self.due.get(self.cell, due_ns))
        return False

    def claims(self, kind: str, group: Group, *cell: str) -> list[Claim]:
        """One kind of claims about a subject, made inside one group, by their first sighting."""
        return [claim for claim in self.ledger.claims(kind, *cell) if self.clusters.group_of(claim) is group]

    def groups(self, cell: Cell) -> Iterator[Group]:
        """The groups in which something was said about a subject, in a stable order."""
        found = {id(group): group for group in map(self.clusters.group_of, self.ledger.cell(*cell).values())}
        yield from sorted(found.values(), key=lambda group: (group.key, group.endpoints))

    def broker(self, claim: Claim) -> int | None:
        """The broker that made, or received, a claim."""
        return self.clusters.broker(claim.server(), claim.last.ts_ns)
