"""FET008: readers of committed records for whom an open transaction holds back all that comes behind it.

Rule: that alone is no fault: a transaction may be open for as long as its producer was granted. The last stable offset
never moves back, so where it is the same at two times nothing beyond it was read between them.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from wirecheck.client_ids import is_internal
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import about, counted, end_ns, ends, gathered, start_ns
from wirecheck.judge.claims.claim import AT, Claim, Subject, slot_of
from wirecheck.judge.results.finding import Evidence, Number
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import name_of
from wirecheck.judge.topology.clusters import Group

MINUTE_S = 60


class Stand(NamedTuple):
    """A time in which the last stable offset of a partition stood still."""

    claim: Claim
    offset: int
    from_ns: int
    to_ns: int

    @property
    def seconds(self) -> int:
        return (self.to_ns - self.from_ns) // SECOND_NS


def waits_for_open_transaction(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per topic and client; the transaction that was open longest is named."""
    if is_internal(subject[1]):
        return
    claims = context.claims("held_back", group, *subject)
    for (name, topic_id), mine in gathered(claims, "name topic_id"):
        longest = [max(stands(claim), key=lambda stand: (stand.seconds, stand.to_ns)) for claim in mine]
        held = [stand for stand in longest if stand.seconds >= context.settings.open_transaction_s]
        if not held:
            continue
        first = min(held, key=lambda stand: (stand.from_ns, stand.claim["partition"]))
        partition = first.claim["partition"]
        words = {
            "partitions": f"partition {partition}" if len(held) == 1 else counted(len(held), "partition"),
            "partition": partition,
            "offset": first.offset,
            "from": about(first.from_ns),
            "open": f"{first.seconds // MINUTE_S} min",
            "behind": f"{Number(first.claim.peak['high'] - first.offset):record}",
        }
        if first.seconds >= context.settings.hanging_transaction_s:
            words["hurt_host"] = subject[2]
        yield Evidence(
            (topic_id or name, *subject[1:]),
            ends(stand.claim for stand in held),
            topic=name if topic_id is None else name_of(("id", topic_id), group, context),
            topic_ids=(topic_id,) if topic_id else (),
            client_ids=(first.claim["client_id"],),
            brokers=tuple({context.clusters.broker(s.claim.last.server, s.claim.last.ts_ns) for s in held}),
            count=sum(stand.claim.count for stand in held),
            first_ns=first.from_ns,
            last_ns=max(stand.to_ns for stand in held),
            words=words,
        )


def stands(claim: Claim) -> Iterator[Stand]:
    """Each offset at which the reader was held back, from when to when: known to a slot, and by its first and last
    sighting.
    """
    slots = (
        (slot, offset)
        for name, offset in claim.peak.items()
        if name.startswith(AT) and (slot := slot_of(name)) is not None
    )
    for offset, mine in groupby(sorted(slots), key=itemgetter(1)):
        times = [slot for slot, _ in mine]
        from_ns, to_ns = max(start_ns(times[0]), claim.first.ts_ns), min(end_ns(times[-1]), claim.last.ts_ns)
        yield Stand(claim, offset, from_ns, max(from_ns, to_ns))
