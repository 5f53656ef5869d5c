"""The bounds of a follower as compiled code reads them.

Knows: the same numbers as limits.py, where each has its reason.
Refuses to know: which of them is hit.
Rule: what is read for every frame is worked out here, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

if TYPE_CHECKING:
    from wirecheck.decode.connection.limits import Limits

BOTH: Final = 4  # times hole_ns that a second agent is waited for: clocks of hosts differ by seconds at most
BOTH_HELD: Final = 64  # times held_bytes and held_pieces meanwhile: its files come seconds later


@final
class Bounds:
    def __init__(self, limits: Limits) -> None:
        self.half_slack_frames: i64 = limits.slack_frames // 2
        self.slack_ns: i64 = limits.slack_ns
        self.half_slack_ns: i64 = max(limits.slack_ns // 2, 1)
        self.hole_ns: i64 = limits.hole_ns
        self.held_bytes: i64 = limits.held_bytes
        self.held_chunks: i64 = limits.held_pieces
        self.search_bytes: i64 = limits.search_bytes
        self.search_chunks: i64 = limits.search_pieces
        self.give_up_bytes: i64 = limits.give_up_bytes
        self.message_bytes: i64 = limits.message_bytes
        self.waiting_messages: i64 = limits.waiting_messages
        self.waiting_bytes: i64 = limits.waiting_bytes
        self.idle_ns: i64 = limits.idle_ns
        self.linger_ns: i64 = limits.linger_ns
        self.connections: i64 = limits.connections
        self.pending_bytes: i64 = limits.pending_bytes
