"""Rows of the table lags as the metrics page shows them: of each group, over its topics.

Rule: at most MOST groups of a cluster have series of their own, those with the largest lag; the rest is one sum.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

MOST = 100
OTHER = "(other)"


class OpenLag(NamedTuple):
    """Of a group and topic."""

    label: str
    group_id: str
    records: int
    waiting_since_s: float | None


def kept(row: Mapping[str, Any]) -> OpenLag | None:
    """None of a row without a lag: no end was seen."""
    if row["records"] is None or row["withdrawn"]:
        return None
    since_ns = row["waiting_since"]
    return OpenLag(row["label"], row["group_id"], row["records"], None if since_ns is None else since_ns / 1e9)


def by_group(lags: Iterable[OpenLag]) -> tuple[dict[tuple[str, ...], float], dict[tuple[str, ...], float]]:
    """By label and group: the lag in records, and since when its oldest record waits, in seconds since 1970."""
    records: dict[tuple[str, ...], float] = defaultdict(float)
    since_s: dict[tuple[str, ...], float] = {}
    every = [*lags]
    shown = largest(every)
    for one in every:
        place = one.label, one.group_id if (one.label, one.group_id) in shown else OTHER
        records[place] += one.records
        if one.waiting_since_s is not None:
            since_s[place] = min(one.waiting_since_s, since_s.get(place, one.waiting_since_s))
    return records, since_s


def largest(lags: Iterable[OpenLag]) -> set[tuple[str, str]]:
    """Label and group of those that have series."""
    records: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for one in lags:
        records[one.label][one.group_id] += one.records
    return {
        (label, group_id)
        for label, groups in records.items()
        for group_id in sorted(groups, key=lambda name: (-groups[name], name))[:MOST]
    }
