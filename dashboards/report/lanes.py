"""Who said which topic id when: lanes along the one axis of the page, a lane per topic id and speaker.

Knows: statements (who says, uses or refuses an id, from when to when), findings about topics, and that a lane is bars
and marks side by side. Refuses to know pixels, colours and markup.
Rule: nothing is drawn over another: bars of one lane follow each other, marks that would touch are one that says how
many. A bar begins and ends with a sighting; only a finding makes a part of it stand out, and leads to itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wirecheck.dashboards.report.timeline import THINNEST, Axis, moment
from wirecheck.dashboards.verdict import BLAMED, named_cluster, plural

Row = Mapping[str, Any]
DRAWN, FOLDED = 3, 40
"""So many topics are drawn at once, and so many more on request."""
LANES = 14
"""Of one topic."""
ENTRIES = 6
"""Findings with a lane of their own."""
APART = 3.0
"""Percent of the axis: marks that are nearer are one."""
ORDER = ("metadata-log", "controller", "broker", "client")
SHORT = 6
"""Characters of a topic id that tell it from others on one page."""


def topics(result: Row, statements: Iterable[Row], axis: Axis) -> list[dict[str, Any]]:
    """Disputed topics, those with the worst findings first: heading, marks and lanes."""
    by_name: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in statements:
        by_name.setdefault((row["cluster"], row["name"]), []).append(row)
    found: dict[tuple[str | None, str | None], list[Row]] = {}
    for finding in result["findings"]:
        if finding["topic"]:
            found.setdefault((finding["cluster"], finding["topic"]), []).append(finding)
    lives: dict[tuple[str | None, str | None], list[Row]] = {}
    for topic in result["topics"]:
        lives.setdefault((topic["cluster"], topic["name"]), []).append(topic)
    made = [topic_of(key, rows, found.get(key, []), lives.get(key, []), axis) for key, rows in by_name.items()]
    return sorted(made, key=lambda one: (-one["blamed"], one["name"] or "~", one["cluster"]))


def topic_of(
    key: tuple[str | None, str | None], said: list[Row], found: list[Row], lives: list[Row], axis: Axis
) -> dict[str, Any]:
    blamed = sorted((one for one in found if one["kind"] in BLAMED), key=lambda one: BLAMED.index(one["kind"]))
    born = {topic["topic_id"]: topic["first_seen"] for topic in lives if topic["topic_id"]}
    ids = sorted({row["topic_id"] for row in said} | born.keys(), key=lambda one: (born.get(one, "~"), one))
    lanes = [lane(row, ids, born, blamed, axis) for row in sorted(shown(said, blamed), key=lambda r: place(r, ids))]
    return {
        "cluster": named_cluster(key[0]),
        "name": key[1],
        "ids": [{"id": one, "short": one[:SHORT], "number": number} for number, one in enumerate(ids)],
        "blamed": len(blamed),
        "marks": marks([finding for finding in found if finding["kind"] not in BLAMED], axis),
        "turns": [axis.percent(born[one]) for one in ids[1:] if one in born],
        "lanes": lanes[:LANES],
        "left": max(len(lanes) - LANES, 0),
    }


def shown(said: Iterable[Row], blamed: Iterable[Row]) -> Iterator[Row]:
    """All of brokers, controllers and the log; of clients those that findings are about."""
    named = {client for finding in blamed for client in finding["client_ids"]}
    return (row for row in said if row["speaker"] != "client" or row["who"] in named)


def place(row: Row, ids: list[str]) -> tuple[Any, ...]:
    number = row["broker"] if row["broker"] is not None else 1 << 31
    return ids.index(row["topic_id"]), ORDER.index(row["speaker"]), number, row["who"], row["does"]


def lane(row: Row, ids: list[str], born: Row, blamed: Iterable[Row], axis: Axis) -> dict[str, Any]:
    """Bars of one speaker and id: the part behind the id's end stands out where a finding is about the speaker."""
    number = ids.index(row["topic_id"])
    finding = next((one for one in blamed if is_about(one, row)), None)
    after = next((born[one] for one in ids[number + 1 :] if one in born), None)
    bars: list[tuple[str, str, Row | None]] = [(row["first_seen"], row["last_seen"], None)]
    if finding and row["does"] == "refuses":
        bars = [(row["first_seen"], row["last_seen"], finding)]
    elif finding and after and row["last_seen"] > after:
        begun = row["first_seen"] < after
        bars = [(row["first_seen"], after, None)] if begun else []
        bars.append((after if begun else row["first_seen"], row["last_seen"], finding))
    return {
        "who": called(row),
        "does": row["does"],
        "short": row["topic_id"][:SHORT],
        "number": number,
        "bars": [bar(*one, axis) for one in bars],
        "odd": any(one[2] for one in bars),
        "said": f"{called(row)} {row['does']} {row['topic_id']}, {row['count']:,} times, "
        f"{axis.clock(row['first_seen'])} to {axis.clock(row['last_seen'])}",
    }


