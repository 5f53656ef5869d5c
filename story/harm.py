"""Who is hurt by which finding: facts of refused requests (the table of harms) beside the findings they follow from.

Knows: the relations of harm_relations.tsv, and how a fact of harm is written in the JSON. Does not know how a refusal
was seen (`judge/results/harm_rows.py`), nor sentences (`cards.py`).
Rule: nothing is guessed. A harm belongs to the entry of a finding that the table allows, whose relations all hold and
whose time fits; a relation that is sure comes before one that is not, and a lower rank before a higher one. Where none
is sure, the card says "may". Harm that fits none stays by itself, in the table of harms.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

Row = Mapping[str, Any]
LATER_S = 30.0
"""Harm may end so much sooner than its finding is first seen: brokers' grace."""
CLOCKS_S = 1.0
"""Agents' clocks differ less than this: harm that begins sooner than its cause by more does not follow from it."""
ONGOING_S = 60.0
"""A client that is refused asks again within this time: it still fails if it failed so shortly before the end."""
MOST = 16
"""So many clients are named in one card; the others are counted."""
HURT = "hurt"
CLOSES = "VER001"
"""The check whose findings are themselves refusals: the broker closes the connection, or answers with an error."""
CLOSED, UNSUPPORTED = "connection closed", "UNSUPPORTED_VERSION"


class Rule(NamedTuple):
    code: str
    rank: int
    sure: bool
    """Else the finding may be the reason, and is named as that only."""
    relations: tuple[str, ...]
    why: str


@cache
def relations() -> Mapping[str, Rule]:
    lines = Path(__file__).with_name("harm_relations.tsv").read_text("ascii").splitlines()[1:]
    found = (line.split("\t") for line in lines)
    return {
        code: Rule(code, int(rank), certainty == "sure", tuple(names.split(",")), why)
        for code, rank, certainty, names, why in found
    }


def same_client(harm: Row, finding: Row) -> bool:
    return (harm["client_id"] or "") in finding["client_ids"]


def any_id(harm: Row, finding: Row) -> bool:
    return harm["topic_id"] is not None and harm["topic_id"] in finding["topic_ids"]


def old_id(harm: Row, finding: Row) -> bool:
    return harm["topic_id"] is not None and harm["topic_id"] in finding["topic_ids"][:1]


def same_topic(harm: Row, finding: Row) -> bool:
    return any_id(harm, finding) or (harm["topic"] is not None and harm["topic"] == finding["topic"])


def same_partition(harm: Row, finding: Row) -> bool:
    partition = finding["words"].get("partition", "")
    return same_topic(harm, finding) and partition in map(str, harm["partitions"])


def same_broker(harm: Row, finding: Row) -> bool:
    return not set(harm["brokers"]).isdisjoint(finding["brokers"])


HOLDS: Mapping[str, Callable[[Row, Row], bool]] = {
    "client": same_client,
    "any id": any_id,
    "old id": old_id,
    "topic": same_topic,
    "partition": same_partition,
    "broker": same_broker,
}


def seconds(time: str) -> float:
    """Of an RFC 3339 time."""
    return dt.datetime.fromisoformat(time).timestamp()


def fits(harm: Row, finding: Row) -> bool:
    """Whether harm can follow from a finding."""
    rule = relations().get(finding["code"])
    if rule is None or harm["cluster"] != finding["cluster"]:
        return False
    sooner = seconds(harm["last_seen"]) < seconds(finding["first_seen"]) - LATER_S
    return not sooner and all(HOLDS[name](harm, finding) for name in rule.relations)


class Attached(NamedTuple):
    """One harm at the entry that it follows from."""

    harm: Row
    sure: bool
    may_also: tuple[Row, ...] = ()
    """Findings that may be the reason too, of any entry."""


