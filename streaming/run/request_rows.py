"""Requests, errors and durations by API and by broker, as a report shows them: the totals table, read back.

A quantile is the upper bound of the bucket that it lies in, and is shown as that; nothing is interpolated. The buckets
are those of `steps/request_counts.py`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from wirecheck.streaming.steps.request_counts import (
    APIS,
    BOUNDS_US,
    ERRORS,
    OTHER,
    REQUESTS,
    ROUNDS,
    SERVER_ERRORS,
    SERVERS,
)
from wirecheck.streaming.store.result_tables import BROKER_AT

Row = Mapping[str, Any]
RETRANSMITTED = "retransmitted_segments"


def request_rows(totals: Iterable[Row]) -> dict[str, Any]:
    """{"apis", "brokers": [{"name", "requests", "errors", "p50", "p99"}], "round_trip", "retransmitted"}"""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in totals:
        detail = str(row["detail"] or "")
        place = f"{row['label']} {detail}" if row["measure"] in {SERVERS, SERVER_ERRORS, BROKER_AT} else detail
        found[row["measure"]][place] += row["count"]
    at = {server: f"broker {number - 1}" for server, number in found[BROKER_AT].items()}
    of_api, of_broker = errors_of(found[ERRORS]), Counter[str]()
    for server, count in found[SERVER_ERRORS].items():
        of_broker[at.get(server, OTHER)] += count
    durations = durations_of(found[ROUNDS], ROUNDS, {})
    return {
        "apis": rows(durations_of(found[REQUESTS], REQUESTS, {}), of_api, REQUESTS),
        "brokers": rows(durations_of(found[SERVERS], SERVERS, at), of_broker, SERVERS),
        "round_trip": within(durations[""], 0.5, ROUNDS) if durations else "",
        "retransmitted": found[RETRANSMITTED].total(),
    }


def errors_of(counts: Mapping[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for detail, count in counts.items():
        api = detail.partition(":")[0]
        found[api if api in APIS else OTHER] += count
    return found


def durations_of(counts: Mapping[str, int], measure: str, names: Mapping[str, str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for detail, count in counts.items():
        name, _, bucket = detail.partition("|")
        name = names.get(name, OTHER) if measure == SERVERS else name
        found.setdefault(name, [0] * (len(BOUNDS_US[measure]) + 1))[int(bucket)] += count
    return found


def rows(durations: Mapping[str, list[int]], errors: Mapping[str, int], measure: str) -> list[dict[str, Any]]:
    """Those with most requests first."""
    found = [
        {
            "name": name,
            "requests": sum(counts),
            "errors": errors.get(name, 0),
            "p50": within(counts, 0.5, measure),
            "p99": within(counts, 0.99, measure),
        }
        for name, counts in durations.items()
    ]
    return sorted(found, key=lambda row: (-row["requests"], row["name"]))


def within(counts: list[int], share: float, measure: str) -> str:
    """`5 ms`: so many are at most so long."""
    bounds_us = BOUNDS_US[measure]
    place = next(n for n, count in enumerate(accumulate(counts)) if count >= share * sum(counts))
    return f"at most {bounds_us[place] / 1000:g} ms" if place < len(bounds_us) else f"over {bounds_us[-1] / 1000:g} ms"
