"""TID: IDs that servers grant although they list all topics without them, answers that name another ID than asked, and
IDs that a server rejects while it names them itself.

Rule: what a principal may not see is hidden from its listings, so only listings to the principal count that used the
ID. A server may not know a topic yet, or no longer: it counts by what it grants itself, or beside another one.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.fetching import WITH_IDS
from wirecheck.judge.checks.shapes import (
    apis_of,
    clients_of,
    end_ns,
    gathered,
    partial_links,
    resting_on,
    servers_of,
    slots,
    start_ns,
)
from wirecheck.judge.checks.statements import own_endpoints, spans
from wirecheck.judge.checks.topic_id_uses import users_of
from wirecheck.judge.claims.claim import RESERVED, ZERO, Claim, Subject
from wirecheck.judge.claims.extract.answers import SESSIONS
from wirecheck.judge.claims.outcomes import SUCCESS
from wirecheck.judge.results.finding import Evidence, first_of, last_of
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import REPORTS, name_of
from wirecheck.judge.topology.clusters import Group
from wirecheck.judge.topology.endpoint_history import host_of

COMMIT = "OffsetCommit"
FETCH = "Fetch"
"""Of rejected fetches, `use` has each run: FET001."""
LISTING = 2
"""So many servers must list all topics without an ID that another one grants."""
KEY = "topic_id asked api"
REPEATED = 2
"""Answers: one may have been read wrongly."""


class Grant(NamedTuple):
    """What used an ID with success, from when to when."""

    claim: Claim
    first_ns: int
    last_ns: int


def granted_id_is_not_listed(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    grants = granted(subject, group, context)
    if subject[1] in RESERVED or not grants or is_named(subject, context):
        return
    context.watch()
    listings = context.claims("listing", group, "server")
    own = own_endpoints(group, context) if listings else set()
    found: dict[str, tuple[Claim, Claim]] = {}
    for grant in grants:
        lists = [listing for listing in listings if lists_during(grant, listing, context)]
        lists = [listing for listing in lists if is_of_user(listing, grant.claim, group, context)]
        if lists and enough(lists, grant.claim, own):
            found |= {listing["endpoint"]: (grant.claim, listing) for listing in lists}
    if not found:
        return
    claims = list({id(claim): claim for claim, _ in found.values()}.values())
    lists = [listing for _, listing in found.values()]
    words = {
        "topic_id": subject[1],
        "apis": apis_of(claims),
        "client": users_of(claims, group, context),
        "server": servers_of(claims, context),
        "servers": servers_of(lists, context),
        "does": "grants" if len({claim["endpoint"] for claim in claims}) == 1 else "grant",
        "what": "lists" if len({claim["endpoint"] for claim in lists}) == 1 else "list",
    }
    sides = (*(first_of(claim) for claim in claims), *map(last_of, lists), *(last_of(claim) for claim in claims))
    about = {"topic_ids": (subject[1],), "client_ids": clients_of(claims)}
    yield resting_on(claims, subject[1], sides=sides, **about, words=words)


def granted(subject: Subject, group: Group, context: CheckContext) -> list[Grant]:
    """Commits are known to be granted by their server and group, and by their client where it alone commits there."""
    found: list[Grant] = []
    uses = context.claims("use", group, *subject)
    for claim in uses:
        runs = claim.outcomes.runs({SUCCESS})
        if runs:
            found.append(Grant(claim, min(run.first_ns for run in runs), max(run.last_ns for run in runs)))
    for commit in context.claims("committed", group, *subject):
        who = [claim for claim in uses if (claim["api"], claim["endpoint"]) == (COMMIT, commit["endpoint"])]
        found += [Grant(claim, commit.first.ts_ns, commit.last.ts_ns) for claim in who if len(who) == 1]
    assigned = context.claims("assigned", group, *subject)
    return found + [Grant(claim, claim.first.ts_ns, claim.last.ts_ns) for claim in assigned]


def is_named(subject: Subject, context: CheckContext) -> bool:
    """Whether anything in any cluster gives the ID a name, or removes the topic."""
    return bool(context.believed(subject, "binding", "stated", "deletion", "described"))


def lists_during(grant: Grant, listing: Claim, context: CheckContext) -> bool:
    """Whether all topics were listed twice at least while the ID was granted."""
    times = slots(listing.tally)
    inside = [slot for slot in times if grant.first_ns <= start_ns(slot) and end_ns(slot) <= grant.last_ns]
    return bool(inside) and start_ns(inside[-1]) - start_ns(inside[0]) >= context.settings.broker_grace_ns


def enough(lists: list[Claim], use: Claim, own: set[str]) -> bool:
    """Whether it is no proxy that lists what one of its tenants may see, and no server that is late."""
    client = use["client_id"], use["host"]
    places = {one["endpoint"] for one in lists if (one["client_id"], one["host"]) == client or one["endpoint"] in own}
    hosts = {host_of(one["endpoint"]) for one in lists}
    return use["endpoint"] in places or len(places) >= LISTING or len(hosts) >= LISTING


def is_of_user(one: Claim, other: Claim, group: Group, context: CheckContext) -> bool:
    """Whether the listing is to who used the ID, or has the same principal."""
    if (one["client_id"], one["host"]) == (other["client_id"], other["host"]):
        return True
    mine, theirs = principals(one, group, context), principals(other, group, context)
    return mine is not None and mine == theirs


def principals(claim: Claim, group: Group, context: CheckContext) -> frozenset[str] | None:
    """The names that a client logged in with at a server, none on a listener without logins; None where it is not
    known: its connections began before the capture, or are encrypted.
    """
    client = "client", claim["client_id"] or "", claim["host"]
    logins = context.claims("login", group, *client)
    if logins:
        return frozenset(login["principal"] for login in logins)
    link = "link", claim["endpoint"]
    hidden = (*context.claims("midway", group, *link), *context.claims("encrypted", group, *link))
    return None if any(one["host"] == claim["host"] for one in hidden) else frozenset()


def answer_names_another_id(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    answers = [claim for claim in context.claims("other_answer", group, *subject) if named_in(claim) == subject[1]]
    found = [(*key, sum(claim.count for claim in claims), claims) for key, claims in gathered(answers, KEY)]
    sessions = gathered(answered_in_sessions(subject, group, context), "topic_id api")
    known = {(topic_id, api) for topic_id, asked, api, *_ in found if not asked}
    found += [
        (topic_id, None, api, sum(map(granted_count, claims)), claims)
        for (topic_id, api), claims in sessions
        if (topic_id, api) not in known
    ]
    for topic_id, asked, api, count, claims in found:
        if count < REPEATED:
            continue
        ids = tuple(one for one in (asked, topic_id) if one and one != ZERO)
        names = (name_of(("id", one), group, context) for one in ids)
        name = next((one for one in names if one is not None), None)
        words: dict[str, Any] = {"api": api, "server": servers_of(claims, context)}
        words |= {"asked": asked or "other IDs", "with": with_id(topic_id)}
        about = {"topic": name, "topic_ids": ids, "client_ids": clients_of(claims), "count": count}
        yield resting_on(claims, topic_id, asked or "", api, **about, words=words)


def answered_in_sessions(subject: Subject, group: Group, context: CheckContext) -> list[Claim]:
    """Answers in sessions that name an ID which the client asks for in none of its requests. All of them were captured,
    and are remembered: sessions last, and an idle topic is named again after hours.
    """
    uses = context.claims("use", group, *subject)
    odd = [claim for claim in uses if claim["api"] in SESSIONS and "asked" not in claim.peak and is_by_id(claim)]
    if subject[1] in RESERVED or not odd:
        return []
    found = [claim for claim in odd if granted_count(claim) >= REPEATED and is_whole(claim, group, context)]
    if found:  # what is not whole never becomes so
        context.watch()
    return found


def is_by_id(use: Claim) -> bool:
    """Whether its requests name topics by ID alone: those of a draft have the name besides."""
    return use["api"] != FETCH or use.first.version >= WITH_IDS


def granted_count(use: Claim) -> int:
    return sum(run.count for run in use.outcomes.runs({SUCCESS}))


def is_whole(use: Claim, group: Group, context: CheckContext) -> bool:
    """Whether all requests of a client to a server are known, from the first one on."""
    begun = [one.first.ts_ns for one in context.claims("client", group, "client", use["client_id"] or "", use["host"])]
    if not begun or use.last.ts_ns - min(begun) >= context.settings.horizon_s * SECOND_NS:
        return False
    return not any(partial_links(use["client_id"], use["host"], use["endpoint"], group, context))


def named_in(answer: Claim) -> str | None:
    """The ID that the answer names, or was asked about where it names none."""
    topic_id: str | None = answer["asked"] if answer["topic_id"] == ZERO else answer["topic_id"]
    return topic_id


def with_id(topic_id: str) -> str:
    return "with no topic ID" if topic_id == ZERO else f"with topic ID {topic_id}"


TIMES = 3


def named_id_is_rejected(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    rejected = [one for one in context.claims("id_rejected", group, *subject) if one["api"] != FETCH]
    if subject[1] in RESERVED or not rejected:
        return
    context.watch()
    own = own_endpoints(group, context)
    named = [one for one in context.claims("binding", group, *subject) if one["source"] in REPORTS]
    found: dict[str, list[Claim]] = {}
    for claim in rejected:
        names = [one for one in named if one["endpoint"] == claim["endpoint"] and meanwhile(claim, one, context)]
        if names and claim["endpoint"] in own and not granted_meanwhile(claim, subject, group, context):
            found.setdefault(claim["endpoint"], []).append(claim)
    for endpoint, claims in sorted(found.items()):
        name = name_of(subject, group, context)
        words: dict[str, Any] = {"server": servers_of(claims, context), "topic_id": subject[1], "topic": name}
        words |= {"apis": apis_of(claims), "client": users_of(claims, group, context)}
        about: dict[str, Any] = {"topic": name, "topic_ids": (subject[1],), "client_ids": clients_of(claims)}
        about["brokers"] = tuple({context.broker(claim) for claim in claims})
        yield resting_on(claims, subject[1], endpoint, **about, words=words)


def meanwhile(rejected: Claim, named: Claim, context: CheckContext) -> bool:
    """Whether the server names the ID for longer than the grace period while it rejects it again and again."""
    since_ns, until_ns = (
        max(rejected.first.ts_ns, named.first.ts_ns),
        min(rejected.last.ts_ns, named.last.ts_ns),
    )
    times = [begin for begin, end in spans(rejected) if since_ns <= end and begin <= until_ns]
    return until_ns - since_ns >= context.settings.broker_grace_ns and rejected.count >= TIMES and len(times) >= TIMES


def granted_meanwhile(rejected: Claim, subject: Subject, group: Group, context: CheckContext) -> bool:
    """Whether the server granted such requests about the ID in between: it knows it at times."""
    key = "api", "endpoint"
    since_ns, until_ns = rejected.first.ts_ns, rejected.last.ts_ns
    uses = [one for one in context.claims("use", group, *subject) if all(one[k] == rejected[k] for k in key)]
    runs = (run for one in uses for run in one.outcomes.runs({SUCCESS}))
    return any(run.first_ns < until_ns and since_ns < run.last_ns for run in runs)
