"""CLI006: clients that are refused for long, and no finding says why.

Whether a finding explains a refusal is known only when all findings and harms of a result are there. So this check is
made of the open rows of both tables, wherever they are read, and is in no table of its own.

Rule: only a client that is hurt counts, and only by errors that are not the protocol's own answers
(`judge/not_rejections.py`). A finding explains a harm if the harm is on its card (`harm.py`): so who is refused is
on a card, and no card is beside a client of which it speaks.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from wirecheck.judge.checks.error_meanings import meaning_of
from wirecheck.judge.checks.listed_checks import LISTED
from wirecheck.judge.not_rejections import is_protocols_own
from wirecheck.judge.results.finding import identity
from wirecheck.story import harm
from wirecheck.story.entries import entries
from wirecheck.story.verdict import Finding, Harm
from wirecheck.wording import NS_PER_S, and_list, filled, in_a_sentence

Row = Mapping[str, Any]
CODE = "CLI006"
KINDS = {True: "anomaly", False: "information"}
"""By whether the client was granted the same before: who never was may lack an ACL, or only try something."""
MOST_SIDES = 4
TOOK_OVER = frozenset({"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "FENCED_INSTANCE_ID"})
"""Another process took over: that explains the other errors that the client gets."""
WAITS = frozenset({"ASSIGNMENT_DELAYED", "COORDINATOR_LOAD_IN_PROGRESS"})
"""They end by themselves, but for what the other errors are about."""


def unexplained(findings: Sequence[Finding], harms: Sequence[tuple[Harm, Row]]) -> list[dict[str, Any]]:
    """Rows of the table of findings.

    `findings`: linked; `harms`: each with its row in the table.
    """
    known = harm.covered([one for one, _ in harms])
    refused = [(one, row) for one, row in harms if one.others is None and one not in known and harm.is_refused(one)]
    if not refused:
        return []
    made = entries(findings)
    attached = harm.by_entry(made, {one.id: one for one in findings}, [one for one, _ in refused])
    explained = {id(one.harm) for every in attached.values() for one in every}
    found: dict[tuple[Any, ...], list[tuple[Harm, Row]]] = defaultdict(list)
    for one, row in refused:
        if id(one) not in explained:
            topic = one.topic or one.topic_id
            found[row["label"], one.cluster, one.client_id, one.address, one.api, topic].append((one, row))
    return [finding_of(alike) for _, alike in sorted(found.items(), key=str)]


def telling(errors: Sequence[str], api: str) -> Sequence[str]:
    """Those of a client's errors that say why it is rejected: not those that end by themselves, where there is another
    one.
    """
    if took_over := [error for error in errors if error in TOOK_OVER]:
        return took_over[:1]
    lasting = [error for error in errors if error not in WAITS and not is_protocols_own(api, error, in_part=True)]
    return lasting or errors


def meant(errors: Sequence[str], api: str, topic: str | None) -> dict[str, str]:
    """What the errors mean, and what to do about them."""
    meanings = [meaning for error in telling(errors, api) if (meaning := meaning_of(error, api))]
    actions = dict.fromkeys(one.action_for(topic) for one in meanings)
    return {"action": " ".join(actions), "means": "; ".join(in_a_sentence(one.means) for one in meanings)}


def before(errors: Sequence[str], *, granted: bool) -> str:
    """What was before these errors. Writes with acks=0 have no answer that could show it."""
    if granted:
        return "after it had succeeded"
    return "and a success would not show (acks=0)" if errors == [harm.CLOSED_AT_ONCE] else "and never succeeded"


def finding_of(alike: Sequence[tuple[Harm, Row]]) -> dict[str, Any]:
    """One finding of all harms of one client, API and topic."""
    rows = [row for _, row in alike]
    first, check = rows[0], LISTED[CODE]
    topic, client = first["topic"] or first["topic_id"], first["client_id"] or ""
    errors = sorted({error for one, _ in alike for error in harm.refusing(one)})
    first_ns, last_ns = min(row["first_seen"] for row in rows), max(row["last_seen"] for row in rows)
    count, seconds = sum(row["count"] for row in rows), (last_ns - first_ns) / NS_PER_S
    granted = any(row.get("granted_before") for row in rows)
    words = {
        "host": first["address"],
        "api": first["api"],
        "errors": and_list(errors),
        "count": f"{count:,} error{'' if count == 1 else 's'}",
        "seconds": f"{seconds:.0f}",
        "before": before(errors, granted=granted),
        **meant(errors, first["api"], topic),
        "silent": "yes" if errors == [harm.NO_RESPONSE] else "",
    }
    sides = {(side["time"], side["claim"]): side for row in rows for side in row.get("sides") or ()}
    about = f" of {topic}" if topic else ""
    cluster = first["cluster"]
    return {
        "id": identity(CODE, cluster or "", (client, first["address"], first["api"], topic or "")),
        "revision": 0,
        "label": first["label"],
        "state": "open",
        "code": CODE,
        "name": check.name,
        "kind": KINDS[granted],
        "cluster": cluster,
        "topic": first["topic"],
        "topic_ids": sorted({row["topic_id"] for row in rows} - {None}),
        "client_ids": [client],
        "brokers": sorted({broker for row in rows for broker in row["brokers"]}),
        "summary": filled(check.summary, {**words, "client": client or "(no client ID)", "about": about}),
        "words": [{"name": name, "value": words[name]} for name in sorted(words)],
        "times": [],
        "first_seen": first_ns,
        "last_seen": last_ns,
        "count": count,
        "sides": [side for _, side in sorted(sides.items())][:MOST_SIDES],
        "others": None,
    }
