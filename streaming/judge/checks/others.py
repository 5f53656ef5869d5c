"""CLU, GRP, DRF, WIR, VIS: cluster ids, groups, draft dialects, answers that fit no request, silent agents.

Knows single rules about single claims. Does not know messages.
Rule: who asked wrongly is named, not who answered.
"""

from collections import defaultdict
from collections.abc import Iterator

from streaming.judge.checks.topic_id_uses import end_of
from streaming.judge.checks.wire import gathered, sides, whole
from streaming.judge.claim import Cell, Claim
from streaming.judge.clusters import Group
from streaming.judge.evidence import Evidence, Side, first_of, last_of
from streaming.judge.extract.errors import DRAFT_CODES
from streaming.judge.scene import Scene
from streaming.judge.times import clock
from streaming.judge.topic import name_of

EXTRA_TAG = "kafka with an extra"
"""A dialect that is a release's but for one tag."""


def cluster_id_mismatch(cell: Cell, group: Group, scene: Scene) -> Iterator[Evidence]:
    """Finds. A node that presents another ClusterId than the server's and is answered INCONSISTENT_CLUSTER_ID (104), or
    an endpoint that states two ClusterIds within one time.

    Why it matters. The node was formatted for another cluster, or points at the wrong one: it can never join, and if it
    could it would mix both.

    When it is innocent. An address that was given to another cluster later is a new incarnation, not a contradiction.

    Source. KIP-595; KIP-78; KafkaRaftClient of Kafka 4.3.
    """
    refused: dict[tuple[str | None, str], list[Claim]] = defaultdict(list)
    for claim in scene.claims("cluster_refused", group, *cell):
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
    yield from two_stated(cell, group, scene)


def two_stated(cell: Cell, group: Group, scene: Scene) -> Iterator[Evidence]:
    stated: dict[str, list[Claim]] = defaultdict(list)
    for claim in scene.ledger.claims("cluster_id", *cell):
        if claim["how"] != "accepted" and claim["endpoint"] in group.endpoints:
            stated[claim["endpoint"]].append(claim)
    for endpoint, claims in sorted(stated.items()):
        for number, one in enumerate(claims):
            for other in claims[number + 1 :]:
                if one["cluster_id"] != other["cluster_id"] and other.first.ts_ns < one.last.ts_ns:
                    yield Evidence(
                        (sorted((one["cluster_id"], other["cluster_id"])), endpoint),
                        (first_of(one), last_of(one), first_of(other)),
                        count=one.count + other.count,
                        words={"who": endpoint, "theirs": one["cluster_id"], "ours": other["cluster_id"]},
                    )


def group_assigns_dead_id(cell: Cell, group: Group, scene: Scene) -> Iterator[Evidence]:
    """Finds. A group whose coordinator hands out partitions of a topic id later than the grace after it was deleted.

    Why it matters. The members are told to read a topic that no longer exists.

    When it is innocent. Within the grace: the coordinator hears of a deletion some seconds later.

    Source. KIP-848; GroupMetadataManager of Kafka 4.3.
    """
    assigned = scene.claims("assigned", group, *cell)
    ended = end_of(cell, group, scene) if assigned else None
    if ended is None:
        return
    name, side = ended
    by_group: dict[str, list[Claim]] = defaultdict(list)
    for claim in assigned:
        if claim.last.ts_ns >= side.sighting.ts_ns + scene.settings.broker_grace_ns:
            by_group[claim["group"]].append(claim)
    for who, claims in sorted(by_group.items()):
        yield Evidence(
            (who, cell[1]),
            (side, *(last_of(claim) for claim in claims)),
            topic=name,
            topic_ids=(cell[1],),
            count=sum(claim.count for claim in claims),
            words={"group": who, "ended": clock(side.sighting.ts_ns)},
        )


def group_describe_contradicts_binding(cell: Cell, group: Group, scene: Scene) -> Iterator[Evidence]:
    """Finds. A group description that pairs a topic's id with another name than the one it is bound to.

    Why it matters. An id has one name for ever: the coordinator's image of the metadata is corrupt.

    When it is innocent. Never inside one cluster.

    Source. KIP-848; KIP-516.
    """
    name = name_of(cell, group, scene)
    for claim in scene.claims("described", group, *cell):
        if name is not None and claim["name"] != name:
            yield Evidence(
                (claim["group"], claim["name"], cell[1]),
                (first_of(claim), last_of(claim)),
                topic=name,
                topic_ids=(cell[1],),
                count=claim.count,
                words={"group": claim["group"], "said": claim["name"]},
            )


