"""The one Spark session of this process: quiet, quick to start, and ended without a trace.

Knows: that Java starts while the caller still reads captures, that workers are forked before they are needed, and what
PySpark remembers of a session that is gone. Which settings it has is `tuning.py`'s affair.
Rule: Spark's own words go to `WORK/spark.log` unless `verbose`: the terminal belongs to the door.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from threading import Thread
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from wirecheck.streaming.spark.forks import Forks, end_forks, start_forks
from wirecheck.streaming.spark.gateway import JavaDiedError, Silence, connected, end_java, start_java
from wirecheck.streaming.spark.java import find_java
from wirecheck.streaming.spark.memory import GIVE_BACK_BYTES, hold_little
from wirecheck.streaming.spark.tuning import JVM, QUERY, Session, settings

__all__ = ["Session", "await_session", "begin", "close_session", "open_session"]
PATIENCE_S = 5
GIVE_BACK = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_TRIM_THRESHOLD_": str(GIVE_BACK_BYTES[0]),
    "MALLOC_MMAP_THRESHOLD_": str(GIVE_BACK_BYTES[1]),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""For Java and its Pythons: what a large batch took goes back to the system. As glibc and Arrow come, each worker
keeps the most it ever held, and a replay of gigabytes holds half as much again."""


@dataclass
class Running:
    """What this process has started; a process has one Spark."""

    java: Popen[bytes] | None = None
    work: Path | None = None
    forks: Forks | None = None
    threads: list[Thread] = field(default_factory=list)
    spark: SparkSession | None = None
    failure: Exception | None = None


RUNNING = Running()


def begin(session: Session) -> None:
    """Start Java, and Spark behind it, in the background. Raises JavaMissing."""
    if RUNNING.java is not None:
        return
    session.work.mkdir(parents=True, exist_ok=True)
    hold_little()
    java = find_java(session.work)
    os.environ |= {
        "JAVA_HOME": str(java.home),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_AUTH_SOCKET_TIMEOUT": "120",  # seconds a Python waits for Java; 15 are few on a busy machine
        "SPARK_LAUNCHER_OPTS": JVM,
    } | GIVE_BACK
    quiet_python(session.verbose)
    told = settings(session)
    RUNNING.java, RUNNING.work = start_java(told, session.work, session.verbose), session.work
    python, RUNNING.forks = start_forks(session.work)
    os.environ["PYSPARK_PYTHON"] = str(python)
    in_background(finish_start, RUNNING.java, told, session.work)


def finish_start(java: Popen[bytes], told: dict[str, str], work: Path) -> None:
    try:
        conf = SparkConf(loadDefaults=False)
        for key, value in told.items():
            conf.set(key, value)
        SparkContext._ensure_initialized(gateway=connected(java, work), conf=conf)  # noqa: SLF001 - takes ours
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
        leave_checksums(spark)
        RUNNING.spark = spark
        in_background(warm_workers, RUNNING.spark)
    except Exception as failure:  # noqa: BLE001 - open_session raises it where somebody waits
        RUNNING.failure = failure


def leave_checksums(spark: SparkSession) -> None:
    """On a local disk Hadoop makes a file of checksums beside each file, and starts a `chmod` for both: dozens of
    processes a batch. All that Spark writes there says on its own whether it is whole.
    """
    context: Any = spark.sparkContext
    local = context._jvm.org.apache.hadoop.fs.FileSystem.getLocal(context._jsc.hadoopConfiguration())  # noqa: SLF001
    local.setWriteChecksum(False)


def in_background(work: Callable[..., None], *arguments: object) -> None:
    thread = Thread(target=work, args=arguments, daemon=True)
    RUNNING.threads.append(thread)
    thread.start()


def open_session(session: Session) -> SparkSession:
    """The session of this process, once it is there."""
    if "PYSPARK_GATEWAY_PORT" in os.environ and RUNNING.java is None:  # spark-submit has started Java
        return SparkSession.builder.config(map=QUERY).getOrCreate()
    begin(session)
    return await_session()


def await_session() -> SparkSession:
    """The session that `begin` has begun, once it is there. It begins none itself: who waits in the background must
    not start Java anew behind who has just ended it. Raises JavaDiedError where there is none, or none any more.
    """
    for thread in RUNNING.threads[:1]:
        thread.join()
    if RUNNING.spark is None:
        raise RUNNING.failure or JavaDiedError("Spark did not start")
    return RUNNING.spark


def warm_workers(spark: SparkSession) -> None:
    """Have the first Python worker forked while the caller still plans its query."""
    with suppress(Exception):  # it changes no result; what is wrong with a worker, the query will say
        spark.range(1).mapInArrow(as_they_are, "id long").collect()


def as_they_are(batches: Iterable[Any]) -> Iterator[Any]:
    return iter(batches)


def close_session() -> None:
    """End what this process has started, started fully or not."""
    java, spark = RUNNING.java, RUNNING.spark
    if java is None:  # not ours, or nothing there
        return
    with Silence():
        if spark is not None and spark.sparkContext._accumulatorServer is not None:  # noqa: SLF001
            spark.sparkContext._accumulatorServer.handle_error = lambda *_: None  # noqa: SLF001 - prints that Java left
        end_java(java)
        if RUNNING.forks is not None:
            end_forks(RUNNING.forks)
        for thread in list(RUNNING.threads):
            thread.join(PATIENCE_S)
    forget()


def forget() -> None:
    """So that another session may be opened."""
    context = SparkContext._active_spark_context  # noqa: SLF001 - PySpark has no way to say that Java is gone
    if context is not None:
        context._accumulatorServer = context._jsc = None  # noqa: SLF001
        context.stop()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001
    RUNNING.java = RUNNING.work = RUNNING.forks = RUNNING.spark = RUNNING.failure = None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    RUNNING.threads.clear()


def quiet_python(verbose: bool) -> None:
    if not verbose:
        for name in ("py4j", "pyspark", "SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
