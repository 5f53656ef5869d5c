"""One topic name in one cluster: the topic IDs it had, in their order, and what ended each.

Rule: a topic ID identifies one topic and is never reused. IDs are ordered by the generation of the metadata log; within
a generation by the log itself where it is known, else by the order in which one broker or the controllers reported
them, else by their first sightings. By first sightings alone, no ID is called the successor of another while both are
reported. An end is taken back if every server that reported the later ID reports the former one again. An ID that
appears only in requests or error responses is never bound.
"""

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property, cmp_to_key
from itertools import pairwise
from typing import NamedTuple

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import ZERO, Claim, Sighting, Subject
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group

STRENGTH = {
    "metadata-log": 1,
    "create-topics": 2,
    "leader-and-isr": 3,
    "update-metadata": 3,
    "stop-replica": 3,
    "metadata": 4,
    "describe-topic-partitions": 4,
    "delete-topics": 4,
}
"""Sources that bind a topic ID to a name, 1 the most reliable (PROTOCOL 5.0)."""
CONTROL = ("leader-and-isr", "update-metadata")
REPORTS = ("metadata", "describe-topic-partitions")
"""Sources by which a broker reports what it serves."""
NEVER = -1
SKEW_NS = 1_000_000_000
"""Two capture points, or the two ends of one change, may disagree about the order by this much."""

CLOCKS_NS = 5_000_000_000
"""Clocks of two capture points may be apart by this much; nothing on the wire measures it."""

DENIED_NS = 10_000_000_000
"""A topic that its broker denies for so long is deleted; a broker that starts knows no topics for a moment."""


class History:
    def __init__(self, topic_id: str, bindings: list[Claim], context: CheckContext, group: Group) -> None:
        """`bindings`: by their first sighting."""
        self.topic_id, self.bindings, self.context, self.group = topic_id, bindings, context, group
        self.first = bindings[0]
        last = max(claim.last_word for claim in bindings)
        self.last = max((claim for claim in bindings if claim.last_word == last), key=lambda claim: repr(claim.key))
        self.again_ns = NEVER
        """Until when servers reported a later ID, and then this one again: an end before is taken back."""

    @property
    def born_ns(self) -> int:
        return self.first.first.ts_ns

    @cached_property
    def offset(self) -> int | None:
        """Where the metadata log created it; None where the log was not seen to."""
        offsets: list[int] = [claim.peak["offset"] for claim in self.logged]
        return min(offsets, default=None)

    @cached_property
    def logged(self) -> list[Claim]:
        return [claim for claim in self.bindings if "offset" in claim.peak]

    @cached_property
    def generation(self) -> int:
        """The last generation of the metadata log in which the ID has the name: by its records, else by its creation or
        last binding. A paused broker reports it after its end, but not again after a later one.
        """
        generations = self.context.generations(self.group)
        grace_ns = self.context.settings.broker_grace_ns if self.again_ns == NEVER else 0
        if not generations.current:
            return 0
        if self.logged:
            return max(map(generations.last, self.logged))
        created = (claim.first.ts_ns for claim in self.bindings if claim["source"] == "create-topics")
        return generations.at(max(self.last.last_word.ts_ns - grace_ns, *created, NEVER))

    @cached_property
    def partitions(self) -> list[Claim]:
        return self.context.claims("partition", self.group, "id", self.topic_id)

    @cached_property
    def epochs(self) -> dict[int, tuple[int, int]]:
        """The lowest and the highest leader epoch per partition."""
        found: dict[int, tuple[int, int]] = {}
        for claim in self.partitions:
            epoch, partition = claim["leader_epoch"], claim["partition"]
            if epoch >= 0:
                low, high = found.get(partition, (epoch, epoch))
                found[partition] = (min(low, epoch), max(high, epoch))
        return found

    @cached_property
    def listed(self) -> set[int]:
        """Its partitions, as answers about it list them: each has all of them."""
        return {claim["partition"] for claim in self.partitions if claim["source"] == "metadata"}

    @cached_property
    def is_new(self) -> bool:
        """Whether the controller introduced its partitions as new."""
        return any(claim.tally.get("is_new") for claim in self.partitions)

    @cached_property
    def since(self) -> dict[str | None, int]:
        """When each broker reported it first, and when a controller did (None)."""
        found: dict[str | None, int] = {}
        for claim in self.bindings:
            if claim["source"] in {*CONTROL, "metadata"}:
                who = claim["endpoint"] if claim["source"] == "metadata" else None
                found[who] = min(claim.first.ts_ns, found.get(who, claim.first.ts_ns))
        return found

    @cached_property
    def reported(self) -> dict[str, int]:
        """When each server reported it last."""
        found: dict[str, int] = {}
        for claim in self.bindings:
            if claim["source"] in REPORTS:
                found[claim["endpoint"]] = max(claim.last.ts_ns, found.get(claim["endpoint"], claim.last.ts_ns))
        return found

    @cached_property
    def ordered(self) -> Sighting | None:
        """The last request in which a controller gave it."""
        return max((claim.last for claim in self.bindings if claim["source"] in CONTROL), default=None)

    def takes_back(self, later: "History") -> bool:
        """Whether every server that reported a later ID reports this one again, and controllers, where they give
        either, give this one last: as after ZooKeeper or a disk was restored from a backup.
        """
        given = self.ordered is not None and (
            later.ordered is None or seen_after(self.ordered, later.ordered, self.context)
        )
        return (
            self.born_ns < later.born_ns
            and (given or (self.ordered is None and later.ordered is None))
            and bool(later.reported)
            and all(self.reported.get(server, NEVER) > ts_ns + SKEW_NS for server, ts_ns in later.reported.items())
        )

    @property
    def sources(self) -> list[str]:
        return sorted({claim["source"] for claim in self.bindings})


