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

from wirecheck.streaming.spark.operators import (
    PARTS,
    decode_cells,
    follow_buckets,
    judge_labels,
    pack_batches,
    pack_paths,
)
from wirecheck.streaming.spark.sinks import Before, Confirmed, Listener, table_sink
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store import result_folder

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
    written_down: str = ""
    """The checkpoint in which the files of each batch are written down before it runs (`batch_files.py`); where it is
    empty Spark lists the folder and remembers the names of all files it has ever seen.
    """
    confirmed: Confirmed | None = None
    """Asked before each commit whether this is still the one who writes."""
    tables: str = result_folder.PARQUET
    """Of which kind they are (`result_folder.KINDS`)."""


def results(frames: DataFrame, settings: Settings) -> DataFrame:
    exchanges = follow_buckets(frames, settings)  # stateful, by bucket: bytes in order, messages paired
    claims = decode_cells(exchanges, settings)  # pandas UDF over the one interpreter, reduced to claims
    return judge_labels(claims, settings)  # stateful, by cluster label: the ledger and the checks


def frame_rows(spark: SparkSession, job: Job, settings: Settings) -> DataFrame:
    """Stateless: files cut by bucket of connections. Each is read by path, which costs a third of Spark's own Parquet
    reader; the source says paths only, or no more than that there is a next batch.
    """
    if job.written_down:
        ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", PARTS)
        ticks = ticks.option("numPartitions", PARTS).load().select("value")
        return pack_batches(ticks, job.frames, job.written_down, settings)
    files = spark.readStream.format("binaryFile").schema(FILES).option("pathGlobFilter", "*.parquet")
    files = files.option("maxBytesPerTrigger", job.batch_bytes).option("maxFileAge", "3650d")
    return pack_paths(files.load(job.frames).select("path"), settings)


def start(
    spark: SparkSession, job: Job, settings: Settings, listener: Listener | None = None, before: Before | None = None
) -> StreamingQuery:
    """`listener` is told each batch's tables once they are written, `before` each batch's number before it runs."""
    sink = results(frame_rows(spark, job, settings), settings).writeStream.outputMode("append")
    sink = sink.option("checkpointLocation", str(job.checkpoint)).trigger(**job.trigger)
    return sink.foreachBatch(table_sink(job.out, listener, before, job.confirmed, kind=job.tables)).start()
