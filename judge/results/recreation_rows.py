"""Rows of the table recreations: what each client of a topic did once it was deleted and created again.

Rule: a client has a row if it read or wrote the topic before. Where it went on is said only while all that it asks
brokers for is known.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from wirecheck.client_ids import is_internal
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.progress import Log, Skip, log_of, never_read
from wirecheck.judge.checks.recreations import BY_NAME, Continuation, continuations
from wirecheck.judge.checks.set_back import read_again
from wirecheck.judge.checks.shapes import end_ns, gathered
from wirecheck.judge.checks.topic_ids import requesters
from wirecheck.judge.claims.claim import Claim, Subject, error_name
from wirecheck.judge.results.result_table import ResultRow
from wirecheck.judge.results.topic_rows import known
from wirecheck.judge.thresholds import SECOND_NS

FIRST, LOST, END = "first record", "records never read", "end as asked"
REJECTED, NOTHING, NOT_KNOWN, GOES_ON = "rejected since", "nothing since", "not known", "goes on"


class Now(NamedTuple):
    """What a client does with the topic that is there now."""

    client_id: str | None
    host: str
    does: str
    state: str
    errors: list[str]
    first_ns: int
    last_ns: int
    of_reader: dict[str, Any]


def recreations_of_name(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    for group in known(context.groups(subject)):
        log = log_of(subject, group, context)
        if (lives := log.topic.lives) is None:
            continue
        old, new = log.topic.histories[-2:] if len(log.topic.histories) > 1 else (None, None)
        who = requesters(log.topic, old, new) if old and new else {}
        for one in (*read(log), *written(log, lives.ended_ns)):
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
                never_read=one.of_reader.get("never_read"),
                partitions=one.of_reader.get("partitions", []),
                errors=one.errors,
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
        of_reader = {"never_read": never, "partitions": begun}
        yield Now(client_id, host, "reads", state, errors, first_ns, max(one.asked_ns for one in every), of_reader)


def state_of(every: list[Continuation], lost: dict[int, Skip], log: Log) -> str:
    if lost:
        return END if all(skip.asked for skip in lost.values()) else LOST
    if any(one.reads for one in every):
        return FIRST if all(one.offset is not None for one in every if one.reads) else NOT_KNOWN
    slots = [slot for one in every for slot, _ in log.end(one.partition)[-1:]]
    silent_ns = max(map(end_ns, slots), default=0) - max(one.asked_ns for one in every)
    return NOTHING if silent_ns >= log.context.settings.stuck_s * SECOND_NS else REJECTED


def partition_of(one: Continuation, lost: Skip | None, log: Log) -> dict[str, int | None]:
    again = read_again(one.mine, one.partition, log)
    return {
        "partition": one.partition,
        "offset": one.offset,
        "never_read_from": lost.begin if lost else None,
        "never_read_to": lost.end - 1 if lost else None,
        "never_read": lost.records if lost else 0,
        "read_again_from": again.start if again else None,
        "read_again_to": again.stop - 1 if again else None,
        "read_again": len(again),
    }


def named(error: int) -> str:
    """Kafka's name, without the code."""
    return error_name(error).partition(" ")[0]


def written(log: Log, ended_ns: int) -> Iterator[Now]:
    """Of a writer by name it is not known which of the two topics it wrote to but by the time."""
    for (client_id, host), mine in gathered(log.every("written"), "client_id host"):
        if is_internal(client_id or "") or not any(is_before(claim, log, ended_ns) for claim in mine):
            continue
        of_it = [claim for claim in mine if claim["topic_id"] in {*BY_NAME, log.topic_id}]
        granted_ns = max((claim.peak.get("granted", 0) for claim in of_it), default=0)
        rejected_ns, error = max(tuple(claim.peak.get("rejected", (0, 0))) for claim in mine)
        goes_on = granted_ns > log.born_ns
        is_rejected = rejected_ns > max(granted_ns, ended_ns)
        state = GOES_ON if goes_on and not is_rejected else REJECTED if is_rejected else NOTHING
        errors = [named(error)] if is_rejected else []
        yield Now(client_id, host, "writes", state, errors, *span(mine), {})


def is_before(claim: Claim, log: Log, ended_ns: int) -> bool:
    return claim.first.ts_ns < ended_ns and (claim["topic_id"] in BY_NAME or claim["topic_id"] != log.topic_id)


def span(claims: Iterable[Claim]) -> tuple[int, int]:
    every = list(claims)
    return min(one.first.ts_ns for one in every), max(one.last.ts_ns for one in every)
