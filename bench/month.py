"""A month of capture time through the whole query: what a batch, a start and the tables cost as the days go by.

Knows: a small busy cluster seen by two agents, three hours of capture time a file: connections that open, speak and
close in every one, clients that are new every day, a topic deleted and created again every day, of which some clients
keep the old id every third; the monitor stopped or killed in between. Time is the files', as fast as they are judged.
Refuses to know: how the job works. CPU is that of the monitor's processes together.
Rule: compaction goes by the wall clock, which does not run a month here; so the bench gives the tables' files the time
of their capture and runs the same passes itself, once a file. MONTH_DAYS=30 is the whole claim; what is printed says
how many days it was. The verdict must be the plain loop's over the same files.
"""

import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.chaos import Monitor
from bench.replay import family, resident, row
from bench.traffic import START_US, write_capture
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.streaming.run import manifest
from wirecheck.streaming.steps.frames_folder import agents_of, labelled
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store import compaction
from wirecheck.streaming.store.result_tables import TABLES
from wirecheck.streaming.store.run_result import Result

DAYS = int(os.environ.get("MONTH_DAYS", "4"))
CONNECTIONS, CAPTURE_BYTES = 48, 300_000
STEP_S, STEPS_A_DAY = 3 * 3600, 8
BEGUN_S = START_US // 1_000_000
SPOKEN_S = 90
"""Of a file's time its connections last so long, and begin somewhere in it."""
AGENTS = {"a": ("10.0.0.11", "10.0.0.12"), "b": ("10.0.0.13",)}
ID = bytes.fromhex("24cc4332f7de45a3b24e33d61aa0d1")
PORTS = 30_000
WITHIN = 1.1
FILES_BAR, RESTART_BAR_S = 1500, 20
METRICS_PORT = 19194
PATIENCE_S = 300


class Traffic:
    """A file's frames, made from those of one short capture."""

    def __init__(self, folder: Path) -> None:
        pcap = folder / "capture.pcap"
        write_capture(pcap, CAPTURE_BYTES, "small", CONNECTIONS)
        held = [frames_file.read(file) for file in write_frames([pcap], folder / "source", "bench", agent="x").files]
        table = pa.concat_tables(held).cast(frames.FRAMES)
        self.table = table.filter(pc.equal(table["kind"], frames.FRAME)).combine_chunks()
        self.bytes = b"".join(self.table["payload"].to_pylist())
        self.lengths = pc.binary_length(self.table["payload"]).to_numpy()
        ts_ns = self.table["ts_ns"].to_numpy()
        self.share = (ts_ns - ts_ns[0]) / max(1, int(ts_ns[-1] - ts_ns[0]))

    def frames_of(self, step: int) -> pa.Table:
        """Other addresses and ports than in any before; the day's client ids, and the topic ids by then."""
        day = step // STEPS_A_DAY
        begin_ns = (BEGUN_S + step * STEP_S + (step * 997) % (STEP_S - 2 * SPOKEN_S)) * 1_000_000_000
        changed = {"ts_ns": pa.array(begin_ns + (self.share * SPOKEN_S * 1e9).astype(np.int64))}
        for side in ("src", "dst"):
            host = pc.replace_substring_regex(self.table[f"{side}_ip"], r"^10\.1\.", f"10.{20 + day}.")
            port = self.table[f"{side}_port"].to_numpy()
            moved = PORTS + (port - PORTS + step * CONNECTIONS) % PORTS
            changed[f"{side}_ip"] = host
            changed[f"{side}_port"] = pa.array(np.where(port >= PORTS, moved, port).astype(np.int32))
        offsets = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.payload(step, day))]
        changed["payload"] = pa.Array.from_buffers(pa.binary(), len(self.lengths), buffers)
        table = self.table
        for name, column in changed.items():
            table = table.set_column(table.schema.get_field_index(name), name, column)
        return table

    def payload(self, step: int, day: int) -> bytes:
        """Same lengths, other names and ids."""
        said = self.bytes
        for name in (b"consumer-", b"producer-"):
            said = said.replace(name, name[:3] + b"%02d" % day + name[5:])
        for topic in range(20):  # topic n is created again on day n, n + 20, ...
            generation = (day - topic) // 20 + 1 if day >= topic else 0
            if generation and not (stale(day) and step % STEPS_A_DAY > 1 and topic == day % 20):
                said = said.replace(ID + bytes([topic]), ID[:-1] + bytes([0xE0 + generation]) + bytes([topic]))
            elif generation:  # the servers say the new id, the clients fetch by the old one: the planted fault
                fresh = ID[:-1] + bytes([0xE0 + generation]) + bytes([topic])
                said = after_name(said, b"orders-%d" % topic, ID + bytes([topic]), fresh)
        return said

    def publish(self, step: int, folder: Path) -> list[Path]:
        """Both agents' files of one step."""
        table, made = self.frames_of(step), []
        for agent, servers in AGENTS.items():
            among = pa.array(servers)
            mine = pc.or_(pc.is_in(table["src_ip"], among), pc.is_in(table["dst_ip"], among))
            shown_ns = (BEGUN_S + (step + 1) * STEP_S) * 1_000_000_000
            marks = frames.mark_rows([frames.Mark(frames.PROGRESS, shown_ns)], frames.Stamp("bench", agent))
            whole = pa.concat_tables([table.filter(mine), pa.Table.from_batches([marks]).cast(frames.FRAMES)])
            whole = frames.with_file_seq(whole, step + 1)
            names = pa.array([agent] * whole.num_rows)
            whole = whole.set_column(whole.schema.get_field_index("agent"), "agent", names)
            file = folder / f"{agent}-{step + 1:010d}.parquet"
            pq.write_table(whole, file.with_name(f".{file.name}.tmp"), compression="lz4")
            file.with_name(f".{file.name}.tmp").rename(file)
            made.append(file)
        return made


