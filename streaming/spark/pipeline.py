"""The whole job on one screen: frames files in, rows of the result tables out, in one streaming query.

Every step's output is one stream of tagged rows (label, bucket, route, cell), and no streaming DataFrame is used twice:
that would plan the stateful steps again, with their own state. `plain_loop.py` calls the same steps without Spark.
"""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from wirecheck.streaming.checkpoint import QUERY
from wirecheck.streaming.spark.operators import (
    PARTS,
    decode_cells,
    follow_buckets,
    judge_labels,
    pack_batches,
    spread_cells,
)
from wirecheck.streaming.spark.sinks import Before, Listener, table_sink
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store import result_folder
from wirecheck.streaming.store.result_folder import Confirmed

AT_ONCE: dict[str, object] = {"processingTime": "0 seconds"}
"""Spark asks for the next batch when one is committed; the caller decides when it starts, and whether there is one."""


@dataclass(frozen=True)
class Job:
    frames: str
    """Folder of frames files, a path or a URI."""
    out: Path | str
    """Folder of the result tables."""
    checkpoint: str
    """Where the files of each batch are recorded before it runs (`checkpoint.py`)."""
    run: str
    """Under which ID the result tables are written."""
    confirmed: Confirmed | None = None
    """Asked before each commit whether this is still the one who writes."""
    tables: str = result_folder.PARQUET
    """Of which kind they are (`result_folder.KINDS`)."""


def results(frames: DataFrame, settings: Settings) -> DataFrame:
    exchanges = follow_buckets(frames, settings)  # stateful, by bucket: bytes in order, messages paired
    claims = decode_cells(spread_cells(exchanges), settings)  # pandas UDF over the one interpreter, reduced to claims
    return judge_labels(claims, settings)  # stateful, by cluster label: the ledger and the checks


def frame_rows(spark: SparkSession, job: Job, settings: Settings) -> DataFrame:
    """Stateless: files cut by bucket of connections. Each is read by path, which costs a third of Spark's own Parquet
    reader; the source only triggers the next batch.
    """
    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", PARTS)
    ticks = ticks.option("numPartitions", min(PARTS, spark.sparkContext.defaultParallelism)).load().select("value")
    return pack_batches(ticks, job.frames, job.checkpoint, settings)


def start(spark: SparkSession, job: Job, settings: Settings, listener: Listener, before: Before) -> StreamingQuery:
    writer = result_folder.writer(job.out, job.run, job.tables, job.confirmed)
    sink = results(frame_rows(spark, job, settings), settings).writeStream.outputMode("append")
    sink = sink.option("checkpointLocation", f"{job.checkpoint.rstrip('/')}/{QUERY}").trigger(**AT_ONCE)
    return sink.foreachBatch(table_sink(writer, listener, before, job.confirmed, [job.frames])).start()
