"""Rows of the table recreations: what each client of a topic did once it was deleted and created again.

Rule: a client has a row if it read or wrote the topic before. Where it went on, and that it does nothing since, is
stated only while all that it asks brokers for is known.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from wirecheck.client_ids import is_internal
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.progress import Log, Reader, Skip, Who, log_of, never_read
from wirecheck.judge.checks.recreations import BY_NAME, Continuation, continuations
from wirecheck.judge.checks.set_back import read_again
from wirecheck.judge.checks.shapes import end_ns, gathered
from wirecheck.judge.checks.topic_ids import requesters
from wirecheck.judge.checks.transactions import ended_first
from wirecheck.judge.claims.claim import Claim, Subject, error_name
from wirecheck.judge.results.result_table import ResultRow
from wirecheck.judge.results.topic_rows import known
from wirecheck.judge.thresholds import SECOND_NS

FIRST, LOST, END, ANOTHER = "first record", "records never read", "end as asked", "another offset"
REJECTED, NOTHING, NOT_KNOWN, GOES_ON = "rejected since", "nothing since", "not known", "goes on"
NEVER = 0, False
RETENTION_NS = 300 * SECOND_NS
"""log.retention.check.interval.ms: a new log has lost nothing by retention before."""


class Now(NamedTuple):
    """What a client does with the topic that is there now."""

    client_id: str | None
    host: str
    does: str
    state: str
    errors: list[str]
    first_ns: int
    last_ns: int
    only: dict[str, Any]
    """What readers have alone, or writers."""


def recreations_of_name(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    for group in known(context.groups(subject)):
        log = log_of(subject, group, context)
        if (lives := log.topic.lives) is None:
            continue
        old, new = log.topic.histories[-2:] if len(log.topic.histories) > 1 else (None, None)
        who = requesters(log.topic, old, new) if old and new else {}
        every = [*read(log), *written(log, lives.ended_ns)]
        by_fetch = {(one.client_id, one.host) for one in every if one.does == "reads"}
        every += [one for one in shared(log) if (one.client_id, one.host) not in by_fetch]
        for one in every:
            yield ResultRow.of(
                "recreations",
                "|".join((group.key, log.topic.name, log.topic_id or "", one.client_id or "", one.host, one.does)),
                group.cluster,
                topic=log.topic.name,
                topic_id=log.topic_id,
                former_id=old.topic_id if old else None,
                deleted=lives.ended_ns,
                created=lives.born_ns,
                deleted_by=who.get("deleted_by_client_id"),
                created_by=who.get("created_by_client_id"),
                client_id=one.client_id,
                address=one.host,
                does=one.does,
                state=one.state,
                never_read=one.only.get("never_read"),
                partitions=one.only.get("partitions", []),
                errors=one.errors,
                writes_by=one.only.get("writes_by"),
                transaction=one.only.get("transaction"),
                first_seen=one.first_ns,
                last_seen=one.last_ns,
            )


def read(log: Log) -> Iterator[Now]:
    skips = {partition: never_read(log, partition) for partition in sorted(log.of("position"))}
    for (client_id, host), every in continuations(log).items():
        is_whole = log.whole((client_id, host), log.born_ns)
        lost = {one.partition: skip for one in every if (skip := skips[one.partition].get((client_id, host)))}
        state = state_of(every, lost, log) if is_whole or lost else NOT_KNOWN
        rejected = state == REJECTED or (state == NOTHING and any(one.answer[1] for one in every))
        errors = sorted({named(one.answer[1]) for one in every if one.answer[1]}) if rejected else []
        begun = [
            partition_of(one, lost.get(one.partition), log)
            for one in every
            if one.offset is not None and (is_whole or one.partition in lost)
        ]
        never = sum(skip.records for skip in lost.values())
        first_ns = min(claim.first.ts_ns for one in every for claim in one.claims)
        only = {"never_read": never, "partitions": begun}
        yield Now(client_id, host, "reads", state, errors, first_ns, max(one.asked_ns for one in every), only)


def state_of(every: list[Continuation], lost: dict[int, Skip], log: Log) -> str:
    if lost:
        return END if all(skip.asked for skip in lost.values()) else LOST
    if any(one.reads for one in every):
        offsets = [(one.offset, first_of(one.mine, log)) for one in every if one.reads]
        if any(offset is None for offset, _ in offsets):
            return NOT_KNOWN
        return ANOTHER if any(offset > first for offset, first in offsets if offset is not None) else FIRST
    slots = [slot for one in every for slot, _ in log.end(one.partition)[-1:]]
    silent_ns = max(map(end_ns, slots), default=0) - max(one.asked_ns for one in every)
    return NOTHING if silent_ns >= log.context.settings.stuck_s * SECOND_NS else REJECTED


def first_of(every: Iterable[Reader], log: Log) -> int:
    """The first offset of the new log, as far as its readers show it."""
    return max((one.begin or 0 for one in every if log.is_now(one)), default=0)


def partition_of(one: Continuation, lost: Skip | None, log: Log) -> dict[str, int | None]:
    never = range(lost.begin, lost.end) if lost else range(0)
    return partition(one.partition, one.offset, never, read_again(one.mine, one.partition, log))


def partition(number: int, offset: int | None, never: range, again: range = range(0)) -> dict[str, int | None]:
    """Where a reader begins, and which offsets it never reads and reads again."""
    return {
        "partition": number,
        "offset": offset,
        "never_read_from": never.start if never else None,
        "never_read_to": never.stop - 1 if never else None,
        "never_read": len(never),
        "read_again_from": again.start if again else None,
        "read_again_to": again.stop - 1 if again else None,
        "read_again": len(again),
    }


def named(error: int) -> str:
    """Kafka's name, without the code."""
    return error_name(error).partition(" ")[0]


