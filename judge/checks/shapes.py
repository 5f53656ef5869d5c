"""What checks have in common: claims that make one finding, findings that rest on claims alone, errors that last.

Knows: how claims are gathered, what they show together, and which of them hold a streak of errors. Does not know what
any of it means.
Rule: a finding that rests on claims shows the first and the last sighting of each, and counts all of them, unless its
check states otherwise.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.error_streaks import Streak, stuck
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.topic_history import name_of
from wirecheck.judge.topology.clusters import Group

Key = tuple[Any, ...]


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


def of_id(subject: Subject, group: Group, context: CheckContext) -> dict[str, Any]:
    """Columns of a finding about a topic ID."""
    return {"topic": name_of(subject, group, context), "topic_ids": (subject[1],)}


def clients_of(claims: Iterable[Claim]) -> tuple[str | None, ...]:
    return tuple(sorted({claim["client_id"] for claim in claims}, key=str))


def servers_of(claims: Iterable[Claim]) -> str:
    """As a word of a finding."""
    return ", ".join(sorted({claim["endpoint"] for claim in claims}))


def lasting(
    claims: Iterable[Claim], errors: Collection[int], apis: Collection[str], context: CheckContext
) -> Iterator[tuple[Claim, Streak]]:
    """Claims about answers of some APIs with errors that make a client stuck, and from when to when."""
    for claim in claims:
        if claim["api"] in apis and (streak := stuck(claim, errors, context)) is not None:
            yield claim, streak
