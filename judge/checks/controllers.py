"""CTL, TID: controllers, leaders, replicas and node IDs, and requests that make a broker delete a replica.

Rule: epochs order everything, time only measures how long something lasts; single refusals are normal in every roll.
Requests to different brokers wait in different queues, so only what one receiver got twice is compared. Of partitions
only the latest epoch known anywhere counts, and only fetch sessions that were captured from their full fetch. A process
that ends and another that begins is a restart; only two that act at the same time, at one controller, for longer than
the session timeout are two.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, groupby, islice
from operator import attrgetter, itemgetter
from typing import Any

from wirecheck.client_ids import broker_of
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.metadata_log import at
from wirecheck.judge.checks.shapes import (
    about,
    answers_as,
    by_id_and_name,
    by_key,
    by_server,
    clients_of,
    clock,
    controllers_named,
    ends,
    gathered,
    lasting,
    of_id,
    requesters,
    resting_on,
    servers_of,
    slots,
    storm,
    stuck_client,
    whole,
)
from wirecheck.judge.checks.topic_ids import recreation
from wirecheck.judge.claims.claim import Claim, Key, Sighting, Subject, error_name, slot_of
from wirecheck.judge.claims.extract.drafts import DELETE
from wirecheck.judge.claims.extract.peers import DUPLICATE_BROKER_REGISTRATION
from wirecheck.judge.claims.kinds import FORWARDED
from wirecheck.judge.claims.outcomes import SLOT_NS, SUCCESS, Run
from wirecheck.judge.claims.overlaps import MOST_BESIDE, overlapping
from wirecheck.judge.results.finding import Evidence, Side, Time, first_of, last_of
from wirecheck.judge.streaks import Streak
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import CONTROL, REPORTS, name_of, topic_of
from wirecheck.judge.topology.clusters import Group
from wirecheck.judge.topology.endpoint_history import host_of

STALE_CONTROLLER_EPOCH, NOT_CONTROLLER, STALE_BROKER_EPOCH = 11, 41, 77
NOT_YET_NS = 1 << 63
DENIALS = (6, 75)
"""NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH."""
ORDERS = {"LeaderAndIsr", "UpdateMetadata", "StopReplica"}
ADMINISTRATION = ("CreateTopics", "DeleteTopics", "CreatePartitions")


def two_controllers(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    yield from two_that_order(subject, group, context)
    yield from two_that_accept(subject, group, context)


def two_that_order(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    orders = context.claims("control", group, *subject)
    sent = sending_times(orders)
    found: dict[tuple[int, int], list[tuple[Claim, Claim]]] = defaultdict(list)
    rivals, newer = rivals_of(orders, sent), newer_than(orders, context.settings.broker_grace_ns)
    for claim in orders:
        against = rivals.get(sender(claim)) or newer.get(id(claim))
        if against is not None and not (against["kraft"] and not claim["kraft"]):
            found[sender(claim)].append((claim, against))
    reported: set[tuple[object, ...]] = set()
    for (controller, epoch), pairs in sorted(found.items()):
        other = pairs[0][1]
        both = tuple(sorted({controller, other["controller"]}))
        if (both, epoch) in reported:
            continue
        reported.add((both, epoch))
        sides = tuple(side for claim, newer in pairs for side in (*ends([claim]), first_of(newer)))
        since_ns = min(max(claim.first.ts_ns, newer.first.ts_ns) for claim, newer in pairs)
        last_ns = sent[controller, epoch][-1]
        over = context.passed(last_ns + context.settings.broker_grace_ns)
        words = {"controller": controller, "epoch": epoch, "other": other["controller"]}
        words |= {"newer": other["controller_epoch"], "does": f"{'sent' if over else 'has sent'} requests"}
        words |= {"as": " with epoch ", "also": "has epoch "}
        words |= {"since": f"{'from' if over else 'since'} {clock(since_ns)}"}
        words |= {"until": f" until {clock(last_ns)}" if over else ""}
        claims = [claim for claim, _ in pairs]
        yield resting_on(claims, both, epoch, sides=sides, brokers=both, first_ns=since_ns, words=words)


def two_that_accept(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Nodes that both accept heartbeats of brokers all the time: of KRaft's controllers only the active one does."""
    accepted: dict[int, list[Claim]] = defaultdict(list)
    for claim in context.claims("heartbeat", group, *subject):
        if isinstance(node := context.node(claim), int):
            accepted[node].append(claim)
    times = {node: {slot for claim in claims for slot in at(claim)} for node, claims in accepted.items()}
    for one, other in islice(combinations(sorted(times), 2), MOST_BESIDE):
        begin, end = longest(sorted(times[one] & times[other]))
        lasts = (end - begin) * SLOT_NS >= context.settings.broker_grace_ns
        if not lasts or not are_listed_together(accepted[one], accepted[other], group, context):
            continue
        both = sorted((one, other), key=lambda node: (min(times[node]), node))
        claims = [claim for node in both for claim in accepted[node]]
        over = context.passed((end + 1) * SLOT_NS + context.settings.broker_grace_ns)
        since_ns = max(begin * SLOT_NS, *(min(c.first.ts_ns for c in accepted[node]) for node in both))
        words = {"controller": both[0], "other": both[1], "also": f"{'did' if over else 'has'} too", "newer": ""}
        words |= {"quorum": "yes"}
        words |= {"does": f"{'accepted' if over else 'has accepted'} heartbeats of brokers", "as": "", "epoch": ""}
        words |= {"since": f"{'from' if over else 'since'} {about(since_ns)}"}
        words |= {"until": f" until {about((end + 1) * SLOT_NS)}" if over else ""}
        brokers = tuple(sorted(both))
        yield resting_on(claims, brokers, "heartbeats", brokers=brokers, first_ns=since_ns, words=words)


