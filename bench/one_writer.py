"""Two monitors on one checkpoint, live: who is refused, who takes over and when, and what one that slept still writes.

    python -m bench.one_writer [--store PROGRAM] [--where local,store]

Knows: how a monitor is started beside another, killed, and stopped as a machine that sleeps is (SIGSTOP, Java
included), and how to see what stands in a store (`s3_store.py`). Refuses to know how one of them is kept out.
Rule: what a reader finds at the end must be what a plain loop over the same frames says, and while one that lost its
lease wakes and ends, no object of the tables may change.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyarrow import fs

from bench.chaos import CAPTURES, OURS, PATIENCE_S, ROOT, Monitor, feed
from bench.cluster import hadoop, in_order
from bench.s3_store import KEYS, Store
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.streaming import checkpoint
from wirecheck.streaming.steps.frames_folder import agents_of
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store.run_result import Result
from wirecheck.streaming.store.storage import at

PORT = 19196
ASLEEP_S, LATER_S = 25, 60
"""Longer than a lease stands that nobody renews; so long one that lost it may take to notice and end."""
TABLES = ("findings", "topics", "clients", "clusters", "coverage")


class Life(Monitor):
    """One process of it, and what it says, apart from the others'."""

    def __init__(self, folder: Path, number: int, where: dict[str, str], environment: dict[str, str]) -> None:
        self.folder, self.port = folder / f"life-{number}", PORT + number
        self.folder.mkdir()
        command = [*OURS, "monitor", "--frames", str(folder / "frames"), "--interval", "200ms"]
        command += ["--metrics-port", str(self.port), *(word for pair in where.items() for word in pair)]
        self.began_s = time.monotonic()
        with (self.folder / "words").open("wb") as words:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=words, stderr=words, start_new_session=True
            )

    def frames(self) -> int:
        return round(sum(n for name, n in self.scraped().items() if name.startswith("wirecheck_frames_total")))

    def until(self, done: Callable[[], bool]) -> float:
        """The seconds since it began."""
        until_s = time.monotonic() + PATIENCE_S
        while not done():
            self.need_life()
            if time.monotonic() > until_s:
                raise RuntimeError(f"no end:\n{(self.folder / 'words').read_text()[-2000:]}")
            time.sleep(0.1)
        return round(time.monotonic() - self.began_s, 1)

    def ended(self, patience_s: float = PATIENCE_S) -> dict:
        code = self.process.wait(patience_s)
        return {"seconds": round(time.monotonic() - self.began_s, 1), "exit code": code, "lines": self.said()}

    def said(self) -> list[str]:
        words = (self.folder / "words").read_text(errors="replace").splitlines()
        return [line for line in words if line.startswith("wirecheck:")]

    def signal(self, number: int) -> None:
        """To it and its Java; what Python that Java started waits for Java."""
        os.killpg(self.process.pid, number)

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGKILL)
        self.process.wait()


class Lives:
    """Of monitors over one checkpoint, while frames come."""

    def __init__(self, folder: Path, where: dict[str, str], environment: dict[str, str]) -> None:
        self.folder, self.where, self.environment = folder, where, environment
        (folder / "frames").mkdir(parents=True)
        capture = CAPTURES / "zk28-recreate" / "capture.pcap.gz"
        self.files = write_frames([capture], folder / "source", "L", agent="a", roll_bytes=60_000).files
        self.begun: list[Life] = []
        self.fed = 0

    def begin(self) -> Life:
        self.begun.append(Life(self.folder, len(self.begun), self.where, self.environment))
        return self.begun[-1]

    def feed(self, files: int) -> int:
        """So many more; how many frames there are then."""
        feed(self.files[self.fed : self.fed + files], self.folder / "frames")
        self.fed = min(self.fed + files, len(self.files))
        loop = self.loop()
        return loop.json()["coverage"]["frames"]

    def loop(self) -> Result:
        there = self.files[: self.fed]
        loop = Loop(Settings(agents=agents_of(there)))
        loop.batch(there)
        return loop.result()

    def result(self) -> Result:
        run = checkpoint.run_of(self.where["--checkpoint"])
        assert run is not None
        return Result.read(self.where["--out"], run)

    def objects(self) -> list[tuple]:
        """Whatever the tables consist of."""
        system, folder = at(self.where["--out"])
        found = system.get_file_info(fs.FileSelector(folder, recursive=True))
        return sorted((one.path, one.size, one.mtime_ns) for one in found if one.is_file)


@contextmanager
def lives(folder: Path, where: dict[str, str], environment: dict[str, str]) -> Iterator[Lives]:
    found = Lives(folder, where, environment)
    try:
        yield found
    finally:
        for life in found.begun:
            life.end()


