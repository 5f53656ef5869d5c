"""How long clients waited for answers: one row per client and API, the slowest first.

From a request's last byte to the answer's first, at the capture point. APIs that wait by design (Fetch, JoinGroup, ...)
have rows of their own kind: what they take says little about a broker.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirecheck.decode.api_names import WAITS
from wirecheck.questions.traffic import GIVEN_UP, UNANSWERED, gathered, quantile_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wirecheck.questions.traffic import Calls, Count, Rejection, Traffic


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """The answers to one client's requests of one API; times in milliseconds."""

    client_id: str | None
    host: str
    api: str
    count: int
    """Answered requests."""
    unanswered: int
    """Requests that got no response: the server closed the connection, or the client gave up. No time counts them."""
    p50_ms: float | None
    """None where none was answered."""
    p99_ms: float | None
    broker_p99_ms: float | None
    """Without the way between the capture point and the broker; None where no handshake shows how long that is."""
    network_p50_ms: float | None
    """From the client to the broker and back, by the handshake of its connection."""
    waits: bool
    """Whether the API waits by design, for data or for members of a group."""
    cluster: str | None
    """ID of the cluster of the brokers that answered; None where it is not known, or where they are of several."""


@dataclass(frozen=True, slots=True)
class ApiLatencyRow:
    """The answers to all clients' requests of one API; times in milliseconds, as in LatencyRow."""

    api: str
    clients: int
    """Different client IDs, each at each of its addresses."""
    count: int
    unanswered: int
    p50_ms: float | None
    p99_ms: float | None
    broker_p99_ms: float | None
    network_p50_ms: float | None
    waits: bool


def latency_rows(traffic: Traffic) -> list[LatencyRow]:
    """Those that do not wait by design first; of each kind those with requests without a response, then the slowest."""
    unanswered = Counter[tuple[str | None, str, str]]()
    for failure, failed in no_response(traffic):
        unanswered[failure.client_id, failure.host, failure.api] += failed.count
    of_clients = gathered(traffic.calls.items(), lambda call: (call.client_id, call.host, call.api))
    servers: dict[tuple[str | None, str, str], set[str]] = {}
    for call in traffic.calls:
        servers.setdefault((call.client_id, call.host, call.api), set()).add(call.server)
    cluster_of = {key: traffic.brokers.cluster_of(ends) for key, ends in servers.items()}
    rows = [
        LatencyRow(client_id, host, api, *measured, api in WAITS, cluster_of[client_id, host, api])
        for (client_id, host, api), calls in of_clients.items()
        if (measured := times(calls, unanswered[client_id, host, api])) is not None
    ]
    return sorted(rows, key=lambda row: (*slowest(row), row.client_id or "", row.host, row.api))


def api_latency_rows(traffic: Traffic, chosen: Callable[[str | None], bool]) -> list[ApiLatencyRow]:
    """The same of the clients whose IDs are chosen together, one row for each API."""
    calls_of = [(call, one) for call, one in traffic.calls.items() if chosen(call.client_id)]
    unanswered, clients = Counter[str](), {(call.api, call.client_id, call.host) for call, _ in calls_of}
    for failure, failed in no_response(traffic):
        unanswered[failure.api] += failed.count if chosen(failure.client_id) else 0
    number = Counter(api for api, *_ in clients)
    rows = [
        ApiLatencyRow(api, number[api], *measured, api in WAITS)
        for api, calls in gathered(calls_of, lambda call: call.api).items()
        if (measured := times(calls, unanswered[api])) is not None
    ]
    return sorted(rows, key=lambda row: (*slowest(row), row.api))


def no_response(traffic: Traffic) -> Iterator[tuple[Rejection, Count]]:
    return ((one, count) for one, count in traffic.failures.items() if one.error in {UNANSWERED, GIVEN_UP})


Times = tuple[int, int, float | None, float | None, float | None, float | None]
"""Answered, without a response, p50, p99, of the broker p99, of the network p50."""


def times(calls: Calls, unanswered: int) -> Times | None:
    """None where none was answered, and none should have been."""
    half, most = (quantile_ms(calls.latencies, share) for share in (0.5, 0.99))
    if half is None and not unanswered:
        return None
    broker, network = quantile_ms(calls.in_broker, 0.99), quantile_ms(calls.in_network, 0.5)
    return sum(calls.latencies.values()), unanswered, half, most, broker, network


def slowest(row: LatencyRow | ApiLatencyRow) -> tuple[bool, bool, float]:
    return row.waits, not row.unanswered, -(row.p99_ms or 0.0)
