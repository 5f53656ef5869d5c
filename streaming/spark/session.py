"""The Spark session of this process.

Spark's output goes to `WORK/spark.log` unless `verbose`. Java stays until this process ends, and ends with it.
"""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wirecheck.streaming.spark.class_archive import ClassArchive, archive_of
from wirecheck.streaming.spark.java import Java, find_java
from wirecheck.streaming.spark.memory import GIVE_BACK_BYTES, hold_little
from wirecheck.streaming.spark.tuning import QUERY, Session, settings
from wirecheck.streaming.spark.worker_python import worker_python

GIVE_BACK = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_TRIM_THRESHOLD_": str(GIVE_BACK_BYTES[0]),
    "MALLOC_MMAP_THRESHOLD_": str(GIVE_BACK_BYTES[1]),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""For Java and its Pythons: what a large batch took goes back to the system. As glibc and Arrow come, each worker
keeps the most it ever held, and a replay of gigabytes holds half as much again."""


CONNECT = {"SPARK_REMOTE": ("",), "SPARK_CONNECT_MODE_ENABLED": ("", "0"), "SPARK_API_MODE": ("", "classic")}
"""By which of them PySpark becomes a client of Spark Connect, which values apart; spark-submit --remote sets them."""
NO_CONNECT = (
    "the monitor cannot be a Spark Connect client: unset it, and use spark-submit --master (docs/monitor-spark.md)"
)


class SparkDidNotStart(Exception):  # noqa: N818 - reads as what happened
    """Java ended, or Spark could not begin in it; the message is one line."""


@dataclass
class Running:
    """What this process has opened; a process has one Spark."""

    work: Path | None = None
    spark: SparkSession | None = None
    archive: ClassArchive | None = None
    """Of Java's classes, if Java is to write it as it ends."""


RUNNING = Running()


def open_session(session: Session, starting: Callable[[ClassArchive | None], None] = lambda _: None) -> SparkSession:
    """The session of this process, once it is there. Raises JavaMissing and SparkDidNotStart.

    `starting`: called before Java starts, with the archive that it is to write as it ends.
    """
    if asked := next((name for name, value in CONNECT.items() if os.environ.get(name, "").lower() not in value), None):
        raise SparkDidNotStart(f"Spark Connect ({asked}): {NO_CONNECT}")
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started Java
        with own_interrupt():
            return SparkSession.builder.config(map=QUERY).getOrCreate()
    if RUNNING.spark is not None:
        return RUNNING.spark
    session.work.mkdir(parents=True, exist_ok=True)
    RUNNING.work = session.work
    hold_little()
    java = find_java(session.work)
    archive = archive_option(java, session)
    starting(RUNNING.archive)
    os.environ |= {
        **in_english(os.environ),
        "JAVA_HOME": str(java.folder),
        "PYSPARK_PYTHON": worker_python(session.work),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    } | GIVE_BACK
    log = session.work / "spark.log"
    with inherited_by_java(None if session.verbose else log), own_interrupt():
        try:
            RUNNING.spark = SparkSession.builder.config(map=settings(session, archive)).getOrCreate()
        except (PySparkException, Py4JError, ConnectionError) as failure:
            logged = "Java's last lines are above" if session.verbose else last_line(log)
            raise SparkDidNotStart(not_started(logged, failure)) from failure
    return RUNNING.spark


def in_english(environment: Mapping[str, str]) -> dict[str, str]:
    """What makes Java report failures of the system in English, by which they are recognized (`run/failure.py`); file
    names stay in the user's encoding.
    """
    of_all = environment.get("LC_ALL")
    return {"LC_MESSAGES": "C"} | ({"LC_ALL": "", "LC_CTYPE": of_all} if of_all else {})


def archive_option(java: Java, session: Session) -> str:
    """For Java: which archive of its classes to read, or to write."""
    archive = archive_of(java)
    if archive is None:
        return ""
    if whole := archive.whole():
        return archive.read_option(whole)
    option = archive.write_option() if session.archiving else ""
    RUNNING.archive = archive if option else None
    return option


@contextmanager
def own_interrupt() -> Iterator[None]:
    """Keeps this process's handler of SIGINT. PySpark's talks to Java in the middle of another call to it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)


@contextmanager
def inherited_by_java(log: Path | None) -> Iterator[None]:
    """What is started meanwhile writes there, for as long as it lives; this process does again as before."""
    if log is None:
        yield
        return
    quiet_libraries()
    sys.stdout.flush()
    sys.stderr.flush()
    before = [os.dup(handle) for handle in (1, 2)]
    with log.open("ab") as file:
        for handle in (1, 2):
            os.dup2(file.fileno(), handle)
    try:
        yield
    finally:
        for handle, saved in zip((1, 2), before, strict=True):
            os.dup2(saved, handle)
            os.close(saved)


def quiet_libraries() -> None:
    """Of a Java that ends, py4j and PySpark print a traceback for each call and connection; we say in one line what
    ended.
    """
    for name in ("py4j", "pyspark", "SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(is_not_of_py4j)  # GatewayClient.send_command logs to the root
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        setattr(server, "handle_error", say_nothing)  # noqa: B010 - a method of socketserver's, for one of PySpark's


def is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def say_nothing(*_of_socketserver: object) -> None:
    """In place of `socketserver.BaseServer.handle_error`, which prints a traceback."""


JAVA_ENDED = (
    "Spark's Java ended without a word: it was killed, or memory was short (dmesg says); free memory, and start again"
)


def java_has_gone(failure: Exception) -> bool:
    """Whether a call of Java failed for want of an answer: what Java raises comes with its words."""
    if isinstance(failure, ConnectionError | Py4JNetworkError):
        return True
    return type(failure) is Py4JError and "\n" not in str(failure).strip()  # py4j's, where its socket was closed


def not_started(logged: str, failure: Exception) -> str:
    """Why, in one line. `logged`: the last line of Java, empty where it only warned."""
    raised = str(failure)
    if not logged and (java_has_gone(failure) or any(words in raised for words in GONE)):
        return JAVA_ENDED
    fix = "try another Java by JAVA_HOME, and see what wirecheck doctor says"
    return f"Spark did not start: {logged or last_raised(raised)}; {fix}"


GONE = ("JAVA_GATEWAY_EXITED", "Connection refused", "Connection reset", "Answer from Java side is empty")
"""In what PySpark raises where Java was never reached, or ended in the middle of an answer."""
NO_LAST_WORDS = (
    "spark-class: line",
    "WARNING: ",
    "WARN ",
    "Picked up ",
    "Setting default log level",
    "To adjust logging",
)
"""Lines of Spark's script and of a Java that works."""


def last_line(log: Path) -> str:
    """The last line of Java's log that says what is wrong."""
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    found = (line.strip() for line in reversed(lines) if line.strip())
    return next((line for line in found if not any(words in line for words in NO_LAST_WORDS)), "")


def last_raised(text: str) -> str:
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith(("java.", "org."))), lines[0] if lines else "without a word")


def close_session() -> None:
    """Stop what this process has opened; nothing happens if there is nothing, or if it is spark-submit's."""
    spark, RUNNING.spark, RUNNING.work = RUNNING.spark, None, None
    if spark is not None:
        with suppress(Py4JError, OSError):  # Java has gone
            spark.stop()
