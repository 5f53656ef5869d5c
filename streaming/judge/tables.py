"""Rows of the result tables that are no findings: topics, clients, clusters, coverage.

Knows: what each row says and from which claims. Does not know which rows were told before (`step.py`).
Rule: a row is a pure function of the ledger and the clusters; a table's columns are those of streaming/tables.py,
without id, revision and label.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from streaming.judge.claim import RESERVED, Cell, Claim
from streaming.judge.clusters import Group
from streaming.judge.scene import Scene
from streaming.judge.topic import Topic, topic_of

Body = dict[str, Any]


class Told(NamedTuple):
    """One row as it should stand now."""

    route: str
    id: str
    body: Body


def topics_of_name(cell: Cell, scene: Scene) -> Iterator[Told]:
    name = cell[1]
    for group in scene.groups(cell):
        topic = topic_of(name, group, scene)
        current = topic.histories[-1] if topic.histories else None
        for history in topic.histories:
            replaced = topic.successor(history) is not None
            state = "replaced" if replaced else "deleted" if topic.deleted(history) else "current"
            earlier = [other.topic_id for other in topic.histories if topic.successor(other) is not None]
            ended = topic.ended(history)
            ended_ns = ended.last_word.ts_ns if ended and ended["topic_id"] else 0
            yield topic_row(
                group,
                name,
                history.topic_id,
                state=state,
                earlier_ids=earlier if history is current else [],
                sources=history.sources,
                first_seen=history.born_ns,
                last_seen=max(history.last.last_word.ts_ns, ended_ns),
            )
        if current is None and topic.without_id:
            yield unnumbered(group, name, topic)


def unnumbered(group: Group, name: str, topic: Topic) -> Told:
    """A topic that was only ever named without an id."""
    last = max(claim.last.ts_ns for claim in topic.without_id)
    ended = [claim for claim in topic.deletions if claim.last.ts_ns >= last]
    return topic_row(
        group,
        name,
        None,
        state="deleted" if ended else "current",
        earlier_ids=[],
        sources=sorted({claim["source"] for claim in topic.without_id}),
        first_seen=min(claim.first.ts_ns for claim in topic.without_id),
        last_seen=max([last, *(claim.last.ts_ns for claim in ended)]),
    )


def topics_of_id(cell: Cell, scene: Scene) -> Iterator[Told]:
    """The row of an id that nothing has named yet."""
    topic_id = cell[1]
    claims = scene.heard(cell)
    if topic_id in RESERVED or any(claim.kind == "binding" for claim in claims):
        return
    for group in scene.groups(cell):
        uses = [claim for claim in claims if scene.clusters.group_of(claim) is group]
        yield topic_row(
            group,
            None,
            topic_id,
            state="unresolved",
            earlier_ids=[],
            sources=sorted({source_of(claim) for claim in uses}),
            first_seen=min(claim.first.ts_ns for claim in uses),
            last_seen=max(claim.last.ts_ns for claim in uses),
        )


def source_of(claim: Claim) -> str:
    if claim.kind == "use":
        return "".join(f"-{c.lower()}" if c.isupper() else c for c in claim["api"]).lstrip("-")
    return str(claim["source"]) if claim.kind in {"partition", "deletion"} else "leader-and-isr"


def topic_row(group: Group, name: str | None, topic_id: str | None, **columns: Any) -> Told:
    """A row is told by the name's cell, or by the id's while it has no name: two identities, each with one owner."""
    body = {"withdrawn": False, "cluster": group.key, "name": name, "topic_id": topic_id, **columns}
    about = f"name:{name}" if topic_id is None else topic_id if name is not None else f"unresolved:{topic_id}"
    return Told("topics", f"{group.key}|{about}", body)


def clients(cell: Cell, scene: Scene) -> Iterator[Told]:
    claims = scene.heard(cell)
    by_cluster: dict[str, list[Claim]] = {}
    for claim in claims:
        for group, said in scene.clusters.parts(claim):
            by_cluster.setdefault(group.key, []).append(said)
    for cluster, told in sorted(by_cluster.items()):
        requests = [claim for claim in told if claim.kind == "client"]
        if not requests:
            continue
        software = max((claim for claim in told if claim.kind == "software"), key=lambda c: c.last, default=None)
        used: dict[str, set[int]] = {}
        for claim in requests:
            for word in claim.tally:
                api, _, version = word.rpartition(":")
                used.setdefault(api, set()).add(int(version))
        body = {
            "withdrawn": False,
            "cluster": cluster,
            "client_id": cell[1] or None,
            "address": requests[0]["host"],
            "software_name": software["name"] if software else None,
            "software_version": software["version"] if software else None,
            "apis": [{"api": api, "versions": sorted(used[api])} for api in sorted(used)],
            "requests": sum(claim.count for claim in requests),
            "first_seen": min(claim.first.ts_ns for claim in requests),
            "last_seen": max(claim.last.ts_ns for claim in requests),
        }
        yield Told("clients", "|".join((cluster, *cell[1:])), body)


def clusters(scene: Scene) -> Iterator[Told]:
    """One row per cluster; what could not be joined stands under the label's only one."""
    by_key: dict[str, list[Group]] = {}
    for group in scene.clusters.groups:
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
        yield Told("clusters", key, body)
