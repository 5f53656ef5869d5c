"""What replay and monitor need on this machine, one check each, for `wirecheck doctor`. A check never raises.

It starts no Spark. Each problem comes with the one command that fixes it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import NamedTuple

from wirecheck.child_python import python_path
from wirecheck.streaming.spark.tuning import HEAP_MB

PACKAGES = ("pyspark", "pandas", "pyarrow", "protobuf", "prometheus-client")
HELD_MB = HEAP_MB + 600
"""Java's heap at its largest, Java beside it, and its Pythons: more than a replay or a monitor was seen to hold."""
ENOUGH_MB = 2 * HELD_MB
FREE_MB = 2000
PATIENCE_S = 600
IMPORTS = """
import time
began = time.perf_counter()
import pyspark.worker, wirecheck.streaming.spark.operators
from wirecheck.streaming.steps import decode_step, follow_step, judge_step, pack_step
print(time.perf_counter() - began)
"""
SLOW_S = 10
"""Seconds that Spark gives the Python of a stateful step to start; no setting changes that."""
INSTALL = "install wirecheck's wheel with [monitor]"


class Seen(NamedTuple):
    name: str
    state: str
    """ok, warn or fail."""
    text: str
    fix: str


def checks() -> list[tuple[str, str, str, str]]:
    """(name, state, text, fix) each."""
    return [*packages(), *java(), *archive(), *memory(), *disk(), *worker()]


def packages() -> Iterator[Seen]:
    bounds = bounds_of()
    for name in PACKAGES:
        try:
            found = version(name)
        except PackageNotFoundError:
            yield Seen(name, "fail", "is not installed", INSTALL)
            continue
        asked = bounds.get(name, "")
        if fits(found, asked):
            yield Seen(name, "ok", found, "")
        else:
            yield Seen(name, "fail", f"{found} is installed, {asked} is needed", f"pip install '{name}{asked}'")


def bounds_of() -> dict[str, str]:
    """Package to version bounds, as this program was installed with."""
    try:
        lines = requires("wirecheck") or []
    except PackageNotFoundError:
        return {}
    found = (re.match(r"([A-Za-z0-9_.-]+)([<>=!~0-9.,]*)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def fits(found: str, asked: str) -> bool:
    tests = {">=": lambda a, b: a >= b, "<": lambda a, b: a < b}
    bounds = re.findall(r"(>=|<)([0-9.]+)", asked)
    return all(tests[sign](numbers(found), numbers(bound)) for sign, bound in bounds)


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def java() -> Iterator[Seen]:
    from wirecheck.streaming.spark.java import FIX, JavaMissing, find_java

    with tempfile.TemporaryDirectory(prefix="wirecheck-") as work:
        try:
            found = find_java(Path(work))
        except (JavaMissing, OSError) as missing:
            yield Seen("java", "fail", str(missing).removesuffix(f": {FIX}"), FIX)
            return
        where = "a wheel" if found.folder.is_relative_to(work) else str(found.folder)
    yield Seen("java", "ok", f"{found.version} in {where}", "")


def archive() -> Iterator[Seen]:
    """Of Java's classes, which the first replay through Spark writes."""
    from wirecheck.streaming.spark.class_archive import archives, cache_folder

    for path in archives(cache_folder()):
        size = f"{path.stat().st_size / 1e6:.0f} MB"
        yield Seen(
            "class archive", "ok", f"{path}: {size}, halves Spark's start; remove it: --remove-class-archive", ""
        )


def memory() -> Iterator[Seen]:
    fix = f"free {ENOUGH_MB:,} MB: checking may take {HELD_MB:,}"
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        free_mb = int(re.findall(r"^MemAvailable: +(\d+)", text, re.MULTILINE)[0]) // 1000
    except (OSError, IndexError):
        yield Seen("memory", "warn", "unknown on this system", fix)
        return
    state = "ok" if free_mb >= ENOUGH_MB else "warn" if free_mb >= HELD_MB else "fail"
    yield Seen("memory", state, f"{free_mb:,} MB free", "" if state == "ok" else fix)


def disk() -> Iterator[Seen]:
    folder = tempfile.gettempdir()
    free_mb = shutil.disk_usage(folder).free // 1_000_000
    enough = free_mb >= FREE_MB
    fix = "" if enough else "free disk space, or set TMPDIR to a directory with 2 GB"
    yield Seen("disk", "ok" if enough else "warn", f"{free_mb:,} MB free in {folder}", fix)


def worker() -> Iterator[Seen]:
    """A worker's imports, in a process of its own."""
    try:
        ran = subprocess.run(  # noqa: S603 - this Python
            [sys.executable, "-c", IMPORTS],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            env={**os.environ, "PYTHONPATH": python_path()},
        )
    except (OSError, subprocess.TimeoutExpired) as failed:
        yield Seen("worker", "fail", str(failed), INSTALL)
        return
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or ["it ended without output"])[-1]
        yield Seen("worker", "fail", last, INSTALL)
        return
    seconds = float(ran.stdout)
    fix = f"reduce other load: Spark waits {SLOW_S} s for it" if seconds > SLOW_S else ""
    yield Seen("worker", "warn" if fix else "ok", f"starts in {seconds:.1f} s", fix)
