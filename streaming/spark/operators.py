"""Spark around the steps: tagged rows go to a plain function and its rows come back.

Steps are imported only inside the calls: Spark starts a bare Python per stateful step to ask for its state's names.
"""

from __future__ import annotations

from collections import defaultdict
from time import process_time
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from wirecheck.streaming.spark import task_load
from wirecheck.streaming.spark.placement import keys
from wirecheck.streaming.spark.task_load import FOLLOW, JUDGE
from wirecheck.streaming.steps.tagged import EXCHANGES, SCHEMA, Tagged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from wirecheck.streaming.steps.settings import Settings


PARTS = 64
"""So many shares of a batch's files, which as many tasks pack as there are cores; a checkpoint can never change it."""
SPREAD = 64
"""By so many keys cells are spread: evenly over as many tasks, and twice as evenly over half."""


def tagged(rows: pd.DataFrame) -> Iterator[Tagged]:
    return (Tagged(*row) for row in rows[list(Tagged._fields)].itertuples(index=False, name=None))


def frame(rows: Iterable[Tagged]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(Tagged._fields))


def record_batch(rows: Iterable[Tagged]) -> pa.RecordBatch:
    import pyarrow as pa

    kinds = pa.string(), pa.int32(), pa.string(), pa.binary()
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(Tagged._fields))


def pack_batches(ticks: DataFrame, frames: str, checkpoint: str, settings: Settings) -> DataFrame:
    """The files that are written down for a batch, by the numbers Spark counts up from its first batch on."""

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from wirecheck.streaming.checkpoint import present_files

        shares: dict[int, set[int]] = defaultdict(set)
        for value in (value for batch in batches for value in batch.column("value").to_pylist()):
            shares[value // PARTS].add(value % PARTS)
        files = {number: present_files(checkpoint, number, settings) for number in shares}
        names = (name for n in files for place, name in enumerate(files[n]) if place % PARTS in shares[n])
        yield from packed((f"{frames}/{name}" for name in names), settings)

    return ticks.mapInArrow(pack, SCHEMA)


def packed(paths: Iterable[str], settings: Settings) -> Iterator[pa.RecordBatch]:
    from wirecheck.streaming.spark.memory import freeze_modules, in_pieces
    from wirecheck.streaming.steps.pack_step import pack_files

    freeze_modules()
    for rows in pack_files(paths, settings):
        for piece in in_pieces(rows):
            yield record_batch(row._replace(bucket=keys(row.label, settings.buckets)[row.bucket]) for row in piece)


def follow_buckets(frames: DataFrame, settings: Settings) -> DataFrame:
    step = FollowBuckets(settings)
    return frames.groupBy("label", "bucket").transformWithStateInPandas(step, SCHEMA, "Append", "None")


def spread_cells(exchanges: DataFrame) -> DataFrame:
    """Exchanges leave the task that followed their connections: decoding is most of the work, and has no state.

    One connection of 71,000 small messages was as fast by eight tasks as by one; now it is 2.2 times as fast by four.
    A retried task gives each cell the same key. Claims may reach the judge in any order.
    """
    tasks = int(exchanges.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    return exchanges.repartition(tasks, "label", "bucket") if tasks > 1 else exchanges


def spread(rows: Iterable[Tagged], label: str, first: int) -> Iterator[Tagged]:
    """Behind following nothing asks of which bucket exchanges are: in its place their cells have keys in turn."""
    keys_in_turn, number = keys(label, SPREAD), first
    for row in rows:
        if row.route == EXCHANGES:
            row = row._replace(bucket=keys_in_turn[number % SPREAD])  # noqa: PLW2901 - one cell at a time is held
            number += 1
        yield row
        del row


def decode_cells(exchanges: DataFrame, settings: Settings) -> DataFrame:
    import pandas as pd
    from pyspark.sql.functions import pandas_udf, struct

    def decode(rows: pd.DataFrame) -> pd.DataFrame:
        from wirecheck.streaming.spark.memory import freeze_modules
        from wirecheck.streaming.steps.decode_step import decode_row

        freeze_modules()
        return frame(decode_row(row, settings) for row in tagged(rows))

    decode.__annotations__ = {"rows": pd.DataFrame, "return": pd.DataFrame}  # Spark reads the kind of UDF off its types
    return exchanges.select(pandas_udf(decode, SCHEMA)(struct(*exchanges.columns)).alias("row")).select("row.*")


def judge_labels(claims: DataFrame, settings: Settings) -> DataFrame:
    step = JudgeLabels(settings)
    return claims.groupBy("label").transformWithStateInPandas(step, SCHEMA, "Append", "None")


class FollowBuckets(StatefulProcessor):  # type: ignore[misc]
    """State: one blob per bucket."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.blob = handle.getValueState("bucket", "blob binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802, N803 - Spark's names
        from wirecheck.streaming.spark.memory import freeze_modules, in_pieces
        from wirecheck.streaming.steps.follow_step import Bucket

        freeze_modules()
        began_s = process_time()
        label, placed = key
        bucket = Bucket(label, keys(label, self.settings.buckets).index(placed), self.settings)
        if self.blob.exists():
            bucket.restore(bytes(self.blob.get()[0]))
        received = bucket.receive(row.cell for part in rows for row in tagged(part))
        for piece in in_pieces(spread(received, label, bucket.number)):
            yield frame(piece)
        self.blob.update((bucket.snapshot(),))
        yield frame([task_load.row(FOLLOW, label, process_time() - began_s)])

    def close(self) -> None:
        """Nothing is kept outside the state."""


class JudgeLabels(StatefulProcessor):  # type: ignore[misc]
    """State: the judge's shards by name; only touched ones are loaded and stored."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.shards = handle.getMapState("shards", "name string", "blob binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802, N803 - Spark's names
        from wirecheck.streaming.spark.memory import freeze_modules
        from wirecheck.streaming.steps.judge_step import judge_rows

        freeze_modules()
        began_s = process_time()
        emitted, changed = judge_rows(key[0], (row for part in rows for row in tagged(part)), self.load, self.settings)
        for name, blob in changed.items():
            self.shards.updateValue((name,), (blob,))
        yield frame([*emitted, task_load.row(JUDGE, key[0], process_time() - began_s)])

    def load(self, name: str) -> bytes | None:
        return bytes(self.shards.getValue((name,))[0]) if self.shards.containsKey((name,)) else None

    def close(self) -> None:
        """Nothing is kept outside the state."""
