"""CLU: which cluster a node or an endpoint belongs to.

Knows what a node presents and what an endpoint states. Does not know how endpoints are joined (`clusters.py`).
Rule: two ids within one time contradict each other; one after the other, an address was given away.
"""

from collections import defaultdict
from collections.abc import Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.results.finding import Evidence, first_of, last_of
from wirecheck.judge.topology.clusters import Group


def cluster_id_mismatch(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Finds. A node that presents another ClusterId than the server's and is answered INCONSISTENT_CLUSTER_ID (104), or
    an endpoint that states two ClusterIds within one time.

    Why it matters. The node was formatted for another cluster, or points at the wrong one: it can never join, and if it
    could it would mix both.

    When it is innocent. An address that was given to another cluster later is a new incarnation, not a contradiction.

    Source. KIP-595; KIP-78; KafkaRaftClient of Kafka 4.3.
    """
    refused: dict[tuple[str | None, str], list[Claim]] = defaultdict(list)
    for claim in context.claims("cluster_refused", group, *subject):
        refused[claim["client_id"], claim["cluster_id"]].append(claim)
    for (client_id, theirs), claims in sorted(refused.items(), key=str):
        ids = sorted({theirs, group.cluster_id or "unknown"})
        yield Evidence(
            (ids, client_id),
            tuple(side for claim in claims for side in (first_of(claim), last_of(claim))),
            client_ids=(client_id,),
            count=sum(claim.count for claim in claims),
            words={"who": client_id, "theirs": theirs, "ours": group.cluster_id or "another"},
        )
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
