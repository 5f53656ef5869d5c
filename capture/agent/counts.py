"""What a running agent has counted since it started.

Every number has one writer: the loop, the writing thread or the shipping thread. Readers take the current value.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirecheck.capture.agent.spool_folder import Backlog

ROLL_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
KERNEL, DISK, SPOOL = "kernel", "disk", "spool"
NO_MESSAGE = "no message"


@dataclass
class Rolls:
    """How long it took to make files appear: by bucket, the last one is for all that took longer."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(ROLL_SECONDS) + 1))
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[sum(seconds > bound for bound in ROLL_SECONDS)] += 1
        self.seconds += seconds


@dataclass
class TlsCounts:
    decrypted: int = 0
    """Connections of which a record was opened."""
    without_keys: int = 0
    """That stay encrypted: their keys are in no key log."""
    failed: int = 0
    """That stay encrypted for any other reason."""
    secrets: int = 0
    """Lines of the key logs that hold one."""
    strange: int = 0
    """Lines that are none of a key log, or contradict an earlier one."""
    unreadable: int = 0
    """Key logs that are unreadable now."""


@dataclass
class Counts:
    # of the loop
    frames: Counter[str] = field(default_factory=Counter)
    """TCP segments seen, by interface."""
    payload_bytes: Counter[str] = field(default_factory=Counter)
    """Their payload on the wire, by interface."""
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Packets lost, by interface and by who lost them; those of DISK and SPOOL are the writing thread's."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Packets that are no TCP segments we can read, by reason."""
    ring_fill: dict[str, float] = field(default_factory=dict)
    """How full the ring of an interface was lately, 0 to 1."""
    last_frame_ns: int = 0
    alive_s: float = field(default_factory=time.monotonic)
    """When the loop last ran, on the monotonic clock."""
    # of the writing thread
    kept_frames: int = 0
    """In files that readers can see."""
    kept_bytes: int = 0
    """Payload that was handed to files."""
    left_out_bytes: dict[str, int] = field(default_factory=dict)
    """Payload that was not, by reason."""
    files: int = 0
    rolls: Rolls = field(default_factory=Rolls)
    connections: int = 0
    """Followed now."""
    disk_bytes: int = 0
    """In all files of this agent now."""
    tls: TlsCounts | None = None
    """What became of TLS; None where no key log was given."""
    # of the shipping thread
    backlog: Callable[[], Backlog] | None = None
    """What waits to be shipped now; None where nothing is shipped."""
    shipped_files: int = 0
    shipped_bytes: int = 0
    ship_failures: int = 0

    def lost_by(self, who: str) -> int:
        return sum(n for (_, by), n in dict(self.lost).items() if by == who)
