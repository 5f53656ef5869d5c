"""What a month's second day and its last one left behind, side by side: a batch, and ten minutes at real speed.

    python -m bench.month_states FOLDER NUMBER=DAY_FOLDER NUMBER=DAY_FOLDER

Knows: the folders that `month_run.py` left, with frames and tables, and the traffic that goes on behind them:
the day after, of the same kind for both. Refuses to know: how they came to be, and how the job works.
Rule: both are started alike, from a copy. Batches are judged by turns, so that a machine that is busy for a while is as
unfair to both. At real speed frames come as an agent of 20,000 frames/s would write them, a file of each agent every
two seconds, by a clock that is as far behind as the state is old; a frame's age is from its capture to the first scrape
that shows it judged. MONTH_MINUTES=10 is the whole claim; 0 leaves it out.
"""

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench import monitor, month_traffic
from bench.chaos import Monitor
from bench.month_run import Day, Month
from bench.month_traffic import BEGUN_S, DAY_S, MEASURED, Step, Traffic
from bench.replay import barred, row
from wirecheck.capture import frames

MINUTES = float(os.environ.get("MONTH_MINUTES", "0"))
WITHIN, BAR_S = 1.1, 5
PORTS = (19195, 19196)


def rows(states: dict[int, Path], traffic: Traffic) -> Iterator[dict]:
    """`states`: folders by how many days they have behind them, the shorter first."""
    yield from by_turns(states, traffic)
    if MINUTES:
        yield from at_real_speed(states)


def by_turns(states: dict[int, Path], traffic: Traffic) -> Iterator[dict]:
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as name:
        beside = [Month(copied(state, Path(name) / state.name), traffic, metrics_port=port)
                  for port, state in zip(PORTS, states.values(), strict=True)]  # fmt: skip
        monitors = [one.started() for one in beside]
        found = [Day() for _ in beside]
        goes_on = [day_after(days, state) for days, state in states.items()]
        for turn, steps in enumerate(zip(*goes_on, strict=True)):
            for at in (0, 1) if turn % 2 else (1, 0):
                beside[at].step(steps[at], monitors[at], found[at])
        for one in monitors:
            one.stop()
    for name in found[0].cpu_s:
        values = [statistics.median(day.cpu_s[name]) for day in found]
        yield from compared("month, by turns: CPU per batch, " + name, states, values, "s")


def at_real_speed(states: dict[int, Path]) -> Iterator[dict]:
    count = round(MINUTES * 60 / monitor.FILE_S)
    ages = []
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as name:
        count = monitor.cut(Path(name), count)
        for days, state in states.items():
            folder = copied(state, Path(name) / state.name)
            aged, curve = spoken(folder, Path(name) / "source", next(day_after(days, state)), count)
            print(f"day {days}: (second, memory MB, state MB): {json.dumps(curve)}", file=sys.stderr)
            ages.append(np.array([age for age, _ in aged]))
            minutes = [
                round(float(np.quantile(one, 0.95)), 1) for one in np.split(ages[-1], range(600, len(aged), 600))
            ]
            print(f"day {days}: p95 by minute, s: {minutes}", file=sys.stderr)
            shutil.rmtree(folder)
    what = f"month, {monitor.RATE:,} frames/s for {MINUTES:g} min: age of a frame when judged, "
    for quantile, name in ((0.5, "median"), (0.95, "p95")):
        yield from compared(what + name, states, [float(np.quantile(one, quantile)) for one in ages], "s")
    yield from (barred(f"{what}p95, after day {days}", float(np.quantile(one, 0.95)), BAR_S, "s")
                for days, one in zip(states, ages, strict=True))  # fmt: skip


def compared(what: str, states: dict[int, Path], values: list[float], unit: str) -> Iterator[dict]:
    first, last = states
    yield row(f"{what}, after day {first}", values[0], unit, None)
    ratio = values[1] / values[0] if values[0] else None
    told = row(f"{what}, after day {last}", values[1], unit, None) | {"ratio": ratio}
    yield told | {"bar": f"<= {WITHIN} x", "met": ratio and ratio <= WITHIN}


def copied(state: Path, to: Path) -> Path:
    shutil.copytree(state, to)
    return to


def day_after(days: int, state: Path) -> Iterator[Step]:
    """The steps of the day behind so many, as of a day that is measured."""
    number = max(int(file.stem.rpartition("-")[2]) for file in (state / "frames").glob("*.parquet"))
    begin_s, length_s = BEGUN_S + days * DAY_S, DAY_S // MEASURED
    for turn in range(MEASURED):
        at_s = begin_s + turn * length_s
        yield Step(number + turn, days, at_s, at_s + length_s, late=False)


def spoken(folder: Path, source: Path, first: Step, count: int) -> tuple[monitor.Ages, monitor.Curve]:
    """What a scraper sees while so many files come to a monitor that goes on in the folder."""
    ready = folder / "ready"
    ready.mkdir()
    for number in range(1, count + 1):
        pq.write_table(as_of(first, pq.read_table(source / f"{number}.parquet")), ready / f"{number}.parquet")
    running = Monitor(folder, PORTS[0], "--retain", "1h", *monitor.SWITCHES)
    running.ready()
    time.sleep(3)
    began_ns = time.time_ns()
    feeder = get_context("spawn").Process(target=feed, args=(folder, first, count, began_ns))
    feeder.start()
    watched = monitor.watch(running, feeder, began_ns / 1e9 - first.begin_s)
    running.stop()
    return watched


def as_of(step: Step, table: pa.Table) -> pa.Table:
    """Frames with the hosts, names and ids of a step's day."""
    table = table.select(frames.FRAMES.names).cast(frames.FRAMES)
    payload = table["payload"].combine_chunks()
    said = month_traffic.said_in(step, b"".join(payload.to_pylist()))
    lengths = pc.binary_length(payload).to_numpy()
    return month_traffic.changed(table, step, payload=month_traffic.of_lengths(said, lengths))


def feed(folder: Path, first: Step, count: int, began_ns: int) -> None:
    """Each pair of files when its last frame has been captured."""
    step_ns = 1_000_000_000 // monitor.RATE
    for number in range(count):
        table = pq.read_table(folder / "ready" / f"{number + 1}.parquet")
        start_ns = first.begin_s * 1_000_000_000 + number * monitor.FILE_S * 1_000_000_000
        ts_ns = pa.array(start_ns + np.arange(1, table.num_rows + 1) * step_ns)
        table = table.set_column(table.schema.get_field_index("ts_ns"), "ts_ns", ts_ns)
        due_s = began_ns / 1e9 + (number + 1) * monitor.FILE_S
        time.sleep(max(0, due_s - time.time_ns() / 1e9))
        whole = table.select(frames.FRAMES.names).cast(frames.FRAMES)  # texts come as a dictionary from a file
        month_traffic.publish(whole, first.number + 1 + number, int(ts_ns[-1].as_py()), folder / "frames")


def main() -> None:
    folder = Path(sys.argv[1])
    states = {int(days): Path(state) for days, _, state in (one.partition("=") for one in sys.argv[2:])}
    folder.mkdir(exist_ok=True)
    for line in rows(states, Traffic(folder)):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
