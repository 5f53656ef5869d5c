"""The whole job as a plain loop, without Spark: for tests, notebooks and a debugger.

It calls the functions that `operators.py` calls, with rows of the same shape, and adds nothing.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from wirecheck.judge.results.result_table import rows_of
from wirecheck.streaming.steps.decode_step import decode_row
from wirecheck.streaming.steps.follow_step import Bucket
from wirecheck.streaming.steps.judge_step import judge_rows
from wirecheck.streaming.steps.pack_step import pack_files
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.tagged import Tagged
from wirecheck.streaming.store.result_tables import from_ipc
from wirecheck.streaming.store.run_result import Result


class Loop:
    """One run: give it batches of frames files, ask it for what holds."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.buckets: dict[tuple[str, int], bytes] = {}
        self.shards: dict[str, dict[str, bytes]] = {}
        self.emitted: list[Tagged] = []

    def batch(self, files: Iterable[Path]) -> None:
        self.emitted += self.judge(decode_row(row, self.settings) for row in self.follow(files))

    def follow(self, files: Iterable[Path]) -> Iterator[Tagged]:
        packed = (row for rows in pack_files(map(str, files), self.settings) for row in rows)
        for key, rows in groupby(sorted(packed, key=bucket_of), key=bucket_of):
            bucket = Bucket(*key, self.settings)
            if key in self.buckets:
                bucket.restore(self.buckets[key])
            yield from bucket.receive([row.cell for row in rows])
            self.buckets[key] = bucket.snapshot()

    def judge(self, claims: Iterable[Tagged]) -> Iterator[Tagged]:
        for label, rows in groupby(sorted(claims, key=label_of), key=label_of):
            shards = self.shards.setdefault(label, {})
            emitted, changed = judge_rows(label, rows, shards.get, self.settings)
            shards.update(changed)
            yield from emitted

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Every revision, in order; times in nanoseconds."""
        return [line for row in self.emitted if row.route == table for line in rows_of(from_ipc(row.cell))]

    def result(self) -> Result:
        return Result.of({table: self.rows(table) for table in {row.route for row in self.emitted}})


def bucket_of(row: Tagged) -> tuple[str, int]:
    return row.label, row.bucket


def label_of(row: Tagged) -> str:
    return row.label
