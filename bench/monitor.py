"""The monitor under a steady load: how old a frame is when it is judged, what the job holds, how fast a backlog goes.

Knows: synthesised traffic (bench/traffic.py, small messages) as an agent of 20,000 frames/s would write it, a file
every two seconds, capture time being the wall clock; the page of metrics as a scraper sees it, four times a second.
Refuses to know: how the job works. A frame's age is from its capture time to the first scrape that shows it judged.
Rule: the feeder is a process beside the job on the same two cores, as an agent would be. BENCH_MINUTES=10 is the whole
claim: ten minutes, then a backlog of ten million frames; some 20 minutes and 15 GB of disk while it runs.
"""

import json
import os
import sys
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.chaos import Monitor
from bench.replay import family, resident, row
from bench.traffic import write_capture
from tests import frame_files
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import write_frames

RATE, FILE_S = 20_000, 2
BYTES_PER_FRAME = 270
MINUTES = float(os.environ.get("BENCH_MINUTES", "2"))
BACKLOG_FILES = 250 if MINUTES >= 10 else 60
"""So many files are 10 million frames, or 2.4."""
PATIENCE_S = 600
SWITCHES = ("--max-batch-bytes", "64M")


def measure() -> list[dict]:
    files, backlog = round(MINUTES * 60 / FILE_S), BACKLOG_FILES
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as name:
        folder = Path(name)
        (folder / "frames").mkdir()
        total = cut(folder, files + backlog)
        print(f"{total} files of {RATE * FILE_S} frames", file=sys.stderr)
        ages, curve = steady(folder, min(files, total))
        caught = catch_up(folder, files, total) if total > files else None
    return rows(ages, curve, caught)


def cut(folder: Path, count: int) -> int:
    """Files of as many frames as arrive between two, without their times; how many there are."""
    pcap = folder / "capture.pcap"
    write_capture(pcap, count * RATE * FILE_S * BYTES_PER_FRAME, "small")
    (folder / "source").mkdir()
    held, number = [], 0
    for file in write_frames([pcap], folder / "whole", "bench").files:
        table = frames_file.read(file)
        held.append(table.filter(pc.equal(table["kind"], frames.FRAME)))
        file.unlink()
        whole = pa.concat_tables(held)
        while whole.num_rows >= RATE * FILE_S and number < count:
            number += 1
            pq.write_table(whole.slice(0, RATE * FILE_S), folder / "source" / f"{number}.parquet")
            whole = whole.slice(RATE * FILE_S)
        held = [whole]
    pcap.unlink()
    return number


def publish(folder: Path, number: int, began_ns: int) -> None:
    """One file as the agent would have written it, its frames evenly over its seconds."""
    table = pq.read_table(folder / "source" / f"{number}.parquet")
    step_ns = 1_000_000_000 // RATE
    ts_ns = began_ns + np.arange(1, table.num_rows + 1) * step_ns
    table = table.set_column(table.schema.get_field_index("ts_ns"), "ts_ns", pa.array(ts_ns))
    stamp = frames.Stamp("bench", "agent")
    marks = frames.mark_rows([frames.Mark(frames.PROGRESS, int(ts_ns[-1]))], stamp)
    whole = pa.concat_tables([table.select(frames.FRAMES.names).cast(frames.FRAMES), plain(marks)])
    whole = frames.with_file_seq(whole, number)
    whole = whole.set_column(whole.schema.get_field_index("agent"), "agent", pa.array(["agent"] * whole.num_rows))
    hidden = folder / "frames" / f".agent-{number:010d}.parquet.tmp"
    frame_files.write(whole, hidden, compression="lz4")
    hidden.rename(folder / "frames" / f"agent-{number:010d}.parquet")