class Topic:
    def __init__(self, name: str, group: Group, context: CheckContext) -> None:
        self.name, self.group, self.context = name, group, context
        self.bindings = context.claims("binding", group, "name", name)
        self.deletions = context.claims("deletion", group, "name", name)
        self.creations = context.claims("creation", group, "name", name)
        self.older = context.omitted(group, "name", name)
        """The IDs that are too many to be held apart: all others were stated later."""
        self.ends: dict[str, Claim | None] = {}
        """By ID what ended it, once it was asked for."""

    @cached_property
    def mixed(self) -> bool:
        """Whether the claims come from two clusters with one cluster ID that could not be separated: then neither's
        topic ID ends the other's.
        """
        return self.context.generations(self.group).mixed

    @cached_property
    def histories(self) -> list[History]:
        """The IDs the name had, oldest first; of very many those that were stated last (`older`)."""
        by_id: dict[str, list[Claim]] = {}
        for claim in self.bindings:
            if claim["topic_id"] not in {None, ZERO} and claim["source"] in STRENGTH:
                by_id.setdefault(claim["topic_id"], []).append(claim)
        found = [History(topic_id, claims, self.context, self.group) for topic_id, claims in by_id.items()]
        found.sort(key=lambda history: (history.born_ns, history.topic_id))
        for number, former in enumerate(found):
            undone = [later for later in found[number + 1 :] if former.takes_back(later)]
            former.again_ns = max((ts_ns for later in undone for ts_ns in later.reported.values()), default=NEVER)
        return sorted(found, key=cmp_to_key(stated_order)) if len(found) > 1 else found

    @cached_property
    def following(self) -> dict[str, History]:
        """The next ID of each, by the ID, whether or not it is known to have taken its place."""
        return {old.topic_id: new for old, new in pairwise(self.histories)}

    @cached_property
    def births_ns(self) -> list[int]:
        return sorted(history.born_ns for history in self.histories)

    @cached_property
    def created_ns(self) -> dict[str | None, int]:
        """When each ID was created last, by the first sightings of its creations."""
        found: dict[str | None, int] = {}
        for claim in self.creations:
            found[claim["topic_id"]] = max(claim.first.ts_ns, found.get(claim["topic_id"], NEVER))
        return found

    @cached_property
    def deleted_by_name(self) -> list[Claim]:
        """Deletions that name no ID, as requests before version 6 do."""
        return [claim for claim in self.deletions if claim["topic_id"] is None]

    @property
    def changes(self) -> Iterator[tuple[History, History]]:
        """Each ID with the next one, if both belong to one generation of the metadata log and neither's end was taken
        back. IDs of different generations are not compared.
        """
        return ((old, new) for old, new in pairwise(self.histories) if comparable(old, new) and not self.mixed)

    def successor(self, history: History) -> History | None:
        """The id that took its place, if one is known to have."""
        new = self.following.get(history.topic_id)
        return new if new is not None and self.follows(history, new) else None

    def had(self, topic_id: str) -> bool:
        return topic_id in self.older.lives or any(history.topic_id == topic_id for history in self.histories)

    def after_older(self, topic_id: str) -> History | None:
        """The first ID that was seen once an older one was last stated."""
        last = max(claim.last_word for claim in self.older.lives[topic_id])
        later = [history for history in self.histories if seen_after(history.first.first, last, self.context)]
        return min(later, key=lambda history: history.first.first, default=None)

    def follows(self, old: History, new: History) -> bool:
        """Whether it is known that one ID took the other's place: by the log, by a server that stated both, by a
        deletion, by a creation after which the former is not the last one stated (it may be that of another cluster
        with this ClusterId), or because the one was last reported before the other was: at two capture points by more
        than their clocks may differ.
        """
        if self.mixed:
            return False
        if stated_order(old, new) < 0 or new.offset is not None or self.ended(old) is not None:
            return True
        goes_on = old.last.last_word.ts_ns > new.last.last_word.ts_ns + SKEW_NS
        created = self.created_ns.get(new.topic_id, NEVER) > old.born_ns
        return (created and not goes_on) or seen_after(new.first.first, old.last.last_word, self.context)

    def replaces(self) -> bool:
        """Whether its current id is known to have taken another one's place."""
        old, new = self.histories[-2:] if len(self.histories) > 1 else (None, None)
        return old is not None and new is not None and comparable(old, new) and self.follows(old, new)

    @cached_property
    def made_again(self) -> tuple[Claim, Claim] | None:
        """Of a topic without IDs the first deletion and the creation after it, both by clients and granted."""
        deleted = [claim for claim in self.deletions if claim["source"] == "delete-topics"]
        made = max(self.creations, key=lambda claim: claim.last, default=None)
        before = [c for c in deleted if made is not None and c.first.ts_ns < made.last.ts_ns]
        return (min(before, key=lambda claim: claim.first), made) if made is not None and before else None

    @cached_property
    def lives(self) -> "Lives | None":
        """When the topic that was there before was deleted, and when the one that is there now was created; None where
        neither a deletion nor a server without the topic shows that it is another one.
        """
        if self.replaces():
            old, new = self.histories[-2:]
            ended = self.ended(old)
            ended_ns = ended.first.ts_ns if ended is not None else self.absent_ns(old, new)
            return Lives(ended_ns, new.born_ns) if ended_ns is not None else None
        if self.histories or self.mixed or self.made_again is None:
            return None
        deleted, made = self.made_again
        ends = [ts_ns for ts_ns in times(deleted) if ts_ns < made.last.ts_ns]
        return Lives(max(ends), made.last.ts_ns)

    def absent_ns(self, old: History, new: History) -> int | None:
        """When a server that had reported an ID answered first that there is no such topic, before it reported the next
        one: the deletion was asked of another server.
        """
        found = [
            seen.ts_ns
            for claim in self.context.claims("absence", self.group, "name", self.name)
            for seen in (claim.first, claim.last)
            if old.reported.get(claim["endpoint"], 1 << 63) < seen.ts_ns < new.since.get(claim["endpoint"], NEVER)
        ]
        return min(found, default=None)

    @cached_property
    def without_id(self) -> list[Claim]:
        """Bindings that name the topic and give it no id."""
        return [claim for claim in self.bindings if claim["topic_id"] in {None, ZERO}]

    def ended(self, history: History) -> Claim | None:
        """The deletion that ended an ID, or the end of its generation of the log, if one was captured. A deletion that
        the log lost is taken back.
        """
        if history.topic_id not in self.ends:
            self.ends[history.topic_id] = None if self.mixed else self.end_of(history)
        return self.ends[history.topic_id]

    def end_of(self, history: History) -> Claim | None:
        generations = self.context.generations(self.group)
        removed = self.context.claims("deletion", self.group, "id", history.topic_id)
        if not (removed or self.deletions or history.generation < generations.current):
            return None  # as of most topics
        until = self.next_born_ns(history) + SKEW_NS
        since_ns = max(history.again_ns, generations.every[history.generation].since_ns)
        removed = [stated_since(since_ns, claim) for claim in removed if generations.of(claim) >= history.generation]
        removed = [claim for claim in removed if claim.first.ts_ns > history.again_ns]
        if not removed and history.generation < generations.current:
            after = generations.every[history.generation + 1]
            # without a record, what was reported after the end may belong to the next generation
            known = history.logged or history.last.last_word.ts_ns < after.since_ns
            new = self.following.get(history.topic_id)
            known = known and (new is None or new.generation != history.generation)
            removed = [after.began] if after.began is not None and known else []
        by_name = [
            claim
            for claim in self.deleted_by_name
            if any(
                history.again_ns < seen.ts_ns <= until and seen_after(seen, history.first.first, self.context)
                for seen in (claim.first, claim.last)
            )
            and generations.of(claim) >= history.generation
        ]
        return min(removed or by_name, key=lambda claim: claim.first, default=None)

    def next_born_ns(self, history: History) -> int:
        """When the name got another ID after it got this one, or got it again."""
        since_ns = max(history.born_ns, history.again_ns)
        at = bisect_right(self.births_ns, since_ns)
        return self.births_ns[at] if at < len(self.births_ns) else 1 << 63

    def denied(self, history: History) -> bool:
        """Whether a server that reported an ID answers later, for DENIED_NS, that there is no such topic, and no
        server reports the ID after that. A broker of ZooKeeper's time does so for a moment after its start.
        """
        for claim in self.context.claims("absence", self.group, "name", self.name):
            reported_ns = history.reported.get(claim["endpoint"], 1 << 63)
            denied_ns = claim.last.ts_ns - max(claim.first.ts_ns, reported_ns)
            if history.last.last_word.ts_ns < claim.last.ts_ns and denied_ns >= DENIED_NS:
                return not self.mixed
        return False