def by_entry(entries: Sequence[Row], findings: Mapping[str, Row], harms: Iterable[Row]) -> dict[int, list[Attached]]:
    """The harms of each entry, by its place; those that fit none are left out."""
    places: list[tuple[int, Row, Row]] = [
        (place, findings[name], findings[entry["findings"][0]])
        for place, entry in enumerate(entries)
        for one in (entry, *entry["consequences"])
        for name in one["findings"]
        if findings[name]["code"] in relations()
    ]
    found: dict[int, list[Attached]] = {}
    for harm in harms:
        fitting = [(relations()[row["code"]], place, row) for place, row, root in places if follows(harm, row, root)]
        if fitting:
            rule, place, _ = min(fitting, key=lambda one: (not one[0].sure, one[0].rank, one[1]))
            may = tuple(row for other, _, row in fitting if not other.sure)
            found.setdefault(place, []).append(Attached(harm, rule.sure, may))
    return found


def follows(harm: Row, finding: Row, root: Row) -> bool:
    """Whether harm can follow from a finding, and did not begin before what the finding itself follows from."""
    states_it = finding is root and "client" in relations()[finding["code"]].relations
    return fits(harm, finding) and (states_it or seconds(harm["first_seen"]) >= begins_s(root) - CLOCKS_S)


def begins_s(finding: Row) -> float:
    """When the first of its evidence was seen."""
    return min(map(seconds, (finding["first_seen"], *(side["time"] for side in finding["sides"]))))


def closed_connections(finding: Row) -> list[Row]:
    """The harm that a rejected version is: of its finding's clients."""
    host = (finding["sides"][0]["connection"] or "").partition(">")[0].rpartition(":")[0] if finding["sides"] else ""
    facts = {name: finding[name] for name in ("cluster", "brokers", "count", "first_seen", "last_seen")}
    error = UNSUPPORTED if UNSUPPORTED in finding["words"].get("does", "") else CLOSED
    about = {"topic": None, "topic_id": None, "partitions": [], "level": HURT, "recovered": False, "errors": [error]}
    api = f"{finding['words'].get('api', '')} v{finding['words'].get('version', '')}"
    return [{**facts, **about, "client_id": client, "address": host, "api": api} for client in finding["client_ids"]]


def joined(harms: Iterable[Row]) -> list[Row]:
    """One client, topic and API once, whatever number of IDs and clusters' endpoints it was refused by."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for harm in harms:
        key = (harm["client_id"], harm["address"], harm["topic"] or harm["topic_id"], harm["api"])
        known = found.get(key)
        if known is None:
            found[key] = dict(harm)
            continue
        known["count"] += harm["count"]
        known["first_seen"] = min(known["first_seen"], harm["first_seen"])
        known["last_seen"] = max(known["last_seen"], harm["last_seen"])
        known["recovered"] = known["recovered"] and harm["recovered"]
        for name in ("partitions", "errors", "brokers"):
            known[name] = sorted({*known[name], *harm[name]})
    return list(found.values())


def fact(harm: Row, end_s: float) -> dict[str, Any]:
    """As the JSON has it."""
    ongoing = not harm["recovered"] and seconds(harm["last_seen"]) >= end_s - ONGOING_S
    return {
        "client_id": harm["client_id"],
        "address": harm["address"],
        "topic": harm["topic"] or harm["topic_id"],
        "partitions": harm["partitions"],
        "api": harm["api"],
        "error": ", ".join(harm["errors"]),
        "count": harm["count"],
        "first_seen": harm["first_seen"],
        "last_seen": harm["last_seen"],
        "ongoing": ongoing,
    }


def worst_first(facts: Iterable[Row]) -> list[Row]:
    """What goes on, then what lasted longest."""

    def order(one: Row) -> tuple[Any, ...]:
        lasted_s = seconds(one["last_seen"]) - seconds(one["first_seen"])
        return (
            not one["ongoing"],
            -round(lasted_s),
            -one["count"],
            one["client_id"] or "",
            one["api"],
            one["topic"] or "",
        )

    return sorted(facts, key=order)
