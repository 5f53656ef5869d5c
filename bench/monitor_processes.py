"""What the processes of a running monitor cost: the driver, its Java, and the Python workers.

Knows: `/proc`, and which of a monitor's processes is which. Refuses to know: what they do.
Rule: the processor time of a process that ended counts with its parent's: workers that come and go are not lost.
"""

import os
import subprocess
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from bench.chaos import Monitor
from bench.replay import family, resident


def kinds(monitor: Monitor) -> dict[int, str]:
    """The monitor's processes."""
    root = monitor.process.pid
    return {pid: "driver" if pid == root else "java" if is_java(pid) else "workers" for pid in family(root)}


def is_java(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/exe").readlink().name == "java"
    return False


def cpu_s(monitor: Monitor) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for pid, kind in kinds(monitor).items():
        spent_s = spent(pid)
        found[kind] += spent_s
        found["all"] += spent_s
    return found


def spent(pid: int) -> float:
    """Its own and its ended children's."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, said[11:15])) / os.sysconf("SC_CLK_TCK")


def memory(monitor: Monitor) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for pid, kind in kinds(monitor).items():
        found[kind] += resident(pid)
    return dict(found)


def heap_mb(monitor: Monitor) -> float | None:
    """What stays of Java's heap when it is collected; None where its tools are not there."""
    for pid, kind in kinds(monitor).items():
        tool = Path(f"/proc/{pid}/exe").resolve().with_name("jcmd") if kind == "java" else None
        if tool is not None and tool.exists():
            subprocess.run([tool, str(pid), "GC.run"], capture_output=True, check=True)
            said = subprocess.run([tool, str(pid), "GC.heap_info"], capture_output=True, check=True, text=True).stdout
            return int(said.partition("used ")[2].partition("K")[0]) / 1024
    return None
