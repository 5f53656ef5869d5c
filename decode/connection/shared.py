"""What all connections of a follower share: limits, the current frame, agents, output, totals.

What must outlive a call is stored with the connections (state.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from wirecheck.decode.connection.connection import OTHER
from wirecheck.decode.connection.output import Output
from wirecheck.decode.connection.stream.frame import THE_WIRES, Frame

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.framing.recognise import Known
    from wirecheck.decode.connection.framing.without_records import WithoutRecords
    from wirecheck.decode.connection.limits import Limits

MOST_FAILED: Final = 16  # that one call reports
BOTH: Final = 4  # times hole_ns that a second agent is waited for: clocks of hosts differ by seconds at most
BOTH_HELD: Final = 64  # times held_bytes and held_pieces meanwhile: its files come seconds later
MOST_AGENTS: Final = 62  # agents with a bit


@final
class Shared:
    def __init__(self, limits: Limits, known: Known, without_records: WithoutRecords | None) -> None:
        self.limits: Limits = limits
        self.known: Known = known
        self.early: bool = without_records is not None
        """Requests are handed out when they are complete, not when they are answered."""
        self.tapped: bool = False
        """Nothing is framed: what is in order is taken out behind each call (follower.py)."""
        self.frame: Frame = Frame()
        self.output: Output = Output(without_records)
        self.gone_agents: i64 = 0
        """Bit per agent (index among the names) that is not waited for."""
        self.agents: i64 = 0
        """How many are."""
        self.pending: i64 = 0
        """Memory of all that waits: the sum over all connections."""
        self.open: i64 = 0
        """Connections that are followed or remembered."""
        self.refused: i64 = 0
        """Frames of connections that were not followed because too many were open."""
        self.serial: i64 = 0
        """Of the newest connection."""
        self.contains: bool = False
        """An exception ends one connection, not the call."""
        self.failed: list[tuple[Connection | None, Exception]] = []
        """What raised in this call."""
        self.current: Connection | None = None
        """Whose frame is looked at."""

    def two_live(self, connection: Connection) -> bool:
        """Whether a second agent may still show what is missing: one that has shown the connection, or one that may yet
        show that it does, by another clock or in later files.
        """
        if connection.run != THE_WIRES:
            return False
        if connection.second_agent < 0:
            return self.agents > 1 and self.frame.ts_ns - connection.started_ns < BOTH * self.limits.hole_ns
        return not (self._is_gone(connection.agent) or self._is_gone(connection.second_agent))

    def _is_gone(self, agent: i64) -> bool:
        return (self.gone_agents >> min(agent, MOST_AGENTS)) & 1 == 1

    def patient(self, connection: Connection) -> bool:
        """Whether what one of two agents left out may still be shown by the other."""
        return connection.second_agent >= 0 and self.two_live(connection)

    def recount(self, connection: Connection) -> None:
        """What waits on the connection has changed."""
        pending = connection.count_pending()
        self.pending += pending - connection.pending
        connection.pending = pending

    def set_aside(self, connection: Connection | None, error: Exception) -> None:
        """Following it raised: it is turned off, and what the step wrote is taken back."""
        if not self.contains:
            raise error
        self.output.take_back()
        if len(self.failed) < MOST_FAILED:
            self.failed.append((connection, error))
        if connection is not None:
            connection.renumber(connection.agent, connection.run)
            connection.turn_off(OTHER)
            connection.deadline_ns = connection.last_ns + self.limits.idle_ns
            self.output.touch(connection)
            self.recount(connection)
