"""Decides before each batch which frames files it has; waits until there are some.

Spark asks again for a batch that was not committed. Its files are written down before it runs, and never again.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event

from wirecheck.streaming import checkpoint
from wirecheck.streaming.checkpoint import BatchFiles
from wirecheck.streaming.run.arrivals import Arrivals
from wirecheck.streaming.run.plan import Plan

Idle = Callable[[], None]
IDLE_S = 5.0
"""While it waits, `idle` is called at least this often."""
REMEMBERED = 20
"""Batches; the watching loop looks five times a second."""


class Ended(Exception):  # noqa: N818 - reads as what happened
    """The batch that waited is not to run."""


@dataclass
class Feed:
    """For as long as a monitor runs, whose query may be started again."""

    plan: Plan
    arrivals: Arrivals
    idle: Idle
    """Called while no files wait."""
    ending: Event = field(default_factory=Event)
    """Set where no more is to be waited for."""
    begun_s: float = -math.inf
    """When the last batch was given its files, by the monotonic clock."""
    waits: bool = False
    """Whether a batch waits for files, or for an end where only those were asked for that were there at the start."""
    waited_s: dict[int, float] = field(default_factory=dict)
    """Before the last batches, the one that runs among them."""
    warned: set[str] = field(default_factory=set)
    """Agents of whom `warnings` reported."""
    running: tuple[int, int] = 0, 0
    """Files and bytes of the batch that runs."""

    def __call__(self, batch_id: int) -> None:
        """Before a batch runs. Raises OSError."""
        began_s = time.monotonic()
        batch = None
        with suppress(ValueError):  # a power cut may have left half of it: then no batch was committed with it
            batch = checkpoint.read_files(self.plan.checkpoint, batch_id)
        if batch is None:
            batch = self._next()
            checkpoint.write_files(self.plan.checkpoint, batch_id, batch)
        before = self.arrivals.waiting()
        self.arrivals.consumed(batch)
        after = self.arrivals.waiting()
        if after != before:  # or this process repeats the batch
            self.running = before[0] - after[0], before[1] - after[1]
        self.begun_s = time.monotonic()
        self.waited_s = {**dict(list(self.waited_s.items())[1 - REMEMBERED :]), batch_id: time.monotonic() - began_s}

    def _next(self) -> BatchFiles:
        """The files of many agents wait for each other for an interval. Where none waits, the last batch took them all,
        and half is enough: a batch that was late would otherwise make all later ones late.
        """
        found = self._found()
        interval_s = self.plan.interval_s if found else self.plan.interval_s / 2
        try:
            while True:
                early_s = 0.0 if self.plan.once else self.begun_s + interval_s - time.monotonic()
                if found is not None and early_s <= 0:
                    return found
                self.waits = True
                self.idle()
                if self.ending.wait(min(max(early_s, self.arrivals.look_s), IDLE_S)):
                    raise Ended
                found = self._found()
        finally:
            self.waits = False

    def _found(self) -> BatchFiles | None:
        if not self.plan.once:
            self.arrivals.look()
        return self.arrivals.next_batch(self.plan.max_batch_bytes)

    def waiting(self) -> tuple[int, int]:
        """Files and bytes that are not judged yet."""
        files, size = self.arrivals.waiting()
        return files + self.running[0], size + self.running[1]

    def warnings(self) -> Iterator[str]:
        """What needs a person's attention; each line once."""
        for name in sorted(set(self.arrivals.no_text) - self.warned):
            self.warned.add(name)
            yield f"{name}: not read: its name is not UTF-8"
        for agent in sorted(self.arrivals.restarted.keys() - self.warned):
            last, following = self.arrivals.restarted[agent]
            self.warned.add(agent)
            yield (
                f"agent {agent} numbers its files from 1 again (up to {last:,}; {following - 1:,} were read before): "
                "they are not read. Its spool or folder was emptied: give it another name (capture --agent)"
            )

    def judged(self) -> None:
        """The batch that ran is written."""
        self.running = 0, 0


def opened(plan: Plan, idle: Idle) -> Feed:
    """What waits behind the last batch that is known. Raises OSError, ValueError and CheckpointRefused."""
    done = checkpoint.committed(plan.checkpoint)
    with checkpoint.refused(plan.checkpoint, checkpoint.FILES):
        last = checkpoint.need_files(plan.checkpoint, done) if done >= 0 else None
    arrivals = Arrivals(plan.frames, dict(last.after) if last else {})
    arrivals.look(everywhere=True)
    return Feed(plan, arrivals, idle)