def are_listed_together(one: list[Claim], other: list[Claim], group: Group, context: CheckContext) -> bool:
    """Whether the hosts of two servers are in one list of brokers, by more than the word of either: they may be of two
    clusters, of which no ID is known.
    """
    mine, theirs = ({host_of(claim["endpoint"]) for claim in claims} for claims in (one, other))
    listed: dict[str, set[str]] = defaultdict(set)
    for claim in context.claims("address", group, "server"):
        listed[host_of(claim["endpoint"])].add(host_of(claim["address"]))
    by = {lister for lister, hosts in listed.items() if hosts & mine and hosts & theirs}
    return bool(by - mine) and bool(by - theirs)


def longest(ordered: list[int]) -> tuple[int, int]:
    """The first and the last of the longest run of successive numbers, the latest if several are as long."""
    begin = before = ordered[0] if ordered else 0
    found = (begin, before)
    for one in ordered[1:]:
        begin = begin if one == before + 1 else one
        before = one
        if before - begin >= found[1] - found[0]:
            found = (begin, before)
    return found


def sender(claim: Claim) -> tuple[int, int]:
    """The controller and its epoch."""
    return claim["controller"], claim["controller_epoch"]


def sending_times(orders: Iterable[Claim]) -> dict[tuple[int, int], list[int]]:
    """Known times at which each controller sent requests in an epoch, ascending, in nanoseconds."""
    times: dict[tuple[int, int], list[int]] = defaultdict(list)
    for claim in orders:
        times[sender(claim)] += [claim.first.ts_ns, claim.last.ts_ns]
    return {one: sorted(found) for one, found in times.items()}


def overlap(one: list[int], other: list[int]) -> bool:
    """Whether each of two senders sent something between the first and the last request of the other. A controller
    that only sent before and after the other one is that of two ZooKeepers, one after the other.
    """
    pairs = ((one, other), (other, one))
    return all(bisect_left(times, span[0]) < bisect_right(times, span[-1]) for times, span in pairs)


def rivals_of(orders: list[Claim], sent: dict[tuple[int, int], list[int]]) -> dict[tuple[int, int], Claim]:
    """By controller and epoch the first accepted request of another controller in that epoch, while both sent some."""
    accepted: dict[int, dict[tuple[int, int], Claim]] = defaultdict(dict)
    for claim in orders:
        if claim["error"] == 0:
            accepted[claim["controller_epoch"]].setdefault(sender(claim), claim)
    found = {}
    for one, times in sent.items():
        for other, claim in islice(accepted[one[1]].items(), MOST_BESIDE):
            if other != one and overlap(times, sent[other]):
                found[one] = claim
                break
    return found


class Newer:
    """Accepted requests of higher epochs."""

    def __init__(self, orders: list[Claim]) -> None:
        self.first: Claim | None = None
        """The one that was seen first."""
        self.known_ns: dict[str, int] = {}
        """By receiver when it accepted the first of them."""
        self.lasts: list[Sighting] = []
        """When each was seen last, ascending."""
        self.since_ns = first_on_connections(orders)

    def add(self, claim: Claim) -> None:
        self.first = claim if self.first is None else min(self.first, claim, key=lambda one: one.first)
        endpoint = claim["endpoint"]
        self.known_ns[endpoint] = min(claim.first.ts_ns, self.known_ns.get(endpoint, claim.first.ts_ns))
        insort(self.lasts, claim.last)

    def unknown_to(self, claim: Claim, grace_ns: int) -> bool:
        """Whether they were sent before and after a receiver accepted this request, and the receiver had accepted none
        of them. A receiver that has accepted one rejects older epochs. If it accepts an older one later, epochs have
        started again, as in a ZooKeeper that lost its data, unless both controllers continue in turn, or the older one
        on its connection of before: then neither process has started again.
        """
        known_ns = self.known_ns.get(claim["endpoint"], claim.last.ts_ns)
        if self.since_ns[claim.last.connection] < known_ns < claim.last.ts_ns - grace_ns:
            return True
        for seen in (claim.first, claim.last):
            until_ns, later = seen.ts_ns - grace_ns, bisect_right(self.lasts, seen)
            if self.first is None or self.first.first.ts_ns >= until_ns or later == len(self.lasts):
                continue
            aware = self.known_ns.get(claim["endpoint"], until_ns) < until_ns
            if not aware or self.lasts[later] < claim.last:
                return True
        return False


def first_on_connections(orders: list[Claim]) -> dict[str, int]:
    """By connection when a controller was seen to send its first request there, of whatever kind."""
    found: dict[str, int] = {}
    for claim in orders:
        for seen in (claim.first, claim.last):
            found[seen.connection] = min(seen.ts_ns, found.get(seen.connection, seen.ts_ns))
    return found


def newer_than(orders: list[Claim], grace_ns: int) -> dict[int, Claim]:
    """By request, as its identity in memory, the first accepted one of a higher epoch that shows it to be outdated: its
    receiver rejected it for that, or did not know the higher epoch.
    """
    found, newer = {}, Newer(orders)
    for _, of_epoch in groupby(sorted(orders, key=epoch_of, reverse=True), key=epoch_of):
        same = [*of_epoch]
        for claim in same:
            refused = claim["error"] == STALE_CONTROLLER_EPOCH
            if newer.first is not None and (refused or newer.unknown_to(claim, grace_ns)):
                found[id(claim)] = newer.first
        for claim in same:
            if claim["error"] == 0:
                newer.add(claim)
    return found


def epoch_of(order: Claim) -> int:
    return int(order["controller_epoch"])


