"""FET008: readers of committed records for whom an open transaction holds back all that comes behind it. CLI013:
writers whose transactions are all aborted.

Rule: an open transaction alone is no fault: it may be open for as long as its producer was granted. The last stable
offset never moves back, so where it is the same at two times nothing beyond it was read between them.
"""

from collections.abc import Collection, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from wirecheck.client_ids import is_internal
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.connection_ends import hash_of
from wirecheck.judge.checks.shapes import (
    about,
    brokers_of,
    clients_of,
    clock,
    counted,
    end_ns,
    gathered,
    lasting,
    resting_on,
    seen_whole,
    start_ns,
)
from wirecheck.judge.claims.claim import AT, Claim, Subject, slot_of
from wirecheck.judge.claims.extract.transactions import ABORTED
from wirecheck.judge.claims.outcomes import OTHERS, SLOT_NS, Part
from wirecheck.judge.results.finding import Evidence, Number
from wirecheck.judge.thresholds import SECOND_NS, Settings
from wirecheck.judge.topic_history import name_of
from wirecheck.judge.topology.clusters import Group

MINUTE_S, ABORTS_S = 60, 15
"""A coordinator looks for transactions that are too old every 10 s
(transaction.abort.timed.out.transaction.cleanup.interval.ms).
"""
KNOWN_TO_S = 2 * SLOT_NS // SECOND_NS
"""The beginning and the end of a stand are known to a slot."""


class Stand(NamedTuple):
    """A time in which the last stable offset of a partition stood still."""

    claims: list[Claim]
    """Of the partition, by each of its leaders."""
    offset: int
    from_ns: int
    to_ns: int
    is_last: bool
    """Whether the reader was never held back later."""

    @property
    def partition(self) -> int:
        number: int = self.claims[0]["partition"]
        return number

    @property
    def seconds(self) -> int:
        return (self.to_ns - self.from_ns) // SECOND_NS

    @property
    def behind(self) -> str:
        """How many records waited, with a comma before. Later transactions make more of them: then it is unknown."""
        high = max(claim.peak["high"] for claim in self.claims)
        return f", {Number(high - self.offset):record} behind it" if self.is_last else ""


