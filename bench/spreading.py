"""How far the query divides: the critical path of one batch in CPU seconds, by 1, 2, 4 and 8 partitions.

    make bench ONLY=spreading   python -m bench.spreading CAPTURE...   the latter measures captures of your own

Knows: the steps of the query as plain functions, and which task Spark sends a row to (`streaming/spark/placement.py`).
Each step of each row runs alone, so neither processors nor other work on the machine bound what is added up. The
second of two passes counts. Refuses to know: what shuffles and the start of tasks cost, which depends on the machine.
There is no peer.
"""

import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from time import process_time
from typing import TypeVar

from bench.replay import row
from bench.traffic import write_capture
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.streaming.spark.operators import PARTS, spread
from wirecheck.streaming.spark.placement import keys, task
from wirecheck.streaming.steps.decode_step import decode_row
from wirecheck.streaming.steps.follow_step import Bucket
from wirecheck.streaming.steps.judge_step import judge_rows
from wirecheck.streaming.steps.pack_step import pack_files
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.tagged import Tagged

BYTES, BARS = 40_000_000, {4: 2.0}
FILE_BYTES = 500_000
"""As agents write files of a few seconds."""
PARTITIONS = 2, 4, 8
T = TypeVar("T")
Cost = tuple[int, float]
"""Of a task, by number, and CPU seconds."""


def measure() -> list[dict]:
    found = []
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as name:
        for connections in (1, 200):
            capture = Path(name) / f"{connections}.pcap"
            write_capture(capture, BYTES, "small", connections)
            for partitions, faster in speed_up(capture).items():
                bar = BARS.get(partitions) if connections == 1 else None
                named = f"speed-up by {partitions} partitions, {connections} connections"
                found.append(row(named, faster, "times", None) | {"bar": bar, "met": bar and faster >= bar})
    return found


def speed_up(capture: Path) -> dict[int, float]:
    """By partitions: CPU seconds of all steps, divided by those of the critical path."""
    settings = Settings()
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as name:
        write_frames([capture], Path(name), "bench", roll_bytes=FILE_BYTES)
        files = sorted(map(str, Path(name).glob("*.parquet")))
        critical_paths(files, settings)
        return critical_paths(files, settings)


def critical_paths(files: list[str], settings: Settings) -> dict[int, float]:
    packing = [timed(lambda file=file: [*pack_files([file], settings)]) for file in files]
    rows = [one for packed, _ in packing for some in packed for one in some]
    followed = [timed(lambda bucket=bucket: received(bucket, rows, settings)) for bucket in range(settings.buckets)]
    cells = [one for learned, _ in followed for one in learned]
    decoded = [timed(lambda one=one: decode_row(one, settings)) for one in cells]
    _, judging = timed(lambda: judge_rows("bench", [claims for claims, _ in decoded], {}.get, settings))
    steps = [
        lambda n: ((place % PARTS % n, cost) for place, (_, cost) in enumerate(packing)),
        lambda n: ((placed(bucket, settings, n), cost) for bucket, (_, cost) in enumerate(followed)),
        lambda n: ((task("bench", one.bucket, n), cost) for one, (_, cost) in zip(cells, decoded, strict=True)),
    ]
    whole = critical_path(steps, 1) + judging
    return {n: whole / (critical_path(steps, n) + judging) for n in PARTITIONS}


def critical_path(steps: Iterable[Callable[[int], Iterable[Cost]]], partitions: int) -> float:
    return sum(longest(step(partitions)) for step in steps)


def longest(costs: Iterable[Cost]) -> float:
    """What the busiest task takes."""
    of_task: dict[int, float] = defaultdict(float)
    for number, cpu_s in costs:
        of_task[number] += cpu_s
    return max(of_task.values(), default=0.0)


def placed(bucket: int, settings: Settings, partitions: int) -> int:
    return task("bench", keys("bench", settings.buckets)[bucket], partitions)


def received(number: int, rows: Iterable[Tagged], settings: Settings) -> list[Tagged]:
    bucket = Bucket("bench", number, settings)
    learned = [*spread(bucket.receive(one.cell for one in rows if one.bucket == number), "bench", number)]
    bucket.snapshot()
    return learned


def timed(step: Callable[[], T]) -> tuple[T, float]:
    began_s = process_time()
    return step(), process_time() - began_s


if __name__ == "__main__":
    for given in sys.argv[1:]:
        print(given, {partitions: round(faster, 2) for partitions, faster in speed_up(Path(given)).items()})
