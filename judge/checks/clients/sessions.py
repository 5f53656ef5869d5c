"""FET: fetch sessions (KIP-227) in which client and broker do not mean the same.

Rule: what was not asked is only said of a client whose connections with that broker were all seen from their beginning
and without a gap; what a bounded set has dropped is not judged.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import all_begun, brokers_of, clock, lasting, resting_on, seen_whole, servers_of
from wirecheck.judge.claims.claim import LEAST, MOST_MEMBERS, Claim, Sighting, Subject, error_name
from wirecheck.judge.claims.extract.client_sets import UNASKED
from wirecheck.judge.results.finding import Evidence, Side
from wirecheck.judge.topic_history import name_of, topic_of
from wirecheck.judge.topology.clusters import Group

SESSION_NOT_FOUND, INVALID_SESSION_EPOCH = 70, 71
WITH_IDS = 13
"""The first Fetch version that carries topic ids."""
SHOWN = 3
"""So many partitions a summary names."""


def fetch_session_protocol(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A client's fetches at one broker fail with FETCH_SESSION_ID_NOT_FOUND (70) or
    INVALID_FETCH_SESSION_EPOCH (71) at least 10 times over 30 s without a success. Or the response to a full fetch
    omits requested partitions or has others. Or a session's response has a partition that the client never requested.

    Why it matters. Client and broker disagree about the session. Possible causes are a proxy, two clients with one
    session, or a session cache that is far too small.

    False positives. None known. Single errors 70 and 71, and bursts after a broker's start, are normal. Throttled
    responses list nothing. Connections that were joined late or have a gap do not count, nor what is beyond 128
    partitions per session.

    Source. KIP-227; FetchSession.newContext of Kafka 3.9.
    """
    for error in (SESSION_NOT_FOUND, INVALID_SESSION_EPOCH):
        for claim, streak in lasting(context.claims("answer", group, *subject), {error}, {"Fetch"}, context):
            told = disagreed(claim, error, error_name(error), clock(streak.first_ns), context)
            yield replace(told, count=streak.count, first_ns=streak.first_ns)
    for claim in context.claims("fetch_odd", group, *subject):
        yield disagreed(claim, claim["what"], claim["what"], clock(claim.first.ts_ns), context)
    for claim in context.claims("session_answers", group, *subject):
        odd = never_asked(claim, group, context)
        if odd:
            what = f"partition {odd[0].partition} of {odd[0].topic} answered but never requested"
            told = disagreed(claim, UNASKED, what, clock(odd[0].seen.ts_ns), context)
            yield replace(told, sides=tuple(Side(m.seen, f"{claim['endpoint']} answers {m.text}") for m in odd))


def disagreed(claim: Claim, error: int | str, what: str, since: str, context: CheckContext) -> Evidence:
    return resting_on(
        [claim],
        *(claim["client_id"], claim["host"], context.node(claim), error),
        client_ids=(claim["client_id"],),
        brokers=(context.broker(claim),),
        words={"server": claim["endpoint"], "error": what, "since": since},
    )


@dataclass(frozen=True, order=True)
class Member:
    seen: Sighting
    topic: str
    partition: int

    @property
    def text(self) -> str:
        return f"partition {self.partition} of {self.topic}"


def never_asked(claim: Claim, group: Group, context: CheckContext) -> list[Member]:
    """Partitions that a client forgets or is answered, and surely asked for in no session with that endpoint."""
    asked: set[str] = set()
    for asks in context.claims("session_asks", group, "client", *who(claim)):
        if asks["endpoint"] == claim["endpoint"]:
            asked |= {name for name in asks.peak if name.startswith(LEAST)}
    beyond = max(asked) if len(asked) >= MOST_MEMBERS else None
    odd = [
        Member(Sighting(*value[:-2]), *value[-2:])
        for name, value in claim.peak.items()
        if name.startswith(LEAST) and name not in asked and (beyond is None or name < beyond)
    ]
    if not odd:
        return []
    context.watch()
    passed = [member for member in odd if context.passed(member.seen.ts_ns + context.settings.broker_grace_ns)]
    if not passed or not seen_whole(claim["client_id"], claim["host"], {claim["endpoint"]}, group, context):
        return []
    begun = all_begun(claim["client_id"], claim["host"], claim["endpoint"], group, context)
    return sorted(passed) if begun else []


def who(claim: Claim) -> tuple[str, str]:
    return claim["client_id"] or "", claim["host"]


def forgets_unknown_partition(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A client removes a partition from a fetch session that never contained it.

    Why it matters. Client and broker do not mean the same session. What the client expects and what the broker sends
    may differ from now on.

    False positives. None known. Java clients group removals by name, so topics with several IDs, or without a known
    name, do not count. Neither do clients with a connection that was joined late or has a gap, what is beyond 128
    partitions per session, and followers' fetches.

    Source. KIP-227; FetchSession.update and FetchRequest.Builder of Kafka 3.9.
    """
    claims = context.claims("session_forgets", group, *subject)
    odd = [(c, m) for c in claims for m in never_asked(c, group, context) if one_id(m, group, context)]
    if odd:
        members, claims = sorted({member.text for _, member in odd}), [claim for claim, _ in odd]
        yield resting_on(
            claims,
            *subject[1:],
            sides=tuple(Side(member.seen, f"{claim['client_id']} forgets {member.text}") for claim, member in odd),
            client_ids=(claims[0]["client_id"],),
            brokers=brokers_of(claims, context),
            count=len(members),
            words={"partitions": ", ".join(members[:SHOWN]), "server": servers_of(claims)},
        )


def one_id(member: Member, group: Group, context: CheckContext) -> bool:
    """Whether a topic that a fetch names, by name or by id, is known to have had one id only."""
    by_id = member.seen.version >= WITH_IDS
    name = name_of(("id", member.topic), group, context) if by_id else member.topic
    return name is not None and len(topic_of(name, group, context).histories) < 2
