"""Frames checked in this process by the steps of the query, without Spark: `--engine local`.

The rows are those of the query (`spark/pipeline.py`), whatever files are checked together. Memory grows with open
connections and with what is known of a cluster, not with the length of a capture.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from wirecheck.streaming.steps.decode_process import Begun, DecodeProcess
from wirecheck.streaming.steps.frames_folder import agents_of, labelled_in
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.tagged import Tagged
from wirecheck.streaming.store.result_tables import from_ipc
from wirecheck.streaming.store.run_result import LatestRows, Result

BATCH_BYTES, BATCH_FILES = 4 << 20, 64
"""Frames files that are judged together, at most: each batch has a price of its own, and is held as a whole."""
BUCKETS = 2
"""One process follows them in turn, and each has a price per batch: 300 MB were judged in 5.1 s by eight, 2.9 by two.
A follower follows up to 200,000 connections, so one alone would follow half as many."""
FEW_BYTES = 1 << 20
"""Frames files that are followed as one bucket. Some 50,000 frames, and a follower lets go of nothing before it has
twice as many connections."""


class LocalReplay:
    """One run: give it files of frames, as they come, and ask it for the result behind the last."""

    def __init__(self, settings: Settings) -> None:
        self.loop = Loop(replace(settings, buckets=min(settings.buckets, BUCKETS)))
        self._latest = LatestRows()

    def judge(self, files: Iterable[Path]) -> None:
        """Files that are judged together."""
        self.loop.batch(files)
        self._keep(self.loop.emitted)
        self.loop.emitted.clear()

    def judge_all(self, batches: Iterable[Iterable[Path]]) -> None:
        """Batch after batch. From the second on, a process beside this one decodes a batch while this one judges the
        batch before and follows the next.
        """
        batches = iter(batches)
        for files in batches if os.cpu_count() == 1 else islice(batches, 1):
            self.judge(files)
        process, before = None, list[Begun]()
        try:
            for files in batches:
                process = process or DecodeProcess(self.loop.settings)
                begun = process.begin(self.loop.follow(files))
                self._keep(self.loop.judge(process.end(before)))
                before = begun
            if process is not None:
                self._keep(self.loop.judge(process.end(before)))
        finally:
            if process is not None:
                process.close()

    def _keep(self, rows: Iterable[Tagged]) -> None:
        for row in rows:
            self._latest.add(row.route, from_ipc(row.cell))

    def result(self) -> Result:
        return self._latest.result()

    def write(self, out: Path) -> None:
        """The result tables, as a replay leaves them."""
        self._latest.write(out)


def of_files(files: list[Path], settings: Settings) -> LocalReplay:
    """A run over files that are all there: so it is known whose they are, and which are missing."""
    buckets = 1 if sum(age_name_size(file)[2] for file in files) <= FEW_BYTES else settings.buckets
    return LocalReplay(replace(settings, buckets=buckets, agents=labelled_in(agents_of(files), files)))


def batches_of(files: list[Path]) -> Iterator[list[Path]]:
    """As the query takes them: oldest first, small ones together."""
    batch: list[Path] = []
    size = 0
    for (_, _, added), file in sorted((age_name_size(file), file) for file in files):
        if batch and (size + added > BATCH_BYTES or len(batch) >= BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += added
    if batch:
        yield batch


def age_name_size(file: Path) -> tuple[int, str, int]:
    try:
        there = file.stat()
    except OSError:  # gone meanwhile: reading it reports that
        return 0, file.name, 0
    return there.st_mtime_ns, file.name, there.st_size
