"""A monitor through a month of capture time: its days as they were measured, its starts, and what it leaves behind.

Knows: the traffic of `month_traffic.py`, and when the monitor ends and begins again. Time is the files', as fast as
they are judged. Refuses to know: what is made of the figures (`month.py`), and how the job works.
Rule: compaction goes by the wall clock, which does not run a month here: the tables' files get the time of their
capture, and the monitor's own passes come once a step (`paced_monitor.py`).
"""

import json
import os
import signal
import statistics
import sys
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from bench import paced_monitor
from bench.chaos import Monitor
from bench.monitor_processes import cpu_s, heap_mb, memory
from bench.month_traffic import AGENTS, Step, Traffic, file_of, plan
from wirecheck.streaming.steps.frames_folder import agents_of, labelled_in
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store.result_tables import TABLES

DAYS = int(os.environ.get("MONTH_DAYS", "4"))
NEWEST_S = 2 * 3600
KEPT_STEPS = 8
"""Frames files that an agent keeps."""
METRICS_PORT = 19194
PATIENCE_S = 600
LOOK_S = 0.2


@dataclass
class Day:
    """What was measured while one day's files were judged."""

    cpu_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """A batch, by process, and of all together."""
    compaction_s: float = 0.0
    memory_mb: dict[str, float] = field(default_factory=dict)
    heap_mb: float | None = None
    """Of Java, after a collection."""
    state_mb: float = 0.0
    files: int = 0
    """Of the largest table, but for those written in the last two hours."""
    tables_mb: float = 0.0
    wall_s: float = 0.0

    def summary(self) -> dict:
        medians = {f"cpu_{name}_s": round(statistics.median(spent), 2) for name, spent in self.cpu_s.items()}
        memory = {f"{name}_mb": round(size) for name, size in self.memory_mb.items()}
        sizes = {"heap_mb": self.heap_mb and round(self.heap_mb, 1), "state_mb": round(self.state_mb, 2)}
        sizes |= {"files": self.files, "tables_mb": round(self.tables_mb, 2)}
        return {**medians, "compaction_s": round(self.compaction_s, 2), **memory, **sizes, "wall_s": round(self.wall_s)}


@dataclass
class Month:
    folder: Path
    traffic: Traffic
    days: list[Day] = field(default_factory=list)
    starts_s: list[tuple[float, float]] = field(default_factory=list)
    """By the wall clock, and of CPU."""
    made_at: dict[int, float] = field(default_factory=dict)
    """Capture time by batch."""
    metrics_port: int = METRICS_PORT

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def clock(self) -> Path:
        return self.folder / "clock"

    def started(self, *others: str) -> Monitor:
        began = time.monotonic()
        ours = (sys.executable, "-m", "bench.paced_monitor", str(self.clock))
        switches = ("--retain", "1h", "--max-batch-bytes", "16M", *others)
        monitor = Monitor(self.folder, self.metrics_port, *switches, command=ours)
        took_s = monitor.ready() - began
        self.starts_s.append((took_s, cpu_s(monitor)["all"]))
        return monitor

    def run(self) -> None:
        monitor = self.started()
        ends = {DAYS // 3: signal.SIGTERM, 2 * DAYS // 3: signal.SIGKILL, 1: signal.SIGKILL, DAYS - 1: signal.SIGTERM}
        for number, steps in groupby(plan(DAYS), key=lambda step: step.day):
            if number and number in ends:
                monitor.process.send_signal(ends[number])
                monitor.process.wait(PATIENCE_S)
                monitor = self.started()
            self.days.append(self.day(list(steps), monitor))
            print(f"day {number + 1}: {json.dumps(self.days[-1].summary())}", file=sys.stderr, flush=True)
        monitor.stop()
        monitor = self.started()  # at the month's end
        monitor.stop()

    def day(self, steps: list[Step], monitor: Monitor) -> Day:
        day, began = Day(), time.monotonic()
        for step in steps:
            self.step(step, monitor, day)
            self.dated(step)
            day.compaction_s += self.compacted(step)
        day.wall_s = time.monotonic() - began
        self.weigh(day, monitor, steps[-1].end_s)
        return day

    def step(self, step: Step, monitor: Monitor, day: Day) -> None:
        before = cpu_s(monitor)
        self.traffic.publish(step, self.folder / "frames")
        self.judged(monitor, step)
        for name, spent in cpu_s(monitor).items():
            day.cpu_s[name].append(spent - before.get(name, 0))
        for agent in AGENTS:
            gone = file_of(agent, replace(step, number=step.number - KEPT_STEPS))
            (self.folder / "frames" / gone).unlink(missing_ok=True)

    def weigh(self, day: Day, monitor: Monitor, now_s: float) -> None:
        day.memory_mb = memory(monitor)
        day.heap_mb = heap_mb(monitor)
        day.state_mb = sum(size for name, size in monitor.scraped().items() if "state_bytes" in name) / 1e6
        parts = {table: list((self.out / table).glob("run=*/batch_id=*/part.parquet")) for table in TABLES}
        sizes = [[part.stat() for part in some] for some in parts.values()]
        day.files = max(sum(one.st_mtime < now_s - NEWEST_S for one in some) for some in sizes)
        day.tables_mb = sum(one.st_size for some in sizes for one in some) / 1e6

    def judged(self, monitor: Monitor, step: Step) -> None:
        """Both files are."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            monitor.need_life()
            found = [v for k, v in monitor.scraped().items() if k.startswith("wirecheck_agent_judged_timestamp")]
            if len(found) == len(AGENTS) and min(found) >= step.end_s:
                return
            time.sleep(LOOK_S)
        raise RuntimeError(f"{step} is not judged:\n{(self.folder / 'words').read_text()[-2000:]}")

    def dated(self, step: Step) -> None:
        """What was written since has the time of its capture."""
        for table in TABLES:
            for part in (self.out / table).glob("run=*/batch_id=*/part.parquet"):
                number = int(part.parent.name.partition("=")[2])
                if number not in self.made_at or part.stat().st_mtime > step.end_s:
                    with suppress(FileNotFoundError):
                        os.utime(part, (self.made_at.setdefault(number, step.end_s),) * 2)

    def compacted(self, step: Step) -> float:
        """One pass as at that time; its CPU."""
        paced_monitor.at(self.clock, step.end_s)
        until = time.monotonic() + PATIENCE_S
        while self.clock.exists() and time.monotonic() < until:
            time.sleep(LOOK_S)
        return float(self.clock.with_suffix(".done").read_text())

    def undisturbed(self) -> dict:
        """The same files by a plain loop, a day at a time."""
        folder = self.folder / "again"
        folder.mkdir()
        loop: Loop | None = None
        for _, steps in groupby(plan(DAYS), key=lambda step: step.day):
            files = [file for step in steps for file in self.traffic.publish(step, folder)]
            if loop is None:
                known = labelled_in(agents_of(files), files)
                loop = Loop(Settings(agents={agent: replace(found, last=0) for agent, found in known.items()}))
            loop.batch(files)
            for file in files:
                file.unlink()
        assert loop
        return loop.result().json()