def every_transaction_aborted(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per client and coordinator: what it writes is never read by consumers of committed records."""
    if is_internal(subject[1]):
        return
    for claim, streak in lasting(context.claims("transaction_ended", group, *subject), {ABORTED}, None, context):
        words = {
            "client": claim["client_id"] or "a client without an ID",
            "count": Number(streak.count),
            "since": clock(streak.first_ns),
            "hurt_host": subject[2],
        }
        about = {"client_ids": (claim["client_id"],), "brokers": brokers_of([claim], context), "count": streak.count}
        times = {"first_ns": streak.first_ns, "last_ns": streak.last_ns}
        yield resting_on([claim], *subject[1:], claim["endpoint"], **about, **times, words=words)


def waits_for_open_transaction(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per topic and client; the transaction that was open longest is named."""
    if is_internal(subject[1]):
        return
    for (name, topic_id), of_topic in gathered(context.claims("held_back", group, *subject), "name topic_id"):
        bound = name if topic_id is None else name_of(("id", topic_id), group, context)
        longest = [
            max(stands(mine), key=lambda one: (one.seconds, one.to_ns)) for _, mine in gathered(of_topic, "partition")
        ]
        gone = {stand.partition: gone_writer(bound, topic_id, stand, group, context) for stand in longest}
        limits = {stand.partition: limit_s(bound, topic_id, stand, group, context) for stand in longest}
        settings = context.settings
        held = [
            stand
            for stand in longest
            if stand.seconds >= settings.open_transaction_s
            or (
                stand.seconds >= patience_s(gone[stand.partition], limits[stand.partition], settings)
                and (gone[stand.partition] is not None or may_hold(bound, topic_id, stand, group, context))
            )
        ]
        if not held:
            continue
        first = min(held, key=lambda stand: stand.from_ns)
        words = {
            "partitions": f"partition {first.partition}" if len(held) == 1 else counted(len(held), "partition"),
            "partition": first.partition,
            "offset": first.offset,
            "from": about(first.from_ns),
            "open": f"{first.seconds // MINUTE_S} min" if first.seconds >= 2 * MINUTE_S else f"{first.seconds} s",
            "whose": whose(gone[first.partition]),
            "behind": first.behind,
        }
        if any(stand.seconds >= limits[stand.partition] for stand in held):
            words["hurt_host"] = subject[2]
        claims = [claim for stand in held for claim in stand.claims]
        yield resting_on(
            claims,
            topic_id or name,
            *subject[1:],
            topic=bound,
            topic_ids=(topic_id,) if topic_id else (),
            client_ids=clients_of(claims),
            brokers=brokers_of(claims, context),
            first_ns=first.from_ns,
            last_ns=max(stand.to_ns for stand in held),
            words=words,
        )


def patience_s(writer: Claim | None, limit: int, settings: Settings) -> int:
    """How long a reader may wait: longer than the producers were granted, or a while if the last one is gone."""
    return settings.stuck_s if writer is not None else min(settings.open_transaction_s, limit + KNOWN_TO_S)


def whose(writer: Claim | None) -> str:
    return "an open" if writer is None else f"vanished {writer['client_id'] or writer['transactional_id']}'s"


def gone_writer(
    name: str | None, topic_id: str | None, stand: Stand, group: Group, context: CheckContext
) -> Claim | None:
    """Who wrote to the partition last as it began to stand, did not end the transaction, and closed its connections:
    nothing ends it before its time-out, if no process begins with its transactional ID.
    """
    patience_ns = context.settings.stuck_s * SECOND_NS
    if stand.seconds * SECOND_NS < patience_ns or not stand.is_last:
        return None
    context.watch()
    for writer in written_by(name, topic_id, stand, group, context):
        last_ns, who = writer.last.ts_ns, (writer["client_id"], writer["host"])
        later = [
            one
            for kind in ("transaction_limit", "transaction_done")
            for one in context.claims(kind, group, "server")
            if one["transactional_id"] == writer["transactional_id"] and one.last.ts_ns > last_ns
        ]
        near = stand.from_ns - 2 * SLOT_NS <= last_ns <= stand.from_ns + SLOT_NS
        closed_ns = gone_ns(writer, group, context) if near and not later else None
        if closed_ns is None or not context.passed(closed_ns + patience_ns):
            continue
        if seen_whole(*who, {*group.endpoints}, group, context, since_ns=last_ns):
            return writer
    return None


def gone_ns(writer: Claim, group: Group, context: CheckContext) -> int | None:
    """When a client closed the last connection on which it asked for anything of its transactions; None if one may be
    open, or was not closed by it. Libraries close what they do not use for 20 s or longer, and go on.
    """
    asked_ns, closed_ns, client = 0, 0, (writer["client_id"], writer["host"])
    endpoints = sorted(group.endpoints)
    for asked in (one for end in endpoints for one in context.ledger.claims("transaction_request", "link", end)):
        if (asked["client_id"], asked["host"]) != client:
            continue
        over = over_at(asked["endpoint"], writer, context)
        for port in parts(asked):
            last_ns = last_of(port, [asked])
            over_ns = last_of(port, over)
            if over_ns < last_ns or any(one.peak.get("unclosed") == over_ns for one in over):
                return None
            asked_ns, closed_ns = max(asked_ns, last_ns), max(closed_ns, over_ns)
    left_ns = max((one.peak.get("by_client", 0) for one in over_at(writer.last.server, writer, context)), default=0)
    return closed_ns if left_ns >= writer.last.ts_ns and closed_ns < asked_ns + UNUSED_NS else None


UNUSED_NS = 10 * SECOND_NS
"""A process that closes its connections so soon after its last request did not do it for want of use."""


def over_at(endpoint: str, writer: Claim, context: CheckContext) -> list[Claim]:
    """The client's connections to a server that are over."""
    hashed = hash_of(writer["client_id"] or "")
    every = context.ledger.claims("connected", "link", endpoint)
    return [one for one in every if (one["host"], one["client_hash"]) == (writer["host"], hashed)]


def parts(claim: Claim) -> Collection[Part]:
    return claim.outcomes.parts(claim.outcomes.codes())


def last_of(port: Part, claims: list[Claim]) -> int:
    """When a connection was last seen; of one that is not counted by itself, any other of those; 0 if it was not."""
    runs = [
        run
        for one in claims
        for code in one.outcomes.codes()
        for run in one.outcomes.runs({code}, port if port in parts(one) else OTHERS)
    ]
    return max((run.last_ns for run in runs), default=0)


def written_by(
    name: str | None, topic_id: str | None, stand: Stand, group: Group, context: CheckContext
) -> list[Claim]:
    """Who wrote to the partition in a transaction."""
    written = context.claims("writes_in_transaction", group, "name", name) if name else []
    written = written + (context.claims("writes_in_transaction", group, "id", topic_id) if topic_id else [])
    return [one for one in written if one["partition"] == stand.partition]


def limit_s(name: str | None, topic_id: str | None, stand: Stand, group: Group, context: CheckContext) -> int:
    """How long a transaction on a partition may be open: what its producers were granted, and the time in which a
    coordinator aborts; if one of them was not seen to begin, as long as brokers grant at most.
    """
    longest, written = context.settings.hanging_transaction_s, written_by(name, topic_id, stand, group, context)
    writers = {one["transactional_id"] for one in written}
    limits: dict[str, int] = {}
    for one in context.claims("transaction_limit", group, "server"):
        limits[one["transactional_id"]] = max(one.peak["limit_ms"], limits.get(one["transactional_id"], 0))
    began = min((one.first.ts_ns for one in written), default=stand.to_ns)
    if not writers or not writers <= limits.keys() or began > stand.from_ns:
        return longest
    context.watch()
    return min(longest, max(limits[one] for one in writers) // 1000 + ABORTS_S)


def may_hold(name: str | None, topic_id: str | None, stand: Stand, group: Group, context: CheckContext) -> bool:
    """Whether a producer that was seen to write may hold the reader back: it ended no transaction meanwhile, but as the
    reader went on. A transaction that its coordinator has lost is open all the same, for as long as any.
    """
    context.watch()
    done = context.by("transactional_id", "transaction_done", group, "server")
    for writer in {one["transactional_id"] for one in written_by(name, topic_id, stand, group, context)}:
        runs = [run for one in done.get((writer,), ()) for run in one.outcomes.runs()]
        times = [at_ns for run in runs for at_ns in (run.first_ns, run.last_ns)]
        if not any(stand.from_ns + SLOT_NS <= at_ns <= stand.to_ns - SLOT_NS for at_ns in times):
            return True
    return False


def stands(claims: list[Claim]) -> Iterator[Stand]:
    """Each offset at which the reader of a partition was held back, from when to when: known to a slot, and by the
    first and last sighting.
    """
    every = (pair for claim in claims for pair in claim.peak.items())
    slots = sorted(
        (slot, offset) for name, offset in every if name.startswith(AT) and (slot := slot_of(name)) is not None
    )
    first_ns, last_ns = min(claim.first.ts_ns for claim in claims), max(claim.last.ts_ns for claim in claims)
    for offset, mine in groupby(slots, key=itemgetter(1)):
        times = [slot for slot, _ in mine]
        from_ns, to_ns = max(start_ns(times[0]), first_ns), min(end_ns(times[-1]), last_ns)
        yield Stand(claims, offset, from_ns, max(from_ns, to_ns), times[-1] == slots[-1][0])


class TransactionEnd(NamedTuple):
    """When a transaction ended, and how: committed or aborted."""

    ts_ns: int
    how: str


def ended_first(transactional_id: str, since_ns: int, group: Group, context: CheckContext) -> TransactionEnd | None:
    """The first transaction of an ID that its producer ended after a time. None where none was, or where one ended in
    the same second before: of one second the first and the last are known.
    """
    context.watch()
    done = context.by("transactional_id", "transaction_done", group, "server").get((transactional_id,), [])
    ends = [(run, code) for one in done for code in one.outcomes.codes() for run in one.outcomes.runs({code})]
    later = [(run, code) for run, code in ends if run.last_ns > since_ns]
    if not later or any(run.first_ns <= since_ns for run, _ in later):
        return None
    first_ns, code = min((run.first_ns, code) for run, code in later)
    return TransactionEnd(first_ns, "aborted" if code == ABORTED else "committed")
