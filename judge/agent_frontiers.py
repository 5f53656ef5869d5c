"""How far each agent has shown its traffic, and what may be said by now.

Knows: the agents that were heard of, and those whose files are all known beforehand. Does not know files or buckets.
Rule: a verdict may come early, as it is revised: an agent that is silent holds nothing up. What cannot be taken back
waits for every agent that is known to go on, however far it is behind.
"""

from typing import NamedTuple

SECOND_NS = 1_000_000_000


class Frontier(NamedTuple):
    """How far one agent has shown its traffic."""

    ts_ns: int
    ended: bool


class Passed(NamedTuple):
    """How far all have come where those are waited for, and whether all have ended."""

    awaited: frozenset[str]
    ts_ns: int
    over: bool


class AgentFrontiers(dict[str, Frontier]):
    """By agent. `awaited`: agents of which all files are known, so that they come however late."""

    def __init__(self, stored: dict[str, tuple[int, bool]], silent_s: int) -> None:
        super().__init__({agent: Frontier(*frontier) for agent, frontier in stored.items()})
        self.silent_ns = silent_s * SECOND_NS
        self.awaited: frozenset[str] = frozenset()
        self.expected = False
        """Whether agents go on of which nothing was heard so far."""
        self._watermark_ns: int | None = None
        self._passed: Passed | None = None
        """Both until an agent has shown more: they are asked for with every subject."""

    def __setitem__(self, agent: str, frontier: Frontier) -> None:
        self._watermark_ns = self._passed = None
        super().__setitem__(agent, frontier)

    def progress(self, agent: str, last_ts_ns: int, *, ended: bool) -> None:
        """The agent has shown everything up to this capture time; one that ended may begin again."""
        before = self.get(agent, Frontier(0, ended=False))
        self[agent] = Frontier(max(before.ts_ns, last_ts_ns), ended)

    @property
    def newest_ns(self) -> int:
        return max((frontier.ts_ns for frontier in self.values()), default=0)

    @property
    def watermark_ns(self) -> int:
        """Up to where all agents have shown their traffic; ended and silent agents are not waited for."""
        if self._watermark_ns is None:
            self._watermark_ns = min((one.ts_ns for one in self.live().values()), default=self.newest_ns)
        return self._watermark_ns

    @property
    def passed_ns(self) -> int:
        """The same, but that agents whose files are all known are waited for until they end."""
        return self.passed().ts_ns

    @property
    def over(self) -> bool:
        """Whether the capture has ended, as far as anybody has said."""
        return (bool(self) or not self.expected) and self.passed().over

    @property
    def absent(self) -> frozenset[str]:
        """Agents of which files were expected and nothing arrived, once all others have ended."""
        return self.awaited - self.keys() if all(one.ended for one in self.values()) else frozenset()

    def passed(self) -> "Passed":
        if self._passed is None or self._passed.awaited is not self.awaited:
            waited = [self.get(agent, Frontier(0, ended=False)) for agent in self.awaited]
            others = [one for agent, one in self.live().items() if agent not in self.awaited]
            ts_ns = min((one.ts_ns for one in (*waited, *others) if not one.ended), default=self.newest_ns)
            over = self.awaited <= self.keys() and all(one.ended for one in self.values())
            self._passed = Passed(self.awaited, ts_ns, over)
        return self._passed

    def live(self) -> dict[str, Frontier]:
        silent_ns = self.newest_ns - self.silent_ns
        return {agent: one for agent, one in self.items() if not one.ended and one.ts_ns >= silent_ns}
