"""`make chaos [KILLS=15] [TABLES=delta]`: the driver is killed at random moments while frames arrive; nothing may be
lost or doubled.

Knows: how to feed frames as an agent would, file by file, how to kill a monitor (kill -9, its Java left to notice), and
what a reader and a scraper must find afterwards: what an undisturbed monitor of the same frames has. Refuses to know
how the job keeps that promise.
Rule: the moments are random but told (SEED), so that a failure can be run again; a kill before the query has started
counts as one too. Tables are compacted with every file, as if an hour had passed since the last one.
"""

import argparse
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench import paced_monitor
from bench.contained import ContainedError, nothing_contained_in
from bench.traffic import write_capture
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.streaming.store.run_result import Result

ROOT = Path(__file__).resolve().parent.parent
CAPTURES = ROOT / "tests" / "scenarios" / "captures"
PROMISED = re.compile(r"wirecheck_(?!judged_lag|frame_to|batch_d|last_b|state_b|build|backlog|disk|task_cpu)")
REVISIONS = "wirecheck_finding_revisions_total"
"""Depends on where batches end, which a kill moves: both runs count what their own tables hold (`miscounted`)."""
PATIENCE_S = 900
OURS = (sys.executable, "-m", "wirecheck")


class Monitor:
    """One process of `wirecheck monitor`; `command`: what runs it, where that is another."""

    def __init__(self, folder: Path, port: int, *switches: str, command: tuple[str, ...] = OURS) -> None:
        self.folder, self.port = folder, port
        command = [*command, "monitor", "--frames", str(folder / "frames")]
        command += ["--out", str(folder / "out"), "--interval", "200ms", "--max-batch-bytes", "200K"]
        command += ["--metrics-port", str(port), *switches]
        with (folder / "words").open("ab") as words:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=words, stderr=words)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def ready(self) -> float:
        """When the query has started."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and self.process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5):
                return time.monotonic()
            time.sleep(0.2)
        raise RuntimeError(f"the monitor does not start:\n{(self.folder / 'words').read_text()[-2000:]}")

    def judging(self) -> float:
        """When it has written a batch in this life."""
        self.ready()
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and "wirecheck_last_batch_timestamp_seconds" not in self.scraped():
            self.need_life()
            time.sleep(0.1)
        return time.monotonic()

    def scraped(self) -> dict[str, float]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as page:
                lines = page.read().decode().splitlines()
        except (urllib.error.URLError, OSError):
            return {}
        found = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}
        contained = {name: n for name, n in found.items() if name.startswith("wirecheck_check_failures_total") and n}
        if contained:
            raise ContainedError(f"{contained}")
        return found

    def need_life(self) -> None:
        """One that ended is not waited for."""
        if self.process.poll() is not None:
            words = (self.folder / "words").read_text().splitlines()
            ours = [line for line in words if line.startswith("wirecheck:")] or words
            raise RuntimeError("\n".join(["the monitor ended:", *ours[-20:]]))

    def caught_up(self, files: int) -> bool:
        """Whether it has judged so many files, and the query goes on."""
        self.need_life()
        page = self.scraped()
        return bool(page.get("wirecheck_last_batch_timestamp_seconds") or page.get("wirecheck_frames_total{}")) and (
            page.get("wirecheck_backlog_files") == 0 and len(list((self.folder / "frames").glob("*.parquet"))) == files
        )


def frames_of(folder: Path) -> list[Path]:
    """Two agents: a real faulty cluster, and a stretch of busy traffic; small files, as an agent rolls them."""
    pcap = folder / "busy.pcap"
    write_capture(pcap, 12_000_000, "small", 40)
    busy = write_frames([pcap], folder / "source", "busy", agent="b", roll_bytes=80_000).files
    real = CAPTURES / "zk28-recreate" / "capture.pcap.gz"
    other = write_frames([real], folder / "source", "real", agent="a", roll_bytes=60_000).files
    longer = max(len(busy), len(other))
    return sorted(
        [*busy, *other], key=lambda file: int(file.stem[-10:]) * longer / (len(busy) if file in busy else len(other))
    )


def feed(files: list[Path], folder: Path) -> None:
    for file in files:
        hidden = folder / f".{file.name}.tmp"
        shutil.copyfile(file, hidden)
        hidden.rename(folder / file.name)


def undisturbed(files: list[Path], folder: Path, port: int) -> tuple[dict, dict[str, float]]:
    (folder / "frames").mkdir(parents=True)
    feed(files, folder / "frames")
    return ended(Monitor(folder, port), len(files))


def ended(monitor: Monitor, files: int, last: Callable[[], None] = lambda: None) -> tuple[dict, dict[str, float]]:
    """What a reader and a scraper find once everything is judged, and the last is done."""
    until = time.monotonic() + PATIENCE_S
    while not monitor.caught_up(files):
        if time.monotonic() > until:
            raise RuntimeError("the monitor does not catch up")
        time.sleep(0.3)
    time.sleep(2)
    last()
    page = {name: value for name, value in monitor.scraped().items() if PROMISED.match(name)}
    if monitor.stop():
        raise RuntimeError("SIGTERM: it ended with an error")
    result = Result.latest(monitor.folder / "out").json()
    nothing_contained_in(result["findings"])
    return result, page


def disturbed(
    files: list[Path], folder: Path, port: int, kills: int, seed: int, *, tables: str
) -> tuple[dict, dict[str, float], list]:
    """Every life sees some files more, and ends at a random moment: within Spark's start, a batch, or between two."""
    (folder / "frames").mkdir(parents=True)
    chance, lives, share, hours = random.Random(seed), [], len(files) / (kills + 1), 0
    switches = ("--retain", "1s", "--tables", tables)
    feed(files[:2], folder / "frames")
    for life in range(kills):
        fresh = files[max(2, round(life * share)) : round((life + 1) * share)]
        feed(fresh[:1], folder / "frames")  # or a life whose elders judged everything would wait for a first batch
        monitor = Monitor(folder, port, *switches, command=compacting(folder))
        until = doomed(monitor, chance)
        for number, file in enumerate(fresh[1:], 1):
            feed([file], folder / "frames")
            hours += 1
            compact(folder, hours)
            time.sleep(max(0, (until - time.monotonic()) / (len(fresh) - number)))
        monitor.kill()
        lives.append(len({*(folder / "out" / "totals").glob("*/batch_id=*"), *commits(folder / "out")}))
    feed(files[round(kills * share) :], folder / "frames")
    monitor = Monitor(folder, port, *switches, command=compacting(folder))
    found, page = ended(monitor, len(files), lambda: left_alone(folder, hours))
    return found, page, lives


