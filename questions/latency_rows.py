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
    from wirecheck.questions.traffic import Traffic


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


def latency_rows(traffic: Traffic) -> list[LatencyRow]:
    """Those that do not wait by design first; of each kind those with requests without a response, then the slowest."""
    rows, unanswered = [], Counter[tuple[str | None, str, str]]()
    for failure, failed in traffic.failures.items():
        if failure.error in {UNANSWERED, GIVEN_UP}:
            unanswered[failure.client_id, failure.host, failure.api] += failed.count
    for (client_id, host, api), calls in gathered(traffic.calls.items(), lambda call: call[:2] + call[3:]).items():
        half, most = (quantile_ms(calls.latencies, share) for share in (0.5, 0.99))
        without = unanswered[client_id, host, api]
        if half is not None or without:
            broker, network = quantile_ms(calls.in_broker, 0.99), quantile_ms(calls.in_network, 0.5)
            count = sum(calls.latencies.values())
            rows.append(LatencyRow(client_id, host, api, count, without, half, most, broker, network, api in WAITS))
    return sorted(
        rows,
        key=lambda row: (row.waits, not row.unanswered, -(row.p99_ms or 0.0), row.client_id or "", row.host, row.api),
    )
