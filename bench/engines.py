"""From which size Spark is faster than this process: one capture after the other by both engines, by turns.

    python -m bench.engines [FOLDER] [--sizes 100M,1G,4G] [--mix records|small] [--turns 2]

Knows: captures of `bench/traffic.py`, kept in FOLDER (by default one that is removed), and the command as a user runs
it. Prints wall time, processor time of all processes, and the load while it ran. Refuses to know the threshold: a
person writes it, with the date, into `commands/engines.py`.
Rule: the answers must be the same, or nothing is compared.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.replay import family
from bench.traffic import write_capture

CONNECTIONS = 200
UNITS = {"M": 1_000_000, "G": 1_000_000_000}
ENGINES = ("local", "spark")


def measure(folder: Path, sizes: list[str], mix: str, turns: int) -> None:
    print(f"{len(os.sched_getaffinity(0))} cores, mix {mix}; wall s / processor s / load, by turns")
    for size in sizes:
        pcap = folder / f"{mix}-{size}.pcap"
        if not pcap.exists():
            write_capture(pcap, int(size[:-1]) * UNITS[size[-1]], mix, CONNECTIONS)
        found: dict[str, list[str]] = {engine: [] for engine in ENGINES}
        answers = set()
        for _ in range(turns):
            for engine in ENGINES:
                wall_s, cpu_s, answer = timed(pcap, engine)
                found[engine].append(f"{wall_s:.1f} / {cpu_s:.1f} / {os.getloadavg()[0]:.1f}")
                answers.add(answer)
        if len(answers) > 1:
            raise SystemExit(f"{size}: the engines' answers differ")
        for engine in ENGINES:
            print(f"{size:>5}  {engine:5}  {'   '.join(found[engine])}", flush=True)


def timed(pcap: Path, engine: str) -> tuple[float, float, str]:
    """Wall time and processor time of one replay, and its answer without the engine's name."""
    command = [sys.executable, "-m", "wirecheck", "replay", str(pcap), "--engine", engine]
    began, spent, done = time.perf_counter(), dict[int, float](), threading.Event()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([*command, "--format", "json", "--fail-on", "never"], stdout=out)

        def watch() -> None:
            while not done.wait(0.1):  # Java is killed at the end: nobody waits for it and learns what it took
                for pid in family(process.pid):
                    spent[pid] = max(spent.get(pid, 0.0), processor_s(pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        code = process.wait()
        wall_s = time.perf_counter() - began
        done.set()
        watcher.join()
        if code:
            raise SystemExit(f"{command} ended with {code}")
        out.seek(0)
        answer = json.load(out) | {"engine": ""}
    return wall_s, sum(spent.values()), json.dumps(answer, sort_keys=True)


def processor_s(pid: int) -> float:
    """What a process has spent, to a tenth of a second before its end; what it was not waited for counts as its own."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--sizes", default="100M,1G,4G")
    parser.add_argument("--mix", choices=["records", "small"], default="records")
    parser.add_argument("--turns", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as scratch:
        folder = asked.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        measure(folder, asked.sizes.split(","), asked.mix, asked.turns)


if __name__ == "__main__":
    main()
