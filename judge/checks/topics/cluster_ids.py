"""CLU: which cluster a node or an endpoint belongs to.

Knows what a node presents and what an endpoint states. Does not know how endpoints are joined (`clusters.py`).
Rule: two ids within one time contradict each other; one after the other, an address was given away.
"""

from collections import defaultdict
from collections.abc import Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.clock import clock
from wirecheck.judge.checks.shapes import gathered, resting_on
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.results.finding import Evidence, first_of, last_of
from wirecheck.judge.topology.clusters import Group
from wirecheck.judge.topology.membership import carried


def cluster_id_mismatch(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A node sends another cluster ID than the server's and gets INCONSISTENT_CLUSTER_ID (104). Or an endpoint
    reports two cluster IDs during the same time.

    Why it matters. The node was formatted for another cluster, or connects to the wrong one. It can never join.

    False positives. An address that was given to another cluster later is CLU004.

    Source. KIP-595; KIP-78; KafkaRaftClient of Kafka 4.3.
    """
    for (client_id, theirs), claims in gathered(
        context.claims("cluster_refused", group, *subject),
        lambda claim: (claim["client_id"], claim["cluster_id"] or "unknown"),  # its bytes may not be kept
    ):
        ids = sorted({theirs, group.cluster_id or "unknown"})
        words = {"who": client_id, "theirs": theirs, "ours": group.cluster_id or "another"}
        yield resting_on(claims, ids, client_id, client_ids=(client_id,), words=words)
    yield from two_stated(subject, group, context)


def two_stated(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    stated: dict[str, list[Claim]] = defaultdict(list)
    for claim in context.ledger.claims("cluster_id", *subject):
        if claim["how"] != "accepted" and claim["endpoint"] in group.endpoints:
            stated[claim["endpoint"]].append(claim)
    for endpoint, claims in sorted(stated.items()):
        for number, one in enumerate(claims):
            for other in claims[number + 1 :]:
                overlap = one["cluster_id"] != other["cluster_id"] and other.first.ts_ns < one.last.ts_ns
                if overlap and group.cluster_id == other["cluster_id"]:
                    yield Evidence(
                        (sorted((one["cluster_id"], other["cluster_id"])), endpoint),
                        (first_of(one), last_of(one), first_of(other)),
                        count=one.count + other.count,
                        words={"who": endpoint, "theirs": one["cluster_id"], "ours": other["cluster_id"]},
                    )


def address_changed_cluster(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. An address reported one cluster ID and, since some time, reports another. A virtual IP or proxy was
    switched, or nodes were formatted for another cluster.

    Why it matters. Clients keep the topic IDs of the former cluster. Their fetches fail with UNKNOWN_TOPIC_ID until
    they refresh metadata. wirecheck does not compare versions and topics of the two clusters.

    False positives. Normal if the switch was planned. An address that alternates between two clusters is CLU001.

    Source. KIP-78; KIP-516.
    """
    stated = context.ledger.claims("cluster_id", *subject)
    for endpoint, before, after in context.clusters.handovers():
        if after.group is not group or subject != ("server",):
            continue
        mine = [claim for claim in stated if claim["endpoint"] == endpoint]
        old = [claim for claim in mine if claim["cluster_id"] == before.group.cluster_id]
        new = [claim for claim in mine if claim["cluster_id"] == after.group.cluster_id]
        carries = [claim for claim in context.ledger.claims("carries", *subject) if claim["endpoint"] == endpoint]
        ids = {topic_id for _, topic_id, since_ns in carried(carries) if since_ns < after.since_ns}
        if old and new:
            until = max(claim.last.ts_ns for claim in old)
            yield Evidence(
                (endpoint,),
                (last_of(max(old, key=lambda claim: claim.last)), first_of(min(new, key=lambda claim: claim.first))),
                topic_ids=tuple(sorted(ids)),
                first_ns=after.since_ns,
                words={
                    "endpoint": endpoint,
                    "former": before.group.cluster_id,
                    "latter": after.group.cluster_id,
                    "since": clock(after.since_ns),
                    "until": clock(until),
                },
            )


def two_clusters_share_an_id(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. Two active clusters have one cluster ID. One leader epoch of the metadata log begins twice, at two
    endpoints that both continue to lead. Or one broker number reports two IDs for one topic name at two endpoints, for
    30 s or more, and their broker lists share no address.

    Why it matters. The disks of a cluster were copied, or two deployments use one fixed cluster ID. Nodes that reach
    the wrong cluster are accepted there. The two are shown as two clusters if their broker lists have different
    addresses.

    False positives. None known. Listeners, proxies and addresses alone never count, because a broker reports one ID at
    all of them. A log that was formatted again has its two beginnings one after the other (LOG005).

    Source. KIP-595; KIP-78.
    """
    shown: set[int] = set()
    for twin in context.clusters.twins:
        first, second = twin.shown_by
        other = id(context.clusters.of(twin.other, second.first.ts_ns))
        if twin.one not in group.endpoints or subject != ("server",) or other in shown:
            continue
        shown.add(other)
        yield Evidence(
            (twin.one, twin.other),
            (first_of(first), first_of(second)),
            first_ns=max(first.first.ts_ns, second.first.ts_ns),
            words={"one": twin.one, "other": twin.other, "what": twin.what},
        )
