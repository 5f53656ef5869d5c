"""Who used which topic ID when: lanes along the one axis of the page, one lane per host, one color per topic ID.

Nothing hides another: overlapping bars of one lane are on tracks of their own, and marks that would touch are one mark
with a count. A bar begins and ends with a sighting. What a finding is about is hatched, and links to it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from wirecheck.dashboards.axis import THINNEST, Axis, Traffic
from wirecheck.dashboards.report.courses import outline
from wirecheck.dashboards.verdict import named_cluster
from wirecheck.story.entries import BLAMED, by_time
from wirecheck.story.seen import Statement, Topic
from wirecheck.story.verdict import Entry, Finding, Verdict
from wirecheck.wording import plural, utc

One = TypeVar("One", Topic, Statement)
Key = tuple[str | None, str | None]
"""Cluster and name."""
DRAWN, FOLDED = 3, 40
"""So many topics are drawn at once, and so many more on request."""
LANES = 14
"""Of one topic."""
ENTRIES = 6
"""Findings with a lane of their own."""
APART = 3.0
"""Percent of the axis: marks that are nearer are one."""
NEVER_NS = 1 << 63
ORDER = ("controller", "metadata-log", "broker", "client")
TRACKS = 3
"""Bars of one lane beside each other, at most."""
SHORT = 6
"""Characters of a topic id that tell it from others on one page."""


def topics(result: Verdict, statements: Iterable[Statement], axis: Axis) -> list[dict[str, Any]]:
    """Disputed topics, those with the worst findings first: heading, marks and lanes."""
    found = findings_by_topic(result.findings)
    lives = by_topic(result.topics)
    made = [
        topic_of(key, rows, found.get(key, []), lives.get(key, []), axis) for key, rows in by_topic(statements).items()
    ]
    return sorted(made, key=lambda one: (-one["blamed"], one["name"] or "~", one["cluster"]))


def by_topic(rows: Iterable[One]) -> dict[Key, list[One]]:
    found: dict[Key, list[One]] = {}
    for row in rows:
        found.setdefault((row.cluster, row.name), []).append(row)
    return found


def findings_by_topic(findings: Iterable[Finding]) -> dict[Key, list[Finding]]:
    found: dict[Key, list[Finding]] = {}
    for one in findings:
        if one.topic:
            found.setdefault((one.cluster, one.topic), []).append(one)
    return found


def topic_of(
    key: Key, statements: list[Statement], found: list[Finding], lives: list[Topic], axis: Axis
) -> dict[str, Any]:
    blamed = sorted((one for one in found if one.kind in BLAMED), key=lambda one: BLAMED.index(one.kind))
    born = {topic.topic_id: topic.first_ns for topic in lives if topic.topic_id}
    ids = sorted({row.topic_id for row in statements} | born.keys(), key=lambda one: (born.get(one, NEVER_NS), one))
    speakers: dict[tuple[Any, ...], list[Statement]] = {}
    for row in sorted(shown(statements, blamed), key=place):
        speakers.setdefault(place(row)[:3], []).append(row)
    lanes = [lane(rows, ids, born, blamed, axis) for rows in speakers.values()]
    return {
        "cluster": named_cluster(key[0]),
        "name": key[1],
        "ids": [{"id": one, "short": one[:SHORT], "number": number} for number, one in enumerate(ids)],
        "blamed": len(blamed),
        "marks": marks([finding for finding in found if finding.kind not in BLAMED], axis),
        "turns": [axis.percent(born[one]) for one in ids[1:] if one in born],
        "odd": any(one["odd"] for one in lanes),
        "lanes": lanes[:LANES],
        "left": max(len(lanes) - LANES, 0),
    }


def shown(statements: Iterable[Statement], blamed: Iterable[Finding]) -> Iterator[Statement]:
    """All of brokers, controllers and the log; of clients those that findings are about."""
    named = {client for finding in blamed for client in finding.client_ids}
    return (row for row in statements if row.speaker != "client" or row.who in named)


def place(row: Statement) -> tuple[Any, ...]:
    number = row.broker if row.broker is not None else 1 << 31
    name = called(row) if row.speaker == "broker" else row.who  # one broker may have several endpoints
    return ORDER.index(row.speaker), number, name, row.first_ns, row.does


def lane(
    rows: list[Statement], ids: list[str], born: Mapping[str, int], blamed: Iterable[Finding], axis: Axis
) -> dict[str, Any]:
    """All bars of one speaker; those of a refusal are drawn over the bar of the same topic ID."""
    found = list(blamed)
    bars = [bar for row in rows if row.does != "refuses" for bar in bars_of(row, ids, born, found, axis)]
    refused = [bar for row in rows if row.does == "refuses" for bar in bars_of(row, ids, born, found, axis)]
    tracks = on_tracks(bars)
    for one in refused:
        below = next((bar for bar in bars if bar["number"] == one["number"]), None)
        one["track"] = below["track"] if below else 0
    return {
        "who": called(rows[0]),
        "bars": bars + refused,
        "tracks": max(tracks, 1),
        "odd": any(bar["kind"] for bar in bars + refused),
        "label": "; ".join(words(row, axis) for row in rows),
    }


def on_tracks(bars: list[dict[str, Any]]) -> int:
    """Give each bar the first track on which it overlaps no other; how many there are."""
    ends: list[float] = []
    for bar in sorted(bars, key=lambda bar: bar["start"]):
        free = next((number for number, end in enumerate(ends) if end <= bar["start"] + 1e-3), None)
        if free is None:
            free = min(len(ends), TRACKS - 1)
            ends += [0.0] * (free + 1 - len(ends))
        bar["track"] = free
        ends[free] = max(ends[free], bar["start"] + bar["width"])
    return len(ends)


def bars_of(
    row: Statement, ids: list[str], born: Mapping[str, int], blamed: Iterable[Finding], axis: Axis
) -> Iterator[dict[str, Any]]:
    """The part behind the end of the topic ID stands out where a finding is about the speaker."""
    number = ids.index(row.topic_id)
    finding = next((one for one in blamed if is_about(one, row)), None)
    after = next((born[one] for one in ids[number + 1 :] if one in born), None)
    first, last = row.first_ns, row.last_ns
    parts: list[tuple[int, int, Finding | None]] = [(first, last, None)]
    if finding and row.does == "refuses":
        parts = [(first, last, finding)]
    elif finding and after and last > after:
        parts = [(first, after, None)] if first < after else []
        parts.append((max(first, after), last, finding))
    for part in parts:
        drawn = bar(*part, axis)
        yield drawn | {
            "number": number,
            "short": row.topic_id[:SHORT],
            "refused": row.does == "refuses",
            "label": words(row, axis),
        }


def words(row: Statement, axis: Axis) -> str:
    span = f"{axis.clock(row.first_ns)} to {axis.clock(row.last_ns)}"
    return f"{called(row)} {row.does} {row.topic_id}, {row.count:,} times, {span}"


def is_about(finding: Finding, row: Statement) -> bool:
    """A finding with client ids is about these; of its brokers some may merely have answered them."""
    if row.topic_id not in finding.topic_ids:
        return False
    if row.speaker == "client":
        return row.who in finding.client_ids
    return row.speaker == "broker" and not finding.client_ids and row.broker in finding.brokers


def called(row: Statement) -> str:
    if row.speaker == "broker":
        return f"broker {row.broker}" if row.broker is not None else str(row.who)
    if row.speaker == "controller":
        return f"controller {row.who.replace('@', ', epoch ')}"
    return "metadata log" if row.speaker == "metadata-log" else row.who or "(no client ID)"


def bar(first: int, last: int, finding: Finding | None, axis: Axis) -> dict[str, Any]:
    start, end = axis.percent(first), axis.percent(last)
    width = max(end - start, THINNEST)
    return {
        "start": round(min(start, 100 - THINNEST), 3),
        "width": round(width, 3),
        "kind": finding.kind if finding else None,
        "finding": finding.id if finding else None,
        "code": finding.code if finding else None,
        "from": axis.clock(first),
        "to": axis.clock(last),
    }


def marks(found: Iterable[Finding], axis: Axis) -> list[dict[str, Any]]:
    """One mark a finding, at its beginning; those that would touch are one, which leads to the first."""
    made: list[dict[str, Any]] = []
    for finding in by_time(found):
        percent = axis.percent(finding.first_ns)
        if made and percent - made[-1]["percent"] < APART:
            made[-1]["count"] += 1
            continue
        made.append({"percent": percent, "count": 1, "at": axis.clock(finding.first_ns)})
        made[-1] |= {"id": finding.id, "code": finding.code, "kind": finding.kind, "name": finding.name}
    return made


def entries(result: Verdict, axis: Axis) -> dict[str, Any]:
    """The entries that somebody has to look into, each with its time: causes with what follows right below them."""
    by_id = result.by_id
    every = [(entry, below) for top in result.entries for entry, below in flat(top)]
    blamed = [(entry, below) for entry, below in every if entry.kind in BLAMED]
    return {
        "rows": [entry_row(entry, below, by_id, axis) for entry, below in blamed[:ENTRIES]],
        "left": max(len(blamed) - ENTRIES, 0),
    }


def flat(entry: Entry) -> Iterator[tuple[Entry, bool]]:
    yield entry, False
    yield from ((under, True) for under in entry.consequences)


def entry_row(entry: Entry, below: bool, by_id: Mapping[str, Finding], axis: Axis) -> dict[str, Any]:
    found = [by_id[name] for name in entry.findings]
    first_ns, last_ns = min(one.first_ns for one in found), max(one.last_ns for one in found)
    return {
        "code": entry.code,
        "name": entry.name,
        "kind": entry.kind,
        "sentence": entry.sentence,
        "id": entry.findings[0],
        "below": below,
        "bar": bar(first_ns, last_ns, replace(found[0], kind=entry.kind), axis),
        "count": plural(sum(one.count for one in found), "time"),
    }


def traffic(slots: Traffic | None, axis: Axis) -> dict[str, Any] | None:
    """What was captured when, as the outline of an area 100 high: the fullest slot of it."""
    if not slots or not any(slots.payload_bytes):
        return None
    counts = slots.payload_bytes
    start, end = axis.percent(slots.first_ns), axis.percent(slots.last_ns)
    seconds = (utc(slots.last_ns) - utc(slots.first_ns)).total_seconds() / len(counts)
    return {
        "path": outline(counts),
        "slots": len(counts),
        "start": start,
        "width": round(max(end - start, THINNEST), 3),
        "bytes": sum(counts),
        "most": max(counts),
        "slot_s": seconds,
    }


ROWS, CLIENTS = 60, 8
"""Topics, and columns of clients, at most."""
OPEN_ROWS = 12
"""The others on request."""


def who_says(result: Verdict, statements: Iterable[Statement]) -> dict[str, Any]:
    """Columns in order (metadata log, controllers as one, brokers, clients) and rows with a cell for each."""
    every = list(statements)
    blamed = [one for kind in BLAMED for one in result.findings if one.kind == kind and one.topic]
    about = findings_by_topic(blamed)
    current = {(one.cluster, one.name): one.topic_id for one in result.topics if one.state == "current"}
    columns = columns_of(every, {client for finding in blamed for client in finding.client_ids})
    made = [
        row_of(key, rows, columns, about.get(key, []), current.get(key))
        for key, rows in sorted(by_topic(every).items(), key=lambda item: (item[0][1] or "~", str(item[0][0])))
    ]
    made.sort(key=lambda row: not any(cell and cell["finding"] for cell in row["cells"]))
    clients = {row.who for row in every if row.speaker == "client"}
    return {
        "columns": columns,
        "rows": made[:ROWS],
        "left": max(len(made) - ROWS, 0),
        "clients_left": len(clients - {column for kind, column in columns if kind == "client"}),
    }


def columns_of(statements: Iterable[Statement], named: set[str]) -> list[tuple[str, str]]:
    """(kind, name) of each; of clients those that findings name first."""
    found: dict[tuple[int, Any], tuple[str, str]] = {}
    clients: set[str] = set()
    for row in statements:
        kind, name = column_of(row)
        if kind == "client":
            clients.add(name)
        else:
            number = row.broker if row.broker is not None else 1 << 31
            found[("log", "controller", "broker").index(kind), (number, name)] = (kind, name)
    chosen = sorted(clients, key=lambda name: (name not in named, name))[:CLIENTS]
    return [found[key] for key in sorted(found)] + [("client", name) for name in chosen]


def column_of(row: Statement) -> tuple[str, str]:
    if row.speaker == "metadata-log":
        return "log", "metadata log"
    if row.speaker == "controller":
        return "controller", "controller"
    return row.speaker, called(row) if row.speaker == "broker" else row.who


def row_of(
    key: Key,
    statements: list[Statement],
    columns: Iterable[tuple[str, str]],
    about: list[Finding],
    current: str | None,
) -> dict[str, Any]:
    by_column: dict[tuple[str, str], list[Statement]] = {}
    for row in statements:
        by_column.setdefault(column_of(row), []).append(row)
    ids = list(dict.fromkeys(row.topic_id for row in sorted(statements, key=lambda row: row.first_ns)))
    cells = [cell(by_column[column], ids, about, current) if column in by_column else None for column in columns]
    return {"cluster": named_cluster(key[0]), "name": key[1], "current": current, "cells": cells}


def cell(statements: list[Statement], ids: list[str], about: list[Finding], current: str | None) -> dict[str, Any]:
    refusing = [row for row in statements if row.does == "refuses" and any(is_about(one, row) for one in about)]
    last = max(refusing or statements, key=lambda row: (row.last_ns, ids.index(row.topic_id)))
    odd = bool(refusing) or last.topic_id != current
    finding = next((one for one in about if odd and is_about(one, last)), None)
    return {
        "topic_id": last.topic_id,
        "short": last.topic_id[:SHORT],
        "does": last.does,
        "number": ids.index(last.topic_id),
        "current": last.topic_id == current,
        "finding": finding.id if finding else None,
        "code": finding.code if finding else None,
        "kind": finding.kind if finding else None,
    }
