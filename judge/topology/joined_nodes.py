"""Nodes that are one cluster: a union that no known ClusterId ever crosses.

Knows: which nodes were united, and what each union may not be. Does not know why two nodes are one cluster.
Rule: what would unite two known clusters, or a cluster with one that cannot be of it, is passed over.
"""

from wirecheck.judge.topology.membership import Node


class Joined:
    """Union of nodes; a root may have a ClusterId, and roots with different ones stay apart, as do those that cannot be
    of a cluster (`bars`) and those that are.
    """

    def __init__(self, known: dict[Node, str], bars: dict[Node, set[str]]) -> None:
        self.parent: dict[Node, Node] = {}
        self.cluster_id, self.bars = dict(known), dict(bars)

    def root(self, node: Node) -> Node:
        while (parent := self.parent.get(node, node)) != node:
            node = parent
        return node

    def unite(self, one: Node, other: Node) -> None:
        kept, lost = sorted((self.root(one), self.root(other)))
        ids = {self.cluster_id[root] for root in (kept, lost) if root in self.cluster_id}
        bars = self.bars.get(kept, set()) | self.bars.get(lost, set())
        if kept == lost or len(ids) > 1 or not ids.isdisjoint(bars):
            return
        self.parent[lost], self.bars[kept] = kept, bars
        if ids:
            self.cluster_id[kept] = ids.pop()