def stale(day: int) -> bool:
    return day % 3 == 1


def after_name(said: bytes, name: bytes, old: bytes, new: bytes) -> bytes:
    """The id directly behind the name, as Metadata has it, and no other."""
    return said.replace(name + old, name + new)


@dataclass
class Day:
    """What was measured while one day's files were judged."""

    cpu_s: list[float] = field(default_factory=list)
    compaction_s: float = 0.0
    memory_mb: dict[str, float] = field(default_factory=dict)
    state_mb: float = 0.0
    files: int = 0
    rows_mb: float = 0.0
    wall_s: float = 0.0


@dataclass
class Month:
    folder: Path
    traffic: Traffic
    days: list[Day] = field(default_factory=list)
    starts_s: list[float] = field(default_factory=list)
    made_at: dict[int, float] = field(default_factory=dict)
    """Capture time by batch."""

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def started(self) -> Monitor:
        began = time.monotonic()
        monitor = Monitor(self.folder, METRICS_PORT, "--retain", "1h", "--max-batch-bytes", "16M")
        self.starts_s.append(monitor.ready() - began)
        return monitor

    def run(self) -> None:
        monitor = self.started()
        for number in range(DAYS):
            if number and number % max(1, DAYS // 3) == 0:  # by turns in good order and not
                monitor.process.send_signal(signal.SIGTERM if number % 2 else signal.SIGKILL)
                monitor.process.wait(PATIENCE_S)
                monitor = self.started()
            self.days.append(self.day(number, monitor))
            print(f"day {number + 1}: {json.dumps(summary(self.days[-1]))}", file=sys.stderr, flush=True)
        monitor.stop()
        monitor = self.started()  # at the month's end
        monitor.stop()

    def day(self, number: int, monitor: Monitor) -> Day:
        day, began = Day(), time.monotonic()
        for step in range(number * STEPS_A_DAY, (number + 1) * STEPS_A_DAY):
            before = cpu_s(monitor)
            self.traffic.publish(step, self.folder / "frames")
            self.judged(monitor, step)
            day.cpu_s.append(cpu_s(monitor) - before)
            for agent in AGENTS:  # as an agent that keeps a day does
                (self.folder / "frames" / f"{agent}-{step + 1 - STEPS_A_DAY:010d}.parquet").unlink(missing_ok=True)
            day.compaction_s += self.compacted(step)
        day.wall_s = time.monotonic() - began
        day.memory_mb = memory(monitor)
        page = monitor.scraped()
        day.state_mb = sum(value for name, value in page.items() if "state_bytes" in name) / 1e6
        parts = {table: list((self.out / table).glob("run=*/batch_id=*/part.parquet")) for table in TABLES}
        day.files = max(map(len, parts.values()))
        day.rows_mb = sum(part.stat().st_size for some in parts.values() for part in some) / 1e6
        return day

    def judged(self, monitor: Monitor, step: int) -> None:
        """Both files are."""
        shown_s = BEGUN_S + (step + 1) * STEP_S
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            monitor.need_life()
            found = [v for k, v in monitor.scraped().items() if k.startswith("wirecheck_agent_judged_timestamp")]
            if len(found) == len(AGENTS) and min(found) >= shown_s:
                return
            time.sleep(0.05)
        raise RuntimeError(f"step {step} is not judged")

    def compacted(self, step: int) -> float:
        """One pass as at that time; its CPU."""
        checkpoint = str(self.out / "_checkpoint")
        now_s, committed = BEGUN_S + (step + 1) * STEP_S, manifest.committed(checkpoint)
        for table in TABLES:
            for part in (self.out / table).glob("run=*/batch_id=*/part.parquet"):
                number = int(part.parent.name.partition("=")[2])
                if number not in self.made_at or part.stat().st_mtime > now_s:
                    os.utime(part, (self.made_at.setdefault(number, now_s),) * 2)
        began = time.process_time()
        run = manifest.run_of(checkpoint)
        assert run
        compaction.compact(self.out, run, compaction.Terms(now_s, 3600), committed)
        return time.process_time() - began

    def undisturbed(self) -> dict:
        """The same files by a plain loop, a day at a time."""
        folder = self.folder / "again"
        folder.mkdir()
        loop: Loop | None = None
        for number in range(DAYS):
            steps = range(number * STEPS_A_DAY, (number + 1) * STEPS_A_DAY)
            files = [file for step in steps for file in self.traffic.publish(step, folder)]
            if loop is None:
                known = labelled(agents_of(files), folder)
                loop = Loop(Settings(agents={agent: replace(found, last=0) for agent, found in known.items()}))
            for at in range(0, len(files), 2):
                loop.batch(files[at : at + 2])
            for file in files:
                file.unlink()
        assert loop
        return loop.result().json()


def cpu_s(monitor: Monitor) -> float:
    return sum(map(spent, family(monitor.process.pid)))


def spent(pid: int) -> float:
    """Its own and its ended children's."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, said[11:15])) / os.sysconf("SC_CLK_TCK")


def memory(monitor: Monitor) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for pid in family(monitor.process.pid):
        kind = "driver" if pid == monitor.process.pid else "java" if "java" in command(pid) else "workers"
        found[kind] += resident(pid)
    return dict(found)


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except OSError:
        return ""


def summary(day: Day) -> dict:
    memory_mb = {name: round(size) for name, size in day.memory_mb.items()}
    return {
        "cpu_s": round(statistics.median(day.cpu_s), 3), "compaction_s": round(day.compaction_s, 2), **memory_mb,
        "state_mb": round(day.state_mb, 2), "files": day.files, "tables_mb": round(day.rows_mb, 2),
        "wall_s": round(day.wall_s, 1),
    }  # fmt: skip


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
    second, last = month.days[1 if DAYS > 1 else 0], month.days[-1]
    pairs = {
        "CPU per batch, median of a day": (statistics.median(second.cpu_s), statistics.median(last.cpu_s), "s"),
        "state": (second.state_mb, last.state_mb, "MB"),
        **{f"memory of {name}": (size, last.memory_mb.get(name, 0), "MB") for name, size in second.memory_mb.items()},
        "CPU of compaction, a day": (second.compaction_s, last.compaction_s, "s"),
    }
    for name, (then, now, unit) in pairs.items():
        yield row(f"{what}: {name}, second", then, unit, None)
        ratio = now / then if then else None
        bar = {"ratio": ratio, "bar": f"<= {WITHIN} x the second day's", "met": ratio is not None and ratio <= WITHIN}
        yield row(f"{what}: {name}, last", now, unit, None) | bar
    yield row(f"{what}: files of the largest table", last.files, "", None) | {
        "bar": FILES_BAR, "met": last.files <= FILES_BAR,
    }  # fmt: skip
    yield row(f"{what}: all tables", last.rows_mb, "MB", None)
    end_s = month.starts_s[-1]
    yield row(f"{what}: first start", month.starts_s[0], "s", None)
    yield row(f"{what}: start at its end", end_s, "s", None) | {"bar": RESTART_BAR_S, "met": end_s <= RESTART_BAR_S}
    ids = [{finding["id"] for finding in found["findings"]} for found in (told, expected)]
    yield row(f"{what}: findings", len(ids[0]), "", None)
    wrong = len(ids[0] ^ ids[1])
    yield row(f"{what}: findings other than the plain loop's", wrong, "", None) | {"bar": 0, "met": not wrong}
    frames_told = [found["coverage"]["frames"] for found in (told, expected)]
    missing = abs(frames_told[0] - frames_told[1])
    yield row(f"{what}: frames counted other than by the plain loop", missing, "", None) | {
        "bar": 0, "met": not missing,
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
