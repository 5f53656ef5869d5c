"""What differs between the results of two runs, or between two times of one: findings, harm, clients, topic IDs.

Rows keep the first and the last time of what they are about, and no counts in between. So two times are compared by
what was seen around each; versions and rates of a time are not known.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wirecheck.decode.show.traffic_diff import KINDS, changed_versions, difference
from wirecheck.streaming.store.topics_at import FOREVER, described
from wirecheck.wording import client_name

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from wirecheck.decode.show.traffic_diff import Difference
    from wirecheck.streaming.store.run_result import Result

Row = dict[str, Any]
RECENT = dt.timedelta(minutes=5)
"""What was seen within this before a time was there then. Clients refresh their metadata so often, and a monitor writes
a row's last time within a minute."""
BLAMED = frozenset({"violation", "anomaly"})
"""Kinds of findings that are worse if they are new."""


@dataclass(frozen=True)
class Side:
    """What was there before, or after."""

    result: Result
    since: dt.datetime | None = None
    """Rows that were last seen earlier do not count, unless they began after `begun`."""
    until: dt.datetime = FOREVER
    begun: dt.datetime = FOREVER
    versions: bool = True

    def rows(self, table: str) -> list[Row]:
        return [row for row in self.result.rows[table] if self.has(row)]

    def has(self, row: Row) -> bool:
        if row.get("others") is not None or row["first_seen"] > self.until:
            return False
        return self.since is None or row["last_seen"] >= self.since or row["first_seen"] > self.begun


def at_times(result: Result, before: dt.datetime, after: dt.datetime) -> tuple[Side, Side]:
    side = Side(result, before - RECENT, before, versions=False)
    return side, replace(side, since=after - RECENT, until=after, begun=before)


def differences(before: Side, after: Side) -> list[Difference]:
    """Those that matter first, then by kind and subject."""
    found = [
        *findings(before, after),
        *harms(before, after),
        *clients(before, after),
        *topic_ids(before, after),
        *(changed_versions(highest(before), highest(after)) if before.versions else ()),
    ]
    return sorted(found, key=lambda one: (KINDS.index(one.kind), one.subject))


def pairs(
    before: Side, after: Side, table: str, key_of: Callable[[Row], Hashable]
) -> Iterator[tuple[Row | None, Row | None]]:
    """Rows about one thing, of each side the one that was seen last."""
    rows = (sorted(side.rows(table), key=lambda row: row["last_seen"]) for side in (before, after))
    sides = [{key_of(row): row for row in of_side} for of_side in rows]
    for key in sides[0].keys() | sides[1].keys():
        yield sides[0].get(key), sides[1].get(key)


def findings(before: Side, after: Side) -> Iterator[Difference]:
    def key_of(row: Row) -> Hashable:
        return row["code"], row["topic"], tuple(row["client_ids"]), tuple(row["brokers"])

    for was, now in pairs(before, after, "findings", key_of):
        row = now or was
        if row is not None and (was is None or now is None):
            noun = "finding" if row["kind"] in BLAMED else "note"
            about = row["code"], row["topic"], *row["client_ids"][:1]
            before_text = f"last at {was['last_seen']:%Y-%m-%d %H:%M:%S}" if was is not None else ""
            yield difference(
                f"{noun}-{'new' if now else 'gone'}",
                " ".join(filter(None, about)),
                before_text,
                now["summary"] if now is not None else "",
            )


def harms(before: Side, after: Side) -> Iterator[Difference]:
    def key_of(row: Row) -> Hashable:
        return tuple(row["errors"]), row["client_id"], row["api"], row["topic"]

    for was, now in pairs(before, after, "harms", key_of):
        row = now or was
        if row is not None and (was is None or now is None):
            kind = "error-gone" if now is None else "error-recovered" if now["recovered"] else "error-new"
            words = ", ".join(row["errors"]), client_name(row["client_id"]), row["api"], row["topic"]
            yield difference(kind, " ".join(filter(None, words)), *counts(was, now, "count", ""))


def clients(before: Side, after: Side) -> Iterator[Difference]:
    for was, now in pairs(before, after, "clients", lambda row: row["client_id"]):
        row = now or was
        if row is not None and row["client_id"] and (was is None or now is None):
            kind = "client-gone" if now is None else "client-new"
            yield difference(kind, client_name(row["client_id"]), *counts(was, now, "requests", " requests"))


def topic_ids(before: Side, after: Side) -> Iterator[Difference]:
    sides = [current_ids(side) for side in (before, after)]
    for topic in sorted(sides[0].keys() & sides[1].keys()):
        if sides[0][topic] != sides[1][topic]:
            yield difference("topic-id", topic, *(" ".join(sorted(side[topic])) for side in sides))


def current_ids(side: Side) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for topic in described(side.result, side.until):
        if topic["name"] and topic["topic_id"] and topic["state"] == "current":
            found.setdefault(topic["name"], set()).add(topic["topic_id"])
    return found


def highest(side: Side) -> dict[tuple[str, str], int]:
    """The highest version of each client and API."""
    found: dict[tuple[str, str], int] = {}
    for row in side.rows("clients"):
        for each in row["apis"]:
            key = client_name(row["client_id"]), each["api"]
            found[key] = max([found.get(key, -1), *each["versions"]])
    return found


def counts(was: Row | None, now: Row | None, column: str, unit: str) -> tuple[str, str]:
    before, after = (f"{row[column]:,}{unit}" if row is not None else "" for row in (was, now))
    return before, after
