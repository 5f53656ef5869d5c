"""What a monitor does for its tables beside judging: every ten minutes, in a thread of its own.

Knows: how often, and that a pass that fails is told and tried again. What a pass does is `compaction.py`'s and
`delta_upkeep.py`'s affair.
Rule: nobody waits for it, neither the query nor whoever asks for metrics or an end; a pass may be left at any moment,
and the next one, of this process or another, goes on.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from wirecheck.streaming.checkpoint import CheckpointRefused, committed, run_of
from wirecheck.streaming.run.plan import Plan, Say
from wirecheck.streaming.spark.memory import give_back
from wirecheck.streaming.store import compaction, result_folder, retention
from wirecheck.streaming.store.lease import Lease
from wirecheck.streaming.store.storage import why

EVERY_S = 600
LAST_S = 5
"""So long an end waits for the pass that runs."""


@contextmanager
def table_maintenance(plan: Plan, say: Say, lease: Lease | None = None) -> Iterator[None]:
    """Meanwhile; at the end of a monitor that judges what is there once more."""
    stopping = Event()
    thread = Thread(target=maintain_tables, args=(plan, say, stopping, lease), daemon=True, name="housekeeping")
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(LAST_S)
    if plan.once and not lost(lease):
        tidy(plan, say)


def maintain_tables(plan: Plan, say: Say, stopping: Event, lease: Lease | None) -> None:
    while not stopping.wait(EVERY_S) and not lost(lease):
        tidy(plan, say)


def lost(lease: Lease | None) -> bool:
    """Whether the tables are another monitor's now."""
    return lease is not None and lease.lost


def tidy(plan: Plan, say: Say, now_s: float | None = None) -> None:
    """One pass over all tables, as at that time; now, where none is said."""
    try:
        run = run_of(plan.checkpoint)
        if run:
            keep_small(plan, run, time.time_ns() / 1e9 if now_s is None else now_s)
    except (OSError, ValueError, CheckpointRefused) as failed:  # a disk that is full, a file that is damaged
        say(
            f"tables were not compacted: {failed if isinstance(failed, ValueError) else why(failed)}; tried again later"
        )
    give_back()


def keep_small(plan: Plan, run: str, now_s: float) -> None:
    upto = committed(plan.checkpoint)
    before_s = None if plan.retain_results_s is None else now_s - plan.retain_results_s
    if result_folder.kind_of(plan.out) == result_folder.DELTA:
        from wirecheck.streaming.store import delta_upkeep

        delta_upkeep.keep(plan.out, run, delta_upkeep.UpkeepTerms(now_s, plan.retain_s, before_s), upto)
        return
    compaction.compact(plan.out, run, compaction.CompactionTerms(now_s, plan.retain_s), upto)
    if before_s is not None:
        retention.retire(plan.out, run, before_s, upto)
