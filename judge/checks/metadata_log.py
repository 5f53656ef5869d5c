"""LOG: the KRaft metadata log compared with what brokers report.

Rule: only committed entries count. A broker whose offset does not advance while the log does not either is idle, not
late.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from wirecheck.decode.log.metadata_log import TOPIC_NAME
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import (
    about,
    clock,
    ends,
    gathered,
    goes_on,
    if_broker,
    of_topic,
    resting_on,
    servers_of,
    slots,
    start_ns,
)
from wirecheck.judge.claims.claim import METADATA_LOG, ZERO, Claim, Subject
from wirecheck.judge.claims.extract.log_entries import SNAPSHOT, SOURCE
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.topic_history import REPORTS, Topic, topic_of
from wirecheck.judge.topology.clusters import Group
from wirecheck.judge.topology.log_generations import Generation
from wirecheck.wording import and_list, number_list


def metadata_log_disagrees_with_broker(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    for old, new in topic.changes:
        logged = [claim for claim in new.bindings if claim["source"] == SOURCE]
        if not logged:
            continue
        after = logged[0].first.ts_ns + context.settings.broker_grace_ns
        for claim in old.bindings:
            lasts = goes_on(claim, logged[0].first.ts_ns, context.settings.broker_grace_ns)
            if claim["source"] in REPORTS and claim.last.ts_ns > after and lasts:
                node, sides = context.node(claim), (first_of(logged[0]), last_of(claim))
                words = {"where": node, "old": old.topic_id, "new": new.topic_id, "last": clock(claim.last.ts_ns)}
                about = {**of_topic(topic, old, new), "brokers": if_broker(node)}
                about["first_ns"] = max(logged[0].first.ts_ns, claim.first.ts_ns)
                yield resting_on([claim], topic.name, node, sides=sides, **about, words=words)


def metadata_log_integrity(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    kinds = records("binding", subject, group, context), records("deletion", subject, group, context)
    kept = in_snapshots(subject, group, context)
    if not any((*kinds, kept)):
        return
    created, removed, given = of_one_generation((*kinds, placed(subject, group, context)), group, context)
    found = {}
    if len(created) > 1:
        found["created twice"] = created
        if removed and created[-1].peak["offset"] > removed[0].peak["offset"] > created[0].peak["offset"]:
            found = {"created again after it was removed": [*created, *removed]}
    if len(removed) > 1:
        found["removed twice"] = removed
    after = [claim for claim in given if removed and claim.peak["offset"] > removed[0].peak["offset"]]
    if after and len(created) < 2:
        found["given a partition after it was removed"] = [removed[0], *after]
    before = [claim for claim in given if created and claim.peak["offset"] < created[0].peak["offset"]]
    if before:
        found["given a partition before it was created"] = [*before, created[0]]
    if created and (alive := name_still_taken(subject, created[0], group, context)):
        found["given the name of an ID that was removed only later"] = alive
    for one in (*created[:1], *kept):
        if two := at_one_place(subject, one, group, context):
            found["written where the log has another ID for the name"] = two
    for rule, claims in found.items():
        if not of_one_log(claims, context):
            continue
        name = min((claim["name"] for claim in (*created, *kept)), default=None)
        words = {"rule": rule, "offsets": ", ".join(str(claim.peak["offset"]) for claim in claims)}
        sides, ids = tuple(map(first_of, claims)), (subject[1],)
        begun_ns = max(claim.first.ts_ns for claim in claims)  # one record alone contradicts nothing
        key, count = (rule, subject[1]), len(claims)
        yield Evidence(key, sides, topic=name, topic_ids=ids, count=count, first_ns=begun_ns, words=words)


def of_one_log(claims: list[Claim], context: CheckContext) -> bool:
    """Whether one server showed all of these records, or servers that a list of brokers names together: else they may
    be of two logs, as of a cluster and its copy.
    """
    shown_by = [{claim.first.server, claim.last.server} for claim in claims]
    listeners = ({context.clusters.listener(server) for server in servers} for servers in shown_by)
    return bool(set.intersection(*shown_by) or set.intersection(*listeners))


def name_still_taken(subject: Subject, created: Claim, group: Group, context: CheckContext) -> list[Claim]:
    """The creation of an earlier ID of the same name, this creation, and the removal of the earlier ID, if that was
    last.
    """
    for history in topic_of(created["name"], group, context).histories:
        if history.topic_id == subject[1]:
            continue
        context.watch()
        earlier = "id", history.topic_id
        kinds = records("binding", earlier, group, context), records("deletion", earlier, group, context)
        now, first, removed = of_one_generation(([created], *kinds), group, context)
        if now and first and removed and first[0].peak["offset"] < created.peak["offset"] < removed[0].peak["offset"]:
            return [first[0], created, removed[0]]
    return []


def at_one_place(subject: Subject, created: Claim, group: Group, context: CheckContext) -> list[Claim]:
    """Records of one epoch and offset, or of the snapshot there, that give a name two IDs: readers are shown different
    logs.
    """
    for history in topic_of(created["name"], group, context).histories:
        if history.topic_id >= subject[1]:
            continue
        context.watch()
        earlier = "id", history.topic_id
        for other in (*records("binding", earlier, group, context), *in_snapshots(earlier, group, context)):
            if other["by"] == created["by"] and all(of_one_generation(([created], [other]), group, context)):
                return [other, created]
    return []


def in_snapshots(subject: Subject, group: Group, context: CheckContext) -> list[Claim]:
    """What snapshots call a topic ID, by their end."""
    bound = (c for c in context.claims("binding", group, *subject) if c["source"] == SOURCE)
    return sorted((c for c in bound if c["by"].startswith(SNAPSHOT)), key=lambda claim: claim.peak["offset"])


def placed(subject: Subject, group: Group, context: CheckContext) -> list[Claim]:
    """The committed PartitionRecords of a topic ID, by offset. Those of a snapshot have its end offset, at which the
    topic existed.
    """
    states = [c for c in context.claims("partition", group, *subject) if c["source"] == SOURCE]
    return sorted(states, key=lambda claim: claim.peak["offset"])


def records(kind: str, subject: Subject, group: Group, context: CheckContext) -> list[Claim]:
    """The committed records of one kind about a topic ID: one per generation of the log and offset."""
    entries = [
        c for c in context.claims(kind, group, *subject) if "offset" in c.peak and not c["by"].startswith(SNAPSHOT)
    ]
    last = context.generations(group).last
    by_place = {(last(claim), claim.peak["offset"]): claim for claim in entries}
    return [by_place[place] for place in sorted(by_place)]


def of_one_generation(kinds: tuple[list[Claim], ...], group: Group, context: CheckContext) -> list[list[Claim]]:
    """The records of each list that belong to the latest generation of the log in any list."""
    last = context.generations(group).last
    generation = max((last(claim) for claim in chain.from_iterable(kinds)), default=0)
    return [[claim for claim in claims if last(claim) == generation] for claims in kinds]


def metadata_offset_stands_still(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    heights = [at(claim) for claim in context.claims("log_order", group, *subject)]
    by_broker = context.by("broker", "heartbeat", group, *subject)
    reached = {broker: highest([at(claim) for claim in mine]) for (broker,), mine in by_broker.items()}
    log = Heights(highest(heights), reached)
    for (broker,), mine in sorted(by_broker.items()):
        since = stands_since(reached[broker], log.without(broker), context.settings.broker_grace_s)
        if since is not None:
            yield still(broker, mine, since)


def still(broker: int, mine: list[Claim], since: int) -> Evidence:
    offset = highest([at(claim) for claim in mine])[since]
    text = f"broker {broker} has read the metadata log up to {offset}"
    first, last = mine[0].first, max(claim.last for claim in mine)
    sides = (Side(first, f"broker {broker} sends its first heartbeat"), Side(last, text))
    words = {"broker": broker, "offset": offset, "since": about(start_ns(since))}
    first_ns = max(start_ns(since), first.ts_ns)
    return resting_on(mine, broker, sides=sides, brokers=(broker,), first_ns=first_ns, words=words)


def metadata_log_lost_committed_records(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    lost = [one for one in context.generations(group).every if one.diverged]
    sides = tuple(side for one in lost for side in sides_of(one))
    if lost and subject == ("server",):
        last = lost[-1]
        words = {"leader": last.diverged[0]["endpoint"], "committed": last.committed}
        words["end"] = min(claim["end_offset"] for claim in last.diverged)
        words["since"] = clock(min(last.since_ns, last.diverged[0].first.ts_ns))
        about = {"sides": sides, "topic_ids": ended_with_a_generation(group, context), "words": words}
        first_ns = min(lost[0].since_ns, lost[0].diverged[0].first.ts_ns)
        yield resting_on([c for one in lost for c in one.diverged], "metadata log", **about, first_ns=first_ns)


MOST_NAMES = 10_000
"""If there are more names, the IDs that ended with a generation of the log are not listed."""
LATELY_NS = 86_400_000_000_000
"""An ID that was not named for this long before its generation ended is not listed, because the ledger forgets it."""


def ended_with_a_generation(group: Group, context: CheckContext) -> tuple[str, ...]:
    names = sorted(context.ledger.subjects("name"))
    topics = (topic_of(name, group, context) for _, name in names) if len(names) <= MOST_NAMES else ()
    generations = context.generations(group)
    former = (h for topic in topics for h in topic.histories if h.generation < generations.current)
    since_ns = {number: one.since_ns - LATELY_NS for number, one in enumerate(generations.every)}
    return tuple(sorted(h.topic_id for h in former if h.last.last.ts_ns > since_ns[h.generation + 1]))


def sides_of(generation: Generation) -> tuple[Side, ...]:
    """The evidence for a generation of the log: what was committed before it, its beginning, and what was truncated."""
    before = () if generation.announced is None else (committed(generation.announced, generation),)
    began = () if generation.began is None else (first_of(generation.began),)
    return (*before, *began, *(first_of(claim) for claim in generation.diverged if claim is not generation.began))


def committed(announced: Claim, generation: Generation) -> Side:
    if announced.kind == "heartbeat":
        text = f"broker {announced['broker']} has read the metadata log up to {generation.committed}"
        return Side(announced.last, text)
    text = f"{announced['endpoint']} announces high watermark {generation.committed} of the metadata log"
    return Side(announced.first, text)


def metadata_log_started_over(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    over = [one for one in context.generations(group).every[1:] if not one.diverged or one.base == 0]
    if over and subject == ("server",):
        last, sides = over[-1], tuple(side for one in over for side in sides_of(one))
        below = " or below" if last.began is not None and last.began.kind == "registration" else ""
        words = {"end": f"{last.base}{below}", "committed": last.committed, "since": clock(last.since_ns)}
        words["then"] = "earlier topic IDs belong to the former log"
        ids, since_ns = ended_with_a_generation(group, context), over[0].since_ns
        found = Evidence(("metadata log",), sides, topic_ids=ids, count=len(over), first_ns=since_ns, words=words)
        gone = Vanished.since(last, group, context)
        yield found if gone is None else gone.part_of(found, context)


NAMED_UNTIL_NS = 300_000_000_000
"""A topic that was named this long before it is denied was there: clients ask for metadata at least this often."""
NAMES_SHOWN = 2
SHOW_THE_LOG = ("log_order", "registration", "heartbeat")
"""Kinds of claims that show that a log is in use."""


class Denial(NamedTuple):
    """A broker that goes on answering that a topic does not exist."""

    since_ns: int
    absence: Claim
    topic_id: str


@dataclass(frozen=True)
class Vanished:
    """Topics that are denied since a KRaft controller took over from ZooKeeper with a log that lacks them: a migration
    that is repeated with new controllers while ZooKeeper still has the former migration's state.
    """

    order: Claim
    """The controller's first request that a broker accepted."""
    denials: list[Denial]

    @classmethod
    def since(cls, generation: Generation, group: Group, context: CheckContext) -> "Vanished | None":
        """An UpdateMetadata without topics alone shows nothing: controllers send it at each start and stop of a broker.
        What counts are the answers after that, by brokers that accepted this controller.
        """
        control = (claim for claim in context.claims("control", group, "server") if claim["kraft"])
        orders = [claim for claim in control if claim["error"] == 0 and claim.last.ts_ns > generation.since_ns]
        in_use = [claim.last.ts_ns for kind in SHOW_THE_LOG for claim in context.claims(kind, group, "server")]
        orders = [order for order in orders if order.first.ts_ns < max(in_use, default=0)]
        names = sorted(context.ledger.subjects("name")) if orders else []
        if not names or len(names) > MOST_NAMES:
            return None
        order = min(orders, key=lambda claim: claim.first)
        since_ns, receivers = max(order.first.ts_ns, generation.since_ns), {claim["endpoint"] for claim in orders}
        denials = [
            denial
            for _, name in names
            for absence in context.claims("absence", group, "name", name)
            if absence["endpoint"] in receivers and absence.last.ts_ns > since_ns
            if (denial := denied(absence, topic_of(name, group, context), since_ns, context)) is not None
        ]
        return cls(order, sorted(denials, key=lambda one: (one.since_ns, one.absence["name"]))) if denials else None

    def part_of(self, found: Evidence, context: CheckContext) -> Evidence:
        first = self.denials[0]
        names = sorted({denial.absence["name"] for denial in self.denials})
        topics = (
            f"topic{'s' * (len(names) > 1)} {and_list(names)}" if len(names) <= NAMES_SHOWN else f"{len(names)} topics"
        )
        controller, verb = self.order["controller"], "is" if len(names) == 1 else "are"
        brokers = and_list(sorted({str(context.node(denial.absence)) for denial in self.denials}))
        words = {"vanished": topics, "controller": controller, "deniers": brokers}
        words["then"] = f"controller {controller} took over with it, and {topics} {verb} gone"
        ids = tuple(sorted({*found.topic_ids, *(denial.topic_id for denial in self.denials)}))
        exact = first.absence.first.ts_ns == first.since_ns
        sides = (*found.sides, first_of(self.order), (first_of if exact else last_of)(first.absence))
        words = {**found.words, **words}
        return replace(found, sides=sides, topic_ids=ids, first_ns=first.since_ns, kind="violation", words=words)


