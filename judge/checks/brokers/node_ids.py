"""CTL: one node ID, two processes.

Knows: the broker epochs of heartbeats, the registrations that gave them, and how long a controller waits for a silent
broker. Does not know messages.
Rule: a process that ends and another that begins is a restart, whatever their epochs are; only two that act beside each
other, at one controller, for longer than the session timeout are two. Which of two clusters a controller is of is not
asked here: one controller's word is enough.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import clock, gathered
from wirecheck.judge.claims.claim import Claim, Sighting, Subject
from wirecheck.judge.results.finding import Evidence, Side
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group

DUPLICATE_BROKER_REGISTRATION = 101


@dataclass(frozen=True)
class Process:
    first: Sighting
    last: Sighting
    accepted_ns: int
    """When the controller accepted something of it last; 0 for never."""
    address: str
    said: str
    epoch: int = -1
    """-1 where none was accepted."""

    @property
    def text(self) -> str:
        return f"the process at {self.address or self.first.client} (connection from {self.last.client})"


def node_id_used_twice(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. Two processes use one node ID at the same time for longer than the session timeout. Heartbeats of an
    older broker epoch continue after a newer one began. Or registrations fail with DUPLICATE_BROKER_REGISTRATION (101)
    while the registered process is active.

    Why it matters. Each process can take over the registration while the other is silent. Both accept writes and follow
    leaders as the same replica. A leader counts what one has as what the other has, and records are lost. Restarting
    one while the other runs only moves the registration.

    False positives. A session timeout that was raised far above 9 s. A restart does not count, even if it gets 101
    until the killed process's session ends; nor does a pause of one process. An epoch that begins again because the
    metadata log was formatted or restored does not count either (LOG004, LOG005).

    Source. KIP-631; ClusterControlManager.registerBroker and BrokerLifecycleManager of Kafka 4.3.
    """
    timeout_ns = context.settings.session_timeout_s * SECOND_NS
    found: dict[int, list[tuple[Process, Process]]] = defaultdict(list)
    for (broker, _), processes in sorted(by_controller(subject, group, context).items()):
        for number, early in enumerate(processes):
            for late in processes[number + 1 :]:
                both_ns = min(early.last.ts_ns, late.last.ts_ns) - max(early.first.ts_ns, late.first.ts_ns)
                if both_ns > timeout_ns and not went_back(early, late, timeout_ns):
                    found[broker].append((early, late))
    for broker, pairs in sorted(found.items()):
        early, late = max(pairs, key=lambda pair: (min(pair[0].last.ts_ns, pair[1].last.ts_ns), pair[1].first))
        holder, other = sorted((early, late), key=lambda one: one.accepted_ns, reverse=True)
        sides = tuple(Side(seen, one.said) for pair in pairs for one in pair for seen in (one.first, one.last))
        since = min(max(one.first.ts_ns for one in pair) for pair in pairs)
        words = {"node": broker, "since": clock(since), "holder": holder.text, "other": other.text}
        yield Evidence((broker,), sides, brokers=(broker,), count=len(pairs) + 1, first_ns=since, words=words)


def by_controller(subject: Subject, group: Group, context: CheckContext) -> dict[tuple[int, str], list[Process]]:
    """By node ID and controller the processes that spoke to it, by the first word of each."""
    found: dict[tuple[int, str], list[Process]] = defaultdict(list)
    registered = context.claims("registration", group, *subject)
    acting = context.claims("broker_epoch", group, *subject)
    for (broker, endpoint, epoch), claims in gathered(acting, "broker endpoint epoch"):
        good = [c for c in registered if c["broker"] == broker and c["error"] == 0 and c.peak["epoch"] == epoch]
        accepted_ns = max((claim.last.ts_ns for claim in claims if claim["error"] == 0), default=0)
        said = f"node {broker} acts with broker epoch {epoch}"
        found[broker, endpoint].append(replace(process(claims, accepted_ns, good, said), epoch=epoch))
    refused = (claim for claim in registered if claim["error"] == DUPLICATE_BROKER_REGISTRATION)
    for (broker, endpoint, incarnation), claims in gathered(refused, "broker endpoint incarnation"):
        said = f"incarnation {incarnation} of node {broker} is refused: DUPLICATE_BROKER_REGISTRATION (101)"
        found[broker, endpoint].append(process(claims, 0, claims, said))
    return {place: sorted(found[place], key=lambda one: (one.first, one.last, one.said)) for place in sorted(found)}


def went_back(one: Process, other: Process, timeout_ns: int) -> bool:
    """Whether the controller accepted the lower epoch when the higher one was over: its log started over or lost
    records (LOG004, LOG005), and the node had one epoch twice.
    """
    lower, higher = sorted((one, other), key=lambda process: process.epoch)
    return lower.epoch >= 0 and lower.accepted_ns > higher.last.ts_ns + timeout_ns


def process(claims: list[Claim], accepted_ns: int, registered: list[Claim], said: str) -> Process:
    addresses = ", ".join(sorted({claim["address"] for claim in registered}))
    return Process(min(c.first for c in claims), max(c.last for c in claims), accepted_ns, addresses, said)
