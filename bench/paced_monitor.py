"""`wirecheck monitor`, but that its tables are looked after when a bench says so, as at the time it says.

    python -m bench.paced_monitor CLOCK monitor --frames ...

Knows: that housekeeping goes by the wall clock, which runs no month in half an hour. Refuses to know what a pass does.
Rule: everything else is the command as it is. A pass begins when the file CLOCK appears, with seconds since 1970 in it;
once it is over the CPU it took is in CLOCK.done, and CLOCK has gone.
"""

import sys
import time
from functools import partial
from pathlib import Path
from threading import Event

from wirecheck.cli import main
from wirecheck.streaming.run import resources
from wirecheck.streaming.run.plan import Plan, Say
from wirecheck.streaming.store.lease import Lease

LOOK_S = 0.05


def maintain_tables(clock: Path, plan: Plan, say: Say, stopping: Event, _lease: Lease | None = None) -> None:
    while not stopping.wait(LOOK_S):
        if clock.exists():
            began = time.thread_time()
            resources.tidy(plan, say, float(clock.read_text()))
            clock.with_suffix(".done").write_text(str(time.thread_time() - began))
            clock.unlink()


def at(clock: Path, now_s: float) -> None:
    """Ask for a pass as at that time."""
    hidden = clock.with_suffix(".tmp")
    hidden.write_text(str(now_s))
    hidden.rename(clock)


if __name__ == "__main__":
    resources.maintain_tables = partial(maintain_tables, Path(sys.argv.pop(1)))
    main(prog_name="wirecheck")
