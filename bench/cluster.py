"""`make cluster`: the monitor by spark-submit on a Spark cluster of its own, a worker killed meanwhile.

Knows: how a master and two workers are started from the pip package on loopback, how the environment is packed for
executors (`tools.archive`), and that the tables must be those of a plain loop over the same frames. Refuses to know how
the job is cut up.
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

from pyspark.find_spark_home import _find_spark_home

from bench.chaos import CAPTURES, Monitor, feed
from tools import archive as archives
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.streaming.spark.java import find_java
from wirecheck.streaming.steps.frames_folder import agents_of
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store.run_result import Result

ROOT = Path(__file__).resolve().parent.parent
SPARK = Path(_find_spark_home())
MASTER, PORT = 17077, 19194
PATIENCE_S, STALE_S = 400, 10
"""The page tells of a backlog every five seconds: what it said before files were fed is not waited on."""


@contextmanager
def daemon(folder: Path, name: str, *command: str) -> Iterator[subprocess.Popen]:
    """A master or a worker, with all it starts."""
    environment = {**os.environ, "JAVA_HOME": str(find_java(folder).home), "SPARK_LOCAL_IP": "127.0.0.1"}
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


class Submitted(Monitor):
    """The same command, by spark-submit."""

    def __init__(self, folder: Path, archive: Path) -> None:
        self.folder, self.port = folder, PORT
        conf = {
            "spark.pyspark.python": "./environment/bin/python",
            "spark.pyspark.driver.python": "./environment/bin/python",
            "spark.executor.cores": "1",
            "spark.executor.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.task.maxFailures": "8",
        }
        command = [str(SPARK / "bin" / "spark-submit"), "--master", f"spark://127.0.0.1:{MASTER}"]
        command += ["--archives", f"{archive}#environment"]
        command += [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
        command += [str(ROOT / "wirecheck" / "__main__.py"), "monitor", "--frames", str(folder / "frames"), "--out"]
        command += [str(folder / "out"), "--interval", "1s", "--metrics-port", str(PORT)]
        environment = {**os.environ, "JAVA_HOME": str(find_java(folder).home), "SPARK_LOCAL_IP": "127.0.0.1"}
        with (folder / "words").open("ab") as words:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=words, stderr=words, start_new_session=True
            )


def judged(folder: Path, archive: Path, files: list[Path], victim: subprocess.Popen) -> dict:
    """The verdict over files of which half come after a worker was killed."""
    (folder / "frames").mkdir()
    middle = len(files) // 2
    feed(files[:middle], folder / "frames")
    (folder / "environment").mkdir()  # stateful steps start a Python on the driver too, by the executors' path
    subprocess.run(["tar", "xzf", str(archive), "-C", str(folder / "environment")], check=True)
    monitor = Submitted(folder, archive)
    try:
        monitor.ready()
        wait(monitor, middle)
        end(victim)
        print("one worker killed", file=sys.stderr)
        feed(files[middle:], folder / "frames")
        wait(monitor, len(files))
        time.sleep(3)
        return Result.latest(folder / "out").json()
    finally:
        end(monitor.process)


def wait(monitor: Monitor, files: int) -> None:
    time.sleep(STALE_S)
    until = time.monotonic() + PATIENCE_S
    while not monitor.caught_up(files):
        if time.monotonic() > until:
            raise RuntimeError(f"no end:\n{(monitor.folder / 'words').read_text()[-3000:]}")
        time.sleep(0.5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, help="an environment packed of this very code; made anew otherwise")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wirecheck-cluster-") as name:
        folder = Path(name)
        archive = given.archive or archives.packed(folder, folder / "env.tar.gz")
        capture = CAPTURES / "zk28-recreate" / "capture.pcap.gz"
        files = write_frames([capture], folder / "source", "L", agent="a", roll_bytes=60_000).files
        loop = Loop(Settings(agents=agents_of(files)))
        loop.batch(files)
        expected = loop.result().json()
        master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(MASTER))
        worker = ("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1500m")
        worker += ("--webui-port", "0", f"spark://127.0.0.1:{MASTER}")
        with (
            daemon(folder, "master", *master, "--webui-port", "0"),
            daemon(folder, "worker-1", *worker, "--work-dir", str(folder / "w1")) as victim,
            daemon(folder, "worker-2", *worker, "--work-dir", str(folder / "w2")),
        ):
            found = judged(folder, archive, files, victim)
    same = {part: found[part] == expected[part] for part in expected}
    print(json.dumps({"files": len(files), "findings": len(found["findings"]), "same as a plain loop": same}, indent=1))
    return int(not all(same.values()))


if __name__ == "__main__":
    sys.exit(main())
