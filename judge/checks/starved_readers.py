"""Readers that a quota lets have next to nothing of what is written.

Rule: a wait proves nothing: who catches up within a quota waits all the time, too. It counts what the reader asked for
beside what its partitions got in the same time. Brokers let a fetch wait for no longer than the windows of their quota
(quota.window.num times quota.window.size.seconds, by default 11 s), so that the length of a wait says nothing either.
"""

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.progress import Log, Times, by_slot, greatest, log_of
from wirecheck.judge.checks.shapes import gathered, start_ns
from wirecheck.judge.claims.claim import ZERO, Subject
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.topic_history import name_of
from wirecheck.judge.topology.clusters import Group


def gets_next_to_nothing(subject: Subject, first_ns: int, last_ns: int, group: Group, context: CheckContext) -> bool:
    """Whether a client asked, from one time to another, for less than one in so many of the records that its partitions
    got meanwhile, and some of these wait for it. A partition that it asks for no more is paused, or another member's.
    """
    read = grown = behind = 0
    logs: dict[str, Log] = {}
    for (name, topic_id, partition), claims in gathered(
        context.claims("position", group, *subject), "name topic_id partition"
    ):
        topic = name or name_of(("id", topic_id or ZERO), group, context)
        asked = by_slot(claims)
        if not topic or not asked:
            continue
        log = logs.setdefault(topic, log_of(("name", topic), group, context))
        end = log.end(partition)
        since_ns, until_ns = max(first_ns, start_ns(asked[0][0])), min(last_ns, start_ns(asked[-1][0]))
        read += advance(asked, first_ns, last_ns)
        grown += advance(end, since_ns, until_ns)
        behind += max(0, greatest(end, asked[-1][0]) - greatest(asked))
    return behind > 0 and 0 < grown >= read * context.settings.partly_one_in


def advance(times: Times, first_ns: int, last_ns: int) -> int:
    """How far an offset moved between two times."""
    first, last = first_ns // SLOT_NS, last_ns // SLOT_NS
    within = [offset for slot, offset in times if first <= slot <= last]
    return max(within) - min(within) if within else 0