def draft_dialect(cell: Cell, group: Group, scene: Scene) -> Iterator[Evidence]:
    """Finds. A connection whose messages only read by the layouts of a draft of KIP-516 or KIP-4; or one whose messages
    read as released, but for a tag of 16 bytes per topic where the draft has its topic id.

    Why it matters. It is no released Kafka: a fork, or a test. What it says is judged all the same.

    When it is innocent. Always, if one knows of it. A proxy may add tags of its own.

    Source. KIP-516 and KIP-4 as drafted.
    """
    claims = scene.claims("dialect", group, *cell)
    drafted = {(claim["host"], claim["endpoint"]) for claim in claims if not claim["dialect"].startswith(EXTRA_TAG)}
    for claim in claims:
        if claim["dialect"].startswith(EXTRA_TAG) and (claim["host"], claim["endpoint"]) in drafted:
            continue  # the draft's own messages that a release reads too
        yield Evidence(
            (claim["host"], claim["endpoint"], claim["dialect"]),
            (first_of(claim), last_of(claim)),
            count=claim.count,
            words={"host": claim["host"], "server": claim["endpoint"], "dialect": claim["dialect"]},
        )


def draft_error_code(cell: Cell, group: Group, scene: Scene) -> Iterator[Evidence]:
    """Finds. An error code of 1001 to 1009, which only the draft of KIP-4 used. As visibility: another code that is
    above those of Kafka 4.4.

    Why it matters. Clients do not know these codes and take them for an unknown server error.

    When it is innocent. A fork that kept them. Other codes are those of a Kafka newer than this release, or of another
    server: what they mean was not read.

    Source. KIP-4 as drafted; error codes of Kafka 4.4.
    """
    for claim in scene.claims("draft_code", group, *cell):
        drafted = claim["error"] in DRAFT_CODES
        yield Evidence(
            (claim["endpoint"], claim["error"]),
            (first_of(claim), last_of(claim)),
            count=claim.count,
            kind=None if drafted else "visibility",
            words={
                "server": claim["endpoint"],
                "error": claim["error"],
                "api": claim["api"],
                "whose": "only a draft of KIP-4 had" if drafted else "no release up to 4.4 has",
            },
        )


def response_without_request(cell: Cell, group: Group, scene: Scene) -> Iterator[Evidence]:
    """Finds. A response whose correlation id matches no request, on a connection seen from its beginning and without a
    gap on the request's side.

    Why it matters. Client and broker have lost count of each other; a proxy may have mixed two clients up.

    When it is innocent. Never then: what was not seen is excluded.

    Source. Kafka protocol guide, "Network".
    """
    yield from strays("response without request", cell, group, scene)


def correlation_id_out_of_order(cell: Cell, group: Group, scene: Scene) -> Iterator[Evidence]:
    """Finds. A response that answers another request than the oldest open one.

    Why it matters. Brokers answer in the order of the requests; a client that relies on it takes one answer for
    another.

    When it is innocent. Never on one connection. Ids need not grow: SASL repeats them at every re-authentication.

    Source. Kafka protocol guide, "Network"; KIP-368.
    """
    yield from strays("response out of order", cell, group, scene)


def strays(what: str, cell: Cell, group: Group, scene: Scene) -> Iterator[Evidence]:
    certain = [c for c in scene.claims("stray", group, *cell) if c["what"] == what and whole(c, scene)]
    for claims in gathered(certain, lambda claim: (claim["host"], claim["endpoint"])):
        host, endpoint = claims[0]["host"], claims[0]["endpoint"]
        yield Evidence(
            (host, endpoint),
            sides(claims),
            count=sum(claim.count for claim in claims),
            words={"host": host, "server": endpoint},
        )


def agent_silent(cell: Cell, group: Group, scene: Scene) -> Iterator[Evidence]:
    """Finds. A capture agent that shows nothing more while the others go on.

    Why it matters. What happens at its broker is not seen; verdicts no longer wait for it.

    When it is innocent. The agent's host is down, or the agent was stopped without its end mark.

    Source. The agents' own progress marks.
    """
    del group
    newest = max((ts_ns for ts_ns, _ in scene.agents.values()), default=0)
    silent_ns = scene.settings.agent_silent_s * 1_000_000_000
    for agent, (ts_ns, ended) in sorted(scene.agents.items()):
        if not ended and newest - ts_ns > silent_ns:
            seen = next(iter(scene.ledger.cell(*cell).values())).first._replace(ts_ns=ts_ns, source=agent)
            said = f"agent {agent} shows its last traffic"
            yield Evidence((agent,), (Side(seen, said),), words={"agent": agent, "since": clock(ts_ns)})
