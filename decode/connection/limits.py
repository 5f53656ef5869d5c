"""Every bound on what a follower holds and how long it waits, with its reason. All times are capture time.

A bound that is hit is counted on its connection (`limits_hit`). Bounds never change a message; they decide when waiting
ends. A follower holds some 2 KB per connection touched since it was stored, a few hundred bytes per other one, its
pending bytes, and bookkeeping per waiting chunk and message (connection.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from mypy_extensions import i64

KIB, MIB = 1 << 10, 1 << 20
SECOND = 1_000_000_000


@dataclass(frozen=True)
class Limits:
    """Bounds of one follower; the defaults hold for monitoring and replay, trim brings its own."""

    slack_frames: i64 = 64
    """A hole the peer acknowledged waits at least half as many frames of its connection: captures shuffle packets."""
    slack_ns: i64 = 2 * SECOND
    """... or at least half this long: on a quiet wire a packet shuffled by a few places is shuffled by much time."""
    hole_ns: i64 = 5 * SECOND
    """How long an unacknowledged hole waits: past five doublings of Linux's 200 ms retransmission timeout."""
    held_bytes: i64 = 1 * MIB
    """Out-of-order bytes held per direction: beyond usual receive windows a filled hole is no longer likely."""
    held_pieces: i64 = 2048
    """Out-of-order pieces held per direction, so that tiny segments cost no more than large ones."""
    search_bytes: i64 = 256 * KIB
    """Bytes held per direction while no message boundary is known, to back-fill from once one is."""
    search_pieces: i64 = 4096
    """The same in pieces."""
    give_up_bytes: i64 = 16 * MIB
    """Bytes of a connection seen without any sign of Kafka before it is called other."""
    message_bytes: i64 = 256 * MIB
    """Largest believable message: brokers refuse requests over 100 MiB by default, operators raise it."""
    waiting_messages: i64 = 16_384
    """Unanswered requests per connection. Java keeps 5 in flight; librdkafka has no such limit, and a slow broker lets
    some 3,400 of the smallest wait in its receive buffer (socket.receive.buffer.bytes, which Linux doubles)."""
    waiting_bytes: i64 = 256 * MIB
    """Bytes of unanswered requests and unmatched responses per connection."""
    idle_ns: i64 = 1200 * SECOND
    """Silence after which a connection is closed: brokers close idle ones after 10 minutes."""
    linger_ns: i64 = 10 * SECOND
    """How long a closed connection is remembered, to absorb late packets; one half closed is not closed yet."""
    connections: i64 = 200_000
    """Connections open at once. Half full, a call begins by letting go of those that never showed Kafka, the ones
    silent longest first; beyond, new ones are not followed. So a call should bring at most a quarter as many frames."""
    pending_bytes: i64 = 512 * MIB
    """Memory of all that waits in a follower, records for its bookkeeping included: two of the largest messages.
    Beyond, connections give up what waits on them, those first that hold most and, sixteen times sooner, those that
    never showed Kafka, until a quarter is free."""
    silent_ns: i64 = 60 * SECOND
    """An agent that shows nothing for so much of the others' capture time is not waited for any more."""

    @property
    def half_slack_frames(self) -> i64:
        return self.slack_frames // 2

    @property
    def half_slack_ns(self) -> i64:
        return max(self.slack_ns // 2, 1)
