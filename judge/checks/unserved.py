"""CLI: clients that get nowhere, whatever the reason: nothing answers them, or they ask the wrong server.

Rule: these contradict nothing. A client that was served before, a probe, a broker's own requests are silent; and where
another check says why, that speaks.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

from wirecheck.client_ids import TO_BROKERS, is_internal, is_of_node
from wirecheck.decode.api_names import key_of
from wirecheck.decode.connection.framing.recognise import hash_of_client
from wirecheck.decode.releases import Ranges, read
from wirecheck.decode.request_waits import MILLISECOND_NS
from wirecheck.judge import topic_history as topics
from wirecheck.judge.activity_states import BEFORE_WORK, activities
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.no_offset import without_offset
from wirecheck.judge.checks.shapes import (
    MINUTE_NS,
    apis_of,
    brokers_of,
    captured_brokers,
    clients_of,
    clock,
    counted,
    endpoints_of,
    gathered,
    known_addresses,
    resting_on,
    seen_everywhere,
    seen_repeatedly,
    seen_whole,
    servers_of,
)
from wirecheck.judge.checks.starved_readers import gets_next_to_nothing
from wirecheck.judge.checks.versions import version_rejected
from wirecheck.judge.claims.claim import Claim, Subject, error_name
from wirecheck.judge.claims.extract.clients import EPOCH_END_NS
from wirecheck.judge.claims.extract.unserved import CLOSED, CLOSED_AFTER_GREETING, NO_RESPONSE
from wirecheck.judge.claims.extract.wire_format import ON_OTHERS
from wirecheck.judge.claims.kinds import PAUSE
from wirecheck.judge.claims.outcomes import OTHERS, SLOT_NS, SUCCESS, TURNED_AWAY, Part, Run
from wirecheck.judge.results.finding import Evidence, Number
from wirecheck.judge.streaks import SENT_ELSEWHERE, Streak, longest_wait, without_pause
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import name_of
from wirecheck.judge.topology.clusters import Group
from wirecheck.judge.topology.endpoint_history import is_literal
from wirecheck.wording import and_list

GREETED, PRODUCE, FIND_COORDINATOR = "ApiVersions", "Produce", "FindCoordinator"
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
    if is_internal(subject[1]) or TO_BROKERS.fullmatch(subject[1]):
        return
    asked = context.ledger.claims("client", *subject)  # elsewhere, too: the cluster of a server may not be known yet
    if not asked or any(claim.peak.get("answered") for claim in asked):
        return
    context.watch()
    apis = {word.partition(":")[0] for claim in asked for word in claim.tally}
    offered: dict[str, list[Ranges]] = {claim["endpoint"]: [] for claim in asked}
    for one in context.ledger.claims("advertised", "server"):
        if one["endpoint"] in offered:
            offered[one["endpoint"]].append(read(one["ranges"]))
    needed = {METADATA, *map(key_of, apis - {GREETED})}
    if any(not ranges or any(needed & one.keys() for one in ranges) for ranges in offered.values()):
        return
    if not context.passed(min(claim.first.ts_ns for claim in asked) + context.settings.fell_silent_s * SECOND_NS):
        return
    others = ", ".join(sorted(apis - {GREETED}))
    for (endpoint,), mine in gathered(context.claims("client", group, *subject), "endpoint"):
        greeted = sum(count for claim in mine for word, count in claim.tally.items() if word.startswith(GREETED))
        words = {"client": mine[0]["client_id"] or "a client without an ID", "server": endpoint}
        words["times"] = counted(greeted, "time")
        words["then"] = f"then {others}, without a response" if others else "nothing after that"
        about = {"client_ids": (mine[0]["client_id"],), "count": sum(claim.count for claim in mine)}
        yield resting_on(mine, *subject[1:], endpoint, **about, words=words)


def gets_nowhere(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A client that ends before any work (CLI008)."""
    found = [*ends_at_its_coordinator(subject, group, context)]
    found = found or [*asks_for_brokers_only(subject, group, context)]
    found = found or [*refused_by_all_brokers(subject, group, context)]
    found = found or [*turned_away_at_last(subject, group, context)]
    yield from found or begins_nowhere(subject, group, context)