def shared(log: Log) -> Iterator[Now]:
    """Members of share groups. All members of a group share its partitions: where one of them begins, each does."""
    answered = [one for one in log.every("shared") if "set" not in one.peak]
    for (client_id, host), mine in gathered(answered, "client_id host"):
        if not any(is_former(one, log) for one in mine):
            continue
        groups = {one["group"] for one in mine}
        begun = share_begun(groups.pop(), answered, log) if len(groups) == 1 else {}
        here = {one["partition"] for one in mine if one["topic_id"] == log.topic_id}
        known = [partition(number, begun[number].stop, begun[number]) for number in sorted(here & begun.keys())]
        never = sum(one["never_read"] or 0 for one in known)
        state = LOST if never else FIRST if known else NOT_KNOWN
        yield Now(client_id, host, "reads", state, [], *span(mine), {"never_read": never, "partitions": known})


def is_former(claim: Claim, log: Log) -> bool:
    return claim["topic_id"] not in {*BY_NAME, log.topic_id}


def share_begun(reads: str | None, answered: list[Claim], log: Log) -> dict[int, range]:
    """By partition of the new topic the offsets from the log's first record to where a share group begins. None where
    anything of a member was not captured, where a tool has set the group's offsets, or where the new log may have
    lost records before.
    """
    mine = [one for one in answered if one["group"] == reads]
    new = [one for one in mine if one["topic_id"] == log.topic_id and "lowest" in one.peak]
    members: set[Who] = {(one["client_id"], one["host"]) for one in mine}
    sets = [one for one in log.every("shared") if "set" in one.peak and one["group"] == reads]
    is_set = any(one.peak["set"] > log.born_ns for one in sets)
    if is_set or not all(log.whole(who, log.born_ns) for who in members):
        return {}
    found = {}
    for (number,), claims in gathered(new, "partition"):
        begun_ns = -max(one.peak["begun"] for one in claims)
        first = first_of(log.readers(number), log)
        if begun_ns - log.born_ns < RETENTION_NS:
            found[number] = range(first, max(first, -max(one.peak["lowest"] for one in claims)))
    return found


def written(log: Log, ended_ns: int) -> Iterator[Now]:
    """Of a writer by name it is not known which of the two topics it wrote to but by the time."""
    for (client_id, host), mine in gathered(log.every("written"), "client_id host"):
        if is_internal(client_id or "") or not any(is_before(claim, log, ended_ns) for claim in mine):
            continue
        of_it = [claim for claim in mine if claim["topic_id"] in {*BY_NAME, log.topic_id}]
        granted_ns, by_name = max(((wrote_last_ns(one), one["topic_id"] in BY_NAME) for one in of_it), default=NEVER)
        rejected_ns, error = max(tuple(claim.peak.get("rejected", (0, 0))) for claim in mine)
        goes_on = granted_ns > log.born_ns
        in_vain_ns = max((one.peak.get("unasked", 0) for one in mine if is_former(one, log)), default=0)
        is_rejected = rejected_ns > max(granted_ns, ended_ns) or in_vain_ns > max(granted_ns, log.born_ns)
        first_ns, last_ns = span(mine)
        silent = not goes_on and not is_rejected and is_silent((client_id, host), max(last_ns, log.born_ns), log)
        state = REJECTED if is_rejected else GOES_ON if goes_on else NOTHING if silent else NOT_KNOWN
        only = {
            "writes_by": ("name" if by_name else "ID") if state == GOES_ON else None,
            "transaction": transaction((client_id, host), mine, log, ended_ns),
        }
        errors = [named(error)] if is_rejected and error else []
        yield Now(client_id, host, "writes", state, errors, first_ns, last_ns, only)


def wrote_last_ns(claim: Claim) -> int:
    """Granted, or with acks=0."""
    last: int = max(claim.peak.get("granted", 0), claim.peak.get("unasked", 0))
    return last


def is_silent(who: Who, last_ns: int, log: Log) -> bool:
    """Whether a client has written nothing for long, and all that it asked brokers for since is known."""
    return log.whole(who, last_ns) and log.context.passed(last_ns + log.context.settings.stuck_s * SECOND_NS)


def transaction(who: Who, mine: list[Claim], log: Log, ended_ns: int) -> str | None:
    """How the transaction ended in which a client wrote to the former topic last, if that was after its deletion: what
    it had written there is gone. None also where that is not known: of writers by name, of several transactional IDs,
    and where several transactions ended within a second.
    """
    wrote_ns = max((one.peak.get("granted", 0) for one in mine if is_former(one, log)), default=0)
    writes = [one for one in log.every("writes_in_transaction") if (one["client_id"], one["host"]) == who]
    names = {one["transactional_id"] for one in writes}
    if not wrote_ns or len(names) != 1 or not log.whole(who, wrote_ns):
        return None
    end = ended_first(names.pop(), wrote_ns, log.group, log.context)
    return end.how if end is not None and end.ts_ns > ended_ns else None


def is_before(claim: Claim, log: Log, ended_ns: int) -> bool:
    return claim.first.ts_ns < ended_ns and (claim["topic_id"] in BY_NAME or claim["topic_id"] != log.topic_id)


def span(claims: Iterable[Claim]) -> tuple[int, int]:
    every = list(claims)
    return min(one.first.ts_ns for one in every), max(one.last.ts_ns for one in every)
