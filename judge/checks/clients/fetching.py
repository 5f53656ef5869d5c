"""FET: fetches that get nowhere.

Knows how long errors may last before a fetch is stuck. Does not know sessions' contents.
Rule: a single error answer is normal after every creation, deletion and restart; only what lasts is found.
"""

from collections.abc import Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.brokers.leadership import leader_denies_leadership
from wirecheck.judge.checks.clock import clock
from wirecheck.judge.checks.error_streaks import Streak, error_name, start_ns
from wirecheck.judge.checks.shapes import gathered, lasting, of_id, requesters, resting_on, servers_of
from wirecheck.judge.claims.claim import COUNT, FIRST, LAST, RESERVED, SLOT_NS, Claim, Subject, every_run
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.topic_history import former_name_of, name_of, topic_of
from wirecheck.judge.topology.clusters import Group

UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID = 100, 103
SESSION_TOPIC_ID, UNKNOWN_LEADER_EPOCH, NOT_LEADER = 106, 75, 6
STUCK = (UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID)


def fetch_stuck_on_topic_id(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A client's or follower's fetches of one topic ID fail with UNKNOWN_TOPIC_ID (100) or
    INCONSISTENT_TOPIC_ID (103). At least 10 failures over 30 s without a success from that broker on the connection
    count. So do at least 1,000 over 10 s on one connection, while they continue.

    Why it matters. The client reads nothing, and most libraries do not report it. A follower in this state is out of
    the ISR. Restart the client, or look for the broker whose disk or metadata is stale.

    False positives. None known. Single errors and bursts of some seconds are normal after a creation, deletion or
    restart. A success resets the count.

    Source. KIP-516; AbstractFetcherThread and FetchCollector of Kafka 3.9; franz-go issue 586.
    """
    if subject[1] in RESERVED:
        return
    refused: dict[tuple[str | None, str], list[tuple[Claim, Streak]]] = {}
    for claim, streak in lasting(context.claims("use", group, *subject), STUCK, {"Fetch", "ShareFetch"}, context):
        refused.setdefault((claim["client_id"], claim["host"]), []).append((claim, streak))
    name = (name_of(subject, group, context) or former_name_of(subject, group, context)) if refused else None
    for (client_id, host), found in sorted(refused.items(), key=str):
        claims = [claim for claim, _ in found]
        errors = sorted({error for _, streak in found for error in streak.errors})
        first_ns = min(streak.first_ns for _, streak in found)
        yield Evidence(
            (subject[1], client_id, host),
            tuple(Side(c.last, f"{client_id} is answered {answered(streak)} by {c['endpoint']}") for c, streak in found)
            + known(name, subject[1], group, context),
            topic=name,
            topic_ids=(subject[1],),
            client_ids=(client_id,),
            brokers=tuple(context.broker(claim) for claim in claims),
            count=sum(streak.count for _, streak in found),
            first_ns=first_ns,
            last_ns=max(claim.last.ts_ns for claim in claims),
            words={
                "errors": " and ".join(map(error_name, errors)),
                "requester": requesters(claims, group, context),
                "since": clock(first_ns),
                "servers": servers_of(claims),
            },
        )


def answered(streak: Streak) -> str:
    return " and ".join(map(error_name, streak.errors))


def known(name: str | None, topic_id: str, group: Group, context: CheckContext) -> tuple[Side, ...]:
    """What is known of the id and of what took its place."""
    if name is None:
        return ()
    histories = topic_of(name, group, context).histories
    mine = [last_of(history.last) for history in histories if history.topic_id == topic_id]
    return (*mine, *(first_of(newest.first) for newest in histories[-1:] if newest.topic_id != topic_id))


def fetch_session_mode_flip(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A client's fetch sessions at one broker keep changing between topic IDs and names:
    FETCH_SESSION_TOPIC_ID_ERROR (106), repeatedly for more than 300 s.

    Why it matters. A topic's ID keeps appearing and disappearing for this client. Every change costs a full fetch.

    False positives. Once per session in a rolling upgrade, and for up to 300 s after a deletion. These do not count.

    Source. FetchSession.newContext of Kafka 3.9; KIP-516.
    """
    deletions = deletions_of(group, context)
    grace_ns = context.settings.client_grace_ns
    for claim in context.claims("answer", group, *subject):
        flips = sorted(every_run(claim.runs, {str(SESSION_TOPIC_ID)}), key=lambda run: run[FIRST])
        if claim["api"] != "Fetch" or not flips:
            continue
        context.watch()
        alone = [run for run in flips if all(abs(run[FIRST] - ts_ns) > grace_ns for ts_ns in deletions)]
        if len(alone) >= 3 and alone[-1][LAST] - alone[0][FIRST] > grace_ns:
            yield resting_on(
                [claim],
                *(*subject[1:], context.node(claim)),
                client_ids=(claim["client_id"],),
                brokers=(context.broker(claim),),
                count=sum(run[COUNT] for run in flips),
                first_ns=alone[0][FIRST],
                words={"server": claim["endpoint"], "since": clock(alone[0][FIRST])},
            )


def deletions_of(group: Group, context: CheckContext) -> list[int]:
    """When topics were deleted in a cluster."""
    return [
        ts_ns
        for claim in context.claims("deletions", group, "server")
        for word in claim.tally
        for ts_ns in (start_ns(int(word)),)
    ]


def leader_epoch_fencing(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A client's requests for one partition fail with FENCED_LEADER_EPOCH (74) or UNKNOWN_LEADER_EPOCH (75),
    repeatedly for more than 300 s. If the partition's leader epoch is known and does not change, 30 s are enough.

    Why it matters. The client uses an old leader epoch and does not refresh its metadata, or the broker does not follow
    the controller. The partition is not read.

    False positives. Bursts of thousands are normal while a broker stops or a leader moves. Raft's own fetches do not
    count. A broker that denies leadership altogether has a finding of its own (CTL010).

    Source. KIP-320; FetchSessionHandler and Partition of Kafka 3.9.
    """
    settings = context.settings
    fenced = (claim for claim in context.claims("fenced", group, *subject) if claim["error"] != NOT_LEADER)
    for (name, topic_id, partition), claims in gathered(fenced, "name topic_id partition"):
        streak = storm(claims)
        if streak.count < settings.stuck_answers or streak.seconds < settings.stuck_s:
            continue
        context.watch()
        if streak.seconds <= settings.client_grace_s and not steady(topic_id, partition, streak, group, context):
            continue
        bound = name or (name_of(("id", topic_id), group, context) if topic_id else None)
        told = {claim["error"] for claim in claims}
        if UNKNOWN_LEADER_EPOCH in told and denied(bound, topic_id, partition, group, context):
            continue
        yield resting_on(
            claims,
            *(bound or topic_id, partition, *subject[1:]),
            topic=bound,
            topic_ids=(topic_id,) if topic_id else (),
            client_ids=(claims[0]["client_id"],),
            brokers=tuple(context.broker(claim) for claim in claims),
            count=streak.count,
            first_ns=streak.first_ns,
            words={
                "partition": partition,
                "errors": " and ".join(sorted({error_name(claim["error"]) for claim in claims})),
                "since": clock(streak.first_ns),
            },
        )


def denied(name: str | None, topic_id: str | None, partition: int, group: Group, context: CheckContext) -> bool:
    """Whether a broker denies leading the partition: then its client's epoch is not what is wrong."""
    ids = [history.topic_id for history in topic_of(name, group, context).histories[-1:]] if name else []
    return any(
        evidence.key[1] == partition
        for known in dict.fromkeys([topic_id, *ids] if topic_id else ids)
        for evidence in leader_denies_leadership(("id", known), group, context)
    )


STORM_PAUSE_NS = 30_000_000_000
"""A storm goes on over so long a pause."""


def storm(claims: list[Claim]) -> Streak:
    """The longest time of errors without a long pause."""
    best = open_streak = Streak(0, 0, 0)
    runs = [run for claim in claims for run in every_run(claim.runs)]
    for count, first_ns, last_ns in sorted(runs, key=lambda run: run[FIRST:]):
        now = Streak(count, first_ns, last_ns)
        together = open_streak.count and first_ns - open_streak.last_ns <= STORM_PAUSE_NS
        open_streak = open_streak.joined(now) if together else now
        best = max(best, open_streak, key=lambda streak: (streak.seconds, streak.count))
    return best


def steady(topic_id: str | None, partition: int, streak: Streak, group: Group, context: CheckContext) -> bool:
    """Whether the partition's leader epoch is known from before a stretch to its end, and one."""
    states = context.claims("partition", group, "id", topic_id) if topic_id else []
    mine = [claim for claim in states if claim["partition"] == partition]
    newest = max((claim["leader_epoch"] for claim in mine), default=-1)
    last = [claim for claim in mine if claim["leader_epoch"] == newest]
    if newest < 0:
        return False
    before = min(claim.first.ts_ns for claim in last) < streak.first_ns
    return before and max(claim.last_word.ts_ns for claim in last) >= streak.last_ns // SLOT_NS * SLOT_NS


def partition_out_of_range(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A client fetches a partition number that the topic ID never had, although brokers' metadata was
    refreshed since.

    Why it matters. The client confuses two topics: it uses the partitions of a recreated topic with the old ID.

    False positives. Partitions that were just added; a later Metadata response shows them.

    Source. KIP-516; franz-go issue 586.
    """
    counted = [c for c in context.claims("partition", group, *subject) if c["source"] == "metadata"]
    if not counted or subject[1] in RESERVED:
        return
    highest, refreshed = max(c["partition"] for c in counted), max(c.last.ts_ns for c in counted)
    late_ns = refreshed - context.settings.client_grace_ns
    late = (c for c in context.claims("partition_use", group, *subject) if c.first.ts_ns < late_ns)
    for (client_id, host), claims in gathered((c for c in late if c.peak["partition"] > highest), "client_id host"):
        words = {"partition": max(claim.peak["partition"] for claim in claims), "highest": highest}
        about = {**of_id(subject, group, context), "client_ids": (client_id,)}
        yield resting_on(claims, subject[1], client_id, host, **about, words=words)
