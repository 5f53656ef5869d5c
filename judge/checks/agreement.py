"""TID020: two IDs of one name, or an ID and none, that are both stated without an end.

Rule: the special checks explain, this one finds. It asks none of them whether it may speak: where their findings about
the same IDs are made, its own are left out (`evaluate.py`); others follow from theirs (`causes.tsv`).
"""

from collections.abc import Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks import topic_id_uses
from wirecheck.judge.checks.shapes import ends
from wirecheck.judge.checks.statements import AUTHORITIES, BROKER, Disagreement, StatedId, disagreements
from wirecheck.judge.claims.claim import ZERO, Subject
from wirecheck.judge.results.finding import Evidence
from wirecheck.judge.topic_history import Topic, topic_of
from wirecheck.judge.topology.clusters import Group

UNLESS = ", unless a proxy there renames topics"
SHOWN = 3
"""So many parties that state one ID are named in a summary."""


def ids_of_one_name_disagree(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    for found in disagreements(topic, context):
        sides = zip(found.ids, found.statements, strict=True)
        if not any(used_after_end(*side, topic.group, context) for side in sides):
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


def used_after_end(topic_id: str, statements: list[StatedId], group: Group, context: CheckContext) -> bool:
    """Whether the ID ended, and all that states it are fetches: who still uses it states nothing of the name. A draft's
    answer that has both does.
    """
    subject = "id", topic_id
    used = all(one.api == "Fetch" and one.claim.kind == "use" for one in statements)
    return used and topic_id_uses.end_of(subject, group, context) is not None
