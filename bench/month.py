"""A month of capture time through the whole query: what a batch, a start and the tables cost as the days go by.

Knows: the traffic of `month_traffic.py`, a monitor that is stopped or killed in between, and on the first day of an
earlier release where MONTH_OLDER is the command that runs one (`PYTHON -m wirecheck`). Time is the files', as fast as
they are judged. Refuses to know: how the job works.
Rule: what is compared are the second day and the last one, of as many batches each, each with a start before it, so
that Java has compiled as much. Compaction goes by the wall clock, which does not run a month here:
the tables' files get the time of their capture, and the monitor's own passes come once a step (`paced_monitor.py`).
MONTH_DAYS=30 is the whole claim; what is printed says how many days it was. The verdict must be the plain loop's over
the same files, a day's in one batch.
"""

import json
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from bench import paced_monitor
from bench.chaos import Monitor
from bench.month_traffic import AGENTS, Step, Traffic, file_of, plan, planted
from bench.replay import family, resident, row
from wirecheck.streaming.steps.frames_folder import agents_of, labelled
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store.result_tables import TABLES
from wirecheck.streaming.store.run_result import Result

DAYS = int(os.environ.get("MONTH_DAYS", "4"))
OLDER = tuple(shlex.split(os.environ.get("MONTH_OLDER", "")))
WITHIN = 1.1
PARTS = frozenset(f"CPU per batch, {name}" for name in ("driver", "java", "workers"))
"""Of all together; the driver's grows with the time that somebody waits, too."""
FILES_BAR, RESTART_BAR_S = 1500, 20
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

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def clock(self) -> Path:
        return self.folder / "clock"

    def started(self, *, older: bool = False) -> Monitor:
        began = time.monotonic()
        ours = (sys.executable, "-m", "bench.paced_monitor", str(self.clock))
        switches = ("--retain", "1h", "--max-batch-bytes", "16M")
        monitor = Monitor(self.folder, METRICS_PORT, *switches, command=OLDER if older else ours)
        took_s = monitor.ready() - began
        self.starts_s.append((took_s, cpu_s(monitor)["all"]))
        return monitor

    def run(self) -> None:
        older = bool(OLDER)
        monitor = self.started(older=older)
        ends = {DAYS // 3: signal.SIGTERM, 2 * DAYS // 3: signal.SIGKILL, 1: signal.SIGKILL, DAYS - 1: signal.SIGTERM}
        for number, steps in groupby(plan(DAYS), key=lambda step: step.day):
            if number and number in ends:
                monitor.process.send_signal(ends[number])
                monitor.process.wait(PATIENCE_S)
                older = False
                monitor = self.started()
            self.days.append(self.day(list(steps), monitor, keeps_house=not older))
            print(f"day {number + 1}: {json.dumps(self.days[-1].summary())}", file=sys.stderr, flush=True)
        monitor.stop()
        monitor = self.started()  # at the month's end
        monitor.stop()

    def day(self, steps: list[Step], monitor: Monitor, *, keeps_house: bool) -> Day:
        day, began = Day(), time.monotonic()
        for step in steps:
            before = cpu_s(monitor)
            self.traffic.publish(step, self.folder / "frames")
            self.judged(monitor, step)
            for name, spent in cpu_s(monitor).items():
                day.cpu_s[name].append(spent - before.get(name, 0))
            for agent in AGENTS:
                gone = file_of(agent, replace(step, number=step.number - KEPT_STEPS))
                (self.folder / "frames" / gone).unlink(missing_ok=True)
            self.dated(step)
            if keeps_house:
                day.compaction_s += self.compacted(step)
        day.wall_s = time.monotonic() - began
        self.weigh(day, monitor, steps[-1].end_s)
        return day

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
                known = labelled(agents_of(files), folder)
                loop = Loop(Settings(agents={agent: replace(found, last=0) for agent, found in known.items()}))
            loop.batch(files)
            for file in files:
                file.unlink()
        assert loop
        return loop.result().json()


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


def measure() -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as name:
        folder = Path(name)
        (folder / "frames").mkdir()
        month = Month(folder, Traffic(folder))
        month.run()
        told, expected = Result.latest(month.out).json(), month.undisturbed()
        shutil.rmtree(folder / "frames")
        return list(rows(month, told, expected))


def rows(month: Month, told: dict, expected: dict) -> Iterator[dict]:
    what = f"month.{DAYS} days"
    second, last = month.days[1], month.days[-1]
    pairs = {
        **{f"CPU per batch, {name}": (*map(statistics.median, (then, last.cpu_s[name])), "s")
           for name, then in second.cpu_s.items()},
        "state": (second.state_mb, last.state_mb, "MB"),
        **{f"memory of {name}": (size, last.memory_mb.get(name, 0), "MB") for name, size in second.memory_mb.items()},
        "Java's heap after a collection": (second.heap_mb, last.heap_mb, "MB"),
        "CPU of compaction, a day": (second.compaction_s, last.compaction_s, "s"),
    }  # fmt: skip
    for name, (then, now, unit) in pairs.items():
        yield row(f"{what}: {name}, second", then, unit, None)
        ratio = now / then if then and now is not None else None
        told = row(f"{what}: {name}, last", now, unit, None) | {"ratio": ratio}
        if name not in PARTS:
            told |= {"bar": f"<= {WITHIN} x the second day's", "met": ratio and ratio <= WITHIN}
        yield told
    yield row(f"{what}: files of the largest table, second", second.files, "", None)
    yield barred(f"{what}: files of the largest table, last", last.files, FILES_BAR)
    yield row(f"{what}: all tables", last.tables_mb, "MB", None)
    for when, (took_s, spent_s) in (("on the second day", month.starts_s[1]), ("at its end", month.starts_s[-1])):
        yield row(f"{what}: CPU of the start {when}", spent_s, "s", None)
        yield barred(f"{what}: start {when}", took_s, RESTART_BAR_S, "s")
    yield from verdict(what, told, expected)


def verdict(what: str, told: dict, expected: dict) -> Iterator[dict]:
    ids = [{finding["id"] for finding in found["findings"]} for found in (told, expected)]
    yield row(f"{what}: findings", len(ids[0]), "", None)
    yield barred(f"{what}: findings other than the plain loop's", len(ids[0] ^ ids[1]), 0)
    said = {(finding["code"], finding["topic"]) for finding in told["findings"]}
    yield row(f"{what}: planted", len(planted(DAYS)), "", None)
    yield barred(f"{what}: planted and not found", len(planted(DAYS) - said), 0)
    counted = [found["coverage"]["frames"] for found in (told, expected)]
    yield barred(f"{what}: frames counted other than by the plain loop", abs(counted[0] - counted[1]), 0)


def barred(name: str, value: float, bar: float, unit: str = "") -> dict:
    return row(name, value, unit, None) | {"bar": bar, "met": value <= bar}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
