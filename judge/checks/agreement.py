"""TID020: two IDs of one name, or an ID and none, that are both stated without an end.

Rule: the special checks explain, this one finds. It is silent about a pair of IDs on which a more specific check
speaks.
"""

from collections.abc import Callable, Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks import controllers, metadata_log, topic_id_uses, topic_ids
from wirecheck.judge.checks.shapes import ends
from wirecheck.judge.checks.statements import AUTHORITIES, BROKER, Disagreement, StatedId, disagreements
from wirecheck.judge.claims.claim import ZERO, Subject
from wirecheck.judge.results.finding import Evidence
from wirecheck.judge.topic_history import Topic, topic_of
from wirecheck.judge.topology.clusters import Group

Check = Callable[[Subject, Group, CheckContext], Iterator[Evidence]]
OF_BOTH: tuple[Check, ...] = (
    topic_ids.topic_flips_between_ids,
    topic_ids.topic_id_lost,
    topic_ids.requests_disagree_on_topic_id,
    topic_ids.brokers_disagree_on_topic_id,
    metadata_log.metadata_log_disagrees_with_broker,
)
"""Checks of a name whose findings have both IDs."""
OF_ONE: tuple[Check, ...] = (topic_ids.served_after_deletion,)
"""... whose findings have the ID that ended."""
USES: tuple[Check, ...] = (topic_id_uses.stale_topic_id_in_use, topic_id_uses.stale_topic_id_in_replication)
"""Checks of an ID that explain who still uses it, and the responses to those uses."""
UNLESS = ", unless a proxy there renames topics"
SHOWN = 3
"""So many parties that state one ID are named in a summary."""


def ids_of_one_name_disagree(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    for found in disagreements(topic, context):
        if not explained(found, topic, context):
            yield evidence(found, topic, context)


def evidence(found: Disagreement, topic: Topic, context: CheckContext) -> Evidence:
    order = sorted((0, 1), key=lambda side: found.authorities[side])
    right, wrong = ((found.ids[side], found.statements[side]) for side in order)
    known = found.authorities[0] != found.authorities[1]
    others = wrong[1] if known else [*right[1], *wrong[1]]
    words = {
        "had": "has an ID and has none" if ZERO in found.ids else "has two IDs",
        "one": f"{shown(right[0])} in {parties(right[1])}",
        "other": f"{shown(wrong[0])} in {parties(wrong[1])}",
        "authority": f"{AUTHORITIES[min(found.authorities)].capitalize()} states {shown(right[0])}" if known else "",
        "unless": "" if found.is_sure else UNLESS,
    }
    return Evidence(
        (topic.name, found.ids),
        ends(one.claim for one in (*right[1], *wrong[1])),
        topic=topic.name,
        topic_ids=tuple(one for one in found.ids if one != ZERO),
        kind=None if found.is_sure else "information",
        brokers=tuple(context.broker(one.claim) for one in others if one.authority == BROKER),
        count=sum(one.claim.count for one in others),
        first_ns=found.since_ns,
        last_ns=max(one.last_ns for one in others),
        words=words,
    )


def shown(topic_id: str) -> str:
    return "no ID" if topic_id == ZERO else topic_id


def parties(statements: list[StatedId]) -> str:
    """The most reliable ones and their messages, as LeaderAndIsr, UpdateMetadata of controller 1 (epoch 7)."""
    best = min(one.authority for one in statements)
    shown = [one for one in statements if one.authority == best]
    return f"{', '.join(sorted({one.api for one in shown}))} of {together(sorted({one.party for one in shown}))}"


def together(who: list[str]) -> str:
    """Brokers 1, 2, 3 for several brokers."""
    more = f" and {len(who) - SHOWN} more" if len(who) > SHOWN else ""
    if len(who) > 1 and all(one.startswith("broker ") for one in who):
        numbers = sorted(int(one.removeprefix("broker ")) for one in who)
        return f"brokers {', '.join(map(str, numbers[:SHOWN]))}{more}"
    return f"{', '.join(who[:SHOWN])}{more}"


def explained(found: Disagreement, topic: Topic, context: CheckContext) -> bool:
    """Whether a more specific check speaks about these IDs, or all statements of one are responses to uses that one
    speaks about.
    """
    subject, group = ("name", topic.name), topic.group
    if ZERO in found.ids:
        lost = topic_ids.topic_id_lost(subject, group, context)
        return any({*found.ids} <= {*one.topic_ids, ZERO} for one in lost)
    if any({*found.ids} <= {*one.topic_ids} for check in OF_BOTH for one in check(subject, group, context)):
        return True
    ended = {topic_id for check in OF_ONE for one in check(subject, group, context) for topic_id in one.topic_ids}
    if any(used_after_end(*side, ended, group, context) for side in zip(found.ids, found.statements, strict=True)):
        return True
    return twins(found, group, context)


def used_after_end(
    topic_id: str, statements: list[StatedId], deleted: set[str], group: Group, context: CheckContext
) -> bool:
    """Whether the ID ended, and all that states it are fetches that a check of its users or of its deletion names."""
    subject = "id", topic_id
    if any(one.api != "Fetch" for one in statements) or topic_id_uses.end_of(subject, group, context) is None:
        return False
    return topic_id in deleted or any(True for check in USES for _ in check(subject, group, context))


def twins(found: Disagreement, group: Group, context: CheckContext) -> bool:
    """Whether all who state one of the IDs are brokers whose node ID two processes use."""
    brokers = [{context.broker(one.claim) for one in statements} for statements in found.statements]
    if any(None in one for one in brokers):
        return False
    twice = {int(one.key[0]) for one in controllers.node_id_used_twice(("server",), group, context)}
    return any(one <= twice for one in brokers)
