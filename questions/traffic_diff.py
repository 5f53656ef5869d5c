"""What differs between two captures: errors, clients, versions, topic IDs, latencies, rates.

    before, after = Traffic().read(tables), Traffic().read(others)
    for difference in differences(before, after): print(difference.kind, difference.subject)

Captures differ in length, so rates are compared and never counts. What was not seen often enough is not compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from wirecheck.decode.api_names import WAITS
from wirecheck.decode.nested import id_text
from wirecheck.questions.error_rows import error_rows
from wirecheck.questions.traffic import gathered, quantile_ms
from wirecheck.wording import NS_PER_S, broker_name, client_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from wirecheck.questions.traffic import Calls, Traffic

KINDS = (
    "finding-new", "error-new", "error-worse", "topic-id", "client-gone", "version-lower", "latency-higher",
    "rate-lower", "error-recovered", "finding-gone", "note-new", "note-gone", "error-gone", "client-new",
    "version-higher", "latency-lower", "rate-higher",
)  # fmt: skip
"""Those that matter come first: see MATTERS. error-recovered: a new error that ended, as a leader change gives.
Findings are those of two results (streaming/store/result_diff.py)."""
MATTERS = frozenset(KINDS[: KINDS.index("error-recovered")])
FACTOR = 2.0
"""A rate or a latency differs where one is so many times the other ..."""
ENOUGH = 20
"""... and each rests on so many requests."""
LEAST_MS = 5.0
"""Of a 99th percentile: shorter ones are not compared."""

Error = tuple[str, str, str, str]
"""Error, client ID, API, topic."""
ClientApi = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is otherwise after."""

    kind: str
    """One of KINDS."""
    subject: str
    """Who or what: client, API, topic, error."""
    before: str
    """As it was; empty where it was not there."""
    after: str
    matters: bool
    client_id: str | None = None
    """The client that it is about."""


def differences(before: Traffic, after: Traffic) -> list[Difference]:
    """Those that matter first, then by kind and subject."""
    sides = before, after
    return ordered(
        errors(before, after),
        changed_clients(*map(requests_of, sides)),
        changed_ids(*map(ids_of, sides)),
        changed_versions(*map(versions_of, sides)),
        latencies(before, after),
        rates(before, after),
    )


def ordered(*found: Iterable[Difference]) -> list[Difference]:
    every = chain.from_iterable(found)
    return sorted(every, key=lambda one: (KINDS.index(one.kind), one.subject, one.before, one.after))


def difference(kind: str, subject: str, before: str, after: str, client_id: str | None = None) -> Difference:
    return Difference(kind, subject, before, after, kind in MATTERS, client_id)


def seconds(traffic: Traffic) -> float:
    return max((traffic.last_ns - traffic.first_ns) / NS_PER_S, 1e-3)


def errors(before: Traffic, after: Traffic) -> Iterator[Difference]:
    """By error, client ID, API and topic; addresses change between captures. Routine errors do not count."""
    rows = [by_error(traffic)[0] for traffic in (before, after)]
    lasting = by_error(after)[1]
    for key in rows[0].keys() | rows[1].keys():
        was, now = (per_minute(side.get(key, 0), traffic) for side, traffic in zip(rows, (before, after), strict=True))
        subject = " ".join(filter(None, (key[0], client_name(key[1]), *key[2:])))
        if not was:
            kind = "error-new" if key in lasting else "error-recovered"
            yield difference(kind, subject, "", f"{rows[1][key]:,} ({now:.1f}/min)", key[1])
        elif not now:
            yield difference("error-gone", subject, f"{rows[0][key]:,} ({was:.1f}/min)", "", key[1])
        elif now >= FACTOR * was and rows[1][key] >= ENOUGH:
            yield difference("error-worse", subject, f"{was:.1f}/min", f"{now:.1f}/min", key[1])


