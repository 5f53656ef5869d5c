"""Who talks now: requests, errors and latency of the last seconds of a capture that is still running.

    recent = RecentTraffic(10); recent.add(exchanges); recent.talkers()[0].requests_per_s

Time is capture time. What is older than the window is dropped whole seconds at a time, so memory grows with what
happens within a window, never with the length of a capture.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wirecheck.decode.show.traffic import THROTTLED, Traffic, quantile_ms

if TYPE_CHECKING:
    from wirecheck.decode.connection.exchanges import Exchanges

NS_PER_S = 1_000_000_000
P99 = 0.99


@dataclass(slots=True)
class Talker:
    """One client and API."""

    client_id: str | None
    host: str
    api: str
    seconds: float
    """Of the window."""
    requests: int = 0
    errors: int = 0
    """Answers with an error code; one that has several counts as often."""
    throttled: int = 0
    """Answers that ask the client to wait."""
    bytes: int = 0
    """Of requests and responses."""
    versions: set[int] = field(default_factory=set)
    servers: Counter[str] = field(default_factory=Counter)
    """Requests by broker: its ID, or its address where nothing named it."""
    latencies: Counter[int] = field(default_factory=Counter)

    @property
    def requests_per_s(self) -> float:
        return self.requests / self.seconds

    @property
    def errors_per_s(self) -> float:
        return self.errors / self.seconds

    @property
    def p99_ms(self) -> float | None:
        return quantile_ms(self.latencies, P99)


class RecentError(NamedTuple):
    last_ns: int
    client_id: str | None
    host: str
    api: str
    topic: str
    error: str
    times: int
    """Within the window."""


class RecentTraffic:
    """The last `window_s` seconds; None: all of it."""

    def __init__(self, window_s: int | None) -> None:
        self._window_s = window_s
        self._slots: deque[tuple[int, Traffic]] = deque()
        self._names = Traffic()
        self.first_ns = 0
        self.newest_ns = 0

    def add(self, exchanges: Exchanges) -> None:
        """What one call of a follower gave."""
        if not len(exchanges):
            return
        half = np.where(exchanges.request >= 0, exchanges.request, exchanges.response)
        asked_ns = exchanges.ts_ns[half]
        self.first_ns = min(self.first_ns or int(asked_ns.min()), int(asked_ns.min()))
        self.newest_ns = max(self.newest_ns, int(exchanges.ts_ns.max()))
        second = asked_ns // NS_PER_S
        for number in np.unique(second).tolist() if self._window_s is not None else [0]:
            if self._window_s is None:
                self._slot(0).add(exchanges)
            elif number > self._newest_s - self._window_s:
                self._slot(number).add(exchanges.only(np.flatnonzero(second == number)))
        self._forget()

    @property
    def _newest_s(self) -> int:
        return self.newest_ns // NS_PER_S

    def _slot(self, number: int) -> Traffic:
        for known, traffic in self._slots:
            if known == number:
                return traffic
        made = Traffic(brokers=self._names.brokers, topic_names=self._names.topic_names)
        self._slots.append((number, made))
        return made

    def _forget(self) -> None:
        if self._window_s is not None:
            oldest = self._newest_s - self._window_s
            self._slots = deque((number, traffic) for number, traffic in self._slots if number > oldest)

    @property
    def seconds(self) -> float:
        """How much of the window has passed."""
        passed = (self.newest_ns - self.first_ns) / NS_PER_S
        return max(1.0, passed if self._window_s is None else min(passed, self._window_s))

    def talkers(self) -> list[Talker]:
        """By client, host and API."""
        found: dict[tuple[str | None, str, str], Talker] = {}
        for _, traffic in self._slots:
            for call, counted in traffic.calls.items():
                key = call.client_id, call.host, call.api
                one = found.setdefault(key, Talker(*key, self.seconds))
                one.requests += counted.count
                one.bytes += counted.request_bytes + counted.response_bytes
                one.versions |= counted.versions
                one.servers[traffic.brokers.named(call.server)] += counted.count
                one.latencies.update(counted.latencies)
            for failure, failed in traffic.failures.items():
                one = found.setdefault(
                    (failure.client_id, failure.host, failure.api),
                    Talker(failure.client_id, failure.host, failure.api, self.seconds),
                )
                if failure.error == THROTTLED:
                    one.throttled += failed.count
                else:
                    one.errors += failed.count
        return list(found.values())

    def errors(self) -> list[RecentError]:
        """The last first."""
        found: dict[tuple[str | None, str, str, str, str], list[int]] = {}
        for _, traffic in self._slots:
            for one, counted in traffic.failures.items():
                row = found.setdefault((one.client_id, one.host, one.api, one.topic, one.error), [0, 0])
                row[0] = max(row[0], counted.last_ns)
                row[1] += counted.count
        every = [RecentError(last_ns, *key, count) for key, (last_ns, count) in found.items()]
        return sorted(every, key=lambda error: -error.last_ns)
