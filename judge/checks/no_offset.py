"""CLI008, of one group among several of a client ID: members that learn that their group has no offset, and go nowhere.

Rule: who has no committed offset asks for the beginning or the end of the log next, unless auto.offset.reset says not
to. What each process of a client ID asks for is not seen; but fewer such requests than groups without an
offset show that some did not ask, and those that have committed since did.
"""

from collections.abc import Iterator
from typing import NamedTuple

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.progress import Log, assigned_last, greatest, log_of, members_of, of_group
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group

LIVES_S = 60
"""A member may pause what it just got for a while."""


class NoOffset(NamedTuple):
    group: str
    member: Claim
    since_ns: int


def without_offset(subject: Subject, group: Group, context: CheckContext) -> Iterator[NoOffset]:
    """One per group."""
    mine = [one for one in members_of(subject[1], subject[2], group, context) if "assigned" in one.peak]
    if len({one["group"] for one in mine}) < 2:
        return
    context.watch()
    found: dict[str, NoOffset] = {}
    for topic, partition in sorted({held for one in mine for held in assigned_last(one)}):
        log = log_of(("name", topic), group, context)
        lack = {claim["group"]: claim for claim in log.current("offset_gone", partition)}
        if not lack or not greatest(log.end(partition)):
            continue
        sought = log.current("sought", partition)
        asked = sum(one.count for one in sought if ((one["client_id"] or ""), one["host"]) == subject[1:])
        gone = [one for reads in sorted(lack) if (one := lost(lack[reads], mine, (topic, partition), log)) is not None]
        if 0 < len(gone) <= len(lack) - asked:
            found |= {one.group: one for one in gone}
    yield from (one for _, one in sorted(found.items()))


def lost(gone: Claim, mine: list[Claim], held: tuple[str, int], log: Log) -> NoOffset | None:
    """A member of a group without an offset that lives on, and whose group never committed the partition."""
    reads, last_ns = gone["group"], gone.last.ts_ns
    if log.current_of("committed", held[1], reads):
        return None
    lives = [
        one
        for one in mine
        if one["group"] == reads
        and held in assigned_last(one)
        and one.peak.get("alive", 0) >= last_ns + LIVES_S * SECOND_NS
    ]
    alone = len({(one["client_id"], one["host"]) for one in of_group("member", reads, log.group, log.context)}) == 1
    return NoOffset(reads, lives[0], last_ns) if lives and alone else None