def by_error(traffic: Traffic) -> tuple[Counter[Error], set[Error]]:
    """How often each was seen, and those that did not end."""
    found: Counter[Error] = Counter()
    lasting: set[Error] = set()
    for row in error_rows(traffic):
        if row.effect != "routine":
            key = row.error, row.client_id or "", row.api, row.topic or ""
            found[key] += row.count
            lasting |= {key} if row.status != "recovered" else set()
    return found, lasting


def per_minute(count: int, traffic: Traffic) -> float:
    return count * 60 / seconds(traffic)


def requests_of(traffic: Traffic) -> dict[str, int]:
    """By client ID."""
    calls = gathered(traffic.calls.items(), lambda call: call.client_id)
    return {name: one.count for name, one in calls.items() if name}


def changed_clients(before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[Difference]:
    """Of the requests of each client ID, those of clients that only one of the two has."""
    for name in before.keys() ^ after.keys():
        was, now = (f"{side[name]:,} requests" if name in side else "" for side in (before, after))
        yield difference("client-new" if not was else "client-gone", client_name(name), was, now, name)


def changed_ids(before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> Iterator[Difference]:
    """Topics with an ID that was not there before: one that was recreated before, and not since, has none."""
    for topic in before.keys() & after.keys():
        if not after[topic] <= before[topic]:
            yield difference("topic-id", topic, *(" ".join(sorted(side[topic])) for side in (before, after)))


def ids_of(traffic: Traffic) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for topic_id, name in traffic.topic_names.items():
        if not any(topic_id):  # Metadata of a topic that is not there yet
            continue
        found[name].add(id_text(topic_id))
    return found


def versions_of(traffic: Traffic) -> dict[ClientApi, int]:
    """The highest version of each client and API; -1 where it is not known."""
    calls = gathered(traffic.calls.items(), lambda call: (call.client_id or "", call.api))
    return {key: max(one.versions, default=-1) for key, one in calls.items()}


def changed_versions(before: Mapping[ClientApi, int], after: Mapping[ClientApi, int]) -> Iterator[Difference]:
    """Of clients and APIs that both have, with their highest versions."""
    for key in before.keys() & after.keys():
        was, now = before[key], after[key]
        if was >= 0 and now >= 0 and was != now:
            kind = "version-higher" if now > was else "version-lower"
            yield difference(kind, f"{client_name(key[0])} {key[1]}", f"v{was}", f"v{now}", key[0])


def latencies(before: Traffic, after: Traffic) -> Iterator[Difference]:
    """The 99th percentile of each API and broker."""
    sides = [by_broker(traffic) for traffic in (before, after)]
    for api, broker in sides[0].keys() & sides[1].keys():
        pair = [side[api, broker].latencies for side in sides]
        was, now = (quantile_ms(each, 0.99) or 0.0 for each in pair)
        if api in WAITS or min(sum(each.values()) for each in pair) < ENOUGH or max(was, now) < LEAST_MS:
            continue
        if max(was, now) >= FACTOR * min(was, now):
            kind = "latency-higher" if now > was else "latency-lower"
            where = broker_name(broker)
            yield difference(kind, f"{api} at {where}", f"p99 {was:,.1f} ms", f"p99 {now:,.1f} ms")


def by_broker(traffic: Traffic) -> dict[tuple[str, str], Calls]:
    return gathered(traffic.calls.items(), lambda call: (call.api, traffic.brokers.named(call.server)))


def rates(before: Traffic, after: Traffic) -> Iterator[Difference]:
    """Requests per second of each API of clients."""
    sides = [gathered(traffic.calls.items(), lambda call: call.api) for traffic in (before, after)]
    for api in sides[0].keys() & sides[1].keys():
        counts = [side[api].count for side in sides]
        was, now = (count / seconds(traffic) for count, traffic in zip(counts, (before, after), strict=True))
        if max(counts) >= ENOUGH and max(was, now) >= FACTOR * min(was, now):
            kind = "rate-higher" if now > was else "rate-lower"
            yield difference(kind, api, f"{was:,.1f} requests/s", f"{now:,.1f} requests/s")
