"""Replay: a capture from pcap to verdict by both engines, Spark's start included, beside tshark dissecting the file.

Knows: synthesised captures (bench/traffic.py) of 90 % records and of small messages, and the command as a user runs it.
Refuses to know: Spark's or tshark's tuning. tshark is told to print some fields of Kafka messages, the least that makes
it dissect them all. Runs are in turn, on a warm file cache; memory is that of all processes a command started.
Rule: what a further GB costs is the difference of two runs, ours between 1 GB and BENCH_GB (2; 10 for the whole claim),
tshark's between 1 GB and 2, for it holds what it has read.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.contained import nothing_contained_in
from bench.traffic import write_capture

TINY, SMALL, LARGE = 1_000_000, 100_000_000, 1_000_000_000
FURTHER = int(os.environ.get("BENCH_GB", "2")) * LARGE
CONNECTIONS = 200
TSHARK = ["-Y", "kafka", "-T", "fields", "-e", "frame.number", "-e", "kafka.api_key", "-e", "kafka.correlation_id"]
ENGINES = ("local", "spark")


def measure() -> list[dict]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as name:
        folder = Path(name)
        for size, mix in ((TINY, "records"), (SMALL, "records"), (SMALL, "small"), (LARGE, "records")):
            pcap = folder / "capture.pcap"
            write_capture(pcap, size, mix, CONNECTIONS)
            rows += compared(pcap, f"{size // 1_000_000} MB of {mix}", size)
        return [*rows, *slope(folder / "capture.pcap", rows)]


def slope(pcap: Path, rows: list[dict]) -> list[dict]:
    """What each GB beyond the first costs, and what memory they add to that of 100 MB."""
    known = {row["name"]: row for row in rows}
    one, hundred = (f"{size // 1_000_000} MB of records" for size in (LARGE, SMALL))
    theirs = None
    if shutil.which("tshark"):
        write_capture(pcap, 2 * LARGE, "records", CONNECTIONS)
        theirs = watched(["tshark", "-r", str(pcap), *TSHARK])[0] - known[f"replay spark, {one}"]["peer_value"]
    write_capture(pcap, FURTHER, "records", CONNECTIONS)
    found = []
    for engine in ENGINES:
        spent, memory_mb = watched(ours(pcap, engine))
        each = (spent - known[f"replay {engine}, {one}"]["value"]) / (FURTHER / LARGE - 1)
        times = row(f"replay {engine}, each GB from 1 to {FURTHER // LARGE}", each, "s")
        if theirs:
            bar = 8.0 if engine == "spark" else None
            met = bar and theirs / each >= bar
            times |= {"peer_value": theirs, "ratio": theirs / each, "bar": bar, "met": met}
        size = f"{FURTHER // LARGE} GB of records"
        found += [times, row(f"replay {engine}, {size}, peak memory", memory_mb, "MB", peer=None)]
        for before in (hundred, one):
            held = known[f"replay {engine}, {before}, peak memory"]["value"]
            found.append(row(f"replay {engine}, memory of {size} over {before}", memory_mb / held, "x", peer=None))
    return found


def ours(pcap: Path, engine: str) -> list[str]:
    command = [sys.executable, "-m", "wirecheck", "replay", str(pcap), "--engine", engine]
    return [*command, "--format", "json", "--fail-on", "never"]


def compared(pcap: Path, what: str, size: int) -> list[dict]:
    theirs = watched(["tshark", "-r", str(pcap), *TSHARK]) if shutil.which("tshark") else None
    found = []
    for engine in ENGINES:
        spent_s, memory_mb = watched(ours(pcap, engine))
        spent, held = (
            row(f"replay {engine}, {what}", spent_s, "s"),
            row(f"replay {engine}, {what}, peak memory", memory_mb, "MB"),
        )
        if theirs:
            bar = bar_of(engine, what, size)
            met = bar and theirs[0] / spent_s >= bar
            spent |= {"peer_value": theirs[0], "ratio": theirs[0] / spent_s, "bar": bar, "met": met}
            held |= {"peer_value": theirs[1]}
        found += [spent, held]
    return found


def bar_of(engine: str, what: str, size: int) -> float | None:
    """How many times as fast as tshark it is to be."""
    if engine == "spark":
        return 1.0 if size >= LARGE else None
    return 3.0 if size >= LARGE else 1.0 if "small" in what else None


def watched(command: list[str]) -> tuple[float, float]:
    """Wall time in seconds, and the most memory in MB that the command and all it started held at a time."""
    peak = 0.0
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.1):
            peak = max(peak, sum(map(resident, family(process.pid))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, said = process.communicate()
    done.set()
    watcher.join()
    if process.returncode:
        raise RuntimeError(f"{command}: {said.decode()}")
    took_s = time.perf_counter() - began
    if command[-1] == "never":  # one of ours, in JSON
        nothing_contained_in(json.loads(out)["findings"])
    return took_s, peak


def family(root: int) -> list[int]:
    """The process and everything below it."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid and not in_parents_memory(child, pid)]
    return found


def in_parents_memory(child: int, parent: int) -> bool:
    """Java starts programs by vfork: until a child has become its program it is Java, in the same memory."""
    try:
        return all(Path(f"/proc/{pid}/exe").readlink().name == "java" for pid in (child, parent))
    except OSError:
        return False


def resident(pid: int) -> float:
    """Megabytes; what processes share counts once."""
    try:
        found = re.search(r"^Pss: +(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) / 1000 if found else 0


def row(name: str, value: float, unit: str, peer: str | None = "tshark") -> dict:
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": peer,
        "peer_value": None,
        "ratio": None,
        "bar": None,
        "met": None,
    }


def barred(name: str, value: float, bar: float, unit: str = "") -> dict:
    return row(name, value, unit, None) | {"bar": bar, "met": value <= bar}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
