"""What differs between the results of two runs, or between two times of one: findings, harm, clients, topic IDs.

Rows keep the first and the last time of what they are about, and no counts in between. So two times are compared by
what was seen around each; versions and rates of a time are not known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wirecheck.questions.traffic_diff import changed_clients, changed_ids, changed_versions, difference, ordered
from wirecheck.story.entries import BLAMED
from wirecheck.streaming.store.topics_at import FOREVER_NS, described
from wirecheck.wording import NS_PER_S, client_name, clock

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from wirecheck.questions.traffic_diff import ClientApi, Difference
    from wirecheck.streaming.store.run_result import Result

Row = dict[str, Any]
RECENT_NS = 5 * 60 * NS_PER_S
"""What was seen within this before a time was there then. Clients refresh their metadata so often, and a monitor writes
a row's last time within a minute."""


@dataclass(frozen=True)
class Side:
    """What was there before, or after."""

    result: Result
    since_ns: int = 0
    """Rows that were last seen earlier do not count, unless they began after `begun_ns`."""
    until_ns: int = FOREVER_NS
    begun_ns: int = FOREVER_NS
    versions: bool = True

    def rows(self, table: str) -> list[Row]:
        return [row for row in self.result.rows[table] if self.has(row)]

    def has(self, row: Row) -> bool:
        if row.get("others") is not None or row["first_seen"] > self.until_ns:
            return False
        return bool(row["last_seen"] >= self.since_ns or row["first_seen"] > self.begun_ns)


def at_times(result: Result, before_ns: int, after_ns: int) -> tuple[Side, Side]:
    side = Side(result, before_ns - RECENT_NS, before_ns, versions=False)
    return side, replace(side, since_ns=after_ns - RECENT_NS, until_ns=after_ns, begun_ns=before_ns)


def differences(before: Side, after: Side) -> list[Difference]:
    """Those that matter first, then by kind and subject."""
    sides = before, after
    return ordered(
        findings(before, after),
        harms(before, after),
        changed_clients(*map(requests_of, sides)),
        changed_ids(*map(current_ids, sides)),
        changed_versions(*map(versions_of, sides)),
    )


def only_once(before: Side, after: Side, table: str, key_of: Callable[[Row], Hashable]) -> Iterator[tuple[Row, bool]]:
    """Rows about what only one of the two has, of each the one that was seen last; whether it is new."""
    sides = [{key_of(row): row for row in by_last_seen(side, table)} for side in (before, after)]
    for key in sides[0].keys() ^ sides[1].keys():
        yield sides[0].get(key) or sides[1][key], key in sides[1]


def by_last_seen(side: Side, table: str) -> list[Row]:
    return sorted(side.rows(table), key=lambda row: row["last_seen"])


def findings(before: Side, after: Side) -> Iterator[Difference]:
    def key_of(row: Row) -> Hashable:
        return row["code"], row["topic"], tuple(row["client_ids"]), tuple(row["brokers"])

    for row, is_new in only_once(before, after, "findings", key_of):
        noun = "finding" if row["kind"] in BLAMED else "note"
        subject = " ".join(filter(None, (row["code"], row["topic"], *row["client_ids"][:1])))
        client = next(iter(row["client_ids"]), None)
        if is_new:
            yield difference(f"{noun}-new", subject, "", row["summary"], client)
        else:
            yield difference(f"{noun}-gone", subject, f"last at {clock(row['last_seen'], dated=True)}", "", client)


def harms(before: Side, after: Side) -> Iterator[Difference]:
    def key_of(row: Row) -> Hashable:
        return tuple(row["errors"]), row["client_id"], row["api"], row["topic"]

    for row, is_new in only_once(before, after, "harms", key_of):
        words = ", ".join(row["errors"]), client_name(row["client_id"]), row["api"], row["topic"]
        subject, count = " ".join(filter(None, words)), f"{row['count']:,}"
        if is_new:
            kind = "error-recovered" if row["recovered"] else "error-new"
            yield difference(kind, subject, "", count, row["client_id"] or "")
        else:
            yield difference("error-gone", subject, count, "", row["client_id"] or "")


def requests_of(side: Side) -> dict[str, int]:
    """By client ID."""
    return {row["client_id"]: row["requests"] for row in by_last_seen(side, "clients") if row["client_id"]}


def current_ids(side: Side) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for topic in described(side.result, side.until_ns):
        if topic.name and topic.topic_id and topic.state == "current":
            found.setdefault(topic.name, set()).add(topic.topic_id)
    return found


def versions_of(side: Side) -> dict[ClientApi, int]:
    """The highest version of each client and API; of a time none is known."""
    found: dict[ClientApi, int] = {}
    for row in side.rows("clients") if side.versions else ():
        for each in row["apis"]:
            key = row["client_id"] or "", each["api"]
            found[key] = max([found.get(key, -1), *each["versions"]])
    return found
