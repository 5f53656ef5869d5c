"""Every Spark setting the query needs, with its reason. The QUERY ones are needed on a cluster too.

LOCAL is what one machine needs, JVM what makes Java start fast. No setting stands anywhere else.
"""

from dataclasses import dataclass
from pathlib import Path

from wirecheck.child_python import python_path

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
    # cells are read whole and once a batch: the kernel's cache does, and a store fills its own 8 MB for hours
    "spark.sql.streaming.stateStore.rocksdb.blockCacheSizeMB": "2",
    "spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB": "4",  # it keeps each version of a cell until it is full
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",  # time is data: a batch without rows changes nothing
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.session.timeZone": "UTC",
    # few large cells cross to Python, not many rows
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "4m",  # both sides of each crossing hold a whole one
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    # or UDFs and stateful steps differ in one environment variable and Spark forks two daemons
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.python.authenticate.socketTimeout": "120s",  # 15 s are few on a busy machine
    "spark.python.worker.faulthandler.enabled": "false",
    "spark.sql.adaptive.enabled": "false",  # streaming turns it off with a warning per batch
}
LOCAL = {
    "spark.hadoop.fs.permissions.umask-mode": "077",  # what it writes is its user's alone, as frames are
    "spark.ui.enabled": "false",
    # the web interface is off, but Spark keeps the plans and metrics of a thousand batches for it
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "wirecheck.streaming.spark.worker_daemon",
    "spark.shuffle.compress": "false",  # cells are local and already dense
    "spark.shuffle.spill.compress": "false",
    # rows are sorted by bucket: a whole batch of frames would lie in Java's heap, ten times as large as its files
    "spark.shuffle.spill.maxSizeInBytesForSpillThreshold": "12m",
    "spark.unsafe.sorter.spill.read.ahead.enabled": "false",  # two MB of heap for each piece that was sorted
    "spark.buffer.pageSize": "1m",
    "spark.cleaner.periodicGC.interval": "10s",  # 0.1 s each; or the heap grows with what passed through it
    # the other one asks `readlink` about each file it renames, twice; a rename is one step in both
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
HEAP_MB = 1024
"""The most that Java's heap may take."""
# start fast, and cost little beside the steps' Python: the compiler for long work and G1's own threads took three
# quarters of Java's CPU time in a monitor (docs/performance.md). The heap takes no sixty-fourth of the machine to begin
# with, as Java does, and gives back what a large batch took
JVM = (
    "-Xms96m -Xmn48m -XX:SurvivorRatio=2"
    " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40"
    " -Djdk.lang.Process.launchMechanism=VFORK"  # a process costs half as much; Hadoop starts many
)


@dataclass(frozen=True)
class Session:
    """How to start Spark on this machine."""

    work: Path
    """Folder for everything Spark leaves behind: logs, shuffles, state working copies."""
    cores: int = 2
    """Tasks at a time."""
    partitions: int = 2
    """Of the stateful steps, which a checkpoint keeps."""
    memory: str = f"{HEAP_MB}m"
    """The JVM's largest heap."""
    verbose: bool = False
    """Spark's own words on the terminal instead of in WORK/spark.log."""
    archiving: bool = False
    """Java is to write an archive of its classes if there is none; whoever opens the session ends it accordingly."""


def settings(session: Session, archive: str = "") -> dict[str, str]:
    """`archive`: Java's option for its archive of classes."""
    log4j = session.work / "log4j2.properties"
    log4j.write_text(LOG4J, encoding="ascii")
    scratch = session.work / "scratch"
    scratch.mkdir(exist_ok=True)
    files = f"-Dlog4j2.configurationFile={log4j.as_uri()} -Djava.io.tmpdir={scratch}"
    return {
        **QUERY,
        **LOCAL,
        "spark.app.name": "wirecheck",
        "spark.master": f"local[{session.cores}]",
        "spark.sql.shuffle.partitions": str(session.partitions),
        "spark.driver.memory": session.memory,
        "spark.driver.extraJavaOptions": f"{JVM} {files} {archive}",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(session.work / "warehouse"),
        "spark.executorEnv.PYTHONPATH": python_path(),
        "spark.executorEnv.PYTHONWARNINGS": "ignore",
    }