def is_about(finding: Row, row: Row) -> bool:
    """A finding with client ids is about these; of its brokers some may merely have answered them."""
    if row["topic_id"] not in finding["topic_ids"]:
        return False
    if row["speaker"] == "client":
        return row["who"] in finding["client_ids"]
    return row["speaker"] == "broker" and not finding["client_ids"] and row["broker"] in finding["brokers"]


def called(row: Row) -> str:
    if row["speaker"] == "broker":
        return f"broker {row['broker']}" if row["broker"] is not None else str(row["who"])
    if row["speaker"] == "controller":
        return f"controller {row['who']}"
    return "metadata log" if row["speaker"] == "metadata-log" else row["who"] or "(no client id)"


def bar(first: str, last: str, finding: Row | None, axis: Axis) -> dict[str, Any]:
    start, end = axis.percent(first), axis.percent(last)
    width = max(end - start, THINNEST)
    return {
        "start": round(min(start, 100 - THINNEST), 3),
        "width": round(width, 3),
        "kind": finding["kind"] if finding else None,
        "finding": finding["id"] if finding else None,
        "code": finding["code"] if finding else None,
        "from": axis.clock(first),
        "to": axis.clock(last),
    }


def marks(found: Iterable[Row], axis: Axis) -> list[dict[str, Any]]:
    """One mark a finding, at its beginning; those that would touch are one, which leads to the first."""
    made: list[dict[str, Any]] = []
    for finding in sorted(found, key=lambda one: (one["first_seen"], one["id"])):
        percent = axis.percent(finding["first_seen"])
        if made and percent - made[-1]["percent"] < APART:
            made[-1]["count"] += 1
            continue
        names = ("id", "code", "kind", "name")
        made.append({"percent": percent, "count": 1, "at": axis.clock(finding["first_seen"])})
        made[-1] |= {name: finding[name] for name in names}
    return made


def entries(result: Row, axis: Axis) -> dict[str, Any]:
    """The entries that somebody has to look into, each with its time: causes with what follows right below them."""
    told = {finding["id"]: finding for finding in result["findings"]}
    every = [(entry, below) for top in result["entries"] for entry, below in flat(top)]
    blamed = [(entry, below) for entry, below in every if entry["kind"] in BLAMED]
    return {
        "rows": [entry_row(entry, below, told, axis) for entry, below in blamed[:ENTRIES]],
        "left": max(len(blamed) - ENTRIES, 0),
    }


def flat(entry: Row) -> Iterator[tuple[Row, bool]]:
    yield entry, False
    yield from ((under, True) for under in entry["consequences"])


def entry_row(entry: Row, below: bool, told: Mapping[str, Row], axis: Axis) -> dict[str, Any]:
    found = [told[name] for name in entry["findings"]]
    first, last = min(one["first_seen"] for one in found), max(one["last_seen"] for one in found)
    return {
        **{name: entry[name] for name in ("code", "name", "kind", "sentence")},
        "id": entry["findings"][0],
        "below": below,
        "bar": bar(first, last, {**found[0], "kind": entry["kind"]}, axis),
        "count": plural(sum(one["count"] for one in found), "time"),
    }


def traffic(slots: Row | None, axis: Axis) -> dict[str, Any] | None:
    """What was captured when, as the outline of an area 100 high: the fullest slot of it."""
    if not slots or not any(slots["payload_bytes"]):
        return None
    most = max(slots["payload_bytes"])
    heights = [100 - round(100 * count / most) for count in slots["payload_bytes"]]
    steps = "".join(f"V{height}H{number + 1}" for number, height in enumerate(heights))
    start, end = axis.percent(slots["first"]), axis.percent(slots["last"])
    seconds = (moment(slots["last"]) - moment(slots["first"])).total_seconds() / len(heights)
    return {
        "path": f"M0 100{steps}V100Z",
        "slots": len(heights),
        "start": start,
        "width": round(max(end - start, THINNEST), 3),
        "bytes": sum(slots["payload_bytes"]),
        "most": most,
        "slot_s": seconds,
    }
