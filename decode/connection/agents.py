"""The agents of one follower: how far each has shown its traffic, and which of them are waited for.

Knows: capture time per agent, who has ended, and that one silent for long is as good as ended.
Refuses to know: what they show. Which connections an agent showed stands in the heap (C_AGENT, C_AGENT2).
Rule: an agent of which only frames are known holds back what it showed; time passes by what agents say of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode.connection.state import slots

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirecheck.decode.connection.state.slots import Ints

FOREVER = -slots.UNSET


class Agents:
    def __init__(self, silent_ns: int) -> None:
        self._silent_ns = silent_ns
        self._now: dict[str, int] = {}
        self._ended: set[str] = set()

    def expect(self, agents: Iterable[str]) -> None:
        for agent in agents:
            self._now.setdefault(agent, slots.UNSET)

    def advance(self, agent: str, now_ns: int, *, ended: bool) -> None:
        self._now[agent] = max(now_ns, self._now.get(agent, now_ns))
        (self._ended.add if ended else self._ended.discard)(agent)

    def gone(self) -> set[str]:
        newest = max(self._now.values(), default=0)
        return self._ended | {name for name, ts in self._now.items() if slots.UNSET < ts < newest - self._silent_ns}

    def tell(self, heap: Ints, names: dict[str, int]) -> None:
        """Say in the heap which agents are not waited for, and how many are."""
        gone = self.gone()
        places = [names[name] for name in gone if name in names]
        heap[slots.G_GONE] = sum(1 << place for place in places if place < slots.AGENTS)
        heap[slots.G_AGENTS] = len(self._now.keys() - gone)

    def upto(self, heap: Ints, rows: Ints, names: dict[str, int], now_ns: int) -> Ints:
        """Per connection, up to when all that is waited for has been shown; `now_ns` where nobody is."""
        gone = self.gone()
        shown = np.full(len(names) + 1, FOREVER)  # the last place stands for no second agent
        for name, place in names.items():
            if name in self._now and name not in gone:
                shown[place] = self._now[name]
        found: Ints = np.minimum(shown[heap[rows + slots.C_AGENT]], shown[heap[rows + slots.C_AGENT2]])
        found[found == FOREVER] = now_ns
        return found

    def stored(self) -> dict[str, Any]:
        return {"now": self._now, "ended": sorted(self._ended)}

    def restore(self, stored: dict[str, Any]) -> None:
        self._now, self._ended = dict(stored["now"]), set(stored["ended"])
