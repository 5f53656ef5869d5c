"""CLI014: readers that ask for the records at one offset all the time, and get none, or always the same, although the
log has more.

Rule: a reader without an answer did not wait for it, or was not answered. A broker that answers gives records where
there are some, except before Fetch v3: none that is larger than the reader takes. What a quota or an open transaction
holds back is for FET008 and CLI007. A reader without an answer counts only if all that it asked for, and got, is in
the capture. One that gets the same records each time counts if it is of no group (else GRP018 speaks of it), asks for
nothing behind them, and the log grows meanwhile: who looks at the last record moves with it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from wirecheck.client_ids import is_internal
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.lone_readers import FETCH, OF_GROUPS
from wirecheck.judge.checks.progress import Log, Reader, greatest, log_of, reached
from wirecheck.judge.checks.rereads import begins_at_the_first, comes_back, waits
from wirecheck.judge.checks.shapes import (
    brokers_of,
    clock,
    counted,
    end_ns,
    resting_on,
    seen_everywhere,
    start_ns,
)
from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.claims.outcomes import LATE, SLOT_NS, SUCCESS, UNREADABLE, UNSEEN
from wirecheck.judge.results.finding import Evidence, Number
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group

LEAST_S, SLOTS = 60, 4
"""So long, and in so many slots of 10 s, it asks for the offset."""


class Unfed(NamedTuple):
    """A reader that gets nothing of a partition."""

    reader: Reader
    offset: int
    slots: list[int]
    """Those in which it asks, and the log has more."""
    empty: bool
    """Whether it is answered, without records."""
    again: bool = False
    """Whether it gets the same records each time."""
    held: bool = False
    """Whether the leader has more, and too few replicas do."""


def asks_and_gets_nothing(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per client and topic: each partition that has records for it."""
    log = log_of(subject, group, context)
    found: dict[tuple[str | None, str], dict[int, Unfed]] = {}
    for partition in sorted(log.of("position")):
        for one in log.readers_now(partition):
            if is_internal(one.client_id or ""):
                continue
            unfed = is_held(one, partition, log) or gets_nothing(one, partition, log)
            unfed = unfed or gets_the_same(one, partition, log)
            if unfed is not None:
                found.setdefault(one.who, {})[partition] = unfed
    for (client_id, host), by_partition in sorted(found.items(), key=str):
        every = [*by_partition.values()]
        claims = [claim for one in every for claim in one.reader.claims]
        since = min(one.slots[0] for one in every)
        records = sum(greatest(log.end(number)) - one.offset for number, one in by_partition.items())
        words = {
            "partitions": counted(len(every), "partition"),
            "since": clock(max(start_ns(since), min(one.reader.first[0] for one in every))),
            "gets": "the same records" if any(one.again for one in every) else "no record",
            "records": Number(records),
        }
        certain = not all(one.again and reconnects(one.reader) for one in every)
        if certain:
            words["hurt_host"] = host
        words |= {word: "yes" for word in ("held", "empty") if any(getattr(one, word) for one in every)}
        if same := [(number, one.offset) for number, one in by_partition.items() if one.again]:
            words |= dict(zip(("partition", "offset"), same[0], strict=True))
        yield resting_on(
            claims,
            *(log.topic.name, client_id, host),
            **log.names(client_id),
            brokers=brokers_of(claims, context),
            first_ns=start_ns(since),
            last_ns=end_ns(max(one.slots[-1] for one in every)),
            count=records,
            words=words,
            kind=None if certain else "information",
        )


def reconnects(one: Reader) -> bool:
    """Whether it asks over several connections: a tool that looks at the same records now and then does so, too."""
    return len({seen.connection for claim in one.claims for seen in (claim.first, claim.last)}) > 1


