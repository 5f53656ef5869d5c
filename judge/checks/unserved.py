"""CLI: clients that get nowhere, whatever the reason: nothing answers them, or they ask the wrong server.

Rule: these contradict nothing. A client that was served before, a probe, a broker's own requests are silent; and where
another check says why, that speaks.
"""

from collections.abc import Collection, Iterator
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

from wirecheck.client_ids import TO_BROKERS, is_internal
from wirecheck.decode.api_names import key_of
from wirecheck.decode.releases import Ranges, read
from wirecheck.decode.request_waits import MILLISECOND_NS
from wirecheck.judge import topic_history as topics
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.connection_ends import connection_spans, lives_on
from wirecheck.judge.checks.shapes import (
    apis_of,
    brokers_of,
    captured_brokers,
    clients_of,
    clock,
    counted,
    gathered,
    resting_on,
    seen_everywhere,
    servers_of,
)
from wirecheck.judge.checks.starved_readers import gets_next_to_nothing
from wirecheck.judge.checks.versions import version_rejected
from wirecheck.judge.claims.claim import Claim, Subject, error_name
from wirecheck.judge.claims.extract.clients import EPOCH_END_NS
from wirecheck.judge.claims.extract.unserved import CLOSED, CLOSED_AFTER_GREETING, NO_RESPONSE
from wirecheck.judge.claims.extract.wire_format import ON_OTHERS
from wirecheck.judge.claims.kinds import PAUSE
from wirecheck.judge.claims.outcomes import OTHERS, SUCCESS, Run
from wirecheck.judge.results.finding import Evidence, Number
from wirecheck.judge.streaks import SENT_ELSEWHERE, Streak, longest_wait, without_pause
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import name_of
from wirecheck.judge.topology.clusters import Group

GREETED, PRODUCE = "ApiVersions", "Produce"
METADATA = key_of("Metadata")
IN_WORDS = {"http": "HTTP", "tls": "TLS", "ssh": "SSH"}
NO_OUTCOME = {47, 90}
"""INVALID_PRODUCER_EPOCH, PRODUCER_FENCED: another instance took over, and this one ends itself."""