def denied(absence: Claim, topic: Topic, since_ns: int, context: CheckContext) -> Denial | None:
    """Whether a broker denies a topic for at least a grace period that was named just before, and was not deleted.
    A broker of ZooKeeper's time denies all topics for a moment after its start.
    """
    history = next(reversed(topic.histories), None)
    if history is None:
        return None
    reports = [claim for claim in history.bindings if claim["source"] == "metadata"]
    own = [claim.last.ts_ns for claim in reports if claim["endpoint"] == absence["endpoint"]]
    known_ns = max([since_ns, *own])
    later = [start_ns(slot) for slot in slots(absence.tally) if start_ns(slot) > known_ns]
    begin_ns = absence.first.ts_ns if absence.first.ts_ns > known_ns else min(later, default=absence.last.ts_ns)
    named = any(claim.first.ts_ns < begin_ns < claim.last.ts_ns + NAMED_UNTIL_NS for claim in reports)
    removed = (*topic.deletions, *context.claims("deletion", topic.group, "id", history.topic_id))
    if not named or any(claim.last.ts_ns > history.born_ns for claim in removed):
        return None
    until_ns = begin_ns + context.settings.broker_grace_ns
    lasts = context.passed(until_ns) and absence.last.ts_ns >= until_ns
    return Denial(begin_ns, absence, history.topic_id) if lasts else None