def plain(marks: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([marks]).cast(frames.FRAMES)


def feed(folder: Path, first: int, last: int, began_ns: int) -> None:
    """Each file when its last frame has been captured."""
    for number in range(first, last + 1):
        start_ns = began_ns + (number - first) * FILE_S * 1_000_000_000
        time.sleep(max(0, start_ns / 1e9 + FILE_S - time.time_ns() / 1e9))
        publish(folder, number, start_ns)


Ages = list[tuple[float, float]]
"""Age in seconds, and of how many seconds of capture."""
Curve = list[tuple[float, float, float]]
"""Second, memory and state in MB."""


def steady(folder: Path, files: int) -> tuple[Ages, Curve]:
    monitor = Monitor(folder, 19193, *SWITCHES)
    monitor.ready()
    time.sleep(3)
    feeder = get_context("spawn").Process(target=feed, args=(folder, 1, files, time.time_ns()))
    feeder.start()
    watched = watch(monitor, feeder)
    monitor.stop()
    return watched


def watch(monitor: Monitor, feeder: BaseProcess, behind_s: float = 0.0) -> tuple[Ages, Curve]:
    """As a scraper sees it while somebody feeds it what was captured so long ago; its size every ten seconds."""
    ages, curve, began, judged = [], [], time.monotonic(), None
    last = began
    while feeder.is_alive() or monitor.scraped().get("wirecheck_backlog_files"):
        monitor.need_life()
        page, now = monitor.scraped(), time.time_ns() / 1e9 - behind_s
        at = min((v for k, v in page.items() if k.startswith("wirecheck_agent_judged_timestamp")), default=None)
        if at and judged is not None and at > judged:
            steps = np.arange(judged, at, 0.1)
            ages += [(now - float(step), 0.1) for step in steps]
        judged = at or judged
        if time.monotonic() - last > 10:
            last = time.monotonic()
            memory = sum(map(resident, family(monitor.process.pid)))
            state = sum(v for k, v in page.items() if "state_bytes" in k) / 1e6
            curve.append((round(last - began), round(memory), round(state, 1)))
        time.sleep(0.25)
    return ages, curve


def catch_up(folder: Path, done: int, total: int) -> tuple[float, float]:
    """Frames that wait when it starts again, and the seconds from the query's start until they are judged."""
    began_ns = time.time_ns() - (total - done) * FILE_S * 1_000_000_000
    for number in range(done + 1, total + 1):
        publish(folder, number, began_ns + (number - done - 1) * FILE_S * 1_000_000_000)
    waiting = (total - done) * RATE * FILE_S
    monitor = Monitor(folder, 19193, *SWITCHES)
    began = monitor.ready()
    target = f"agent-{total:010d}"
    while time.monotonic() - began < PATIENCE_S:
        monitor.need_life()
        if monitor.scraped().get("wirecheck_backlog_files") == 0:
            break
        time.sleep(0.25)
    spent = time.monotonic() - began
    print(f"backlog until {target}: {waiting:,} frames in {spent:.1f} s", file=sys.stderr)
    monitor.stop()
    return waiting, spent


def rows(ages: Ages, curve: Curve, caught: tuple[float, float] | None) -> list[dict]:
    aged = np.array([age for age, _ in ages])
    p50, p95, most = (float(np.quantile(aged, q)) for q in (0.5, 0.95, 1.0))
    print(f"(second, memory MB, state MB): {json.dumps(curve)}", file=sys.stderr)
    bar = {"bar": 10, "met": p95 <= 10}
    what = f"monitor, {RATE:,} frames/s for {MINUTES:g} min"
    found = [row(f"{what}: age of a frame when judged, p95", p95, "s", None) | bar]
    found += [row(f"{what}: median", p50, "s", None), row(f"{what}: oldest", most, "s", None)]
    half = len(curve) // 2
    for index, unit in ((1, "memory"), (2, "state")):
        values = [point[index] for point in curve]
        for part, name in ((values[:half], "first half"), (values[half:], "second half")):
            found.append(row(f"{what}: {unit}, {name}, most", max(part, default=0), "MB", None))
    if caught:
        speed = caught[0] / caught[1] / RATE
        found.append(row("monitor, backlog: times arrival speed", speed, "x", None) | {"bar": 5, "met": speed >= 5})
    return found


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
