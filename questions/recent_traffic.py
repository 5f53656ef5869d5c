"""Traffic of the last seconds of a capture that is still running.

    recent = RecentTraffic(10); recent.add(exchanges); recent.traffic().calls

Time is capture time. What is older than the window is dropped whole seconds at a time, so memory grows with what
happens within a window, never with the length of a capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wirecheck.questions.traffic import Traffic
from wirecheck.wording import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirecheck.decode.connection.exchanges import Exchanges

WHOLE = 0
"""The slot of everything, without a window."""


class RecentTraffic:
    """The last `window_s` seconds; None: all of it."""

    def __init__(self, window_s: int | None, dialects: Sequence[str] = ()) -> None:
        self._window_s, self._dialects = window_s, dialects
        self._slots: dict[int, Traffic] = {}
        """By second."""
        self._names = Traffic(dialects=dialects)
        """Of brokers and topics; they do not age."""
        self.first_ns = 0
        self.newest_ns = 0

    def add(self, exchanges: Exchanges) -> None:
        """What one call of a follower gave."""
        exchanges = self._names.once.only(exchanges)
        if not len(exchanges):
            return
        asked_ns = exchanges.ts_ns[exchanges.first]
        self.first_ns = min(self.first_ns or int(asked_ns.min()), int(asked_ns.min()))
        self.newest_ns = max(self.newest_ns, int(exchanges.ts_ns.max()))
        if self._window_s is None:
            self._slot(WHOLE).add(exchanges)
            return
        second, oldest = asked_ns // NS_PER_S, self.newest_ns // NS_PER_S - self._window_s
        for number in np.unique(second[second > oldest]).tolist():
            self._slot(number).add(exchanges.only(np.flatnonzero(second == number)))
        self._slots = {number: traffic for number, traffic in self._slots.items() if number > oldest}

    def _slot(self, number: int) -> Traffic:
        if number not in self._slots:
            self._slots[number] = self._empty()
        return self._slots[number]

    def _empty(self) -> Traffic:
        return Traffic(dialects=self._dialects, brokers=self._names.brokers, topic_names=self._names.topic_names)

    @property
    def seconds(self) -> float:
        """How much of the window has passed."""
        passed = (self.newest_ns - self.first_ns) / NS_PER_S
        return max(1.0, passed if self._window_s is None else min(passed, self._window_s))

    def traffic(self) -> Traffic:
        """All of the window as one."""
        total = self._empty()
        for slot in self._slots.values():
            total.calls.merge(slot.calls)
            total.failures.merge(slot.failures)
        return total
