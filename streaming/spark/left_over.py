"""What a failed query leaves behind: Pythons that go on importing, and are load for the next try; copies of the state.

Spark starts a bare Python to ask a stateful step for its state's names. One that connects too late is given up, not
ended (Spark 4.3, `PythonWorkerFactory.createSimpleWorker`).
"""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BARE = b"transform_with_state_driver_worker"
PROC = Path("/proc")


def end_left_over() -> int:
    """Of this process's Spark, how many were ended; 0 where there is no /proc."""
    found = left_over(os.getpid())
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(found)


def left_over(ancestor: int) -> list[int]:
    """The bare Pythons among what a process started, and what that started."""
    parents = {int(folder.name): parent_of(folder) for folder in PROC.glob("[0-9]*")}

    def belongs(pid: int) -> bool:
        while pid in parents and pid != ancestor:
            pid = parents[pid]
        return pid == ancestor

    return [pid for pid in parents if pid != ancestor and BARE in words_of(pid) and belongs(pid)]


def parent_of(folder: Path) -> int:
    """0 where the process has gone meanwhile (proc_pid_stat(5): the second field after the name in parentheses)."""
    with suppress(OSError):
        return int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return 0


def words_of(pid: int) -> bytes:
    with suppress(OSError):
        return (PROC / str(pid) / "cmdline").read_bytes()
    return b""


def drop_state_copies(spark: "SparkSession") -> None:
    """Working copies of the state of a query that has failed: Spark would keep them for another minute, on a disk that
    may be full. The next query reads the checkpoint.
    """
    spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()  # noqa: SLF001