def refused_by_all_brokers(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A client that learned its brokers, is still connected, and asked for no work: each address that it knows refuses
    the connections of its host.
    """
    _, client_id, host = subject
    found = context.claims("activity", group, *subject)
    mine = [claim for claim in found if claim["api"] in LOOKS_FOR_BROKERS and claim.succeeded]
    if is_of_node(client_id) or not mine or not {claim["api"] for claim in found} <= BEFORE_WORK | {INIT}:
        return
    first_ns = min(claim.first.ts_ns for claim in mine)
    context.watch()
    until_ns = first_ns + context.settings.fell_silent_s * SECOND_NS
    known = known_addresses([subject], group, context)
    if not known or not all(refuses(address, host, first_ns, context) for _, address in known):
        return
    if not lives_on(subject, until_ns, context):
        return
    addresses = sorted(address for _, address in known)
    words = {
        "client": client_id or "a client without an ID",
        "step": "learned which brokers it needs",
        "then": "asked for nothing",
        "since": clock(first_ns),
        "lacks": f": {and_list(addresses[:MOST_ADDRESSES])} refuse connections",
    }
    yield resting_on(mine, client_id, host, client_ids=(mine[0]["client_id"],), first_ns=first_ns, words=words)


def refuses(address: str, host: str, since_ns: int, context: CheckContext) -> bool:
    """Whether an address refused the host since then, and never served any, over TLS or not."""
    turned = context.ledger.claims("turned_away", "link", address)
    serves = any(context.ledger.claims(kind, "link", address) for kind in ("answered", "encrypted"))
    return not serves and any(one["host"] == host and one.last.ts_ns >= since_ns for one in turned)


def turned_away_at_last(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A client that was served before, and since then each address that it knows, or asked, refuses the connections of
    its host, for longer than a restart, and serves no other. Alone on its host, it is the one that connects: one that
    had ended its connections by itself may have left.
    """
    _, client_id, host = subject
    found = context.claims("activity", group, *subject)
    if is_of_node(client_id) or not any(claim.succeeded for claim in found):
        return
    served_ns = max(run.last_ns for claim in found for run in claim.outcomes.runs())
    silent_ns = max(context.settings.cut_off_s * SECOND_NS, context.watermark_ns - served_ns)
    context.passed(context.watermark_ns + silent_ns)  # a refused connection is no news of a client
    asked = {claim["endpoint"] for claim in found}
    refused = [refusals(one, host, served_ns, context) for one in asked]
    if not any(refused):
        return  # as of almost all clients
    known = {address for _, address in known_addresses([subject], group, context)}
    refused += [refusals(one, host, served_ns, context) for one in known - asked]
    runs = [run for each in refused for run in each]
    context.watch()
    often = sum(run.count for run in runs) >= context.settings.stalled_requests
    if not (all(refused) and often and is_long_outage(runs, context)):
        return
    end = last_close(subject, group, context)
    neighbours = (one for one in context.ledger.subjects("client") if one[2] == host and one != subject)
    if any(neighbours) or (end is not None and end.by == "client") or goes_on_in_tls(host, served_ns, context):
        return
    addresses = sorted(known)
    words = {
        "client": client_id or "a client without an ID",
        "step": "got its last response",
        "then": "asked for nothing",
        "since": clock(served_ns),
        "lacks": f": {and_list(addresses[:MOST_ADDRESSES])} refuse connections",
    }
    yield resting_on(found, client_id, host, client_ids=(found[0]["client_id"],), first_ns=served_ns, words=words)


def goes_on_in_tls(host: str, since_ns: int, context: CheckContext) -> bool:
    """Whether a host has a connection over TLS since then, at any address: it may be that client's, at a listener that
    took the place of the one that it had.
    """
    links = (context.ledger.claims("encrypted", *link) for link in context.ledger.subjects("link"))
    return any(one["host"] == host and one.last.ts_ns > since_ns for claims in links for one in claims)


def is_long_outage(runs: Collection[Run], context: CheckContext) -> bool:
    lasted_ns = max(run.last_ns for run in runs) - min(run.first_ns for run in runs)
    return lasted_ns >= context.settings.cut_off_s * SECOND_NS


def refusals(address: str, host: str, since_ns: int, context: CheckContext) -> list[Run]:
    """When an address refused the host since then, if it served none after the first of them, over TLS or not."""
    turned = context.anywhere("host", "turned_away", "link", address).get((host,), ())
    runs = [run for one in turned for run in one.outcomes.runs({TURNED_AWAY}) if run.first_ns > since_ns]
    if not runs:
        return []
    first_ns = min(run.first_ns for run in runs)
    served = (one for kind in ("answered", "encrypted") for one in context.ledger.claims(kind, "link", address))
    return [] if any(one.last.ts_ns > first_ns for one in served) else runs


def begins_nowhere(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One of several processes of a client ID, as of a library's own."""
    if is_of_node(subject[1]):
        return
    for one in without_offset(subject, group, context):
        if seen_everywhere(subject, one.since_ns, group, context):
            words = {
                "client": subject[1] or "a client without an ID",
                "step": f"learned that group {one.group} has no offset",
                "then": "asked for none",
                "since": clock(one.since_ns),
                "lacks": "",
                "group": one.group,
            }
            about = {"client_ids": (one.member["client_id"],), "first_ns": one.since_ns}
            yield resting_on([one.member], *subject[1:], one.group, **about, words=words)


def ends_at_its_coordinator(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A client that learns its coordinator joins its group, or begins its transactions, at once. All brokers have to
    be captured, as it may work on at another one.
    """
    _, client_id, host = subject
    found = context.claims("activity", group, *subject)
    asked = {claim["api"] for claim in found}
    joined = bool(asked & MEMBERSHIP)
    step = OFFSET_FETCH if joined else FIND_COORDINATOR
    if is_of_node(client_id) or step not in asked or not asked <= BEFORE_WORK | (OF_MEMBERS if joined else set()):
        return
    mine = [claim for claim in found if claim["api"] == step and claim.succeeded]
    uncaptured = context.clusters.uncaptured([group])
    if not mine or any(one.streak for one in activities(found, context.settings, uncaptured=uncaptured)):
        return  # what is rejected says more
    context.watch()
    first_ns = min(claim.first.ts_ns for claim in mine)
    until_ns = first_ns + context.settings.fell_silent_s * SECOND_NS
    listings = [one for one in context.claims("listing", group, "server") if one["host"] == host]
    mine_ns = (one.last.ts_ns for one in listings if (one["client_id"] or "") == client_id)
    if max(mine_ns, default=0) >= min(until_ns, max(claim.last.ts_ns for claim in mine)):
        return  # it looks for topics of a pattern, every five minutes; librdkafka joins once there is one
    if not context.passed(until_ns) or not asks_nothing_else(subject, first_ns, until_ns, group, context):
        return
    words = {
        "client": mine[0]["client_id"] or "a client without an ID",
        "step": "learned the offsets of its group" if joined else "found its coordinator",
        "then": "read nothing" if joined else "asked for nothing",
        "since": clock(first_ns),
        "lacks": "" if joined else not_offered({claim["endpoint"] for claim in mine}, group, context),
    }
    yield resting_on(mine, client_id, host, client_ids=(mine[0]["client_id"],), first_ns=first_ns, words=words)


def asks_nothing_else(client: Subject, since_ns: int, until_ns: int, group: Group, context: CheckContext) -> bool:
    """Whether all brokers were captured, and what it asked them for several times would be known."""
    return bool(captured_brokers(group, context, asked_by=[client])) and seen_repeatedly(
        client, set(group.endpoints), since_ns, group, context, until_ns=until_ns
    )


def asks_for_brokers_only(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A client that learns again and again which broker it needs, and does not ask it: it cannot reach what that
    advertises, or does not find the host name, or a topic lacks the partition that it is for. Where all that they
    advertise was captured, and it does not show that it is for more, it is a tool that looks; others ask for all
    topics, or now and then.
    """
    _, client_id, host = subject
    found = context.claims("activity", group, *subject)
    if is_of_node(client_id) or not {claim["api"] for claim in found} <= BEFORE_WORK | {INIT}:
        return
    mine = [claim for claim in found if claim["api"] in LOOKS_FOR_BROKERS and claim.succeeded]
    runs = [run for claim in mine for run in claim.outcomes.runs()]
    count = sum(run.count for run in runs)
    if count < AGAIN:
        return
    first_ns, last_ns = min(run.first_ns for run in runs), max(run.last_ns for run in runs)
    lasted_ns = last_ns - first_ns
    cut_off = [*cut_off_by(subject, group, context)]
    tries = cut_off or asks_ever_later(mine) or on_one_connection(mine) >= lasted_ns // WITHOUT_PAUSE_NS
    if lasted_ns < context.settings.fell_silent_s * SECOND_NS or (lasted_ns > count * RARELY_NS and not tries):
        return
    context.watch()
    listings = (one for one in context.claims("listing", group, "server") if one["host"] == host)
    listed = sum(one.count for one in listings if (one["client_id"] or "") == client_id)
    if listed * LISTS_ONE_IN > count:
        return
    known = known_addresses([subject], group, context)
    in_reach = all(reached(address, broker, group, context) for broker, address in known)
    if in_reach and not (tries or any(is_producer(claim) for claim in found)):
        return
    is_one = not in_reach and len({broker for broker, _ in known}) == 1
    if not (
        is_one
        or (tries and asks_nothing_else(subject, first_ns, last_ns, group, context))
        or (not tries and seen_everywhere(subject, first_ns, group, context, until_ns=last_ns))
        or (has_a_lost_name(known, group, context) and seeks_all_the_time(mine))
        or (listed and has_lost_names_alone(known, group, context) and asks_each_second(mine))
    ):
        return
    addresses = sorted(address for broker, address in known if not reached(address, broker, group, context))
    them = f"brokers advertise {and_list(addresses[:MOST_ADDRESSES])}"
    words = {
        "client": mine[0]["client_id"] or "a client without an ID",
        "step": "learned which brokers it needs",
        "then": "asked only the same again",
        "since": clock(first_ns),
        "lacks": f", {count:,} times; {'perhaps no such partition' if in_reach else them}",
        **({"lacks": f"; {and_list(cut_off)}"} if cut_off else {}),
    }
    yield resting_on(mine, client_id, host, client_ids=(mine[0]["client_id"],), first_ns=first_ns, words=words)


def cut_off_by(subject: Subject, group: Group, context: CheckContext) -> Iterator[str]:
    """Servers that answer all that was read of a client's connections, and close each within seconds: it sends more on
    them, which never came to an end, such as a request that is larger than the server takes. Checks of health close by
    themselves.
    """
    settings = context.settings
    for _, asked in gathered(context.claims("client", group, *subject), "endpoint"):
        over = over_among(asked, subject, context)
        runs = [run for one in over for run in one.outcomes.runs({SUCCESS})]
        brief = [run for run in runs if run.last_ns - run.first_ns <= CUT_OFF_NS]
        if len(brief) < settings.never_served or (len(runs) - len(brief)) * settings.partly_one_in > len(runs):
            continue
        lasted_ns = max(run.last_ns for run in runs) - min(run.first_ns for run in runs)
        by_server = not any({"unclosed", "by_client"} & one.peak.keys() for one in over)
        if by_server and lasted_ns >= settings.stuck_s * SECOND_NS:
            yield f"{servers_of(asked, context)} closed {len(brief):,} connections early"


CUT_OFF_NS = 5 * SECOND_NS
"""Brokers close idle connections after minutes; a large request takes less to send until its server has its size."""


def has_a_lost_name(known: set[tuple[int, str]], group: Group, context: CheckContext) -> bool:
    """Whether a broker has a host name for these clients, and all brokers were captured, if by other addresses. One
    that was not may be asked for the offsets of a group each second, as by a monitor.
    """
    captured = {broker for broker, address in known_addresses(None, group, context)
                if endpoints_of(address, broker, group, context)}  # fmt: skip
    named = any(not is_literal(address) for _, address in known)
    return named and all(broker in captured for broker, _ in known)


def has_lost_names_alone(known: set[tuple[int, str]], group: Group, context: CheckContext) -> bool:
    """Whether none of the addresses that these clients have for brokers was captured, and they are host names."""
    lost = not any(reached(address, broker, group, context) or is_literal(address) for broker, address in known)
    return lost and has_a_lost_name(known, group, context)


def is_producer(claim: Claim) -> bool:
    """Whether it shows a producer ID that was granted: its client is there to write."""
    return bool(claim["api"] == INIT and claim.succeeded)


def asks_ever_later(mine: Collection[Claim]) -> bool:
    """Whether a client asks at once at first, then ever later, as long as it gets no further, and begins with that
    again: several of its slots have many requests, each before some with few. A tool keeps to its pace.
    """
    counts = Counter[int]()
    for claim in mine:
        for code in claim.outcomes.codes():
            for slot, parts in claim.outcomes.of(code).items():
                counts[slot] += sum(run.count for run in parts.values())
    fast = [slot for slot, count in counts.items() if count >= AT_FIRST]
    later = (all(0 < counts[slot + more] * FALLS_TO <= counts[slot] for more in AFTER) for slot in fast)
    return sum(later) >= TWICE


def seeks_all_the_time(mine: Collection[Claim]) -> bool:
    """Whether a client asks for its coordinator for a minute without a pause: it is answered, and does not find its
    host name. A tool that looks at several groups asks for theirs at once, and pauses.
    """
    found: dict[int, list[Run]] = {}
    for claim in mine:
        for slot, parts in claim.outcomes.of(SUCCESS).items() if claim["api"] == FIND_COORDINATOR else ():
            found.setdefault(slot, []).extend(parts.values())
    first, last = min(found, default=0), max(found, default=0)
    inner = [found.get(slot, []) for slot in range(first + 1, last)]
    return len(inner) * SLOT_NS >= MINUTE_NS and all(
        runs and max(run.last_ns for run in runs) - min(run.first_ns for run in runs) >= SLOT_NS // 2 for runs in inner
    )


def asks_each_second(mine: Collection[Claim]) -> bool:
    """Whether a client asks for metadata once a second for a minute, on one connection to each broker: sarama begins
    with all topics, and asks for its own then. Who asks for brokers alone so often may check their health.
    """
    runs = [run for claim in mine for run in claim.outcomes.runs()]
    lasted_ns = max(run.last_ns for run in runs) - min(run.first_ns for run in runs)
    return lasted_ns >= MINUTE_NS and on_one_connection(mine) >= lasted_ns // SECOND_NS


def on_one_connection(mine: Collection[Claim]) -> int:
    """How many answers a client got that has one connection to each broker: many processes of a client ID at one host,
    as of checks of health, and tools that are started again, have many.
    """
    found: dict[str, Counter[Part]] = {}
    for claim in mine:
        counts = found.setdefault(claim["endpoint"], Counter())
        for port in claim.outcomes.parts(claim.outcomes.codes()) - {OTHERS}:
            counts[port] += sum(run.count for run in claim.outcomes.runs(part=port))
    return sum(max(counts.values(), default=0) for counts in found.values())


AT_FIRST, FALLS_TO, AFTER, TWICE = 5, 2, range(2, 5), 2
"""So many requests in a slot; in those from the second after it on not more than half as many, and not none."""


def reached(address: str, broker: int, group: Group, context: CheckContext) -> bool:
    """Whether what a broker advertises was captured; behind a host name, because clients are served there."""
    ends = endpoints_of(address, broker, group, context)
    return address in ends or not ends.isdisjoint(context.clusters.serving)


def not_offered(endpoints: set[str], group: Group, context: CheckContext) -> str:
    """The newer group protocols that these brokers do not offer, as the end of a sentence."""
    advertised = context.claims("advertised", group, "server")
    offered = {key for one in advertised if one["endpoint"] in endpoints for key in read(one["ranges"])}
    lacks = [api for api in NEW_GROUPS if offered and key_of(api) not in offered]
    return f"; the broker does not offer {and_list(lacks)}" if lacks else ""


LOOKS_FOR_BROKERS, INIT = frozenset({"Metadata", FIND_COORDINATOR}), "InitProducerId"
"""How a client learns the leaders and its coordinator; what an idempotent producer asks any broker for."""
AGAIN = 20
"""So many answers are more than a start needs."""
LISTS_ONE_IN = 10
"""Who asks for all topics more often than that looks for a pattern, or is a tool."""
RARELY_NS = 3 * SECOND_NS
"""Clients ask again once a second while they reach no broker, and after five minutes when all is well."""
WITHOUT_PAUSE_NS = SECOND_NS // 3
"""So soon, all the time, a process asks again that lacks a leader (retry.backoff.ms is 100 ms), and no tool."""
MOST_ADDRESSES = 3
MEMBERSHIP = frozenset({"SyncGroup", "ConsumerGroupHeartbeat"})
"""What a member of a group asks for; a tool that looks at offsets does not."""
OFFSET_FETCH = "OffsetFetch"
OF_MEMBERS = MEMBERSHIP | {OFFSET_FETCH, "JoinGroup", "Heartbeat", "LeaveGroup"}
"""What a consumer does before it reads. It asks for offsets only where partitions are assigned to it."""
NEW_GROUPS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
"""KIP-848, KIP-932, KIP-1071: what clients with these protocols send next."""


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
        if ended_by <= elsewhere and captured_brokers(group, context) is None:
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


def connection_spans(subject: Subject, context: CheckContext) -> list[tuple[int, int]]:
    """From when to when each connection of this client, to any server, was seen: also those without a request."""
    every = (*context.ledger.claims("client", *subject), *connections_that_are_over(subject, context))
    return [(run.first_ns, run.last_ns) for one in every for run in one.outcomes.runs()]


def connections_that_are_over(subject: Subject, context: CheckContext) -> list[Claim]:
    """Those of a client, by server; of one that was never seen to close, `unclosed` is its last packet."""
    return over_among(context.ledger.claims("client", *subject), subject, context)


def over_among(asked: list[Claim], subject: Subject, context: CheckContext) -> list[Claim]:
    """The same at the servers that these requests went to."""
    _, client_id, host = subject
    hashed = hash_of(client_id)
    found: list[Claim] = []
    for endpoint in dict.fromkeys(one["endpoint"] for one in asked):
        found += context.anywhere("host client_hash", "connected", "link", endpoint).get((host, hashed), ())
    return found


LOOK_AGAIN_NS = 5 * MINUTE_NS
"""So much later than its last request a client is looked at again, if nothing new is stated of it."""


class LastClose(NamedTuple):
    """How the last connection of a client ended."""

    ns: int
    by: str
    """client or server."""


def last_close(client: Subject, group: Group, context: CheckContext) -> LastClose | None:
    """If each connection with requests of the client was closed after the last of them. One of which its client ID or
    its port was not kept may be open, and one to a broker that was not captured. A close is no news of a client: it is
    looked at again later.
    """
    asked = context.claims("client", group, *client)
    seen_ns = max((one.last.ts_ns for one in asked), default=0)
    context.passed(context.watermark_ns + max(LOOK_AGAIN_NS, context.watermark_ns - seen_ns))
    over = over_among(asked, client, context)
    closed_ns: dict[tuple[str, Part], int] = {}
    for one in over:
        for port in one.outcomes.parts({SUCCESS}):
            last_ns = max(run.last_ns for run in one.outcomes.runs({SUCCESS}, port))
            closed_ns[one["endpoint"], port] = last_ns
    if not closed_ns:
        return None
    for one in context.claims("activity", group, *client):
        for port in one.outcomes.parts(one.outcomes.codes()):
            last_ns = max(run.last_ns for run in one.outcomes.runs(part=port))
            if port == OTHERS or closed_ns.get((one["endpoint"], port), 0) < last_ns:
                return None
    end_ns = max(closed_ns.values())
    who, every = (client[1], client[2]), {*group.endpoints}
    if context.clusters.uncaptured([group]) or not seen_whole(*who, every, group, context, since_ns=end_ns):
        return None
    return LastClose(end_ns, "client" if any(one.peak.get("by_client") == end_ns for one in over) else "server")


def lives_on(client: Subject, until_ns: int, context: CheckContext) -> bool:
    """Whether the client was connected until then, or one of its connections was never closed."""
    if not context.passed(until_ns):
        return False
    unclosed = any("unclosed" in one.peak for one in connections_that_are_over(client, context))
    return unclosed or any(last_ns >= until_ns for _, last_ns in connection_spans(client, context))


def hash_of(client_id: str) -> int:
    """As connections have it."""
    name = client_id.encode(errors="replace")
    hashed, _ = hash_of_client(name, len(name))
    return hashed


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
