"""Cost per broker: what 10,000 frames a second cost an agent and a monitor, in CPU, memory and disk.

    make bench ONLY=cost        python -m bench.cost        the latter prints the table of docs/performance.md

Knows: captures of two sizes of each mix (bench/traffic.py), and the commands as a user runs them. Refuses to know: what
an interface's ring costs the agent (live.py). Rule: what a start costs is left out: a figure is the difference of the
two sizes, by the frames between them. On a busy machine, starts of Java differ by more than a monitor's work takes.
Memory is the maximum at the larger size.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.replay import family, resident, row
from bench.traffic import write_capture

SIZES = (100_000_000, 1_000_000_000)
MIXES = {"records": "batches of 26 KB", "small": "records of 150 bytes"}
RATE = 10_000
"""Frames a second of which the costs are given."""
DAY_S = 86_400
LOOK_S = 0.1


class Cost(NamedTuple):
    cpu_s: float
    memory_mb: float


class Run(NamedTuple):
    """Of one capture."""

    frames: int
    agent: Cost
    monitor: Cost
    frames_bytes: int
    results_bytes: int


class PerBroker(NamedTuple):
    """At RATE frames a second."""

    agent_cpu: float
    """Percent of a core."""
    agent_mb: float
    monitor_cpu: float
    monitor_mb: float
    frames_gb_a_day: float
    results_mb: float
    """Of the whole larger run: they grow with connections, clients and topics, not with frames."""


def measure() -> list[dict]:
    return [
        row(f"cost of 10,000 frames/s, {mix}, {name.replace('_', ' ')}", value, "", None)
        for mix in MIXES
        for name, value in per_broker(mix)._asdict().items()
    ]


def per_broker(mix: str) -> PerBroker:
    small, large = (run(mix, size) for size in SIZES)
    frames = large.frames - small.frames

    def each(part: float, whole: float) -> float:
        return (whole - part) / frames

    return PerBroker(
        100 * RATE * each(small.agent.cpu_s, large.agent.cpu_s),
        large.agent.memory_mb,
        100 * RATE * each(small.monitor.cpu_s, large.monitor.cpu_s),
        large.monitor.memory_mb,
        RATE * DAY_S * each(small.frames_bytes, large.frames_bytes) / 1e9,
        large.results_bytes / 1e6,
    )


def run(mix: str, size: int) -> Run:
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as name:
        folder = Path(name)
        capture, frames, results = folder / "capture.pcap", folder / "frames", folder / "results"
        made = write_capture(capture, size, mix)
        agent = cost("capture", "-q", "-r", capture, "--out", frames)
        capture.unlink()
        monitor = cost("monitor", "--frames", frames, "--out", results, "--checkpoint", folder / "checkpoint", "--once")
        return Run(made.frames, agent, monitor, taken(frames), taken(results))


def cost(*words: object) -> Cost:
    """CPU time of a command with all that it started, and the most memory that they had together. Who started a process
    may not wait for it, so each one's time is looked at while it runs, too.
    """
    began = os.times()
    spent_s: dict[int, float] = {}
    most = 0.0
    with subprocess.Popen(
        [sys.executable, "-m", "wirecheck", *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None:
            pids = family(process.pid)
            most = max(most, sum(map(resident, pids)))
            spent_s |= {pid: max(own_s(pid), spent_s.get(pid, 0.0)) for pid in pids}
            time.sleep(LOOK_S)
    if process.returncode:
        raise RuntimeError(f"wirecheck {words[0]} ended with {process.returncode}")
    ended = os.times()
    waited_s = ended.children_user + ended.children_system - began.children_user - began.children_system
    return Cost(max(waited_s, sum(spent_s.values())), most)


def own_s(pid: int) -> float:
    """CPU time of a process without its children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def taken(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def main() -> None:
    begun = os.getloadavg()[0]
    rows = {mix: per_broker(mix) for mix in MIXES}
    print(f"Load average when it began: {begun:.1f}, {os.cpu_count()} cores.\n")
    print("| traffic | agent, CPU | memory | monitor, CPU | memory | frames a day | a year | results of the run |")
    print("|---|---|---|---|---|---|---|---|")
    for mix, one in rows.items():
        print(
            f"| {MIXES[mix]} | {one.agent_cpu:.1f} % of a core | {one.agent_mb:,.0f} MB | "
            f"{one.monitor_cpu:.0f} % of a core | {one.monitor_mb:,.0f} MB | {one.frames_gb_a_day:,.1f} GB | "
            f"{one.frames_gb_a_day * 365 / 1000:,.1f} TB | {one.results_mb:.2f} MB |"
        )


if __name__ == "__main__":
    main()