def epoch_regression(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    states = context.claims("partition", group, *subject)
    orders = (claim for claim in states if claim["source"] in CONTROL and claim["leader_epoch"] >= 0)
    for (partition,), claims in gathered(orders, "partition"):
        known = EpochsKnown(claims)
        pairs = [(higher, lower) for lower in claims if (higher := known.above(lower, context)) is not None]
        back = [lower for _, lower in pairs]
        if back and not turned_away(back, group, context):
            top, seen = max((pair[0] for pair in pairs), key=lambda found: (found[0]["leader_epoch"], found[1]))
            sides = (Side(seen, top.sentence()), *map(last_of, back))
            low, about = min(claim["leader_epoch"] for claim in back), of_id(subject, group, context)
            words = {"partition": partition, "high": top["leader_epoch"], "low": low}
            about["first_ns"] = min(max(lower.first.ts_ns, higher.first.ts_ns) for (higher, _), lower in pairs)
            yield Evidence((subject[1], partition), sides, **about, count=len(back), words=words)


class EpochsKnown:
    """The leader epochs of one partition that each broker was sent."""

    def __init__(self, claims: Iterable[Claim]) -> None:
        self.times: dict[str, list[int]] = defaultdict(list)
        self.highest: dict[str, list[tuple[Claim, Sighting]]] = defaultdict(list)
        """By broker's endpoint the highest one until each of these times."""
        sightings = ((seen, claim) for claim in claims for seen in (claim.first, claim.last))
        for seen, claim in sorted(sightings, key=itemgetter(0)):
            highest = self.highest[seen.server]
            self.times[seen.server].append(seen.ts_ns)
            is_higher = not highest or claim["leader_epoch"] >= highest[-1][0]["leader_epoch"]
            highest.append((claim, seen) if is_higher else highest[-1])

    def above(self, lower: Claim, context: CheckContext) -> tuple[Claim, Sighting] | None:
        """A higher epoch, of which the receiver of the last such request had known for longer than the grace period."""
        server, until_ns = lower.last.server, lower.last.ts_ns - context.settings.broker_grace_ns
        at = bisect_left(self.times[server], until_ns)
        found = self.highest[server][at - 1] if at else None
        return found if found is not None and found[0]["leader_epoch"] > lower["leader_epoch"] else None


def stale_broker_epoch_loop(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    activities = by_server(context.claims("activity", group, *subject), {STALE_BROKER_EPOCH})
    for claim, streak in lasting(activities, {STALE_BROKER_EPOCH}, None, context):
        refuses = claim["api"] in ORDERS
        sender = broker_of(claim["client_id"])
        if not refuses and (sender is None or not context.acts_as(sender, claim["host"], group)):
            continue  # a client's word about a broker
        broker = context.node(claim) if refuses else claim["client_id"]
        key = (broker, claim["client_id"]) if refuses else (broker,)
        brokers = (context.broker(claim) if refuses else sender,)
        yield stuck_client(claim, streak, *key, context=context, brokers=brokers, words={"broker": broker})


def two_leaders_same_epoch(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    states = [c for c in context.claims("partition", group, *subject) if c["leader"] >= 0 and c["leader_epoch"] >= 0]
    states += [claim for claim in context.claims("led", group, *subject) if claim["host"] in group.hosts]
    led = {(claim["partition"], claim["leader_epoch"], claim["leader"]) for claim in states}
    if len({place[:2] for place in led}) == len(led):
        return
    generation_of = context.generations(group).of
    for (partition, epoch, _), claims in gathered(
        states, lambda c: (c["partition"], c["leader_epoch"], generation_of(c))
    ):
        near = {claim["leader"] for claim in claims if is_near(claim)}
        believed = [claim for claim in claims if len(near) < 2 or not is_near(claim)]
        for first in of_one_list(believed, context):
            sides = tuple(first_of(claim) for _, claim in sorted(first.items()))
            columns = {**of_id(subject, group, context), "brokers": tuple(sorted(first)), "count": len(first)}
            columns["first_ns"] = sorted(claim.first.ts_ns for claim in first.values())[1]
            words = {"partition": partition, "epoch": epoch}
            yield Evidence((subject[1], partition, epoch), sides, **columns, words=words)


def of_one_list(claims: list[Claim], context: CheckContext) -> list[dict[int, Claim]]:
    """The leaders and their first claims, if they are several: of what servers state that list one another, and of what
    is stated elsewhere. Of several such lists, that one counts to which most clients get access: servers may know one
    another alone, and state anything about a cluster whose brokers do not list them.
    """
    if len({claim["leader"] for claim in claims}) < 2:
        return []
    context.watch()
    by_list: dict[str | None, list[Claim]] = defaultdict(list)
    for claim in claims:
        for own in {context.clusters.listed_with.get(host_of(seen.server)) for seen in (claim.first, claim.last)}:
            by_list[own].append(claim)
    unlisted = by_list.pop(None, [])
    most = max((context.clients_by_list[own] for own in by_list if own), default=0)
    counted = [one for own, found in by_list.items() if own and context.clients_by_list[own] == most for one in found]
    if sum(context.clients_by_list[own] == most for own in by_list if own) > 1:
        counted = []
    first = {claim["leader"]: claim for claim in sorted([*counted, *unlisted], key=attrgetter("first"), reverse=True)}
    return [first] if len(first) > 1 else []


def is_near(claim: Claim) -> bool:
    """Whether a client was given a server without a replica beside it. Servers that share one storage, as WarpStream's
    agents, give each client one near it (diskless topics, KIP-1163, too), whichever the controller knows.
    """
    if claim.kind == "led" or claim["source"] not in REPORTS:
        return False
    return {*claim["replicas"].split(",")} == {str(claim["leader"])}


def isr_stuck(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    answers = context.claims("replica_answer", group, *subject)
    streaks = {id(claim): streak for claim, streak in lasting(answers, {100, 3}, {"AlterPartition"}, context)}
    for (partition,), claims in gathered((claim for claim in answers if id(claim) in streaks), "partition"):
        first_ns = min(streaks[id(claim)].first_ns for claim in claims)
        words = {"partition": partition, **requesters(claims, group, context)}
        about = {**of_id(subject, group, context), "client_ids": clients_of(claims)}
        yield resting_on(claims, subject[1], partition, **about, first_ns=first_ns, words=words)


def directory_assignment_unknown(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    answers = context.claims("replica_answer", group, *subject)
    for claim, streak in lasting(answers, {100, 3, 6}, {"AssignReplicasToDirs"}, context):
        who = claim["client_id"]
        columns = {**of_id(subject, group, context), "count": streak.count, "first_ns": streak.first_ns}
        words = {"broker": who, **requesters([claim], group, context)}
        yield resting_on([claim], who, subject[1], **columns, client_ids=(who,), words=words)


def turned_away(orders: list[Claim], group: Group, context: CheckContext) -> bool:
    """Whether a controller sent these requests whose other requests brokers rejected. That is CTL001, and harmless
    here.
    """
    context.watch()
    control = context.claims("control", group, "server")
    refused = {(c["controller"], c["controller_epoch"]) for c in control if c["error"] == STALE_CONTROLLER_EPOCH}
    stale = [claim for claim in control if (claim["controller"], claim["controller_epoch"]) in refused]
    return all(any(claim.first <= order.last <= claim.last for claim in stale) for order in orders)


def replica_set_contradiction(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    states = context.claims("partition", group, *subject)
    ordered = any(claim["source"] in DECIDES for claim in states)
    for (partition,), claims in gathered(states, "partition") if ordered else ():
        last = max(claims, key=lambda claim: (claim["leader_epoch"], claim.first))
        rules = [*broken_rules(last)] if last["source"] in DECIDES else []
        if rules and context.passed(last.first.ts_ns + context.settings.broker_grace_ns):
            for rule in rules:
                words = {"partition": partition, "rule": BROKEN[rule]}
                yield resting_on([last], subject[1], partition, rule, **of_id(subject, group, context), words=words)


DECIDES = (*CONTROL, "metadata-log")
"""Sources that say what a partition is to be; all others repeat it."""
BROKEN = {
    "replica-listed-twice": "a replica is listed twice",
    "isr-outside-replicas": "the ISR has brokers that are not replicas",
    "leader-outside-isr": "the leader is not in the ISR",
}
"""What is wrong with a partition's replicas in words."""


def broken_rules(claim: Claim) -> Iterator[str]:
    replicas, isr = claim["replicas"].split(","), claim["isr"].split(",") if claim["isr"] else []
    if len(set(replicas)) < len(replicas):
        yield "replica-listed-twice"
    if set(isr) - set(replicas):
        yield "isr-outside-replicas"
    if claim["leader"] >= 0 and str(claim["leader"]) not in isr:
        yield "leader-outside-isr"


def not_controller_loop(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    answers = by_server(context.claims("activity", group, *subject), {NOT_CONTROLLER})
    for claim, streak in lasting(answers, {NOT_CONTROLLER}, ADMINISTRATION, context):
        words = {"api": claim["api"], "server": servers_of([claim], context), **requesters([claim], group, context)}
        yield stuck_client(claim, streak, *subject[1:], context.node(claim), context=context, words=words)


def leader_denies_leadership(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    name = name_of(subject, group, context)
    fenced, denials = (by_id_and_name(kind, subject, name, group, context) for kind in ("fenced", "denies"))
    if not fenced and not denials:
        return
    present = [*present_denials(subject, group, context)]
    yield from present
    found = {evidence.key[1:] for evidence in present}
    refused = [claim for claim in fenced if claim["error"] in DENIALS]
    for where, stretches in former_denials(subject, refused, group, context).items():
        if where not in found:
            claims, streaks, leads = (list(each) for each in zip(*stretches, strict=True))
            about = {"topic": name, "topic_ids": (subject[1],), "count": sum(streak.count for streak in streaks)}
            about |= {"first_ns": min(streak.first_ns for streak in streaks)}
            about |= {"last_ns": max(streak.last_ns for streak in streaks)}
            sides = (first_of(leads[0]), *ends(claims))
            yield denial(claims, leads[0], subject[1], about=about, sides=sides)


def present_denials(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Those of leaders in the highest epoch known that serve nothing of the partition since."""
    name, grace_ns = name_of(subject, group, context), context.settings.broker_grace_ns
    denials, served = (by_id_and_name(kind, subject, name, group, context) for kind in ("denies", "serves"))
    states, served_at = latest(context.claims("partition", group, *subject)), by_key(served, "partition endpoint")
    for (partition, endpoint), claims in gathered(denials, "partition endpoint"):
        state = states.get(partition)
        broker = context.broker(max(claims, key=lambda claim: claim.last))
        if state is None or broker is None or state[0]["leader"] != broker:
            continue
        here = [claim.peak["latest"] for claim in served_at.get((partition, endpoint), ())]
        since = max([min(claim.first.ts_ns for claim in state), *here])
        late = [claim for claim in claims if claim.last.ts_ns > since + grace_ns and not (here and spans(claim, since))]
        still = max(claim.last.ts_ns for claim in state) > since + grace_ns
        early = min(max(claim.first.ts_ns, since) for claim in claims)
        lasted = bool(late) and max(c.last.ts_ns for c in late) - early >= grace_ns
        if still and lasted and sum(c.count for c in late) >= context.settings.stuck_answers:
            sides = (first_of(state[0]), last_of(state[-1]), *ends(late))
            about = {"topic": name, "topic_ids": (subject[1],), "first_ns": early}
            yield denial(late, state[0], subject[1], about=about, sides=sides)


def spans(denied: Claim, ts_ns: int) -> bool:
    """Whether the same was answered before, at and after a time at which the partition was served to others: then it is
    what one client asks that is wrong, such as the leader epoch of a former topic, and not the broker.
    """
    slot = ts_ns // SLOT_NS
    return {slot - 1, slot, slot + 1} <= {*slots(denied.tally)}


def denial(
    claims: list[Claim], state: Claim, topic_id: str, about: dict[str, Any], sides: tuple[Side, ...]
) -> Evidence:
    partition, broker, since = state["partition"], state["leader"], clock(about["first_ns"])
    words = {"partition": partition, "broker": broker, "epoch": state["leader_epoch"], "since": since}
    asked = {f"{c['api'] if c.kind == 'denies' else c.last.api} {error_name(c['error'])}" for c in claims}
    words["errors"] = ", ".join(sorted(asked))
    return resting_on(claims, topic_id, partition, broker, sides=sides, brokers=(broker,), **about, words=words)


Stretch = tuple[Claim, Streak, Claim]
"""The requests of a client that were rejected, from when to when, and who was the leader then."""


def former_denials(
    subject: Subject, refused: list[Claim], group: Group, context: CheckContext
) -> dict[tuple[int, int], list[Stretch]]:
    """By partition and broker the clients that it refused while it was named as the leader, whatever came later."""
    found: dict[tuple[int, int], list[Stretch]] = {}
    states = context.by("partition", "partition", group, *subject)
    name = name_of(subject, group, context)
    served = by_id_and_name("serves", subject, name, group, context) if refused else []
    served_at = by_key(served, "partition endpoint")
    for (partition,), claims in gathered(refused, "partition"):
        about_it = states.get((partition,), [])
        ends = Ends(about_it)
        for (leader,), named in gathered(about_it, "leader"):
            answered = [(claim, answers_as(leader, [claim], context)) for claim in claims]
            terms = [denials_in_epoch(same, ends, answered, context) for _, same in gathered(named, "leader_epoch")]
            stretches = [
                one
                for term in terms
                for one in term
                if not succeeded(*one[:2], group, context) and not served_others(*one[:2], served_at)
            ]
            if stretches:
                found[partition, leader] = stretches
    return found


def denials_in_epoch(
    named: list[Claim], ends: "Ends", answered: list[tuple[Claim, list[Run]]], context: CheckContext
) -> list[Stretch]:
    """`named`: the partition's leader of one epoch."""
    settings, epoch = context.settings, named[0]["leader_epoch"]
    begin_ns, last_ns = named[0].first.ts_ns, max(one.last_word.ts_ns for one in named)
    end_ns = ends.of(epoch)
    found = []
    for claim, answers in answered:
        streak = storm(run for run in answers if begin_ns <= run.first_ns and run.last_ns <= end_ns)
        lasted = min(streak.seconds, (last_ns - streak.first_ns) / SECOND_NS) >= settings.stuck_s
        if lasted and streak.count >= settings.stuck_answers:
            found.append((claim, streak, named[0]))
    return found


class Ends:
    """When each leader epoch of a partition had ended: a higher one was stated. `states`: all that is known of it."""

    def __init__(self, states: Iterable[Claim]) -> None:
        first: dict[int, int] = {}
        for one in states:
            epoch = one["leader_epoch"]
            first[epoch] = min(one.first.ts_ns, first.get(epoch, NOT_YET_NS))
        self.epochs = sorted(first)
        self.until_ns = [*accumulate((first[epoch] for epoch in reversed(self.epochs)), min)][::-1]
        """By epoch when it or a higher one was stated first."""

    def of(self, epoch: int) -> int:
        at = bisect_right(self.epochs, epoch)
        return self.until_ns[at] if at < len(self.epochs) else NOT_YET_NS


def succeeded(refused: Claim, streak: Streak, group: Group, context: CheckContext) -> bool:
    """Whether the same client wrote or read the partition, or by an ID the topic at that broker, meanwhile."""
    context.watch()
    client_id, host, name, topic_id = (refused[word] for word in ("client_id", "host", "name", "topic_id"))
    if topic_id is None:
        answers = context.by("name", "named_answer", group, "client", client_id or "", host)
        mine = answers.get((name,), [])
        runs = (run for claim in mine for run in claim.outcomes.runs({SUCCESS}, refused["partition"]))
        return any(streak.first_ns < run.last_ns and run.first_ns < streak.last_ns for run in runs)
    uses = context.by("client_id host endpoint", "use", group, "id", topic_id)
    same = uses.get((client_id, host, refused["endpoint"]), [])
    good = (run for claim in same for run in claim.outcomes.runs({SUCCESS}))
    return any(streak.first_ns < run.last_ns and run.first_ns < streak.last_ns for run in good)


def served_others(refused: Claim, streak: Streak, served_at: Mapping[Key, list[Claim]]) -> bool:
    """Whether the broker served the partition to anyone meanwhile."""
    here = served_at.get((refused["partition"], refused["endpoint"]), [])
    times = [ts_ns for claim in here for ts_ns in (claim.first.ts_ns, claim.peak["latest"])]
    within = range(streak.first_ns // SLOT_NS + 1, streak.last_ns // SLOT_NS)
    by_slot = (slot_of(name) for claim in here for name in claim.peak)
    return any(streak.first_ns < ts_ns < streak.last_ns for ts_ns in times) or any(slot in within for slot in by_slot)


def latest(states: list[Claim]) -> dict[int, list[Claim]]:
    """The claims with the highest epoch of each partition, by their first sighting."""
    highest: dict[int, list[Claim]] = {}
    for claim in states:
        known = highest.setdefault(claim["partition"], [])
        if known and claim["leader_epoch"] > known[0]["leader_epoch"]:
            known.clear()
        if not known or claim["leader_epoch"] == known[0]["leader_epoch"]:
            known.append(claim)
    return highest


def replica_never_fetches(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    states = latest(context.claims("partition", group, *subject))
    if not states:
        return
    deleted_ns = min((claim.first.ts_ns for claim in context.claims("deletion", group, *subject)), default=1 << 63)
    asked = context.by("broker partition", "follows", group, *subject)
    for partition, state in sorted(states.items()):
        newest = max(state, key=lambda claim: (claim.last, repr(claim.key))) if len(state) > 1 else state[0]
        if newest["replicas"] == newest["isr"]:
            continue
        replicas = set(newest["replicas"].split(",")) - set(newest["isr"].split(",")) - {str(newest["leader"])}
        for replica in sorted(replicas):
            if not replica.isdigit() or newest["leader"] < 0:
                continue
            sessions = context.claims("follower", group, "follower", replica)
            sessions = [one for one in sessions if context.acts_as(int(replica), one["host"], group)]
            hosts = {session["host"] for session in sessions}
            mine = [claim for claim in asked.get((int(replica), partition), ()) if claim["host"] in hosts]
            here = [session for session in sessions if context.broker(session) == newest["leader"]]
            context.watch()
            since, session = silent_at(newest, mine, here, context)
            if since is not None and session is not None and session.last.ts_ns < deleted_ns:
                found = silent(name_of(subject, group, context), newest, int(replica), since, session)
                missed = missed_recreation(found, subject, group, context)
                yield replace(found, words={**found.words, **missed})


def missed_recreation(found: Evidence, subject: Subject, group: Group, context: CheckContext) -> dict[str, Time]:
    """When the topic was recreated while the replica's broker was away, if it was: brokers stated that the replica was
    offline, and it has never been in the ISR under the new ID, as one that is there at the creation is.
    """
    _, partition, replica = found.key
    of_replica = {str(replica)}
    offline = context.by("partition", "offline", group, *subject).get((partition,), [])
    away = any(of_replica <= {*one["offline"].split(",")} for one in offline)
    states = context.by("partition", "partition", group, *subject).get((partition,), [])
    if found.topic is None or not away or any(of_replica <= {*one["isr"].split(",")} for one in states):
        return {}
    topic = topic_of(found.topic, group, context)
    born_ns = [
        new.born_ns
        for old, new in topic.changes
        if new.topic_id == subject[1] and recreation(topic, old, new) is not None and topic.follows(old, new)
    ]
    return {"recreated": clock(born_ns[0])} if born_ns else {}


def silent_at(
    state: Claim, asked: list[Claim], sessions: list[Claim], context: CheckContext
) -> tuple[int | None, Claim | None]:
    """Since when one host's sessions lack the partition, and the last of them: what one host did hides no other's."""
    for _, here in gathered(sessions, "host"):
        if (since := silent_since(state, asked, here, context)) is not None:
            return since, max(here, key=lambda session: session.last)
    return None, None


def silent_since(state: Claim, asked: list[Claim], mine: list[Claim], context: CheckContext) -> int | None:
    """Since when a replica fetches from the leader without this partition; None if that is not known.

    A session is known from its full fetch. Where a claim was split because its endpoint moved to another cluster, the
    last full fetch may be later than the first part. How that part's session began is not known.
    """
    if not mine or any(not 0 <= claim.peak["full"] <= claim.last.ts_ns for claim in mine):
        return None
    full = max(claim.peak["full"] for claim in mine)
    last = max((claim.last.ts_ns for claim in asked), default=0)
    if last >= min(claim.peak["full"] for claim in mine if claim.last.ts_ns >= full):
        return None
    since = max(full, state.first.ts_ns)
    grace_ns = context.settings.broker_grace_ns
    alive = max(claim.last.ts_ns for claim in mine) >= since + grace_ns
    return since if alive and state.last.ts_ns >= since + grace_ns else None


def silent(name: str | None, state: Claim, replica: int, since: int, session: Claim) -> Evidence:
    text = f"broker {replica} fetches others from broker {state['leader']}, and this one never"
    sides = (*ends([state]), Side(session.last, text))
    words = {field: state[field] for field in ("partition", "leader", "isr")} | {"since": clock(since)}
    key, words = (state["topic_id"], state["partition"], replica), {**words, "broker": replica}
    return Evidence(key, sides, name, key[:1], brokers=(replica,), first_ns=since, words=words)


def full_leader_and_isr_strays_replica(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    fulls = context.claims("full_order", group, "server")
    states = [claim for claim in context.claims("partition", group, *subject) if claim["source"] in CONTROL]
    if states:
        context.watch()
    if not fulls or not states or context.claims("deletion", group, *subject):
        return
    name = name_of(subject, group, context)
    if name is None:
        return
    orders = context.by("partition endpoint", "ordered", group, "name", name)
    for partition, claims in sorted(latest(states).items()):
        for full in fulls:
            broker = context.broker(full)
            before = [claim for claim in claims if claim.first < full.last and has(claim, broker)]
            here = orders.get((partition, full["endpoint"]), [])
            own = [order for order in here if order["topic_id"] == subject[1]]
            now = [order for order in here if order["how"] == "full" and order.last.ts_ns >= full.last.ts_ns]
            if not before or len(before) < len(claims) or any(order in own for order in now) or was_deleted(own, full):
                continue
            if not context.passed(full.last.ts_ns + context.settings.broker_grace_ns):
                continue
            ended = topic_of(name, group, context).deletions  # one that names no ID may have come before the order
            if any(one["topic_id"] is None and one.first.ts_ns <= full.last.ts_ns for one in ended):
                continue
            about: dict[str, Any] = {
                "topic": name,
                "brokers": (broker,),
                "words": {"partition": partition, "broker": broker},
            }
            yield strayed(subject[1], full, before, own, now, **about)


def strayed(
    topic_id: str,
    full: Claim,
    before: list[Claim],
    own: list[Claim],
    now: list[Claim],
    *,
    words: dict[str, Any],
    **about: Any,
) -> Evidence:
    """A replica that a full order leaves out. `before`: what made it a replica; `own`: orders to the broker that name
    the topic ID; `now`: full orders since then that name another.
    """
    sides = (first_of(own[0] if own else before[0]), last_of(full), *map(last_of, now))
    ids = (topic_id, *sorted({order["topic_id"] for order in now}))
    reason = f"names it with ID {now[0]['topic_id']}" if now else "does not name it"
    listed_ns = max([order.last.ts_ns for order in own if order["how"] == "full"] + [before[0].first.ts_ns])
    since_ns = full.first.ts_ns if full.first.ts_ns > listed_ns else full.last.ts_ns
    key = (topic_id, words["partition"], words["broker"], "other-id" if now else "absent")
    words = {**words, "reason": reason, "time": clock(full.last.ts_ns)}
    return Evidence(key, sides, topic_ids=ids, first_ns=since_ns, words=words, **about)


def order_type_breaks_draft(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A first LeaderAndIsr that is not FULL, of a controller that took over while the broker was captured; and types
    that the draft does not have. By its absence a type says nothing.
    """
    types = context.claims("order_type", group, *subject)
    for (kind, by), claims in gathered((c for c in types if c["type"] > TYPE_FULL), "type by"):
        words = {"who": controllers_named([by]), "what": f"of type {kind}, which the draft does not have"}
        yield resting_on(claims, by, kind, brokers=(controller_of(by),), words=words)
    for (endpoint,), claims in gathered(types, "endpoint"):
        firsts = {by: min(same, key=lambda one: one.first) for (by,), same in gathered(claims, "by")}
        orders = [claim for claim in context.claims("control", group, *subject) if claim["endpoint"] == endpoint]
        for by, first in sorted(firsts.items()):
            before = [one for one in orders if one["controller_epoch"] < epoch_in(by) and one.first < first.first]
            if first["type"] != TYPE_INCREMENTAL or not before or has_earlier(by, first, orders):
                continue
            last = max(before, key=lambda one: one.first)
            if whole(last.first.ts_ns, first.first.ts_ns, group, context):
                words = {
                    "who": controllers_named([by]),
                    "what": "that is INCREMENTAL as its first: by the draft it is FULL",
                }
                about = {"brokers": (controller_of(by),), "first_ns": first.first.ts_ns, "words": words}
                yield resting_on([first], by, endpoint, sides=(last_of(last), first_of(first)), **about)


TYPE_INCREMENTAL, TYPE_FULL = 1, 2


def controller_of(by: str) -> int:
    return int(by.partition("@")[0])


def epoch_in(by: str) -> int:
    return int(by.partition("@")[2])


def has_earlier(by: str, first: Claim, orders: list[Claim]) -> bool:
    """Whether the controller sent the broker LeaderAndIsr before, without a type."""
    mine = (one for one in orders if f"{one['controller']}@{one['controller_epoch']}" == by)
    return any(one["api"].startswith("LeaderAndIsr") and one.first < first.first for one in mine)


def topic_created_by_another_broker(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Creations that a broker of ZooKeeper's time granted for long, though it never acted as the controller. What a
    controller does is seen by several brokers.
    """
    orders = [claim for claim in context.claims("control", group, *subject) if claim["error"] == 0]
    granted = context.claims("creates", group, *subject)
    if not granted or any(claim["kraft"] for claim in orders) or len({c["endpoint"] for c in orders}) < SEVERAL:
        return
    controllers = {claim["controller"] for claim in orders}
    for claim in granted:
        node = context.node(claim)
        lasts_ns = claim.last.ts_ns - claim.first.ts_ns
        if isinstance(node, int) and node not in controllers and lasts_ns >= context.settings.broker_grace_ns:
            newest = max(orders, key=lambda one: (one["controller_epoch"], one.last))
            words = {"where": node, "controller": newest["controller"]}
            about = {"brokers": (node,), "first_ns": claim.first.ts_ns, "words": words}
            yield resting_on([claim], node, sides=(*ends([claim]), last_of(newest)), **about)


SEVERAL = 2


def was_deleted(own: list[Claim], full: Claim) -> bool:
    """Whether the last order before this list of all partitions had the broker delete its replica."""
    earlier = [order for order in own if order.last < full.last]
    return bool(earlier) and max(earlier, key=lambda order: order.last)["how"] == DELETE


def has(claim: Claim, broker: int | None) -> bool:
    return str(broker) in claim["replicas"].split(",")


def stop_replica_contradiction(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    stops = context.claims("stopped", group, *subject)
    if not stops:
        return
    context.watch()
    histories = topic_of(subject[1], group, context).histories
    partitions = {one.topic_id: by_key(one.partitions, "partition leader_epoch") for one in histories}
    for stop in stops:
        broker = context.broker(stop)
        history = next((one for one in reversed(histories) if one.born_ns <= stop.first.ts_ns), None)
        after = stop.first.ts_ns + context.settings.broker_grace_ns
        partition, epoch = stop["partition"], stop["leader_epoch"]
        back = [
            claim
            for claim in (partitions[history.topic_id].get((partition, epoch), ()) if history else ())
            if claim["source"] in CONTROL and has(claim, broker) and claim.last.ts_ns > after
        ]
        if history and back and not turned_away(back, group, context):
            words = {"partition": partition, "broker": broker, "epoch": epoch, "time": clock(stop.first.ts_ns)}
            key, sides = (subject[1], partition, broker), (first_of(stop), *map(last_of, back))
            about: dict[str, Any] = {"brokers": (broker,), "count": len(back)}
            about["first_ns"] = min(max(stop.first.ts_ns, claim.first.ts_ns) for claim in back)
            yield Evidence(key, sides, subject[1], (history.topic_id,), **about, words=words)


def unclean_leader_election(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for (partition,), claims in gathered(context.claims("unclean", group, *subject), "partition"):
        last = max(claims, key=lambda claim: claim.peak["offset"])
        words = {"leader": last["leader"], "partition": partition, "time": clock(last.first.ts_ns)}
        words["more"] = f" ({len(claims)} elections)" if len(claims) > 1 else ""
        asked = who_asked(name_of(subject, group, context), partition, last.first.ts_ns, group, context)
        words["asked_by_client"] = f", which {asked['client_id'] or 'a client'} requested" if asked else ""
        about = {**of_id(subject, group, context), "brokers": tuple(claim["leader"] for claim in claims)}
        sides = (*map(first_of, claims), *((first_of(asked),) if asked else ()))
        yield Evidence((subject[1], partition), sides, **about, count=len(claims), words=words)


AT_ONCE_NS = 10_000_000_000
"""An election that a client requests is made, and read by brokers, within this time of the response."""


def who_asked(name: str | None, partition: int, at_ns: int, group: Group, context: CheckContext) -> Claim | None:
    """The request for an unclean election that was granted for this partition."""
    requests = context.by("partition", "election_asked", group, "name", name) if name is not None else {}
    near = [
        claim
        for claim in requests.get((partition,), ())
        if min(abs(seen.ts_ns - at_ns) for seen in (claim.first, claim.last)) <= AT_ONCE_NS
    ]
    clients = {claim["client_id"] for claim in near}
    return max(near, key=lambda claim: claim["how"] == FORWARDED) if len(clients) == 1 else None


def log_directory_offline(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for (broker,), claims in gathered(context.claims("offline_dirs", group, *subject), "broker"):
        words = {"node": broker, "directories": max(claim["directories"] for claim in claims)}
        words["time"] = clock(min(claim.first for claim in claims).ts_ns)
        yield resting_on(claims, broker, brokers=(broker,), words=words)


@dataclass(frozen=True)
class Process:
    first: Sighting
    last: Sighting
    accepted_ns: int
    """When the controller accepted something of it last; 0 for never."""
    address: str
    evidence: str
    epoch: int = -1
    """-1 if no request was accepted."""

    @property
    def text(self) -> str:
        return f"{self.address or self.first.client} (connection from {self.last.client})"


def node_id_used_twice(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    timeout_ns = context.settings.session_timeout_s * SECOND_NS
    found: dict[int, list[tuple[Process, Process]]] = defaultdict(list)
    for broker, early, late in side_by_side(subject, group, context):
        both_ns = min(early.last.ts_ns, late.last.ts_ns) - max(early.first.ts_ns, late.first.ts_ns)
        if both_ns > timeout_ns and not went_back(early, late, timeout_ns):
            found[broker].append((early, late))
    for broker, pairs in sorted(found.items()):
        early, late = max(pairs, key=lambda pair: (min(pair[0].last.ts_ns, pair[1].last.ts_ns), pair[1].first))
        holder, other = sorted((early, late), key=lambda one: one.accepted_ns, reverse=True)
        sides = tuple(Side(seen, one.evidence) for pair in pairs for one in pair for seen in (one.first, one.last))
        since = min(max(one.first.ts_ns for one in pair) for pair in pairs)
        words = {"node": broker, "since": clock(since), "holder": holder.text, "other": other.text}
        yield Evidence((broker,), sides, brokers=(broker,), count=len(pairs) + 1, first_ns=since, words=words)


def side_by_side(subject: Subject, group: Group, context: CheckContext) -> Iterator[tuple[int, Process, Process]]:
    """Processes of one node ID at one controller: two with broker epochs, or one with an epoch and those that are
    refused while it acts. A refused process may be restarted again and again, each time as another incarnation.
    """
    registered = context.claims("registration", group, *subject)
    refused = context.by("error broker endpoint", "registration", group, *subject)
    for (broker, endpoint), processes in sorted(acting(registered, subject, group, context).items()):
        yield from ((broker, early, late) for early, late in overlapping(processes))
        here = refused.get((DUPLICATE_BROKER_REGISTRATION, broker, endpoint), [])
        here = [claim for claim in here if speaks_as(broker, claim, group, context)]
        for holder in processes:
            rejected = here[bisect_left(here, holder.first, key=begun) : bisect_right(here, holder.last, key=begun)]
            if rejected:
                first = min(claim["incarnation"] for claim in rejected)
                text = f"incarnation {first} of node {broker} is refused: DUPLICATE_BROKER_REGISTRATION (101)"
                yield broker, holder, process(rejected, 0, rejected, text)


begun = attrgetter("first")


def acting(
    registered: list[Claim], subject: Subject, group: Group, context: CheckContext
) -> dict[tuple[int, str], list[Process]]:
    """By node ID and controller the processes that have a broker epoch, ordered by their first request."""
    found: dict[tuple[int, str], list[Process]] = defaultdict(list)
    registered_with: dict[tuple[int, int], list[Claim]] = defaultdict(list)
    for claim in registered:
        if claim["error"] == 0:
            registered_with[claim["broker"], claim.peak["epoch"]].append(claim)
    with_epoch = (
        claim
        for claim in context.claims("broker_epoch", group, *subject)
        if claim["epoch"] >= 0 and speaks_as(claim["broker"], claim, group, context)
    )
    for (broker, endpoint, epoch), claims in gathered(with_epoch, "broker endpoint epoch"):
        good = registered_with.get((broker, epoch), [])
        accepted_ns = max((claim.last.ts_ns for claim in claims if claim["error"] == 0), default=0)
        text = f"node {broker} acts with broker epoch {epoch}"
        found[broker, endpoint].append(replace(process(claims, accepted_ns, good, text), epoch=epoch))
    return {place: sorted(processes, key=lambda one: (one.first, one.last)) for place, processes in found.items()}


def speaks_as(node: int, request: Claim, group: Group, context: CheckContext) -> bool:
    """Whether a request, accepted or not, is of a process with the node ID. Any host can send one that is refused."""
    return context.was_granted(node, request["host"], group) or context.acts_as(node, request["host"], group)


def went_back(one: Process, other: Process, timeout_ns: int) -> bool:
    """Whether the controller accepted the lower epoch when the higher one was over: its log started over or lost
    records (LOG004, LOG005), and the node had one epoch twice.
    """
    lower, higher = sorted((one, other), key=lambda process: process.epoch)
    return lower.epoch >= 0 and lower.accepted_ns > higher.last.ts_ns + timeout_ns


def process(claims: list[Claim], accepted_ns: int, registered: list[Claim], text: str) -> Process:
    addresses = ", ".join(sorted({claim["address"] for claim in registered}))
    return Process(min(c.first for c in claims), max(c.last for c in claims), accepted_ns, addresses, text)