THE_LOG = -1 << 32
"""Stands for the log itself among brokers."""
LEAST_REPORTS = 3
"""A broker must have reported the old offset in this many slots of 10 s after the log had passed it. It sends a
heartbeat every 2 s.
"""


def at(claim: Claim) -> dict[int, int]:
    """Offset by slot; of the log with the time when it was first seen there."""
    return {
        int(name[3:]): value if isinstance(value, int) else value[0]
        for name, value in claim.peak.items()
        if name.startswith("at:")
    }


class Heights:
    """The offsets that the log reached in each slot, by what is known of it and by what brokers report."""

    def __init__(self, known: dict[int, int], reached: dict[int, dict[int, int]]) -> None:
        self.best = {slot: [(offset, THE_LOG)] for slot, offset in known.items()}
        """Per slot the two highest, of different brokers."""
        for broker, offsets in sorted(reached.items()):
            for slot, offset in offsets.items():
                self.best[slot] = sorted([*self.best.get(slot, ()), (offset, broker)], reverse=True)[:2]

    def without(self, broker: int) -> dict[int, int]:
        """As all others know it."""
        found = {slot: [offset for offset, by in best if by != broker] for slot, best in self.best.items()}
        return {slot: offsets[0] for slot, offsets in found.items() if offsets}


