"""The agents of one follower: how far each has shown its traffic, and which of them are waited for.

Knows: capture time per agent, who has ended, and that one silent for long is as good as ended.
Refuses to know: what they show. Which agents showed a connection stands there (Connection.agent, second_agent).
Rule: an agent of which only frames are known holds back what it showed; time passes by what agents say of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode.connection.shared import MOST_AGENTS
from wirecheck.decode.connection.stream.frame import NEVER, UNSET

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from wirecheck.decode.connection.shared import Shared


class Agents:
    def __init__(self, silent_ns: int) -> None:
        self._silent_ns = silent_ns
        self._now: dict[str, int] = {}
        self._ended: set[str] = set()

    def expect(self, agents: Iterable[str]) -> None:
        for agent in agents:
            self._now.setdefault(agent, UNSET)

    def advance(self, agent: str, now_ns: int, *, ended: bool) -> None:
        self._now[agent] = max(now_ns, self._now.get(agent, now_ns))
        (self._ended.add if ended else self._ended.discard)(agent)

    def gone(self) -> set[str]:
        newest = max(self._now.values(), default=0)
        return self._ended | {name for name, ts in self._now.items() if UNSET < ts < newest - self._silent_ns}

    def tell(self, shared: Shared, names: dict[str, int]) -> None:
        """Note which agents are not waited for, and how many are."""
        gone = self.gone()
        places = [names[name] for name in gone if name in names]
        shared.gone_agents = sum(1 << place for place in places if place < MOST_AGENTS)
        shared.agents = len(self._now.keys() - gone)

    def shown(self, names: dict[str, int]) -> NDArray[np.int64]:
        """By agent (index among the names), up to when all that is waited for has been shown; NEVER where nothing is.
        The last place stands for no agent.
        """
        gone = self.gone()
        shown = np.full(len(names) + 1, NEVER)
        for name, place in names.items():
            if name in self._now and name not in gone:
                shown[place] = self._now[name]
        return shown

    def stored(self) -> dict[str, Any]:
        return {"now": self._now, "ended": sorted(self._ended)}

    def restore(self, stored: dict[str, Any]) -> None:
        self._now, self._ended = dict(stored["now"]), set(stored["ended"])
