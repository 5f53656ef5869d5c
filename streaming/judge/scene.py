"""What a check is given besides its subject: the ledger, the clusters, the settings and the watermark.

Knows: how far capture time has come, and which cells must be judged again once it has come further. Knows no check.
Rule: a check asks `passed` and never compares with the watermark itself; so a verdict that waits is never forgotten.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from decode.log_order import COMMITTED, PENDING, LogOrder
from streaming.judge.claim import Cell, Claim
from streaming.judge.clusters import Clusters, Group
from streaming.judge.ledger import Ledger
from streaming.judge.settings import Settings


class Scene:
    def __init__(self, ledger: Ledger, clusters: Clusters, settings: Settings, watermark_ns: int) -> None:
        self.ledger, self.clusters, self.settings, self.watermark_ns = ledger, clusters, settings, watermark_ns
        self.due: dict[Cell, int] = {}
        """Cells that wait for the watermark, with the earliest time they wait for."""
        self.pending: set[Cell] = set()
        """Cells that wait for the high watermark of the metadata log, or watch what lies in other cells."""
        self.logs: dict[int, LogOrder] = {}
        self.agents: dict[str, tuple[int, bool]] = {}
        """How far each agent has shown its traffic, and whether it has ended."""
        self.cell: Cell = ()

    def passed(self, due_ns: int) -> bool:
        """Whether capture time has passed this; if not, the cell in hand is judged again when it has."""
        if self.watermark_ns >= due_ns:
            return True
        self.due[self.cell] = min(due_ns, self.due.get(self.cell, due_ns))
        return False

    def watch(self) -> None:
        """The cell in hand looks beyond its neighbours: judge it again whenever anything is learned of the servers."""
        self.pending.add(self.cell)

    def claims(self, kind: str, group: Group, *cell: str) -> list[Claim]:
        """One kind of claims about a subject, made inside one group, by their first sighting."""
        return [claim for claim in self.ledger.claims(kind, *cell) if self.counts(claim, group)]

    def counts(self, claim: Claim, group: Group) -> bool:
        """Whether a claim was made inside a group and, if the metadata log makes it, stands there."""
        if self.clusters.group_of(claim) is not group:
            return False
        if "offset" not in claim.peak:
            return True
        fate = self.log(group).standing(np.array([claim.peak["offset"]]), np.array([claim.peak["epoch"]]))[0]
        if fate == PENDING:
            self.pending.add(self.cell)
        return bool(fate == COMMITTED)

    def log(self, group: Group) -> LogOrder:
        """What is known of the order of a cluster's metadata log."""
        if id(group) not in self.logs:
            order = self.logs[id(group)] = LogOrder()
            for claim in self.ledger.claims("log_order", "server"):
                if self.clusters.group_of(claim) is group:
                    order.merge(order_of(claim))
        return self.logs[id(group)]

    def groups(self, cell: Cell) -> Iterator[Group]:
        """The groups in which something was said about a subject, in a stable order."""
        found = {id(group): group for group in map(self.clusters.group_of, self.ledger.cell(*cell).values())}
        yield from sorted(found.values(), key=lambda group: (group.key, group.endpoints))

    def broker(self, claim: Claim) -> int | None:
        """The broker that made, or received, a claim."""
        return self.clusters.broker(claim.server(), claim.last.ts_ns)

    def node(self, claim: Claim) -> int | str:
        """The same, or the host where no broker is known there."""
        return self.clusters.node_at(claim.server(), claim.last.ts_ns)


def order_of(claim: Claim) -> LogOrder:
    """An order from a claim's peaks; offsets stand there below zero, so that the lowest is the greatest."""
    order = LogOrder(claim.peak["high_watermark"])
    parts: dict[str, dict[int, Any]] = {"start": order.starts, "end": order.ends, "mark": order.markers}
    for name, value in claim.peak.items():
        part, _, number = name.partition(":")
        if part in parts:
            parts[part][int(number)] = tuple(value) if part == "mark" else -value
    return order
