"""One Spark session, quiet, quick to start, the same from a checkout and from an installed wheel.

Knows: every Spark setting the query needs and why. Knows nothing of frames or findings.
Rule: what the query's result depends on is set here and nowhere else; Spark's own words go to `WORK/spark.log`
unless `verbose`, so that the terminal belongs to the door.
"""

import logging
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from streaming.archive import sharing
from streaming.java import find_java

if TYPE_CHECKING:
    from subprocess import Popen

STARTING = Lock()
PATIENCE_S = 5
WARMING = "wirecheck-warming"
PACKAGES = Path(__file__).resolve().parent.parent
LOG4J = """rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
"""
QUERY = {
    # transformWithState refuses the default store
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",  # time is data: a batch without rows changes nothing
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.session.timeZone": "UTC",
    # few large cells cross to Python, not many rows
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    # or UDFs and stateful steps differ in one environment variable and Spark forks two daemons
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.python.daemon.module": "streaming.worker_daemon",
    "spark.python.worker.faulthandler.enabled": "false",
    "spark.sql.adaptive.enabled": "false",  # streaming turns it off with a warning per batch
}
LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.shuffle.compress": "false",  # cells are local and already dense
    "spark.shuffle.spill.compress": "false",
    "spark.cleaner.periodicGC.interval": "24h",
}
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"  # minutes of work, not days: start fast


@dataclass(frozen=True)
class Session:
    """How to start Spark on this machine."""

    work: Path
    """Folder for everything Spark leaves behind: logs, shuffles, state working copies."""
    cores: int = 2
    """Tasks at a time; also the partitions of the stateful steps, which a checkpoint keeps for ever."""
    memory: str = "2g"
    """The JVM's largest heap."""
    jvm: str = ""
    """Options for Java, instead of the class archive."""
    verbose: bool = False
    """Spark's own words on the terminal instead of in WORK/spark.log."""


def open_session(session: Session) -> SparkSession:
    """The session of this process; starts Java if it is not running yet."""
    with STARTING:  # a second caller waits for the first: a process has one session
        return started(session)


def started(session: Session) -> SparkSession:
    session.work.mkdir(parents=True, exist_ok=True)
    java = find_java(session.work)
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_LAUNCHER_OPTS"] = JVM
    quiet_python(session.verbose)
    conf = SparkConf(loadDefaults=False)
    for key, value in settings(replace(session, jvm=session.jvm or sharing(java))).items():
        conf.set(key, value)
    if SparkContext._gateway is None:  # noqa: SLF001 - where Spark keeps it
        with (session.work / "spark.log").open("ab") as log:
            streams = {} if session.verbose else {"stdout": log, "stderr": log}  # of Java and of all it starts
            gateway = launch_gateway(conf, streams)
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)  # noqa: SLF001 - takes a gateway made elsewhere
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    warm_workers(spark)
    return spark


def warm_workers(spark: SparkSession) -> None:
    """Have the first Python worker forked while the caller still plans its query."""

    def touch() -> None:
        with suppress(Exception):  # it changes no result; what is wrong with a worker, the query will say
            spark.range(1).mapInArrow(as_they_are, "id long").collect()

    Thread(target=touch, name=WARMING, daemon=True).start()


def as_they_are(batches: Iterable[Any]) -> Iterator[Any]:
    return iter(batches)


def close_session(spark: SparkSession) -> None:
    """End Java at once: what a query has promised is on the disk already, and an orderly end takes a second."""
    context = spark.sparkContext
    process = java_process()
    if process is None:  # not ours: spark-submit started it
        spark.stop()
        return
    for thread in threading.enumerate():
        if thread.name == WARMING:  # or py4j logs that Java left in the middle of its sentence
            context.cancelAllJobs()
            thread.join(PATIENCE_S)
    context._accumulatorServer.handle_error = lambda *_: None  # noqa: SLF001 - it would print that Java is gone
    process.kill()
    process.communicate()
    context._accumulatorServer = context._jsc = None  # noqa: SLF001 - nobody there to be told
    context.stop()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001


def java_process() -> "Popen[bytes] | None":
    gateway = SparkContext._gateway  # noqa: SLF001 - where Spark keeps it
    return None if gateway is None else gateway.proc


def settings(session: Session) -> dict[str, str]:
    log4j = session.work / "log4j2.properties"
    log4j.write_text(LOG4J, encoding="ascii")
    scratch = session.work / "scratch"
    scratch.mkdir(exist_ok=True)
    files = f"-Dlog4j2.configurationFile={log4j.as_uri()} -Djava.io.tmpdir={scratch}"
    paths = os.pathsep.join([str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {
        **QUERY,
        **LOCAL,
        "spark.app.name": "wirecheck",
        "spark.master": f"local[{session.cores}]",
        "spark.sql.shuffle.partitions": str(session.cores),
        "spark.driver.memory": session.memory,
        "spark.driver.extraJavaOptions": f"{JVM} {session.jvm} {files}",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(session.work / "warehouse"),
        "spark.executorEnv.PYTHONPATH": paths,
        "spark.executorEnv.PYTHONWARNINGS": "ignore",
    }


def quiet_python(verbose: bool) -> None:
    if not verbose:
        for name in ("py4j", "pyspark", "SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
