"""`make cluster`: the monitor by spark-submit on a Spark cluster of its own, all it reads and writes on an S3 server.

Knows: how a master and two workers are started from the pip package on loopback, how the environment is packed for
executors (`tools.archive`), which server program is the store, and that the tables must be those of a plain loop over
the same frames. Meanwhile two agents' shippers bring the files, a second monitor is started at the same checkpoint, a
worker is killed, the monitor sleeps until another has taken its place, and the store does not answer for a while.
Refuses to know how the job is cut up.
Rule: executors get nothing but the packed archive: no path of this checkout, no package of this environment.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.find_spark_home import _find_spark_home

from bench.chaos import CAPTURES, Monitor
from bench.contained import nothing_contained_in
from bench.s3_store import KEYS, SERVER, Store
from tools import archive as archives
from wirecheck.capture.agent.counts import Counts
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.capture.agent.shipper import Destination, Shipper
from wirecheck.capture.agent.spool_folder import Folder, Limits
from wirecheck.streaming import checkpoint
from wirecheck.streaming.spark.java import find_java
from wirecheck.streaming.steps.frames_folder import agents_of, labelled_in
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store.run_result import Result

ROOT = Path(__file__).resolve().parent.parent
SPARK = Path(_find_spark_home())
MASTER, PORT, OTHER_PORT = 17077, 19194, 19196
PATIENCE_S, AWAY_S, CORES = 400, 20, 2
ON_CLUSTER, ALONE = f"spark://127.0.0.1:{MASTER}", "local[2]"
TABLES = ("findings", "topics", "clients", "clusters", "coverage", "partitions", "descriptions", "statements")
"""What a verdict is made of; each must be that of a plain loop."""


@contextmanager
def daemon(folder: Path, name: str, *command: str) -> Iterator[subprocess.Popen]:
    """A master or a worker, with all it starts."""
    environment = {**os.environ, **KEYS, "JAVA_HOME": str(find_java(folder).folder), "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(SPARK / "bin" / "spark-class"), *command],
            cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def hadoop() -> str:
    """The release that this Spark was built with: its S3 has to be of the same."""
    return next(iter((SPARK / "jars").glob("hadoop-client-api-*.jar"))).stem.removeprefix("hadoop-client-api-")


class Submitted(Monitor):
    """The same command, by spark-submit; it runs in `folder`, where `environment` is the archive, unpacked."""

    def __init__(self, folder: Path, archive: Path, tables: str, master: str = ON_CLUSTER, port: int = PORT) -> None:
        self.folder, self.port = folder, port
        conf = {
            "spark.pyspark.python": "./environment/bin/python",
            "spark.pyspark.driver.python": "./environment/bin/python",
            "spark.executor.cores": str(CORES),
            "spark.executor.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": str(2 * CORES),
            "spark.task.maxFailures": "8",
            "spark.dynamicAllocation.enabled": "false",
            "spark.speculation": "false",
            "spark.hadoop.fs.s3a.endpoint": KEYS["AWS_ENDPOINT_URL"],
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        }
        command = [str(SPARK / "bin" / "spark-submit"), "--master", master]
        command += ["--archives", f"{archive}#environment", "--packages", f"org.apache.hadoop:hadoop-aws:{hadoop()}"]
        command += [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
        command += [str(ROOT / "wirecheck" / "__main__.py"), "monitor", "--frames", "s3a://bucket/frames"]
        command += ["--out", "s3://bucket/verdicts", "--checkpoint", "s3a://bucket/checkpoint", "--tables", tables]
        command += ["--interval", "1s", "--metrics-port", str(port)]
        environment = {**os.environ, **KEYS, "JAVA_HOME": str(find_java(folder).folder), "SPARK_LOCAL_IP": "127.0.0.1"}
        with (folder / "words").open("ab") as words:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=words, stderr=words, start_new_session=True
            )

    def judged_frames(self) -> int:
        return round(sum(n for name, n in self.scraped().items() if name.startswith("wirecheck_frames_total")))

    def ended_with(self, reason: str) -> bool:
        """Whether it ends with an error, and gives that reason."""
        code = self.process.wait(PATIENCE_S)
        words = [line for line in (self.folder / "words").read_text().splitlines() if line.startswith("wirecheck:")]
        say(f"it ended with {code}: {words[-1] if words else 'no word'}")
        return code != 0 and any(reason in line for line in words)


class Agent:
    """A shipper as `capture --ship` runs it, over a spool into which somebody puts files."""

    def __init__(self, folder: Path, name: str, files: list[Path]) -> None:
        self.spool, self.files = folder / f"spool-{name}", list(files)
        self.spool.mkdir()
        self.folder = Folder(self.spool, name, Limits(ships=True))
        self.shipper = Shipper(self.folder, Destination("s3://bucket/frames"), Counts(), say)
        self.shipper.start()

    def capture(self, files: int) -> None:
        """So many more come to lie in the spool."""
        for file in self.files[:files]:
            self.folder.begin().write_bytes(file.read_bytes())
            self.folder.publish()
            self.shipper.wake()
        del self.files[:files]


def say(line: str) -> None:
    print(line, file=sys.stderr)


def judged(
    folder: Path, archive: Path, given: argparse.Namespace, agents: list[Agent], expected: int
) -> tuple[Result, dict[str, bool]]:
    """The verdict, and which monitors ended as they must. Files arrive all the while: a second monitor is refused, the
    worker goes, the first monitor sleeps and another takes its place, the store goes and comes back.
    """
    more = {agent: len(agent.files) // 4 for agent in agents}
    for name in ("first", "second"):
        (folder / name).mkdir()
        (folder / name / "environment").symlink_to(folder / "environment")
    (folder / "environment").mkdir()  # stateful steps start a Python on the driver too, by the executors' path
    subprocess.run(["tar", "xzf", str(archive), "-C", str(folder / "environment")], check=True)
    captured(agents, more)
    first = monitor = Submitted(folder / "first", archive, given.tables)
    try:
        first.ready()
        wait(first, 1)
        say(f"{first.judged_frames():,} frames judged; a second monitor is started")
        second = Submitted(folder / "second", archive, given.tables, ALONE, OTHER_PORT)
        as_it_must = {"a second monitor is refused": second.ended_with("another monitor")}
        say(f"{first.judged_frames():,} frames judged; a worker is killed")
        end(given.victim)
        captured(agents, more)
        wait(first, first.judged_frames() + 1)
        say(f"{first.judged_frames():,} frames judged; the monitor sleeps within a batch, and another is started")
        captured(agents, more)
        time.sleep(2)
        os.killpg(first.process.pid, signal.SIGSTOP)
        monitor = Submitted(folder / "second", archive, given.tables, ALONE, OTHER_PORT)
        monitor.ready()
        wait(monitor, 1)
        say(f"{monitor.judged_frames():,} frames judged by the other; the first one wakes up")
        os.killpg(first.process.pid, signal.SIGCONT)
        as_it_must["one that slept commits nothing more"] = first.ended_with("has taken it over")
        say(f"{monitor.judged_frames():,} frames judged; the store goes for {AWAY_S} s")
        with given.store.away(AWAY_S):
            captured(agents, dict.fromkeys(agents, sys.maxsize))
        monitor = again(monitor, archive, given.tables)
        wait(monitor, expected)
        time.sleep(3)
        run = checkpoint.run_of("s3://bucket/checkpoint")
        assert run is not None
        return Result.read("s3://bucket/verdicts", run), as_it_must
    finally:
        end(first.process)
        end(monitor.process)


def captured(agents: list[Agent], files: dict[Agent, int]) -> None:
    for agent in agents:
        agent.capture(files[agent])


def again(monitor: Submitted, archive: Path, tables: str) -> Submitted:
    """Started anew where it ended while the store was away, as whatever supervises it would."""
    time.sleep(5)
    if monitor.process.poll() is None:
        return monitor
    say(f"the monitor ended with {monitor.process.returncode}, and is started again")
    fresh = Submitted(monitor.folder, archive, tables, ALONE, monitor.port)
    fresh.ready()
    return fresh


def wait(monitor: Submitted, frames: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while monitor.judged_frames() < frames:
        monitor.need_life()
        if time.monotonic() > until:
            raise RuntimeError(f"no end:\n{(monitor.folder / 'words').read_text()[-3000:]}")
        time.sleep(0.5)


def sources(folder: Path) -> dict[str, list[Path]]:
    """Frames of two faulty clusters, as two agents roll them."""
    names = {"a": "zk28-recreate", "b": "kraft4-groups-recreate"}
    return {
        agent: write_frames(
            [CAPTURES / name / "capture.pcap.gz"], folder / "source", name, agent=agent, roll_bytes=60_000
        ).files
        for agent, name in names.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, help="an environment packed of this very code; made anew otherwise")
    parser.add_argument("--store", type=Path, help="gunicorn with moto beside it; both are installed otherwise")
    parser.add_argument("--tables", choices=("delta",), default="delta")
    given = parser.parse_args()
    os.environ.update(KEYS)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wirecheck-cluster-") as name:
        folder = Path(name)
        archive = given.archive or archives.packed(folder, folder / "env.tar.gz")
        by_agent = sources(folder)
        files = [file for some in by_agent.values() for file in some]
        loop = Loop(Settings(agents=labelled_in(agents_of(files), files)))
        loop.batch(files)
        expected = loop.result()
        frames = expected.json()["coverage"]["frames"]
        given.store = Store(folder, given.store)
        master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(MASTER))
        worker = ("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", str(CORES))
        worker += ("--memory", "1500m", "--webui-port", "0", f"spark://127.0.0.1:{MASTER}")
        try:
            with (
                daemon(folder, "master", *master, "--webui-port", "0"),
                daemon(folder, "worker-1", *worker, "--work-dir", str(folder / "w1")) as given.victim,
                daemon(folder, "worker-2", *worker, "--work-dir", str(folder / "w2")),
            ):
                agents = [Agent(folder, agent, some) for agent, some in by_agent.items()]
                found, as_it_must = judged(folder, archive, given, agents, frames)
                for agent in agents:
                    agent.shipper.finish()
            more = {"frames": frames, "files": len(files), "requests": dict(given.store.asked())}
            more["writing requests of a table and batch"] = dict(sorted(given.store.per_batch().items()))
        finally:
            given.store.end()
    return rows_of_run(given, found, expected, more | {"as it must": as_it_must}, began)


def rows_of_run(given: argparse.Namespace, found: Result, expected: Result, more: dict, began: float) -> int:
    mine, theirs = found.json(), expected.json()
    nothing_contained_in(mine["findings"])
    same = {part: mine[part] == theirs[part] for part in theirs}
    same |= {f"table {name}": in_order(found.rows[name]) == in_order(expected.rows[name]) for name in TABLES}
    summary = {"spark": pyspark.__version__, "hadoop": hadoop(), "store": SERVER, "tables": given.tables, **more}
    summary |= {"findings": len(mine["findings"]), "same as a plain loop": same}
    print(json.dumps({**summary, "seconds": round(time.monotonic() - began)}, indent=1))
    return int(not all(same.values()) or not all(more["as it must"].values()))


def in_order(rows: list[dict]) -> list[str]:
    """Without their revisions: how often a row was told again depends on the batches."""
    return sorted(
        json.dumps({k: v for k, v in row.items() if k != "revision"}, default=str, sort_keys=True) for row in rows
    )


if __name__ == "__main__":
    sys.exit(main())