def highest(parts: list[dict[int, int]]) -> dict[int, int]:
    found: dict[int, int] = {}
    for part in parts:
        for slot, offset in part.items():
            found[slot] = max(offset, found.get(slot, offset))
    return found


def stands_since(own: dict[int, int], log: dict[int, int], grace_s: int) -> int | None:
    """The slot since which the broker's offset has not changed, if the log passed it at least a grace period before its
    last heartbeat. A broker that only reported late reports the old offset in fewer than LEAST_REPORTS slots.
    """
    stretch: list[int] = []
    grace = -(-grace_s // 10) + 1
    for slot in sorted(own):
        if stretch and own[slot] != own[stretch[0]]:
            stretch = []
        stretch.append(slot)
        passed = [other for other, offset in log.items() if offset > own[slot] and stretch[0] <= other]
        if passed and slot - stretch[0] >= grace and slot - min(passed) >= grace:
            reports = [other for other in stretch if other > min(passed)]
            if len(reports) >= LEAST_REPORTS:
                return stretch[0]
    return None


def two_quorum_leaders_in_one_epoch(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    claims = context.claims("quorum_leader", group, *subject)
    for (where, partition, epoch, generation), stated in of_each_epoch(claims, group, context):
        first = {claim["leader"]: claim for claim in sorted(stated, key=lambda claim: claim.first, reverse=True)}
        if len(first) > 1:
            one_each = sorted(first.values(), key=lambda claim: claim.first)
            nodes = tuple(sorted(first))
            words = {"leaders": len(nodes), "who": and_list(number_list(nodes))}
            words |= {"epoch": epoch, "topic": where, "partition": partition}
            sides = (*map(first_of, one_each), last_of(max(stated, key=lambda claim: claim.last)))
            about = {"sides": sides, "brokers": nodes, "first_ns": one_each[1].first.ts_ns, "words": words}
            yield resting_on(stated, where, partition, epoch, generation, **about)


def quorum_epoch_went_back(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A server that named or accepted a leader, and later for long another leader of an older epoch."""
    announced = [claim for claim in context.claims("quorum_leader", group, *subject) if claim["api"] in FOLLOWED]
    generation_of, grace_ns = context.generations(group).of, context.settings.broker_grace_ns
    for (endpoint, partition, generation), claims in gathered(
        announced, lambda claim: (claim["endpoint"], claim["partition"], generation_of(claim))
    ):
        newest = max(claims, key=lambda claim: (claim["epoch"], claim.first))
        back = [
            claim for claim in claims
            if claim["epoch"] < newest["epoch"] and claim["leader"] != newest["leader"]
            and claim.last.ts_ns > newest.first.ts_ns + grace_ns and claim.last.ts_ns >= claim.first.ts_ns + grace_ns
        ]  # fmt: skip
        older = max(back, key=lambda claim: claim.last, default=None)
        if older is not None and context.surely_one(endpoint, newest.first.ts_ns, older.last.ts_ns):
            words = {"where": servers_of([older], context), "old": older["epoch"], "leader": older["leader"]}
            words |= {"epoch": newest["epoch"], "other": newest["leader"]}
            since_ns = max(newest.first.ts_ns, older.first.ts_ns)
            about = {"brokers": (older["leader"],), "first_ns": since_ns, "words": words}
            sides = (first_of(newest), *ends(back))
            yield resting_on(back, endpoint, partition, newest["epoch"], generation, sides=sides, **about)


FOLLOWED = frozenset(["BeginQuorumEpoch", "DescribeQuorum", "Fetch"])
"""Sent by a leader in its own epoch, or answered by a server with the epoch that it follows. Answers to the others may
name the epoch of the request.
"""


def voter_granted_twice(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    claims = context.claims("vote_granted", group, *subject)
    for (where, partition, epoch, generation), granted in of_each_epoch(claims, group, context):
        by_voter: dict[tuple[int | str, str | None], list[Claim]] = {}
        for claim in sorted(granted, key=lambda claim: claim.first):
            voter = claim["voter"] if claim["voter"] >= 0 else context.node(claim) or claim["endpoint"]
            by_voter.setdefault((voter, known(claim["directory"])), []).append(claim)
        for (voter, directory), votes in by_voter.items():
            other = next((vote for vote in votes if is_another(votes[0], vote)), None)
            if other is not None:
                who = and_list([str(candidate(vote)) for vote in (votes[0], other)])
                words = {"voter": voter, "epoch": epoch, "topic": where, "partition": partition, "who": who}
                about = {"sides": (first_of(votes[0]), first_of(other)), "first_ns": other.first.ts_ns, "words": words}
                key = (voter, directory, where, partition, epoch, generation)
                yield resting_on(votes, *key, brokers=if_broker(voter), **about)


def of_each_epoch(
    claims: list[Claim], group: Group, context: CheckContext
) -> Iterator[tuple[tuple[str, int, int, int], list[Claim]]]:
    """By topic, partition, epoch and generation of the log."""
    generations, found = context.generations(group), dict[tuple[str, int, int, int], list[Claim]]()
    for claim in claims:
        where = claim["name"] or (TOPIC_NAME if claim["topic_id"] == METADATA_LOG else claim["topic_id"])
        if where is not None:  # its bytes may not be captured
            found.setdefault((where, claim["partition"], claim["epoch"], generations.of(claim)), []).append(claim)
    yield from sorted(found.items())


def known(directory: str | None) -> str | None:
    return directory if directory not in {None, ZERO} else None


def is_another(vote: Claim, other: Claim) -> bool:
    """Whether the votes went to different candidates: another node, or another directory of one."""
    if vote["candidate"] != other["candidate"]:
        return True
    directories = known(vote["candidate_directory"]), known(other["candidate_directory"])
    return None not in directories and directories[0] != directories[1]


def candidate(vote: Claim) -> str:
    directory = known(vote["candidate_directory"])
    return f"{vote['candidate']}" + (f" (directory {directory})" if directory else "")
