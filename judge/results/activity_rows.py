"""Rows of the table activities: what came of each client's requests, by API, and whether it gets its work done.

Rule: one row per client and API, counted over all servers of its cluster. The state is that of `activity_states.py`.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from wirecheck.judge.activity_states import Activity, activities
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.outcomes import CLOSED, GIVEN_UP, IN_FLIGHT, LATE, OPEN, UNASKED, UNREADABLE, UNSEEN
from wirecheck.judge.results.result_table import ResultRow
from wirecheck.judge.split_batches import may_split
from wirecheck.judge.streaks import Streak
from wirecheck.judge.topology.clusters import Group


def activities_of_client(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    for (key, cluster), found in by_cluster(subject, context):
        for one in found:
            yield row(one, key, cluster)


def by_cluster(subject: Subject, context: CheckContext) -> Iterator[tuple[tuple[str, str | None], list[Activity]]]:
    """The activities of a client, by key and name of the cluster."""
    parts: dict[tuple[str, str | None], list[Claim]] = {}
    groups = defaultdict[tuple[str, str | None], dict[int, Group]](dict)
    entries = defaultdict[tuple[str, str | None], list[Claim]](list)
    for claim in context.believed(subject, "entry"):
        for group, part in context.clusters.parts(claim):
            entries[group.key, group.cluster].append(part)
    for claim in context.believed(subject, "activity"):
        for group, part in context.clusters.parts(claim):
            parts.setdefault((group.key, group.cluster), []).append(part)
            groups[group.key, group.cluster][id(group)] = group
    for place in sorted(parts, key=str):
        uncaptured = context.clusters.known_uncaptured(groups[place].values())
        mine, splits = entries[place], partial(may_split, subject, context)
        found = activities(parts[place], context.settings, uncaptured=uncaptured, entries=mine, may_split=splits)
        yield place, found


def row(one: Activity, key: str, cluster: str | None) -> ResultRow:
    streak = one.streak
    return ResultRow.of(
        "activities",
        "|".join((key, one.client_id or "", one.host, one.api)),
        cluster,
        client_id=one.client_id,
        address=one.host,
        api=one.api,
        step=one.step,
        state=one.state,
        since=streak.first_ns if streak else None,
        until=streak.last_ns if streak and (streak.ended or may_have_ended(streak, one)) else None,
        requests=one.counts.total(),
        granted=one.granted - one.count(UNASKED),
        late=one.count(LATE),
        unasked=one.count(UNASKED),
        rejected=one.rejected,
        closed=one.count(CLOSED),
        given_up=one.count(GIVEN_UP),
        in_flight=one.count(IN_FLIGHT),
        unknown=one.count(OPEN, UNSEEN, UNREADABLE),
        errors=one.errors,
        first_seen=min(claim.first.ts_ns for claim in one.claims),
        last_seen=max(claim.last.ts_ns for claim in one.claims),
    )


def may_have_ended(streak: Streak, one: Activity) -> bool:
    """Whether a later request was perhaps granted: who asks until it is, and leaves, asks no more after that."""
    return any(run.last_ns > streak.last_ns for run in one.outcomes.runs({OPEN, UNSEEN, UNREADABLE}))