def commits(out: Path) -> list[Path]:
    """Of the totals, where they are a Delta table."""
    return list((out / "totals" / "_delta_log").glob("*.json"))


def compacting(folder: Path) -> tuple[str, ...]:
    return sys.executable, "-m", "bench.paced_monitor", str(folder / "clock")


def compact(folder: Path, hours: int) -> None:
    """A pass over the tables, as so much later."""
    paced_monitor.at(folder / "clock", time.time_ns() / 1e9 + hours * 3600)


def left_alone(folder: Path, hours: int) -> None:
    """Passes until no file is left whose rows lie in another."""
    for later in range(1, 6):
        compact(folder, hours + later)
        until = time.monotonic() + PATIENCE_S
        while (folder / "clock").exists() and time.monotonic() < until:
            time.sleep(0.1)


def doomed(monitor: Monitor, chance: random.Random) -> float:
    """When it is to die: while Spark starts, in the first batch of its life, or, mostly, some batches later."""
    match chance.choices(("start", "first batch", "later"), (2, 3, 10))[0]:
        case "start":
            return time.monotonic() + chance.uniform(0, 8)
        case "first batch":
            return monitor.ready() + chance.uniform(0, 4)
        case _:
            return monitor.judging() + chance.uniform(0, 9)


def twice(out: Path) -> int:
    """Rows that a reader without any knowledge of ours finds more than once."""
    found = 0
    for table in ("findings", "topics", "clients", "clusters", "coverage", "totals"):
        rows = every(out / table).to_table(columns=["run", "id", "revision"])
        found += rows.num_rows - rows.group_by(["run", "id", "revision"]).aggregate([]).num_rows
    return found


def miscounted(out: Path, page: dict[str, float]) -> list[str]:
    """Codes of which the page counts other revisions than there are in the table, by the last one of each finding."""
    rows = every(out / "findings").to_table(columns=["label", "code", "id", "revision"])
    last = rows.group_by(["label", "code", "id"]).aggregate([("revision", "max")])
    found = {
        f'{REVISIONS}{{cluster="{row["label"]}",code="{row["code"]}"': float(row["revision_max_sum"])
        for row in last.group_by(["label", "code"]).aggregate([("revision_max", "sum")]).to_pylist()
    }
    counted = {name.partition(",kind=")[0]: n for name, n in page.items() if name.startswith(REVISIONS)}
    return sorted(name for name in found.keys() | counted.keys() if found.get(name) != counted.get(name))


def is_compacted(table: Path) -> bool:
    """Whether a pass has been over it, to its end."""
    if (table / "_delta_log").is_dir():
        from deltalake import DeltaTable

        return "wirecheck.thinned" in DeltaTable(table).metadata().configuration
    return any(b"wirecheck" in (pq.read_metadata(part).metadata or {}) for part in table.glob("run=*/*/part.parquet"))


def every(table: Path) -> Any:
    if (table / "_delta_log").is_dir():
        from deltalake import DeltaTable

        return DeltaTable(table).to_pyarrow_dataset()
    import pyarrow.dataset as ds

    return ds.dataset(table, partitioning="hive")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tables", choices=("parquet", "delta"), default="parquet")
    parser.add_argument("--port", type=int, default=19191)
    parser.add_argument("--keep", type=Path, help="where the tables of both runs go, for other readers")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wirecheck-chaos-") as name:
        folder = Path(name)
        files = frames_of(folder)
        expected, page = undisturbed(files, folder / "calm", given.port)
        found, scraped, lives = disturbed(
            files, folder / "chaos", given.port, given.kills, given.seed, tables=given.tables
        )
        doubled = twice(folder / "chaos" / "out")
        wrong = miscounted(folder / "calm" / "out", page) + miscounted(folder / "chaos" / "out", scraped)
        compacted = sum(map(is_compacted, (folder / "chaos" / "out").iterdir()))
        for run in ("calm", "chaos") if given.keep else ():
            shutil.copytree(folder / run / "out", given.keep / run, ignore=shutil.ignore_patterns("_checkpoint"))
    names = [name for name in page.keys() | scraped.keys() if not name.startswith(REVISIONS)]
    differing = sorted(name for name in names if page.get(name, 0) != scraped.get(name, 0)) + wrong
    same = {part: found[part] == expected[part] for part in expected}
    summary = {
        "tables": given.tables,
        "kills": given.kills,
        "seed": given.seed,
        "files": len(files),
        "batches after each kill": lives,
    }
    summary |= {
        "compacted tables": compacted,
        "same": same,
        "metrics that differ": differing,
        "rows found twice": doubled,
    }
    summary |= {"findings": len(expected["findings"]), "samples": len(page), "seconds": round(time.monotonic() - began)}
    print(json.dumps(summary, indent=1))
    return int(not all(same.values()) or bool(differing) or bool(doubled) or not compacted)


if __name__ == "__main__":
    sys.exit(main())