def gets_nothing(one: Reader, partition: int, log: Log) -> Unfed | None:
    """Where a reader asks for one offset up to its last request, without an answer about the partition, and the log has
    more for it.
    """
    asked = one.times
    if len(asked) < SLOTS:
        return None
    offset = asked[-1][1]
    begun = max((slot for slot, value in asked if value != offset), default=-1)
    end = log.end(partition)
    more = reached(end, offset, 0)
    if more is None or end[-1][1] <= offset or waits(one, log):
        return None
    mine = [slot for slot, _ in asked if slot > max(begun, more)]
    if len(mine) < SLOTS or (mine[-1] - mine[0]) * SLOT_NS < LEAST_S * SECOND_NS:
        return None
    log.context.watch()
    client, since_ns = ("client", one.client_id or "", one.host), start_ns(mine[0])
    if transaction_is_open(partition, since_ns, log):
        return None
    if one.answer[0] >= since_ns:
        found = asks_as_of_old(client, log) and only_empty(one, mine, log)
        return Unfed(one, offset, mine, empty=True) if found else None
    if answered_since(client, since_ns, log) * MOST_ANSWERED_IN > len(mine):
        return None
    return Unfed(one, offset, mine, empty=False) if seen_everywhere(client, since_ns, log.group, log.context) else None


def is_held(one: Reader, partition: int, log: Log) -> Unfed | None:
    """Where a reader has all that replicas confirmed, and asks on: by a fetch that names no partition where nothing has
    changed. Where another one began there since, the partition may be that one's.
    """
    held = log.unconfirmed(partition)
    if held is None or one.last[1] != held.offset or waits(one, log):
        return None
    if any(other.first[0] > one.last[0] for other in log.readers_now(partition)):
        return None
    log.context.watch()
    client, until_ns = ("client", one.client_id or "", one.host), start_ns(held.slots[-1] - 1)
    every = (each for each in log.context.claims("activity", log.group, *client) if each["api"] == FETCH)
    asks_on = any(run.last_ns >= until_ns for each in every for run in each.outcomes.runs({SUCCESS}))
    return Unfed(one, held.offset, held.slots, empty=False, held=True) if asks_on else None


def gets_the_same(one: Reader, partition: int, log: Log) -> Unfed | None:
    """Where a reader of no group is again and again, is given records, and asks for nothing behind them; not where it
    looks for the beginning of the log each time.
    """
    again = comes_back(one, partition, log)
    if again is None or not again.only or begins_at_the_first(again, partition, log):
        return None
    grown = greatest(log.end(partition)) > greatest(log.end(partition), again.slots[0])
    every = log.context.claims("activity", log.group, "client", one.client_id or "", one.host)
    if not grown or any(claim["api"] in OF_GROUPS for claim in every):
        return None
    return Unfed(one, again.offset, again.slots, empty=False, again=True)


GIVES_ONE = 3
"""From this version of Fetch on, the first record is given however large it is (KIP-74)."""


def asks_as_of_old(client: Subject, log: Log) -> bool:
    """Whether a broker gives a reader no record that is larger than it takes of a partition."""
    every = log.context.claims("client", log.group, *client)
    words = (word.rpartition(":") for claim in every for word in claim.tally)
    versions = {int(version) for api, _, version in words if api == FETCH}
    return bool(versions) and max(versions) < GIVES_ONE


def only_empty(one: Reader, asked: list[int], log: Log) -> bool:
    """Whether a reader is answered to the last without an error, and gets no record of any partition of the topic: one
    that is behind in all of them gets those of the others first. An answer that was not captured changes nothing: the
    reader would not ask for the offset again.
    """
    answered_ns, error = one.answer
    mine = (each for partition in log.of("position") for each in log.readers_now(partition) if each.who == one.who)
    fed = any(slot >= asked[0] for each in mine for slot in each.fed)
    return not error and not fed and answered_ns >= start_ns(asked[-1])


def transaction_is_open(partition: int, since_ns: int, log: Log) -> bool:
    """Whether one holds up any reader of the partition: it does so to others, before an answer says so to them."""
    names = {log.topic.name, log.topic_id} - {None}
    every = (
        claim
        for other in log.readers_now(partition)
        for claim in log.context.claims("held_back", log.group, "client", other.client_id or "", other.host)
    )
    return any(
        one["partition"] == partition and not names.isdisjoint({one["name"], one["topic_id"]})
        for one in every
        if one.last.ts_ns >= since_ns
    )


MOST_ANSWERED_IN = 2
"""Of two requests one may be answered, as of another partition, or as the session ends."""


def answered_since(client: Subject, since_ns: int, log: Log) -> int:
    """How many of its fetches were answered, whatever they are about, and by which layout."""
    every = (one for one in log.context.claims("activity", log.group, *client) if one["api"] == FETCH)
    runs = (run for one in every for run in one.outcomes.runs({SUCCESS, LATE, UNREADABLE, UNSEEN}))
    return sum(run.count for run in runs if run.last_ns >= since_ns)
