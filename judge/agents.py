"""Agents: the capture time that each has reached, and what each reports about itself.

Rule: results may come early, because they are revised. So a silent agent delays nothing. What cannot be revised waits
for every agent that is known to continue, however late it is. Each mark is counted once.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from wirecheck.capture import frames
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.reduce import moment
from wirecheck.judge.thresholds import SECOND_NS


class Frontier(NamedTuple):
    ts_ns: int
    ended: bool


class AgentFrontiers(dict[str, Frontier]):
    """By agent. `awaited`: agents of which all files are known, so that they come however late."""

    def __init__(self, stored: dict[str, tuple[int, bool]], silent_s: int) -> None:
        super().__init__({agent: Frontier(*frontier) for agent, frontier in stored.items()})
        self.silent_ns = silent_s * SECOND_NS
        self.awaited: frozenset[str] = frozenset()
        self.expected = False
        """Whether there are agents from which nothing has arrived yet."""
        self._known: tuple[frozenset[str], int, int, bool] | None = None
        """Who is awaited, `watermark_ns`, `passed_ns` and `over`: they are asked for with every subject."""

    def __setitem__(self, agent: str, frontier: Frontier) -> None:
        self._known = None
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
        return self.known()[1]

    @property
    def passed_ns(self) -> int:
        """Like `watermark_ns`, except that agents whose files are all known are waited for until they end."""
        return self.known()[2]

    @property
    def over(self) -> bool:
        """Whether the capture has ended, as far as the agents have reported."""
        return (bool(self) or not self.expected) and self.known()[3]

    @property
    def absent(self) -> frozenset[str]:
        """Agents of which files were expected and nothing arrived, once all others have ended."""
        return self.awaited - self.keys() if all(one.ended for one in self.values()) else frozenset()

    def known(self) -> tuple[frozenset[str], int, int, bool]:
        if self._known is None or self._known[0] is not self.awaited:
            newest_ns = self.newest_ns
            live = {
                a: one.ts_ns for a, one in self.items() if not one.ended and one.ts_ns >= newest_ns - self.silent_ns
            }
            waited = [self.get(agent, Frontier(0, ended=False)) for agent in self.awaited]
            passed = [one.ts_ns for one in waited if not one.ended]
            passed += [ts_ns for agent, ts_ns in live.items() if agent not in self.awaited]
            over = self.awaited <= self.keys() and all(one.ended for one in self.values())
            watermark_ns = min(live.values(), default=newest_ns)
            self._known = self.awaited, watermark_ns, min(passed, default=newest_ns), over
        return self._known


MARKS = {
    frames.DROPPED: "dropped_frames",
    frames.SKIPPED: "skipped_frames",
    frames.INPUT_ERROR: "input_errors",
    frames.UNDECRYPTED: "undecrypted_connections",
    frames.JOINED: "connections_behind_key_updates",
    frames.QUARANTINED: "quarantined_files",
    frames.LATE: "late_frames",
    frames.CLOCK: "clock_steps",
    frames.AWAY: "agent_away_seconds",
}
"""Marks that are counted, and the measure of coverage each adds to."""


CLOCKS_UNKNOWN = "unknown_clocks"
"""The measure of a file of which nothing shows how far its clock is from that of others: its clock was set 0 times."""


class Marks(Protocol):
    """What an agent reports about itself, in order."""

    @property
    def agent(self) -> str: ...
    @property
    def marks(self) -> tuple[frames.Mark, ...]: ...
    @property
    def missing_files(self) -> int: ...


def claims_of(report: Marks, now_ns: int) -> Iterator[Claim]:
    for mark in report.marks:
        if mark.kind in MARKS:
            seen = moment(mark.ts_ns, source=mark.source or "")
            measure = CLOCKS_UNKNOWN if mark.kind == frames.CLOCK and not mark.count else MARKS[mark.kind]
            key = (report.agent, measure, mark.source, mark.reason)
            yield Claim("mark", key, seen, tally={"count": max(1, mark.count)})
    if report.missing_files:
        seen = moment(now_ns)
        yield Claim("mark", (report.agent, "missing_files", None, None), seen, tally={"count": report.missing_files})


def clock_groups(marks: Iterable[Claim]) -> dict[str, str]:
    """By file what is said of its clock: the same for files whose clocks agree; all others agree with one another."""
    return {mark.key[2]: mark.key[3] for mark in marks if mark.key[1] == CLOCKS_UNKNOWN}
