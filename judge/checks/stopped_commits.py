"""CLI011: members that read on while what their group has committed stands still.

Rule: one commit that is late proves nothing: a record may take minutes. It counts only if the group has committed again
and again, the log has more since, and the member fetches on for longer than twice the longest time between two commits.
Where no rhythm is seen the limit is the member's own rebalance timeout (of Java max.poll.interval.ms).
"""

from collections.abc import Iterator
from typing import NamedTuple

from wirecheck.decode.request_waits import MILLISECOND_NS
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.idle_members import (
    Held,
    held_by,
    idle_since_ns,
    is_long,
    is_of_share_group,
    lives_on,
)
from wirecheck.judge.checks.log_ends import Unconfirmed
from wirecheck.judge.checks.progress import Log, assigned, greatest, log_of, longest_gap, reached
from wirecheck.judge.checks.shapes import clock, counted, end_ns, resting_on
from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.claims.outcomes import HARMLESS, SLOT_NS
from wirecheck.judge.results.finding import Evidence, Number
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group

COMMIT = "OffsetCommit"
RHYTHM, ADVANCES = 10, 2
"""So many commits are again and again; so many slots before the last advance show how often a group commits."""
LEAST_S = 60
"""A record may take as long, at first."""
SOON_S = 90
"""The same where so many commits came within few seconds only, as of one that begins to read."""


class Stands(NamedTuple):
    held: Held
    offset: int
    since_ns: int
    """From when on the log had more than the committed offset, which did not move."""
    behind: int
    patience_ns: int


def reads_on_and_commits_nothing(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per group, topic and client of a host."""
    every = (one for one in context.claims("member", group, *subject) if not is_of_share_group(one))
    members = [one for one in every if is_long(one, context)]
    if not members:
        return
    context.watch()
    logs: dict[str, Log] = {}
    found: dict[tuple[str, str, str], list[Stands]] = {}
    for held in (one for member in members for one in held_by(member, group, context)):
        if held.topic not in logs:
            logs[held.topic] = log_of(("name", held.topic), group, context)
        one = stands(held, logs[held.topic])
        if one is not None and reads_on(one, subject, logs[held.topic]):
            found.setdefault((held.member["group"], held.topic, held.member["client_id"] or ""), []).append(one)
    for (reads, topic, client_id), those in sorted(found.items()):
        claims = list({id(one.held.member): one.held.member for one in those}.values())
        since_ns = min(one.since_ns for one in those)
        words = {
            "client": client_id or "a client without an ID",
            "group": reads,
            "does": "reads" if all(is_alone(one.held, group, context) for one in those) else "holds",
            "partitions": counted(len({one.held.partition for one in those}), "partition"),
            "offset": those[0].offset,
            "since": clock(since_ns),
            "records": Number(sum(one.behind for one in those)),
        }
        about = {"topic": topic, "client_ids": (claims[0]["client_id"],), "first_ns": since_ns}
        about["topic_ids"] = tuple(sorted({one.held.topic_id for one in those if one.held.topic_id}))
        last_ns = max(claim.peak["alive"] for claim in claims)
        yield resting_on(claims, reads, topic, client_id, subject[1], **about, last_ns=last_ns, words=words)


def stands(held: Held, log: Log) -> Stands | None:
    """Since when the committed offset of a partition does not move while the log has more."""
    every = log.current("committed", held.partition)
    done = [claim for claim in every if claim["group"] == held.member["group"]]
    if sum(claim.count for claim in done) < RHYTHM:
        return None
    commits = log.since_born(done)
    offset = commits[-1][1] if commits else 0
    others = [slot for slot, value in commits if value != offset]
    since = next((slot for slot, _ in commits if slot > max(others, default=-1)), 0)
    end = log.end(held.partition)
    more = reached(end, offset, since)
    if more is None or has_all(offset, log.unconfirmed(held.partition)):
        return None
    since_ns = max(end_ns(more), held.member.peak["assigned"])
    own_ns = int(held.member.peak["rebalance_timeout_ms"]) * MILLISECOND_NS
    rhythm_ns = 2 * (longest_gap(commits, since) + 1) * SLOT_NS if others else own_ns
    least_s = LEAST_S if len(others) >= ADVANCES else SOON_S
    return Stands(held, offset, since_ns, greatest(end) - offset, max(least_s * SECOND_NS, rhythm_ns))


def has_all(offset: int, confirmed: Unconfirmed | None) -> bool:
    """Whether a group has read all that enough replicas confirm."""
    return confirmed is not None and offset >= confirmed.offset


def is_alone(held: Held, group: Group, context: CheckContext) -> bool:
    """Whether no member of another group with the same client ID on the host had the partition: its fetches may be that
    one's.
    """
    mine = held.member
    every = context.claims("member", group, "host", mine["host"])
    others = (one for one in every if one["client_id"] == mine["client_id"] and one["group"] != mine["group"])
    return not any(value[1:] == [held.topic, held.partition] for one in others for value in assigned(one))


def reads_on(one: Stands, subject: Subject, log: Log) -> bool:
    """Whether its member lives and fetches on for longer than it may, and all that it sent is known; nothing else
    makes it wait: a quota, an open transaction, or commits that are rejected, of which other checks speak. Of a topic
    that is written in transactions the records behind may be aborted ones, and markers.
    """
    group, context, member = log.group, log.context, one.held.member
    if not lives_on(member, one.since_ns, one.patience_ns, context):
        return False
    client = "client", member["client_id"] or "", subject[1]
    if any(context.claims(kind, group, *client) for kind in ("throttled", "held_back")):
        return False
    if log.every("writes_in_transaction") or rejects_commits(client, one, log):
        return False
    until_ns = one.since_ns + one.patience_ns
    return idle_since_ns(one.held, subject, [client], group, context) >= until_ns and log.whole(
        (member["client_id"], subject[1]), one.since_ns
    )


def rejects_commits(client: Subject, one: Stands, log: Log) -> bool:
    """Whether commits of the topic are rejected meanwhile: another client may have the same ID, as a library's own."""
    by_name, by_id = (log.context.claims(kind, log.group, *client) for kind in ("named_answer", "refused"))
    every = [claim for claim in by_name if claim["name"] == one.held.topic]
    every += [claim for claim in by_id if claim["topic_id"] in one.held.topic_ids]
    return any(
        run.last_ns >= one.since_ns
        for claim in every
        if claim["api"] == COMMIT
        for run in claim.outcomes.runs(claim.outcomes.codes() - HARMLESS)
    )
