"""Who belongs together, as the directory tells it to shards.

Knows: what of the clusters a shard reads: groups, which endpoint was in which of them since when, and as which broker,
and who was seen to answer. Does not know how endpoints are joined (`topology/clusters.py`).
Rule: what is told is plain values, and told again only when it differs; when something was said first and last of a
cluster is in no row of a shard's, and is not told.
"""

from typing import NamedTuple

from wirecheck.judge.topology.clusters import Clusters, Group, Place


class GroupTold(NamedTuple):
    """One group, as `Group` has it."""

    key: str
    cluster_id: str | None
    cluster: str | None
    stranger: bool
    endpoints: tuple[str, ...]
    brokers: tuple[int, ...]
    hosts: tuple[str, ...]
    listed: bool


class ClustersTold(NamedTuple):
    groups: tuple[GroupTold, ...]
    unknown: GroupTold
    """Of endpoints that nobody spoke of."""
    places: dict[str, tuple[tuple[int, int, int | None], ...]]
    """By endpoint: since when, in which of the groups, and as which broker."""
    answering: frozenset[str]


class ToldClusters(Clusters):
    def __init__(self, label: str, told: ClustersTold) -> None:
        super().__init__(label)
        self.groups = [group_of(one) for one in told.groups]
        self.unknown = group_of(told.unknown)
        self.places = {
            endpoint: [Place(since_ns, self.groups[number], broker) for since_ns, number, broker in found]
            for endpoint, found in told.places.items()
        }
        self.only = {endpoint: places[0].group for endpoint, places in self.places.items() if len(places) == 1}
        self.alone = len(self.only) == len(self.places)
        self.answering = set(told.answering)


def told(clusters: Clusters) -> ClustersTold:
    numbers = {id(group): number for number, group in enumerate(clusters.groups)}
    places = {
        endpoint: tuple((place.since_ns, numbers[id(place.group)], place.broker) for place in found)
        for endpoint, found in clusters.places.items()
    }
    groups = tuple(map(group_told, clusters.groups))
    return ClustersTold(groups, group_told(clusters.unknown), places, frozenset(clusters.answering))


def group_told(group: Group) -> GroupTold:
    return GroupTold(
        *(group.key, group.cluster_id, group.cluster, group.stranger),
        tuple(group.endpoints),
        tuple(sorted(group.brokers)),
        tuple(sorted(group.hosts)),
        group.listed,
    )


def group_of(said: GroupTold) -> Group:
    return Group(
        said.key,
        said.cluster_id,
        said.cluster,
        said.stranger,
        endpoints=list(said.endpoints),
        brokers=set(said.brokers),
        hosts=set(said.hosts),
        listed=said.listed,
    )
