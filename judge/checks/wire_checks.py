"""WIR, DRF, VIS: bytes that are not as Kafka writes them or that this release cannot read, and what was not seen.

Rule: what follows a gap, or comes before synchronisation is certain, is never malformed: it is unseen, and states
nothing about those we watched. Findings are per client host and server endpoint; the client's port is no part of what a
connection is. A message that is malformed is a finding about its sender; clients that receive it are named in it only.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from wirecheck.decode import schemas
from wirecheck.decode.api_names import key_of, newest
from wirecheck.decode.forwarding import Leg
from wirecheck.decode.request_waits import OVERDUE_NS, SECOND_NS
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import (
    apis_of,
    brokers_of,
    clients_of,
    clock,
    counted,
    end_ns,
    gathered,
    is_held_by_quota,
    of_link,
    resting_on,
    server_name,
    servers_of,
)
from wirecheck.judge.claims.claim import Claim, Subject, error_name
from wirecheck.judge.claims.extract.wire_format import ANSWERED, ON_OTHERS, REFUSED
from wirecheck.judge.claims.outcomes import SLOT_NS, SUCCESS, WAITED
from wirecheck.judge.claims.reduce import moment
from wirecheck.judge.ledger.connection_sums import summed
from wirecheck.judge.ledger.failures import Failure
from wirecheck.judge.results.finding import Evidence, Side
from wirecheck.judge.streaks import Streak, longest_wait
from wirecheck.judge.topology.clusters import Group
from wirecheck.judge.topology.endpoint_history import host_of

TOLERATED = {
    "metadata-int32-null": "3 extra bytes (a null list of topics as before version 9)",
    "api-versions-empty-array": "4 extra bytes (an empty list of keys, as in the draft of KIP-35)",
    "list-groups-second-tags": "1 extra byte (a second, empty section of tagged fields)",
    "response-second-tags": "1 extra byte (a second, empty section of tagged fields)",
    "api-versions-without-throttle-time": "throttle_time_ms missing",
}
"""Named tolerances in words."""
OF_SERVERS = {"response-second-tags", "api-versions-without-throttle-time"}
"""Those of responses."""
UNANSWERED = {
    "closed_by_client": "the client closed the connection",
    "closed_by_server": "the server closed the connection",
    "pending": "none until the capture ended",
    "response_unseen": "bytes that may hold it were not captured",
}
"""Outcomes of a request without a response in words."""


def bytes_missing(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for claim in summed(context.claims("missing", group, *subject)):
        cut = claim.tally.get("cut", 0)
        how = f"; the snap length cut {cut:,} of them" if cut else ""
        yield of_link(claim, context, gaps=claim.count, **{**claim.tally, "cut": how})


def joined_mid_stream(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for claim in summed(context.claims("midway", group, *subject)):
        yield of_link(claim, context, connections=claim.count)


def encrypted(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    hidden = summed(context.claims("encrypted", group, *subject))
    if hidden:
        words = {"connections": sum(claim.count for claim in hidden), "server": servers_of(hidden, context)}
        yield resting_on(hidden, hidden[0]["endpoint"], words=words)


def bytes_not_understood(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    if not servers_at(subject[1], group, context):
        context.watch()
        return
    for claim in summed(context.claims("unread", group, *subject)):
        yield of_link(claim, context, connections=claim.count, bytes=claim.tally["payload_bytes"])


def request_unanswered(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for (host, endpoint, api), claims in gathered(context.claims("unanswered", group, *subject), "host endpoint api"):
        last_ns = seen_ns(host, endpoint, context)
        overdue = [(claim, count) for claim in claims if (count := overdue_of(claim, last_ns, context))]
        if overdue:
            why = ", ".join(sorted({UNANSWERED[claim["outcome"]] for claim, _ in overdue}))
            words = {"host": host, "server": servers_of(claims, context), "api": api, "why": why}
            count = sum(count for _, count in overdue)
            yield resting_on([claim for claim, _ in overdue], host, endpoint, api, count=count, words=words)


def seen_ns(host: str, endpoint: str, context: CheckContext) -> int:
    peers = context.ledger.claims("peer", "host", host)
    return max((peer.last.ts_ns for peer in peers if peer["endpoint"] == endpoint), default=0)


def overdue_of(claim: Claim, last_ns: int, context: CheckContext) -> int:
    """How many of the requests were let down: not merely cut off by the end of the connection or of the capture."""
    grace_s = context.settings.unanswered_s
    count = 0
    for word, number in claim.tally.items():
        part, _, rest = word.partition(":")
        if part == "late":
            late = int(rest) >= grace_s
        else:
            until_ns = end_ns(int(part)) + grace_s * 1_000_000_000
            late = context.passed(until_ns) and (claim["outcome"] == "pending" or last_ns >= until_ns)
        count += number * late
    return count


def peer_paused(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for claim in context.claims("answered", group, *subject):
        found = pauses(claim, context)
        if not found:
            continue
        endpoint, longest = claim["endpoint"], max(found, key=lambda pause: (pause.seconds, -pause.first_ns))
        broker = context.clusters.broker(endpoint, longest.last_ns)
        moments = [
            moment
            for pause in found
            for moment in (
                (pause.first_ns, f"{endpoint} answers nothing from here on, for {pause.seconds:.1f} s"),
                (pause.last_ns, f"{endpoint} answers what waited, on {pause.clients} connections"),
            )
        ]
        seen = claim.first._replace(api="", version=-1, correlation_id=-1)
        sides = tuple(Side(seen._replace(ts_ns=ts_ns), what) for ts_ns, what in moments)
        words = {
            "who": server_name(endpoint, longest.last_ns, context),
            "seconds": f"{longest.seconds:.1f}",
            "from": clock(longest.first_ns),
        }
        words["to"] = clock(longest.last_ns)
        words["more"] = f" {len(found) - 1} shorter pauses." if len(found) > 1 else ""
        yield Evidence((endpoint,), sides, brokers=(broker,), count=len(found), words=words)


def requests_overdue(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    overdue = (claim for claim in context.claims("overdue", group, *subject) if claim["api"] not in ON_OTHERS)
    hurt = [(claim, longest_wait(claim, context)) for claim in overdue]
    long = [(claim, wait) for claim, wait in hurt if wait is not None]
    found = [(claim, wait) for claim, wait in long if not is_held_by_quota(claim, wait, group, context)]
    if not found:
        return
    claims, (last, longest) = [claim for claim, _ in found], max(found, key=lambda one: one[1].seconds)
    endpoint, broker = last["endpoint"], context.clusters.broker(last["endpoint"], longest.last_ns)
    sides = tuple(
        Side(seen._replace(ts_ns=ts_ns), what)
        for claim, wait in found
        for seen, ts_ns, what in (
            (claim.first, wait.first_ns, f"{client_of(claim)} sends {claim['api']} to {endpoint}"),
            (claim.last, wait.last_ns, f"{client_of(claim)} has waited {wait.seconds:.0f} s for a response"),
        )
    )
    words = {
        "who": server_name(endpoint, longest.last_ns, context),
        "clients": len({(claim["client_id"], claim["host"]) for claim in claims}),
        "seconds": f"{longest.seconds:.0f}",
        "apis": apis_of(claims),
    }
    if not any(one.peak.get("answers") for one in servers_at(endpoint, group, context)):
        words["never"] = "yes"
    elif all(takes_no_connection(claim, wait, subject, group, context) for claim, wait in found):
        words["full"] = "yes"
    count = sum(wait.count for _, wait in found)
    clients = clients_of(claims)
    yield Evidence((endpoint,), sides, client_ids=clients, brokers=(broker,), count=count, words=words)


def takes_no_connection(claim: Claim, wait: Streak, subject: Subject, group: Group, context: CheckContext) -> bool:
    """Whether a connection's first request waited while the server answered others all the time."""
    slots = range(wait.first_ns // SLOT_NS + 1, wait.last_ns // SLOT_NS)
    answered = {slot for one in context.claims("answered", group, *subject) for slot in one.outcomes.of(SUCCESS)}
    return claim["api"] == "ApiVersions" and len(slots) > 0 and answered.issuperset(slots)


def servers_at(endpoint: str, group: Group, context: CheckContext) -> list[Claim]:
    return [claim for claim in context.claims("server", group, "server") if claim["endpoint"] == endpoint]


def client_of(claim: Claim) -> str:
    return claim["client_id"] or "a client without an ID"


class Pause(NamedTuple):
    """From the last answer before a silence to the first after it, or from the first request in it if that is later:
    who is asked nothing was not seen to stand still.
    """

    first_ns: int
    last_ns: int
    clients: int

    @property
    def seconds(self) -> float:
        return (self.last_ns - self.first_ns) / SECOND_NS


def pauses(claim: Claim, context: CheckContext) -> list[Pause]:
    """Silences of a server after which several connections got what they had waited for."""
    answers, waited = claim.outcomes.of(SUCCESS), claim.outcomes.of(WAITED)
    found = []
    for before, after in pairwise(sorted(answers)) if waited else ():
        first_ns = max(run.last_ns for run in answers[before].values())
        last_ns = min(run.first_ns for run in answers[after].values())
        if last_ns - first_ns < context.settings.pause_s * SECOND_NS:
            continue
        slots = (after, after + 1)
        asked_ns = {
            client: run.first_ns
            for slot in slots
            for client, run in waited.get(slot, {}).items()
            if run.first_ns < last_ns - OVERDUE_NS and run.last_ns >= last_ns
        }
        if len(asked_ns) < context.settings.paused_clients:
            continue
        pause = Pause(max(first_ns, min(asked_ns.values())), last_ns, len(asked_ns))
        if pause.seconds >= context.settings.pause_s:
            found.append(pause)
    return found


def agent_silent(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    del group
    newest = max((ts_ns for ts_ns, _ in context.agents.values()), default=0)
    silent_ns = context.settings.agent_silent_s * 1_000_000_000
    for agent, (ts_ns, ended) in sorted(context.agents.items()):
        if not ended and newest - ts_ns > silent_ns:
            seen = next(iter(context.ledger.claims_of(*subject).values())).first._replace(ts_ns=ts_ns, source=agent)
            text = f"agent {agent} shows its last traffic"
            yield Evidence((agent,), (Side(seen, text),), words={"agent": agent, "since": clock(ts_ns)})


def not_judged(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    by_check: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures_of(group, context.groups(subject), context.failures.by_cluster()):
        by_check[failure.check].append(failure)
    unknown = moment(context.watermark_ns)
    for check, failures in sorted(by_check.items()):
        sides = tuple(Side(one.seen or unknown, f"{check} over {one.about}: {one.error}") for one in failures)
        errors = ", ".join(sorted({failure.error for failure in failures})[:SHOWN])
        words = {"check": check, "subjects": counted(len(failures), "subject"), "errors": errors}
        yield Evidence((check,), sides, count=len(failures), words=words)


def failures_of(group: Group, groups: list[Group], by_cluster: Mapping[str, list[Failure]]) -> list[Failure]:
    """The failures that one group reports: the first group of a cluster reports those of its cluster, the first of all
    groups also those whose cluster is unknown.
    """
    if not by_cluster:
        return []
    if group is not groups[0]:
        first = next(other for other in groups if other.key == group.key)
        return by_cluster.get(group.key, []) if first is group else []
    others = by_cluster.keys() - {other.key for other in groups[1:]} | {group.key}
    return sorted(
        (failure for cluster in others for failure in by_cluster.get(cluster, ())),
        key=lambda one: (one.subject, one.check),
    )


SHOWN = 3
"""So many kinds of exceptions a summary names."""


def malformed_message(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for key, claims in gathered(made_there(subject, group, context), lambda claim: (sender_of(claim), *claim.key[:4])):
        sender, api, version, side, reason = key
        words: dict[str, object] = {"api": api, "version": version, "side": f"{side}s", "reason": reason}
        brokers: tuple[int | None, ...] = ()
        if side == "request":
            named = ", ".join(sorted(set(map(client_of, claims))))
            words |= {"host": sender, "sender": f"{named} ({sender})"}
            if may_pass_on(sender, claims, context):
                words |= {
                    "relay": sender,
                    "host": "",
                    "sender": f"{sender}, which receives requests of {named} itself,",
                }
        else:
            words |= {"endpoint": sender, "sender": servers_of(claims, context)}
            brokers = brokers_of(claims[-1:], context)
        about = {"client_ids": clients_of(claims), "brokers": brokers}
        refused = sum(claim.tally.get(REFUSED, 0) for claim in claims)
        if refused:
            shown = [claim for claim in claims if claim.tally.get(REFUSED)]
            yield resting_on(shown, *key, count=refused, words={**words, "read": ""}, **about)
        else:
            is_read = all(claim.tally.get(ANSWERED) == claim.count for claim in claims)
            read = "; the servers read them" if is_read else ""
            yield resting_on(claims, *key, kind="information", words={**words, "read": read}, **about)


def made_there(subject: Subject, group: Group, context: CheckContext) -> list[Claim]:
    """What is malformed, without what a proxy only passed on: of a client's requests, and of a server's responses."""
    found, through = summed(context.claims("unreadable", group, *subject)), context.forwarding.through
    if not through:
        return found
    seen = {(claim["endpoint"], claim["client_id"], claim.key[:4]) for claim in context.believed(subject, "unreadable")}

    def was_received_so(claim: Claim) -> bool:
        if claim["side"] == "request":
            froms = {through.get(Leg(claim["client_id"], claim["host"], claim["endpoint"]))}
        else:
            froms = {leg.server for leg, front in through.items() if front == claim["endpoint"]}
        return any((one, claim["client_id"], claim.key[:4]) in seen for one in froms)

    return [claim for claim in found if not was_received_so(claim)]


def may_pass_on(host: str, claims: list[Claim], context: CheckContext) -> bool:
    """Whether a host receives requests of all these client IDs itself, from other hosts and at other servers than
    those it sends to. It may have made these bytes of others as a proxy does, known as one (CLU005) or not: one that
    breaks all that it sends on is not.
    """
    context.watch()
    names, servers = {claim["client_id"] for claim in claims}, {claim["endpoint"] for claim in claims}
    asking = (one for one in context.ledger.subjects("client") if one[1] in names and one[2] != host)
    received = (claim for one in asking for claim in context.ledger.claims("client", *one))
    found = {
        one["client_id"] for one in received if host_of(one["endpoint"]) == host and one["endpoint"] not in servers
    }
    return None not in names and names == found


def sender_of(claim: Claim) -> str:
    """The client's host for requests, the server's endpoint for responses."""
    return str(claim["host"] if claim["side"] == "request" else claim["endpoint"])


def api_unknown(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    unknown = [claim for claim in context.claims("unknown", group, *subject) if claim["reason"] == "api"]
    for (key, endpoint), claims in gathered(unknown, "key endpoint"):
        yield resting_on(claims, key, endpoint, words={"key": key, "server": servers_of(claims, context)})


def version_unknown(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    unknown = [claim for claim in context.claims("unknown", group, *subject) if claim["reason"] == "version"]
    for (api, version), claims in gathered(unknown, "key version"):
        words = {"api": api, "version": version, "newest": newest(key_of(api))}
        yield resting_on(claims, api, version, words=words)


def trailing_bytes_tolerated(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    tolerated = context.claims("tolerated", group, *subject)
    for (tolerance, sender), claims in gathered(tolerated, lambda c: (c["tolerance"], deviating(c, group, context))):
        of_server = tolerance in OF_SERVERS
        words = {
            "sender": servers_of(claims, context) if of_server else sender,
            "apis": f"{apis_of(claims)} responses" if of_server else apis_of(claims),
            "tolerance": TOLERATED.get(tolerance, tolerance.replace("-", " ")),
        }
        brokers = brokers_of(claims[-1:], context) if of_server else ()
        yield resting_on(claims, tolerance, sender, client_ids=clients_of(claims), brokers=brokers, words=words)


def deviating(claim: Claim, group: Group, context: CheckContext) -> str:
    """The server's endpoint, or the client's software: many clients share it."""
    return str(claim["endpoint"]) if claim["tolerance"] in OF_SERVERS else software(claim, group, context)


def software(claim: Claim, group: Group, context: CheckContext) -> str:
    context.watch()
    named = context.claims("software", group, "client", claim["client_id"] or "", claim["host"])
    return str(named[-1]["name"]) if named else "unnamed software"


def response_without_request(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    yield from strays("response without request", subject, group, context)


def correlation_id_out_of_order(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    yield from strays("response out of order", subject, group, context)


def strays(what: str, subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    claims = (claim for claim in context.claims("unpaired", group, *subject) if claim["what"] == what)
    yield from (of_link(claim, context) for claim in summed(claims))


def draft_dialect(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for claim in context.claims("dialect", group, *subject):
        yield resting_on([claim], claim["dialect"], words={"dialect": claim["dialect"]})


def draft_error_code(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for claim in context.claims("draft_code", group, *subject):
        drafted = schemas.draft_errors().get(claim["error"])
        whose = f"no release up to {schemas.newest_line()} has"
        if drafted:
            whose = f"only a draft of KIP-4 had, for {' or '.join(drafted.apis)}"
        error = error_name(claim["error"])
        words = {"server": servers_of([claim], context), "error": error, "api": claim["api"], "whose": whose}
        kind = None if drafted else "visibility"
        yield resting_on([claim], claim["endpoint"], claim["error"], kind=kind, words=words)
