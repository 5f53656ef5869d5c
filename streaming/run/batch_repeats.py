"""Which failures of a query are over by themselves, so that its batch is repeated by the same process.

A worker that died, a machine that is too busy, a disk that is full. Nothing is repeated beside a query that runs.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from shutil import disk_usage
from threading import Event

from wirecheck.streaming import checkpoint
from wirecheck.streaming.run.failure import BUSY_S, PAUSES_S, disk_full, too_busy, worker_died
from wirecheck.streaming.run.plan import Plan, Say
from wirecheck.streaming.spark.left_over import end_left_over
from wirecheck.streaming.store.storage import is_local, local

LITTLE_BYTES = 8 << 20
"""A disk with less free space is named as the full one."""


@dataclass
class Repeats:
    """Of one run of the monitor."""

    plan: Plan
    stopping: Event
    say: Say
    waits: Callable[[], None] = lambda: None
    """Called before and after each pause."""
    busy_tries: int | None = None
    """So often a batch is tried on a machine that is too busy; None: until BUSY_S are over."""
    died_over: list[str] | None = None
    """The files of the batch that was repeated after a worker had died."""
    since: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By kind of failure, the last batch before it that was committed, and when it began."""
    tries: int = 0
    full: str = ""
    """The places that have no space; empty again once a batch is committed."""

    def after(self, failure: str) -> bool:
        """Whether the batch is to be repeated now; waits before it is. `failure`: Spark's full message."""
        ends = self.stopping.is_set()
        if disk_full(failure):
            return not ends and not self.plan.once and self._once_there_is_space()
        if too_busy(failure) and not ends:
            return self._once_there_is_cpu()
        batch = checkpoint.newest_files(self.plan.checkpoint)
        if not worker_died(failure) or batch == self.died_over:
            return False
        self.died_over = batch
        self.say("a worker died: the batch is repeated")
        return True

    def committed(self) -> None:
        """A batch was."""
        if self.full:
            self.say(f"{self.full}: there is space again: the batch is written, nothing is missing")
            self.full = ""

    def _once_there_is_space(self) -> bool:
        """However long that takes: what waits stays with the agents, as while the monitor is away."""
        self._is_new("full")
        if not self.full:
            self.full = full_places(self.plan)
            self.say(f"{self.full}: no space left; free some: the batch is repeated until it can be written")
        self._pause()
        return not self.stopping.is_set()

    def _once_there_is_cpu(self) -> bool:
        if self._is_new("busy"):
            self.say("this machine is too busy for Spark to start Python: the batch is repeated")
        if time.monotonic() - self.since["busy"][1] >= BUSY_S or self.tries + 1 == self.busy_tries:
            return False
        end_left_over()
        self._pause()
        return True

    def _is_new(self, kind: str) -> bool:
        """Whether a batch was committed since the last failure of the kind, or there was none."""
        committed = checkpoint.committed(self.plan.checkpoint)
        if self.since.get(kind, (None,))[0] == committed:
            return False
        self.since, self.tries = {kind: (committed, time.monotonic())}, 0
        return True

    def _pause(self) -> None:
        self.tries += 1
        self.waits()
        self.stopping.wait(PAUSES_S[min(self.tries, len(PAUSES_S)) - 1])
        self.waits()


def full_places(plan: Plan) -> str:
    """Those of the results and the checkpoint whose disk is full; both where that is not known, as with a quota."""
    places = [place for place in (plan.out, plan.checkpoint) if is_local(place)]
    return " and ".join([place for place in places if disk_usage(local(place)).free < LITTLE_BYTES] or places)