class Lives(NamedTuple):
    """Two topics of one name."""

    ended_ns: int
    born_ns: int


def topic_of(name: str, group: Group, context: CheckContext) -> Topic:
    """A topic as it is now: made once, however many checks ask for it."""
    if (name, id(group)) not in context.topics:
        context.topics[name, id(group)] = Topic(name, group, context)
    topic: Topic = context.topics[name, id(group)]
    return topic


def comparable(old: History, new: History) -> bool:
    return old.generation == new.generation and old.again_ns == new.again_ns


def stated_since(since_ns: int, claim: Claim) -> Claim:
    """Of a claim that was made before a time and after it, what was made after it. A record of the metadata log has no
    such time.
    """
    if claim.first.ts_ns > since_ns or "offset" in claim.peak:
        return claim
    return Claim(claim.kind, claim.key, claim.last, claim.last)


def seen_after(later: Sighting, earlier: Sighting, context: CheckContext) -> bool:
    """Whether one was seen after the other: at two capture points, by more than their clocks may differ."""
    between_ns = later.ts_ns - earlier.ts_ns
    if later.source == earlier.source:
        return between_ns > 0
    return between_ns >= max(CLOCKS_NS, context.settings.clocks_s * SECOND_NS)


def times(claim: Claim) -> tuple[int, int]:
    return claim.first.ts_ns, claim.last.ts_ns


def stated_order(one: History, other: History) -> int:
    """Negative if one ID came before the other, positive if after, 0 if no server that reported both shows it."""
    if one.generation != other.generation:
        return one.generation - other.generation
    if one.again_ns != other.again_ns:
        return one.again_ns - other.again_ns
    if one.offset is not None and other.offset is not None:
        return one.offset - other.offset
    mine, theirs = one.since, other.since
    later = {mine[who] < theirs[who] for who in mine.keys() & theirs.keys() if mine[who] != theirs[who]}
    return 0 if len(later) != 1 else -1 if later.pop() else 1


WEAKEST = 5
"""The strength of sources that repeat what they were sent."""


def name_of(subject: Subject, group: Group, context: CheckContext) -> str | None:
    """The name of a topic ID, by its most reliable binding."""
    bindings = context.claims("binding", group, *subject)
    best = min(bindings, key=lambda claim: (STRENGTH.get(claim["source"], WEAKEST), claim.first), default=None)
    return None if best is None else best["name"]


def former_name_of(subject: Subject, group: Group, context: CheckContext) -> str | None:
    """The name an ID has in a cluster that an address of this one led to before."""
    names = (name_of(subject, former, context) for former in context.clusters.formerly(group))
    return next((name for name in names if name is not None), None)
