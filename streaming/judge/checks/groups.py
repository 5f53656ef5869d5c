"""GRP: offsets of groups across the recreation of a topic.

Knows which id a name meant when, and that an id's offsets are no other id's. Does not know messages.
Rule: only topics that were seen to be created again are judged: an offset beyond a topic's end alone may come from an
unclean election.
"""

from collections import defaultdict
from collections.abc import Iterator

from streaming.judge.claim import Cell, Claim
from streaming.judge.clusters import Group
from streaming.judge.evidence import Evidence, Side, first_of, last_of
from streaming.judge.scene import Scene
from streaming.judge.topic import Topic, topic_of


def offset_from_dead_topic(cell: Cell, group: Group, scene: Scene) -> Iterator[Evidence]:
    """Finds. A group that commits, by name and later than the grace after a topic was created again, an offset beyond
    everything the new topic was seen to hold, while the new topic was still seen to end below it 30 s later.

    Why it matters. The offset counts records of the deleted topic. The group skips what is written to the new one until
    it has grown past that offset, or starts again wherever auto.offset.reset points.

    When it is innocent. Within the grace: consumers finish what they had read. A topic that was not seen to be created
    again is not judged, nor one whose end was not seen: after an unclean election offsets may lie beyond it too.

    Source. KIP-516, motivation; OffsetCommit to v9 names topics only.
    """
    topic = topic_of(cell[1], group, scene)
    commits = scene.claims("committed", group, *cell)
    if not commits or len(topic.histories) < 2:
        return
    scene.watch()
    current, grace_ns = topic.histories[-1], scene.settings.broker_grace_ns
    reaches = scene.claims("reaches", group, "id", current.topic_id)
    found: dict[tuple[str, int], tuple[Claim, int, list[Claim]]] = {}
    for claim in commits:
        ts_ns, offset = claim.peak["committed"]
        mine = [reach for reach in reaches if reach["partition"] == claim["partition"]]
        after = any(reach.peak["latest"] >= ts_ns + grace_ns for reach in mine)
        beyond = all(reach.peak["highest"] < offset for reach in mine)
        if claim["topic_id"] is None and ts_ns >= current.born_ns + grace_ns and after and beyond:
            found[claim["group"], claim["partition"]] = (claim, offset, mine)
    for (who, partition), (claim, offset, mine) in sorted(found.items()):
        highest = max(reach.peak["highest"] for reach in mine)
        said = f"group {who} commits offset {offset} of partition {partition}"
        yield Evidence(
            (who, topic.name, partition),
            (first_of(current.first), Side(claim.last, said), *(last_of(reach) for reach in mine)),
            topic=topic.name,
            topic_ids=(current.topic_id, topic.histories[-2].topic_id),
            count=claim.count,
            words={"group": who, "partition": partition, "offset": offset, "highest": highest},
        )


def offset_invalidated_by_recreation(cell: Cell, group: Group, scene: Scene) -> Iterator[Evidence]:
    """Finds. A group that asks for its offsets of a topic id and is told that there are none, although it had committed
    some under an earlier id of the same name.

    Why it matters. Its position is gone with the old topic: it starts wherever auto.offset.reset points, and reads
    everything again or misses what was written meanwhile.

    When it is innocent. Whoever creates a topic again on purpose expects it. A group that never committed under the
    earlier id is new, not robbed; answers by name (before version 10) do not say which topic they mean.

    Source. KIP-848; OffsetFetch v10; GroupMetadataManager of Kafka 4.1.
    """
    topic = topic_of(cell[1], group, scene)
    if len(topic.histories) < 2:
        return
    scene.watch()
    current = topic.histories[-1]
    before = [claim for claim in earlier_commits(topic, scene) if claim.peak["committed"][0] < current.born_ns]
    lost: dict[str, list[Claim]] = defaultdict(list)
    for claim in scene.claims("offset_gone", group, "id", current.topic_id):
        mine = [c for c in before if (c["group"], c["partition"]) == (claim["group"], claim["partition"])]
        if mine and claim.last.ts_ns > current.born_ns:
            lost[claim["group"]] += [claim, *mine]
    for who, claims in sorted(lost.items()):
        yield Evidence(
            (who, topic.name),
            (*(last_of(claim) for claim in claims), first_of(current.first)),
            topic=topic.name,
            topic_ids=(current.topic_id, topic.histories[-2].topic_id),
            count=sum(claim.count for claim in claims if claim.kind == "offset_gone"),
            words={"group": who, "partitions": len({claim["partition"] for claim in claims})},
        )


def earlier_commits(topic: Topic, scene: Scene) -> list[Claim]:
    """Commits by the topic's name, and by the ids it had before the current one."""
    found = scene.claims("committed", topic.group, "name", topic.name)
    for history in topic.histories[:-1]:
        found = found + scene.claims("committed", topic.group, "id", history.topic_id)
    return found
