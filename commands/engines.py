"""Which engine checks a replay: this process, or Spark.

Knows: from which size of input Spark is faster, by number of cores, and how large inputs are. Refuses to know how
either engine works.
"""

import os
import stat
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

AUTO, SPARK, LOCAL = "auto", "spark", "local"
ENGINES = (AUTO, SPARK, LOCAL)

SPARK_FROM_BYTES: dict[int, int] = {}
"""By number of cores: bytes of input from which Spark is faster. More cores than listed count as the most listed, fewer
never use Spark. Empty: no such size was found. 23 November 2026, two quiet cores, `python -m bench.engines`, captures
of records, wall time: 100 MB 1.5 s locally and 13.9 s by Spark, 1 GB 3.5 and 14.1, 4 GB 9.6 and 26.6. Each further GB
costs 2 s locally and 4 s by Spark."""
FRAMES_TO_CAPTURE = 20
"""Frames files are that much smaller than the capture that they were made from: they hold no records."""


def engine_for(asked: str, inputs: Iterable[str]) -> str:
    """`spark` or `local`, for inputs by their names."""
    if asked != AUTO:
        return asked
    if find_spec("pyspark") is None or "-" in (names := tuple(inputs)):
        return LOCAL
    return SPARK if sum(map(captured_bytes, map(Path, names))) >= spark_from(cores()) else LOCAL


def spark_from(available: int) -> float:
    """Bytes of input from which Spark is faster with so many cores."""
    measured = [listed for listed in SPARK_FROM_BYTES if listed <= available]
    return SPARK_FROM_BYTES[max(measured)] if measured else float("inf")


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def captured_bytes(path: Path) -> int:
    """How large the capture of an input is, by its size on disk; a pipe counts as nothing."""
    if path.is_dir():
        return FRAMES_TO_CAPTURE * sum(map(file_bytes, path.rglob("*.parquet")))
    return file_bytes(path)


def file_bytes(path: Path) -> int:
    try:
        found = path.stat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
