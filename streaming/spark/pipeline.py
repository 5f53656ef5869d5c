"""The whole job on one screen: files of frames in, rows of the result tables out, in one streaming query.

Knows: the order of the steps and which of them are stateful. Each step's work is a plain function or object of the
module named; `plain_loop.py` calls the same ones without Spark. Knows nothing of frames, Kafka or findings.
Rule: every step's output is one stream of tagged rows (label, bucket, route, cell), and no streaming DataFrame is used
twice: a second use would plan the stateful steps again, with a state of their own.
"""

from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from wirecheck.streaming.spark.operators import decode_cells, follow_buckets, judge_labels, pack_paths
from wirecheck.streaming.spark.sinks import Listener, table_sink
from wirecheck.streaming.steps.settings import Settings

FILES = "path string, modificationTime timestamp, length long, content binary"  # binaryFile's own columns


@dataclass(frozen=True)
class Job:
    frames: str
    """Folder (or glob) of frames files, on any file system Spark can list."""
    out: Path | str
    """Folder of the result tables, on any file system of Arrow's."""
    checkpoint: Path | str
    """What the query remembers between starts."""
    trigger: dict[str, object] = field(default_factory=lambda: {"availableNow": True})
    """{"availableNow": True} for replay, {"processingTime": "2 seconds"} for monitoring."""
    batch_bytes: int = 16 << 20
    """Frames files of one micro-batch, together, at least one: bounds memory, and each batch costs a second of its own.
    Trimmed, it is a GB of capture.
    """
    file_age: str = "3650d"
    """Files this much older than the newest are passed over; how long Spark remembers names."""


def results(paths: DataFrame, settings: Settings) -> DataFrame:
    frames = pack_paths(paths, settings)  # stateless: files cut by bucket of connections
    exchanges = follow_buckets(frames, settings)  # stateful, by bucket: bytes in order, messages paired
    claims = decode_cells(exchanges, settings)  # pandas UDF over the one interpreter, reduced to claims
    return judge_labels(claims, settings)  # stateful, by cluster label: the ledger and the checks


def frame_paths(spark: SparkSession, job: Job) -> DataFrame:
    """Paths only: each file is read by path, which costs a third of Spark's own Parquet reader."""
    files = spark.readStream.format("binaryFile").schema(FILES).option("pathGlobFilter", "*.parquet")
    files = files.option("maxBytesPerTrigger", job.batch_bytes).option("maxFileAge", job.file_age)
    return files.load(job.frames).select("path")


def start(spark: SparkSession, job: Job, settings: Settings, listener: Listener | None = None) -> StreamingQuery:
    """`listener` is told each batch's tables once they are written."""
    sink = results(frame_paths(spark, job), settings).writeStream.outputMode("append")
    sink = sink.option("checkpointLocation", str(job.checkpoint)).trigger(**job.trigger)
    return sink.foreachBatch(table_sink(job.out, listener)).start()