def requests_never_answered(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per server. Of a client that no server answers, the requests to all of them that were closed count together:
    it asks each in turn.
    """
    if is_internal(subject[1]) or TO_BROKERS.fullmatch(subject[1]):
        return
    found = [
        one
        for claim in context.claims("unserved", group, *subject)
        if (one := unserved(claim, subject, group, context))
    ]
    asked = {claim["endpoint"] for claim in context.claims("client", group, *subject)}
    alone = len(found) == len(asked) and not any(one.answered_ns for one in found)
    every = sum(one.closed.count for one in found) if alone else 0
    for one in found:
        if (longest := one.lasting(every, context)) is not None:
            yield never_answered(one, longest, context)


class Unserved(NamedTuple):
    """The requests of a client that one server did not answer."""

    claim: Claim
    closed: Streak
    """Those on which the server closed the connection."""
    every: Streak
    """These, and those that it left without a response."""
    answered_ns: int
    """When it granted the client something at last; 0 if it never did."""

    def lasting(self, of_all_servers: int, context: CheckContext) -> Streak | None:
        """What shows that the server does not serve the client. A broker that restarts behind a proxy closes a few, but
        seldom after a greeting; one that is paused keeps silent for less than a minute. `of_all_servers`: what all
        closed, if none serves the client.
        """
        settings = context.settings
        least_s = settings.stuck_s if self.answered_ns else settings.never_served_s
        enough = max(self.closed.count, of_all_servers) >= settings.never_served
        on = connections_of(self.claim, {CLOSED, CLOSED_AFTER_GREETING})
        if enough and on >= settings.never_served_on and self.closed.seconds >= least_s:
            return self.closed
        greeted = joined(self.claim, {CLOSED_AFTER_GREETING})
        on, least_s = connections_of(self.claim, {CLOSED_AFTER_GREETING}), max(least_s, settings.only_greeted_s)
        if of_all_servers and on >= settings.never_served_on and greeted.seconds >= least_s:
            return self.closed
        silent = NO_RESPONSE in errors_in(self.claim) and self.every.seconds >= settings.cut_off_s
        return self.every if silent and connections_of(self.claim) >= settings.never_served_on else None


def unserved(claim: Claim, subject: Subject, group: Group, context: CheckContext) -> Unserved | None:
    """None where the server granted the client something before, or another check says why it does not."""
    if not claim.outcomes:
        return None
    every, closed = joined(claim, errors_in(claim)), joined(claim, {CLOSED, CLOSED_AFTER_GREETING})
    answered_ns = first_answer_ns(claim, subject, group, context)
    if 0 < answered_ns <= every.last_ns or is_explained(claim, subject, group, context):
        return None
    return Unserved(claim, closed, every, answered_ns)


def joined(claim: Claim, errors: Collection[int]) -> Streak:
    """All its runs of these errors."""
    found = without_pause(claim.outcomes.runs(errors))
    return reduce(Streak.joined, found) if found else Streak(0, claim.first.ts_ns, claim.first.ts_ns)


def errors_in(claim: Claim) -> set[int]:
    return claim.outcomes.codes()


def never_answered(found: Unserved, longest: Streak, context: CheckContext) -> Evidence:
    claim, greeted = found.claim, CLOSED_AFTER_GREETING in errors_in(found.claim)
    silent = longest is not found.closed
    words = {
        "client": claim["client_id"] or "a client without an ID",
        "server": servers_of([claim], context),
        "does": "sent no response on" if silent else "closed",
        "connections": number_of_connections([claim]),
        "what": "it answered ApiVersions only" if greeted else "it answered nothing",
        "may": "no Kafka listener? max.connections" if silent else "SASL? a proxy" if greeted else "TLS? a proxy",
        "until": f" It answers since {clock(found.answered_ns)}." if found.answered_ns else "",
        "api": max(sorted(claim.tally), key=lambda api: claim.tally[api]),
    }
    words |= {"silent": "yes"} if silent else {}
    about = {"client_ids": (claim["client_id"],), "brokers": (context.broker(claim),), "count": longest.count}
    return resting_on([claim], *claim.key, **about, first_ns=longest.first_ns, last_ns=longest.last_ns, words=words)


def first_answer_ns(closed: Claim, subject: Subject, group: Group, context: CheckContext) -> int:
    """When the server granted the client something first; 0 if it never did."""
    mine = (one for one in context.claims("client", group, *subject) if one["endpoint"] == closed["endpoint"])
    found = max((one.peak.get("first_answered", 0) for one in mine), default=0)
    return EPOCH_END_NS - found if found else 0


def connections_of(claim: Claim, errors: Collection[int] | None = None) -> int:
    return len(claim.outcomes.parts(errors or errors_in(claim)))


def number_of_connections(claims: Collection[Claim]) -> str:
    """So many ports are kept apart, and the others as one."""
    count = sum(map(connections_of, claims))
    others = any(OTHERS in claim.outcomes.parts(errors_in(claim)) for claim in claims)
    return f"more than {count - 1} connections" if others else counted(count, "connection")


def is_explained(claim: Claim, subject: Subject, group: Group, context: CheckContext) -> bool:
    """Whether another check says why this server does not answer the client."""
    waits = [one for one in context.claims("overdue", group, *subject) if one["endpoint"] == claim["endpoint"]]
    silent = errors_in(claim) == {NO_RESPONSE}
    late = any(one["api"] not in ON_OTHERS and longest_wait(one, context) for one in waits) if silent else bool(waits)
    other = any(one["host"] == claim["host"] for one in context.claims("not_kafka", group, "link", claim["endpoint"]))
    elsewhere = any(
        True for check in (version_rejected, controller_as_bootstrap) for _ in check(subject, group, context)
    )
    return late or other or elsewhere


def server_is_not_kafka(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    context.watch()
    servers = [one for one in context.claims("server", group, "server") if one["endpoint"] == subject[1]]
    if any(one.peak.get("answers") for one in servers):
        return
    found = context.claims("not_kafka", group, *subject)
    for (host, endpoint), claims in gathered(found, "host endpoint"):
        count = sum(run.count for claim in claims for run in claim.outcomes.runs())
        if sum(map(connections_of, claims)) >= context.settings.never_served_on:
            protocols = " or ".join(sorted({IN_WORDS[claim["protocol"]] for claim in claims}))
            words = {"host": host, "server": endpoint, "protocol": protocols}
            words["connections"] = counted(count, "connection")
            about = {"brokers": (context.broker(claims[0]),), "count": count}
            yield resting_on(claims, host, endpoint, **about, client_ids=asking(host, endpoint, context), words=words)


def asking(host: str, endpoint: str, context: CheckContext) -> tuple[str, ...]:
    """The clients on a host that sent requests to an endpoint."""
    mine = (subject for subject in context.ledger.subjects("client") if subject[2] == host)
    return tuple(
        sorted(one[1] for one in mine if any(c["endpoint"] == endpoint for c in context.ledger.claims("client", *one)))
    )


def controller_as_bootstrap(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """KIP-919: an admin client that is configured for controllers asks them for the cluster or the quorum next. Some
    clients ask for Metadata, although the controller does not offer it. Of a client that asks several servers, each has
    to be a controller.
    """
    if subject not in context.asked_controllers:  # once, in however many clusters its servers are
        context.asked_controllers[subject] = asked_of_controllers(subject, context)
    apis = context.asked_controllers[subject]
    if apis is None:
        return
    others = ", ".join(sorted(apis - {GREETED}))
    for (endpoint,), mine in gathered(context.claims("client", group, *subject), "endpoint"):
        greeted = sum(count for claim in mine for word, count in claim.tally.items() if word.startswith(GREETED))
        words = {"client": mine[0]["client_id"] or "a client without an ID", "server": endpoint}
        words["times"] = counted(greeted, "time")
        words["then"] = f"then {others}, without a response" if others else "nothing after that"
        about = {"client_ids": (mine[0]["client_id"],), "count": sum(claim.count for claim in mine)}
        yield resting_on(mine, *subject[1:], endpoint, **about, words=words)


def asked_of_controllers(subject: Subject, context: CheckContext) -> set[str] | None:
    """The APIs that a client asked for; None unless each of its servers is a controller that answered none of them."""
    if is_internal(subject[1]) or TO_BROKERS.fullmatch(subject[1]):
        return None
    asked = context.ledger.claims("client", *subject)  # elsewhere, too: the cluster of a server may not be known yet
    if not asked or any(claim.peak.get("answered") for claim in asked):
        return None
    context.watch()
    apis = {word.partition(":")[0] for claim in asked for word in claim.tally}
    needed = {METADATA, *map(key_of, apis - {GREETED})}
    for endpoint in {claim["endpoint"] for claim in asked}:
        offered: list[Ranges] = [read(one["ranges"]) for one in context.stated_by("advertised", endpoint)]
        if not offered or any(needed & ranges.keys() for ranges in offered):
            return None
    waited_ns = context.settings.fell_silent_s * SECOND_NS
    return apis if context.passed(min(claim.first.ts_ns for claim in asked) + waited_ns) else None


def writer_fell_silent(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per topic of its last write."""
    if is_internal(subject[1]):
        return
    errors = [one for one in context.claims("named_answer", group, *subject) if one["api"] == PRODUCE]
    errors += [one for one in context.claims("refused", group, *subject) if one["api"] == PRODUCE]
    if not any(claim.outcomes.errors() for claim in errors):
        return
    quiet_ns, spans = context.settings.fell_silent_s * SECOND_NS, connection_spans(subject, context)
    writes = [*errors, *successes(errors, subject, group, context)]
    if any(claim.peak.get(PAUSE, 0) >= quiet_ns for claim in writes):
        return  # hours ago it paused, as it may now
    streaks = without_pause((run for claim in writes for run in claim.outcomes.runs()), quiet_ns)
    if not all(restarted(one, after, spans) for one, after in pairwise(streaks)):
        return
    for wrote, after in zip(reversed(streaks), [None, *reversed(streaks[1:])], strict=True):
        if after is None and wrote_last_ns(subject, context) > wrote.last_ns:
            continue
        mine = [last_ns for first_ns, last_ns in spans if after is None or first_ns <= wrote.last_ns]
        connected_ns, idle_ns = max(mine, default=0), wrote.last_ns + quiet_ns
        if after is None and connected_ns < idle_ns and stays_idle(subject, wrote.last_ns, idle_ns, group, context):
            connected_ns = idle_ns
        is_writer = min(wrote.count, wrote.seconds) >= context.settings.wrote_before
        if is_writer and connected_ns >= idle_ns and context.passed(idle_ns):
            found = [*fell_silent(errors, Silence(wrote, after, connected_ns), group, context)]
            yield from found
            if found:
                return


def stays_idle(client: Subject, since_ns: int, until_ns: int, group: Group, context: CheckContext) -> bool:
    """Whether a client sends nothing at all for a time, to any broker, and does not close its connections: a library
    whose producer ended at an error may not even ask for Metadata.
    """
    context.watch()
    return lives_on(client, until_ns, context) and seen_everywhere(client, since_ns, group, context, until_ns=until_ns)


class Silence(NamedTuple):
    """A client's writes until it fell silent, those after that, and until when it was connected meanwhile."""

    wrote: Streak
    after: Streak | None
    connected_ns: int


def fell_silent(errors: Collection[Claim], silence: Silence, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per topic of the last write. That it writes again after a restart shows that it had stopped by mistake."""
    wrote, after, connected_ns = silence
    for (topic,), claims in gathered(errors, lambda claim: (topic_of(claim, group, context),)):
        ended_by = {code for claim in claims for code, run in errors_of(claim) if run.last_ns == wrote.last_ns}
        if not ended_by or ended_by & NO_OUTCOME:
            continue
        elsewhere = SENT_ELSEWHERE | NOT_THERE if came_back(topic, claims, group, context) else SENT_ELSEWHERE
        if ended_by <= elsewhere and not captured_brokers(group, context):
            continue  # it may write on at a broker that was not captured
        words = {
            "client": claims[0]["client_id"] or "a client without an ID",
            "topic": topic,
            "rate": f"{wrote.count / wrote.seconds:.1f}",
            "error": error_name(min(ended_by)),
            "time": clock(wrote.last_ns),
            "seconds": f"{(connected_ns - wrote.last_ns) / SECOND_NS:.0f}",
            "restart": "; restarted, it writes" if after else "",
        }
        until_ns = after.first_ns if after else connected_ns
        about = {
            "topic": topic,
            "client_ids": (claims[0]["client_id"],),
            "first_ns": wrote.last_ns,
            "last_ns": until_ns,
        }
        if after:
            words["hurt_host"] = claims[0]["host"]
        key, kind = (claims[0]["client_id"] or "", claims[0]["host"], topic), "anomaly" if after else None
        yield resting_on(claims, *key, **about, kind=kind, words=words)


def came_back(topic: str, claims: list[Claim], group: Group, context: CheckContext) -> bool:
    """Whether a topic has another ID since a client's last write that was granted: that may have another leader."""
    born_ns = max(topics.topic_of(topic, group, context).births_ns[1:], default=0)
    client = "client", claims[0]["client_id"] or "", claims[0]["host"]
    granted = [*claims, *successes(claims, client, group, context)]
    return born_ns > max((run.last_ns for claim in granted for run in claim.outcomes.runs({SUCCESS})), default=0)


NOT_THERE = frozenset({3, 100})
"""UNKNOWN_TOPIC_OR_PARTITION and UNKNOWN_TOPIC_ID."""


def restarted(before: Streak, after: Streak, spans: Collection[tuple[int, int]]) -> bool:
    """Whether all connections that the client had before were over when it wrote again."""
    return all(last_ns < after.first_ns for first_ns, last_ns in spans if first_ns <= before.last_ns)


def client_throttled(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """By every broker together: a quota is of the client ID or the principal."""
    claims = context.claims("throttled", group, *subject)
    if is_internal(subject[1]) or not claims:
        return
    first_ns, last_ns = min(one.first.ts_ns for one in claims), max(one.last.ts_ns for one in claims)
    count, stopped = sum(one.count for one in claims), stopped_by_a_quota(subject, claims, group, context)
    often = count >= context.settings.stuck_answers and last_ns - first_ns >= context.settings.stuck_s * SECOND_NS
    if not often and not stopped:
        return
    words = {
        "apis": apis_of(claims),
        "longest_ms": f"{max(one.peak['longest_ms'] for one in claims):,}",
        "from": clock(first_ns),
        "to": clock(last_ns),
        "times": Number(count),
    }
    if stopped:
        words |= {"hurt_host": subject[2], "api": stopped}
    about = {"client_ids": clients_of(claims), "brokers": brokers_of(claims, context)}
    yield resting_on(claims, *subject[1:], **about, kind="anomaly" if stopped else None, words=words)


def stopped_by_a_quota(subject: Subject, claims: Collection[Claim], group: Group, context: CheckContext) -> str:
    """The API that a client is granted next to nothing of: it comes back when a wait is over, and has to wait again,
    for longer than clients wait for a response. A burst waits once, and work within a quota waits for less. Fetches
    wait for less at most; they count by what they bring.
    """
    for (api,), found in gathered(claims, "api"):
        longest_ns = max(one.peak["longest_ms"] for one in found) * MILLISECOND_NS
        first_ns, last_ns = min(one.first.ts_ns for one in found), max(one.last.ts_ns for one in found)
        waited_ns = sum(one.tally["throttle_ms"] for one in found) * MILLISECOND_NS
        if waited_ns < ALL_THE_TIME * (last_ns - first_ns):
            continue
        least_ns = context.settings.cut_off_s * SECOND_NS
        if longest_ns >= least_ns and last_ns - first_ns >= context.settings.stuck_s * SECOND_NS:
            return str(api)
        starves = api == "Fetch" and last_ns - first_ns >= least_ns
        if starves and gets_next_to_nothing(subject, first_ns, last_ns, group, context):
            return str(api)
    return ""


ALL_THE_TIME = 0.9
"""So much of the time from one answer to another, at least, a client is asked to wait."""


def wrote_last_ns(subject: Subject, context: CheckContext) -> int:
    """When the client sent its last write, to whatever topic and broker."""
    return max((one.peak.get("wrote", 0) for one in context.ledger.claims("client", *subject)), default=0)


def successes(errors: Collection[Claim], subject: Subject, group: Group, context: CheckContext) -> list[Claim]:
    """The client's answered writes by ID, to the topics of which it got errors, whatever IDs these had."""
    names = {topic_of(claim, group, context) for claim in errors}
    ids = {history.topic_id for name in names for history in topics.topic_of(name, group, context).histories}
    ids |= {claim["topic_id"] for claim in errors if claim.kind == "refused"}
    uses = (one for topic_id in sorted(ids) for one in context.claims("use", group, "id", topic_id))
    who = subject[1:]
    return [one for one in uses if one["api"] == PRODUCE and (one["client_id"] or "", one["host"]) == who]


def topic_of(claim: Claim, group: Group, context: CheckContext) -> str:
    """Its name; the ID of one whose name is not known."""
    if claim.kind == "named_answer":
        return str(claim["name"])
    topic_id = str(claim["topic_id"])
    return name_of(("id", topic_id), group, context) or topic_id


def errors_of(claim: Claim) -> Iterator[tuple[int, Run]]:
    for code in claim.outcomes.errors():
        for run in claim.outcomes.runs({code}):
            yield code, run
