"""What a check gets besides its subject: the ledger, the clusters, the settings and the watermark.

Rule: a check calls `passed` and never compares times with the watermark itself, so a result that waits is never
forgotten. A control request without a captured response counts once its sender is known (`counts`), whenever that
happens.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from wirecheck.decode.log.log_order import COMMITTED, PENDING, LogOrder
from wirecheck.judge.agents import AgentFrontiers
from wirecheck.judge.bounded_work import FEW, NOTHING, Omitted, bounded
from wirecheck.judge.claims.claim import Claim, Key, Subject, merged
from wirecheck.judge.claims.kinds import UNANSWERED
from wirecheck.judge.ledger.failures import GENERATIONS, SORTING, Failure, Failures, failure
from wirecheck.judge.ledger.ledger import Ledger, in_order
from wirecheck.judge.thresholds import Settings
from wirecheck.judge.topology.clusters import Clusters, Group
from wirecheck.judge.topology.endpoint_history import host_of
from wirecheck.judge.topology.forwarding import Forwarding
from wirecheck.judge.topology.log_generations import LogGenerations, generations_of
from wirecheck.judge.topology.unauthenticated_hosts import UnauthenticatedHosts

CONTROL = "control"
OF_A_NAME = frozenset({"binding", "absence", "creation", "deletion", "partition", "unnumbered", "advertised"})
"""Kinds of claims about topics that do not count for an address that leads to two clusters in turn."""
OF_LOG = ("log_order", "log_epoch", "log_diverged", "registration", "heartbeat")
STALE_CONTROLLER_EPOCH, NOT_SEEN = 11, -1


@dataclass
class Filed:
    """One subject of the ledger, as checks ask for it."""

    groups: list[Group] = field(default_factory=list)
    claims: dict[tuple[int, str], list[Claim]] = field(default_factory=dict)
    """By group and kind, in the order of their first sighting."""
    omitted: dict[int, Omitted] = field(default_factory=dict)
    """By group what is not among the claims, where there is too much."""
    waits: bool = False
    """Entries of the metadata log in it are not yet known to be committed."""
    unverified: set[str] = field(default_factory=set)
    """Hosts that made claims about it and to which nothing was granted so far. Whether their claims count may change.
    """

    def bound(self, subject: Subject) -> None:
        """Hold apart so much of its history as can be compared."""
        if subject[0] not in {"name", "id"} or max(map(len, self.claims.values()), default=0) <= FEW:
            return
        by_group: dict[int, dict[str, list[Claim]]] = {}
        for (group, kind), claims in self.claims.items():
            by_group.setdefault(group, {})[kind] = claims
        for group, claims_of in by_group.items():
            omitted = bounded(subject, claims_of)
            if omitted is not NOTHING:
                self.omitted[group] = omitted
                self.claims |= {(group, kind): claims for kind, claims in claims_of.items()}


class CheckContext:
    def __init__(
        self,
        ledger: Ledger,
        clusters: Clusters,
        settings: Settings,
        watermark_ns: int,
        unauthenticated_hosts: UnauthenticatedHosts | None = None,
        *,
        failures: Failures | None = None,
        agents: AgentFrontiers | None = None,
        forwarding: Forwarding | None = None,
        clocks: Mapping[str, str] | None = None,
    ) -> None:
        self.ledger, self.clusters, self.settings, self.watermark_ns = ledger, clusters, settings, watermark_ns
        self.unauthenticated_hosts = unauthenticated_hosts or UnauthenticatedHosts(ledger)
        self.forwarding = forwarding or Forwarding()
        """Whose requests come a second time, out of a proxy: they count for whom the proxy received them from."""
        self.due: dict[Subject, int] = {}
        """Subjects that wait for the watermark, with the earliest time they wait for."""
        self.pending: set[Subject] = set()
        """Subjects that wait for the high watermark of the metadata log, or that read other subjects than their
        neighbours.
        """
        self.logs: dict[tuple[int, int], LogOrder] = {}
        """By group and generation of its metadata log."""
        self.log_generations: dict[int, LogGenerations] = {}
        self.known_senders: dict[int, set[str]] = {}
        self.accepted_from: dict[int, set[str]] | None = None
        """By group the hosts of which a control request was accepted, once they were asked for."""
        self.agents = agents if agents is not None else AgentFrontiers({}, settings.agent_silent_s)
        """How far each agent has shown its traffic, and whether it has ended."""
        self.clocks = clocks or {}
        """By capture file its clock, where nothing shows how far that is from those of others."""
        self.subject: Subject = ()
        self.failed: list[Failure] = []
        """The exceptions about the current subject."""
        self.failures = failures if failures is not None else Failures()
        """Everything that cannot be judged now."""
        self.filed: dict[Subject, Filed] = {}
        self.words: dict[Subject, frozenset[str]] = {}
        """What is filed about topic names and IDs that were asked for so far."""
        self.topics: dict[tuple[str, int], Any] = {}
        """The topics that were looked up so far (`topic_of`)."""
        self.topic_logs: dict[tuple[str, int], Any] = {}
        """What the current subject's checks asked for of the logs of topics (`log_of`)."""
        self.uses: dict[tuple[int, str], dict[tuple[str | None, str, str], list[Claim]]] = {}
        """By group and topic ID its uses by client ID, address and API, once a table has asked for them."""
        self.indexes: dict[tuple[Any, ...], dict[Key, list[Claim]]] = {}
        """Claims by fields of their keys (`by`)."""
        self.of_logs: dict[int, list[Claim]] | None = None
        """By group its claims about the metadata log, once they were asked for."""
        self.asked_controllers: dict[Subject, set[str] | None] = {}
        """Of clients that a check has asked for, what they asked controllers for that do not answer it."""
        self.writers: dict[str, list[Subject]] | None = None
        """Clients that write to each name, once a check has asked for them."""

    def passed(self, due_ns: int) -> bool:
        """Whether capture time has passed this time. If not, the current subject is judged again once it has."""
        if self.watermark_ns >= due_ns:
            return True
        self.due[self.subject] = min(due_ns, self.due.get(self.subject, due_ns))
        return False

    def with_clocks_apart(self) -> "CheckContext":
        """The context of the current subject for what was captured by several of these clocks."""
        found = copy(self)
        found.settings, found.topics, found.topic_logs = self.settings.with_clocks_apart(), {}, {}
        return found

    def watch(self) -> None:
        """The current subject reads more than its neighbours: judge it again whenever there is news of any server."""
        self.pending.add(self.subject)

    def claims(self, kind: str, group: Group, *subject: str) -> list[Claim]:
        """One kind of claims about a subject, made inside one group, by their first sighting."""
        filed = self.filed.get(subject)
        if filed is None or filed.waits or filed.unverified:
            filed = self.filed_for(subject)
        return filed.claims.get((id(group), kind), [])

    def omitted(self, group: Group, *subject: str) -> Omitted:
        """What of a subject's history in a cluster is not among its claims."""
        return self.filed_for(subject).omitted.get(id(group), NOTHING)

    def by(self, fields: str, kind: str, group: Group, *subject: str) -> dict[Key, list[Claim]]:
        """`claims` by fields of their keys: gone through once, however many look one up."""
        return self.index((fields, kind, id(group), subject), self.claims(kind, group, *subject), fields)

    def stated_by(self, kind: str, endpoint: str) -> list[Claim]:
        """One kind of claims about servers, in any cluster, of one endpoint."""
        return self.anywhere("endpoint", kind, "server").get((endpoint,), [])

    def anywhere(self, fields: str, kind: str, *subject: str) -> dict[Key, list[Claim]]:
        """One kind of claims about a subject, in any cluster, by fields of their keys."""
        place = (fields, kind, subject)
        found = self.indexes.get(place)
        return self.index(place, self.ledger.claims(kind, *subject), fields) if found is None else found

    def index(self, place: tuple[Any, ...], claims: list[Claim], fields: str) -> dict[Key, list[Claim]]:
        if place not in self.indexes:
            found: dict[Key, list[Claim]] = {}
            names = fields.split()
            for claim in claims:
                found.setdefault(tuple(claim[name] for name in names), []).append(claim)
            self.indexes[place] = found
        return self.indexes[place]

    def groups(self, subject: Subject) -> list[Group]:
        """The groups with claims about a subject, in a stable order."""
        return self.filed_for(subject).groups

    def believed(self, subject: Subject, *kinds: str) -> list[Claim]:
        """Some kinds of claims about a subject, in any cluster, without those of unauthenticated hosts."""
        return [
            claim
            for claim in self.ledger.claims_of(*subject).values()
            if claim.kind in kinds
            and not self.forwarding.is_back_leg(claim)
            and not self.unauthenticated_hosts.silenced(claim, self.unauthenticated_hosts.speaker(claim))
        ]

    def filed_for(self, subject: Subject) -> Filed:
        """A subject's claims for the current one, which is judged again once one of their hosts is authenticated or
        more of the metadata log is known to be committed.
        """
        filed = self.filed.get(subject) or self.filed_in(subject)
        if filed.waits or filed.unverified:
            if filed.waits:
                self.pending.add(self.subject)
            self.unauthenticated_hosts.rests(filed.unverified, self.subject)
        return filed

    def counts(self, order: Claim, group: Group) -> bool:
        """Whether a control request that was rejected, or whose response was not captured, belongs to the cluster. It
        does if its sender is known there, or if its receiver was never seen to answer anything, as in a capture of one
        direction.
        """
        if order["host"] in self.senders(group):
            return True
        if order.kind == CONTROL and order["error"] != NOT_SEEN:
            return bool(order["error"] == STALE_CONTROLLER_EPOCH and not group.listed)
        return self.clusters.silent(order.server())

    def senders(self, group: Group) -> set[str]:
        """Hosts that may send control requests in a cluster: its brokers and controllers, as far as their addresses are
        known, and hosts whose requests it accepted.
        """
        if self.accepted_from is None:
            self.accepted_from = {}
            for claim in self.of_members(CONTROL):
                for other, _ in self.clusters.parts(claim) if claim["error"] == 0 else ():
                    self.accepted_from.setdefault(id(other), set()).add(claim["host"])
        if id(group) not in self.known_senders:
            self.known_senders[id(group)] = self.accepted_from.get(id(group), set()) | group.hosts
        return self.known_senders[id(group)]

    def filed_in(self, subject: Subject) -> Filed:
        """A subject's claims by group and kind: sorted once, however many checks ask."""
        filed = self.filed.get(subject)
        if filed is None:
            filed = Filed()
            groups: dict[int, Group] = {}
            late: set[tuple[int, str]] = set()
            doubted = self.unauthenticated_hosts.any_doubted and subject[0] != "host"
            one_way = not (self.forwarding.through or self.clusters.disputed)
            for claim in in_order(self.ledger.claims_of(*subject).values()):
                try:
                    believed = one_way and not (doubted and self.unauthenticated_hosts.may_silence(claim))
                    only = self.clusters.only_group_of(claim) if believed else None
                    if only is not None and "offset" not in claim.peak and not ordered(claim):  # as almost all are
                        groups[id(only)] = only
                        filed.claims.setdefault((id(only), claim.kind), []).append(claim)
                        continue
                    for group, stated in self.sorted_into(claim, subject, filed):
                        groups[id(group)] = group
                        if ordered(claim):
                            late.add((id(group), stated.kind))
                except Exception as error:  # noqa: BLE001 - a claim that nobody can place does not hide the others
                    self.failed.append(failure(SORTING, subject, error, seen=[claim.last]))
            for place in late & filed.claims.keys():
                filed.claims[place] = in_order(merged(claim.copy() for claim in filed.claims[place]))
            if not self.clusters.alone:
                filed.claims = {kind: in_order(claims) for kind, claims in filed.claims.items()}
            filed.bound(subject)
            filed.groups = sorted(groups.values(), key=lambda group: (group.key, group.endpoints))
            self.filed[subject] = filed  # whole, or, where this raises, not at all
        return filed

    def sorted_into(self, claim: Claim, subject: Subject, filed: Filed) -> Iterator[tuple[Group, Claim]]:
        """The groups in which a claim was made, each with its part of the claim. A claim of an unauthenticated host
        belongs to none, nor does a control request whose sender may not send it.
        """
        if self.unauthenticated_hosts.any_doubted and subject[0] != "host":
            host = self.unauthenticated_hosts.speaker(claim)
            if host is not None:
                filed.unverified.add(host)
            if self.unauthenticated_hosts.silenced(claim, host):
                return
        if self.forwarding.is_back_leg(claim):
            return
        disputed = self.clusters.disputed
        if disputed and claim.kind in OF_A_NAME and claim.server() in disputed:
            return
        for group, part in self.clusters.parts(claim):
            stated = part
            if ordered(part):
                filed.waits = True
                if not self.counts(part, group):
                    continue
                stated = answered(part)
            fate = COMMITTED
            if "offset" in stated.peak:  # an entry of the metadata log, in the generation in which it was written
                order = self.log(group, self.generations(group).born(stated))
                offset, epoch = np.array([stated.peak["offset"]]), np.array([stated.peak["epoch"]])
                fate = int(order.fates(offset, epoch)[0])
            filed.waits |= fate == PENDING
            if fate == COMMITTED:
                filed.claims.setdefault((id(group), stated.kind), []).append(stated)
            yield group, stated

    def log(self, group: Group, generation: int) -> LogOrder:
        """The order of a cluster's metadata log in one of its generations, as far as it is known."""
        if (id(group), generation) not in self.logs:
            order = self.logs[id(group), generation] = LogOrder()
            for claim in self.of_log(group):
                if claim.kind == "log_order":
                    order.merge(order_of(claim))
                elif claim.kind == "log_diverged" and claim["diverging_epoch"] < claim["epoch"]:
                    order.diverged(claim["diverging_epoch"], claim["end_offset"])
            generations = self.generations(group)
            if generations.current:  # offsets of one generation say nothing of another
                order.starts, order.ends = generations.starts(generation), {}
                order.markers = order.aborted_alone()
        return self.logs[id(group), generation]

    def generations(self, group: Group) -> LogGenerations:
        if id(group) not in self.log_generations:
            mixed = any(self.clusters.in_group(twin, group) for twin in self.clusters.two_logs)
            try:
                found = LogGenerations(mixed=True) if mixed else generations_of(self.of_log(group))
            except Exception as error:  # noqa: BLE001 - one odd claim about a log does not stop the judge
                found = LogGenerations()
                self.failures.add(failure(GENERATIONS, (GENERATIONS, group.key), error, cluster=group.key))
            self.log_generations[id(group)] = found
        return self.log_generations[id(group)]

    def of_log(self, group: Group) -> list[Claim]:
        """A cluster's claims about the metadata log, by kind."""
        if self.of_logs is None:
            self.of_logs = {}
            for kind in OF_LOG:
                for claim in self.of_members(kind):
                    for other, part in self.clusters.parts(claim):
                        self.of_logs.setdefault(id(other), []).append(part)
        return self.of_logs.get(id(group), [])

    def of_members(self, kind: str) -> Iterator[Claim]:
        """One kind of claims about servers, without those about servers that no member names."""
        yield from filter(self.of_member, self.ledger.claims(kind, "server"))

    def of_member(self, claim: Claim) -> bool:
        """Whether a server's claim is not that of one that no member names."""
        return claim["endpoint"] not in self.unauthenticated_hosts.unlisted

    @cached_property
    def clients_by_list(self) -> Counter[str]:
        """By the smallest host of those that broker lists connect, to how many other hosts these granted something."""
        listed, found = self.clusters.listed_with, Counter[str]()
        for _, host in self.ledger.subjects("host"):
            peers = () if host in listed else self.ledger.claims("peer", "host", host)
            granted = {listed.get(host_of(peer["endpoint"])) for peer in peers if peer.peak["granted"]}
            found.update(one for one in granted if one is not None)
        return found

    def generation_facts(self) -> list[tuple[str, tuple[object, ...]]]:
        """The logs that have more than one generation, and since when."""
        self.failures.forget(GENERATIONS)
        every = ((group.endpoints[0], self.generations(group).facts()) for group in self.clusters.groups)
        return sorted((endpoint, facts) for endpoint, facts in every if facts)

    def broker(self, claim: Claim) -> int | None:
        """The broker that made, or received, a claim."""
        return self.clusters.broker(claim.server(), claim.last.ts_ns)

    def named_at(self, broker: int, host: str, group: Group) -> bool:
        """Whether the cluster's brokers name this host as that broker's."""
        return (broker, host) in self.clusters.named_hosts.get(id(group), ())

    def surely_one(self, endpoint: str, first_ns: int, last_ns: int) -> bool:
        """Whether an endpoint belonged to one cluster during all of that time. Where several clusters are known, it
        must have stated its cluster ID before and after. Otherwise its address may have been another cluster's in
        between.
        """
        if len({group.cluster_id for group in self.clusters.groups} - {None}) < 2:
            return True
        self.watch()
        stated = self.stated_by("cluster_id", endpoint)
        return any(claim.first.ts_ns <= first_ns and last_ns <= claim.last.ts_ns for claim in stated)

    def acts_as(self, broker: int, host: str, group: Group) -> bool:
        """Whether a host is that broker's: brokers list it, or a fetch with the broker's replica ID was granted to it.
        A client ID, or a replica ID that was rejected, proves nothing.
        """
        self.watch()
        sessions = self.claims("follower", group, "follower", str(broker))
        return self.named_at(broker, host, group) or any(
            session["host"] == host and session.peak.get("granted") == 1 for session in sessions
        )

    def was_granted(self, node: int, host: str, group: Group) -> bool:
        """Whether a controller granted a host that node ID: it accepted a registration or a request of that node from
        it. A request that is refused speaks for its sender alone.
        """
        place = 0, node, host
        kinds = ("registration", "broker_epoch")
        return any(place in self.by("error broker host", kind, group, "server") for kind in kinds)

    def node(self, claim: Claim) -> int | str:
        """The broker that made, or received, a claim; the host where no broker is known there."""
        return self.clusters.node_at(claim.server(), claim.last.ts_ns)


def ordered(claim: Claim) -> bool:
    """Whether a claim comes from a control request that no broker was seen to accept."""
    return claim.kind.startswith(UNANSWERED) or (claim.kind == CONTROL and claim["error"] != 0)


def answered(claim: Claim) -> Claim:
    """What a control request without a captured response states, as if it had been accepted."""
    if claim.kind == CONTROL:
        return claim
    kind, key = claim.kind.removeprefix(UNANSWERED), claim.key[:-1]
    return Claim(kind, key, claim.first, claim.last, count=claim.count, tally=claim.tally, peak=claim.peak)


def order_of(claim: Claim) -> LogOrder:
    """The order of a log from a claim's peaks. Offsets are stored as negative numbers, so that the lowest is the
    greatest.
    """
    order = LogOrder(claim.peak["high_watermark"])
    parts: dict[str, dict[int, Any]] = {"start": order.starts, "end": order.ends, "mark": order.markers}
    for name, value in claim.peak.items():
        part, _, number = name.partition(":")
        if part in parts:
            parts[part][int(number)] = tuple(value) if part == "mark" else -value
    return order