def refused_and_taken_over(of: Lives) -> tuple[dict, Life]:
    told: dict = {}
    frames, first = of.feed(2), of.begin()
    told["the first has judged"] = first.until(lambda: first.frames() >= frames)
    told["a second beside it"] = of.begin().ended()
    frames = of.feed(2)
    told["the first goes on"] = first.until(lambda: first.frames() >= frames)
    first.process.kill()
    first.process.wait()
    frames, third = of.feed(2), of.begin()
    third.until(lambda: any(line.startswith("wirecheck: judging") for line in third.said()))
    told["one begun when the first was killed -9"] = {
        "judges": round(time.monotonic() - third.began_s, 1),
        "has judged what came since": third.until(lambda: third.frames() >= frames),
        "lines": third.said(),
    }
    return told, third


def woken(of: Lives, sleeper: Life) -> dict:
    """It sleeps within a batch, another takes over, it wakes."""
    of.feed(1)
    time.sleep(1)
    sleeper.signal(signal.SIGSTOP)
    slept_s = time.monotonic()
    time.sleep(ASLEEP_S)
    frames, other = of.feed(1), of.begin()
    has = other.until(lambda: other.frames() >= frames)
    before = of.objects()
    sleeper.signal(signal.SIGCONT)
    woke_s = time.monotonic()
    asleep = {"asleep": round(woke_s - slept_s, 1), "the other has judged": has}
    said = len(sleeper.said())
    end = sleeper.ended(LATER_S)
    after = of.objects()
    written = {"objects of the tables": len(before), "changed after it woke": len(set(before) ^ set(after))}
    frames = of.feed(len(of.files))
    other.until(lambda: other.frames() >= frames)
    ended = {"seconds": round(time.monotonic() - woke_s, 1), "exit code": end["exit code"]}
    return {**asleep, "the one that woke": {**ended, "lines": end["lines"][said:]}, **written}


def same(of: Lives) -> dict[str, bool]:
    time.sleep(2)
    found, expected = of.result(), of.loop()
    return {table: in_order(found.rows[table]) == in_order(expected.rows[table]) for table in TABLES}


def on_a_disk(folder: Path) -> dict:
    where = {"--out": str(folder / "out"), "--checkpoint": str(folder / "checkpoint")}
    with lives(folder, where, dict(os.environ)) as of:
        told, last = refused_and_taken_over(of)
        last.signal(signal.SIGSTOP)
        told["one beside a holder that sleeps"] = of.begin().ended()
        last.signal(signal.SIGCONT)
        frames = of.feed(len(of.files))
        last.until(lambda: last.frames() >= frames)
        return {**told, "same as a plain loop": same(of)}


def on_a_store(folder: Path) -> dict:
    where = {"--out": "s3://bucket/verdicts", "--checkpoint": "s3a://bucket/checkpoint"}
    conf = {"endpoint": KEYS["AWS_ENDPOINT_URL"], "path.style.access": "true", "connection.ssl.enabled": "false"}
    words = " ".join(f"--conf spark.hadoop.fs.s3a.{name}={value}" for name, value in conf.items())
    java = f"--packages org.apache.hadoop:hadoop-aws:{hadoop()} {words} pyspark-shell"
    with lives(folder, where, {**os.environ, "PYSPARK_SUBMIT_ARGS": java}) as of:
        told, last = refused_and_taken_over(of)
        return {**told, "one that slept past its lease": woken(of, last), "same as a plain loop": same(of)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, help="gunicorn with moto beside it; both are installed otherwise")
    parser.add_argument("--where", default="local,store")
    given = parser.parse_args()
    os.environ.update(KEYS)
    good = True
    with tempfile.TemporaryDirectory(prefix="wirecheck-one-writer-") as name:
        folder = Path(name)
        for where in given.where.split(","):
            if where == "local":
                told = on_a_disk(folder / where)
            else:
                store = Store(folder, given.store)
                try:
                    told = on_a_store(folder / where)
                finally:
                    store.end()
            print(json.dumps({where: told}, indent=1), flush=True)
            good = good and all(told["same as a plain loop"].values()) and right(told)
    return int(not good)


def right(told: dict) -> bool:
    """Refused with 2, and nothing written after one woke."""
    slept = told.get("one that slept past its lease", {"changed after it woke": 0, "the one that woke": {}})
    codes = told["a second beside it"]["exit code"], slept["the one that woke"].get("exit code", 2)
    return codes == (2, 2) and not slept["changed after it woke"]


if __name__ == "__main__":
    sys.exit(main())
