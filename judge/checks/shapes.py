"""What checks have in common: claims that make one finding, findings that rest on claims alone, errors that last, who
asked, and whether all of it was seen.

Knows: how claims are gathered, what they show together, and which of them hold a streak of errors. Does not know what
any of it means.
Rule: a finding that rests on claims shows the first and the last sighting of each, and counts all of them, unless its
check states otherwise.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.error_streaks import Streak, stuck
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.client_ids import broker_of
from wirecheck.judge.ledger.connection_sums import BROKEN, CONTINUED
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.topic_history import History, Topic, name_of
from wirecheck.judge.topology.clusters import Group

Key = tuple[Any, ...]


def clock(ts_ns: int) -> str:
    """As 2026-11-21 00:10:25.616 UTC."""
    seconds, rest = divmod(ts_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest // 1_000_000:03d} UTC"


def about(ts_ns: int) -> str:
    """A time that is known to a slot of 10 s only: as about 2026-11-21 00:10:20 UTC."""
    return f"about {datetime.fromtimestamp(ts_ns // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def gathered(claims: Iterable[Claim], by: str | Callable[[Claim], Key]) -> list[tuple[Key, list[Claim]]]:
    """Claims that make one finding, by fields of their keys or by what a function makes of each; in order."""
    found: dict[Key, list[Claim]] = {}
    fields = by.split() if isinstance(by, str) else ()
    for claim in claims:
        key = tuple(claim[field] for field in fields) if isinstance(by, str) else by(claim)
        found.setdefault(key, []).append(claim)
    return sorted(found.items(), key=lambda item: str(item[0]))


def ends(claims: Iterable[Claim]) -> tuple[Side, ...]:
    """The first and the last sighting of each."""
    return tuple(side for claim in claims for side in (first_of(claim), last_of(claim)))


def resting_on(claims: Collection[Claim], *key: Any, **columns: Any) -> Evidence:
    """One finding of these claims."""
    return Evidence(key, **{"sides": ends(claims), "count": sum(claim.count for claim in claims), **columns})


def of_link(claim: Claim, **words: Any) -> Evidence:
    """One finding per client host and endpoint."""
    host, endpoint = claim["host"], claim["endpoint"]
    return resting_on([claim], host, endpoint, words={"host": host, "server": endpoint, **words})


def of_id(subject: Subject, group: Group, context: CheckContext) -> dict[str, Any]:
    return {"topic": name_of(subject, group, context), "topic_ids": (subject[1],)}


def of_topic(topic: Topic, *histories: History) -> dict[str, Any]:
    return {"topic": topic.name, "topic_ids": tuple(history.topic_id for history in histories)}


def clients_of(claims: Iterable[Claim]) -> tuple[str | None, ...]:
    return tuple(sorted({claim["client_id"] for claim in claims}, key=str))


def apis_of(claims: Iterable[Claim]) -> str:
    return ", ".join(sorted({claim["api"] for claim in claims}))


def brokers_of(claims: Iterable[Claim], context: CheckContext) -> tuple[int | None, ...]:
    return tuple(context.broker(claim) for claim in claims)


def if_broker(node: int | str) -> tuple[int, ...]:
    """What is known of a node (`CheckContext.node`) as a column."""
    return (node,) if isinstance(node, int) else ()


def servers_of(claims: Iterable[Claim]) -> str:
    return ", ".join(sorted({claim["endpoint"] for claim in claims}))


def lasting(
    claims: Iterable[Claim], errors: Collection[int], apis: Collection[str] | None, context: CheckContext
) -> Iterator[tuple[Claim, Streak]]:
    """Claims about answers of some APIs, or all, with errors that make a client stuck, and from when to when."""
    for claim in claims:
        if (apis is None or claim["api"] in apis) and (streak := stuck(claim, errors, context)) is not None:
            yield claim, streak


def stuck_client(
    claim: Claim, streak: Streak, *key: Any, context: CheckContext, words: dict[str, Any], **columns: Any
) -> Evidence:
    """One client that one server refuses, since when."""
    about = {"client_ids": (claim["client_id"],), "brokers": (context.broker(claim),), "count": streak.count}
    words = {"since": clock(streak.first_ns), **words}
    return resting_on([claim], *key, **{**about, "first_ns": streak.first_ns, **columns}, words=words)


def requesters(claims: Iterable[Claim], group: Group, context: CheckContext) -> str:
    """The brokers among those who asked, by number, as a word of a finding. A client ID proves nothing: it counts only
    from a host that acts as that broker.
    """
    named = {(broker_of(claim["client_id"]), claim["host"]) for claim in claims}
    brokers = {broker for broker, host in named if broker is not None and context.acts_as(broker, host, group)}
    return ",".join(map(str, sorted(brokers)))


def seen_whole(client_id: str | None, host: str, endpoints: set[str], group: Group, context: CheckContext) -> bool:
    """Whether everything a client asked of these endpoints, and was answered, is in the capture. After one gap, one
    message that could not be read, or a beginning that was not seen, nothing is known to be missing. A connection on
    which nobody was recognised may be anybody's.
    """
    return not any(BROKEN in partly(client_id, host, endpoint, group, context) for endpoint in sorted(endpoints))


def all_begun(client_id: str | None, host: str, endpoint: str, group: Group, context: CheckContext) -> bool:
    """Whether every connection of a client began its fetch session anew: one that goes on with a session brings along
    what was asked on another, perhaps before the capture.
    """
    return CONTINUED not in partly(client_id, host, endpoint, group, context)


def partly(client_id: str | None, host: str, endpoint: str, group: Group, context: CheckContext) -> set[str]:
    """Why not all is known of the connections that are a client's, or may be."""
    return {
        claim["what"]
        for claim in context.claims("partial", group, "link", endpoint)
        if claim["host"] == host and (claim["anybodys"] or claim["client_id"] == client_id)
    }
