"""Rows of the clusters table: which endpoints make one cluster.

Knows: the groups that could be told apart. Does not know how (`clusters.py`).
Rule: strangers are no cluster.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.results.result_table import ResultRow

if TYPE_CHECKING:
    from wirecheck.judge.topology.clusters import Group


def clusters(_servers: Subject, context: CheckContext) -> Iterator[ResultRow]:
    """One row per cluster; what could not be joined stands under the label's only one."""
    by_key: dict[str, list[Group]] = {}
    for group in context.clusters.groups:
        if not group.stranger:
            by_key.setdefault(group.key, []).append(group)
    for key, groups in sorted(by_key.items()):
        body = {
            "withdrawn": False,
            "cluster_id": next((group.cluster_id for group in groups if group.cluster_id), None),
            "endpoints": sorted({endpoint for group in groups for endpoint in group.endpoints}),
            "brokers": sorted({broker for group in groups for broker in group.brokers}),
            "first_seen": min(group.first_ns for group in groups),
            "last_seen": max(group.last_ns for group in groups),
        }
        yield ResultRow("clusters", key, body)
