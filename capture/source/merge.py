"""Several capture files as one capture, ordered by time.

Rows of one file keep their order; ties follow the order of files. A file is opened when its first packet is due.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from wirecheck.capture import frames
from wirecheck.capture.source.pcap import Batch, CaptureFile, InputError, first_look
from wirecheck.capture.source.rows import BATCH_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from wirecheck.capture.source.windows import Pipe

_SMALLEST_BATCH_BYTES = 1 << 20


@dataclass(frozen=True)
class Input:
    """One readable file and its place in the order."""

    path: Path
    first_ns: int
    rank: int
    pipe: Pipe | None = None
    """What it is read from, if it can be opened only once."""


def inputs_in_order(paths: Sequence[Path]) -> tuple[list[Input], list[InputError]]:
    """Files by their first packet's time and by name, each once; and those that cannot be read at all."""
    found, errors = [], []
    for path in sorted({path.resolve(): path for path in sorted(paths)}.values()):
        try:
            first_ns, pipe = first_look(path)
            found.append((first_ns, str(path), path, pipe))
        except InputError as error:
            errors.append(error)
    found.sort(key=lambda one: one[:2])
    return [Input(path, ns, rank, pipe) for rank, (ns, _, path, pipe) in enumerate(found)], errors


class _Open:
    """A file being read: `batch` is what is left of its newest batch, None once the file is used up."""

    def __init__(self, source: Input, stamp: frames.Stamp, batch_bytes: int, on_keys: Callable[[bytes], None]) -> None:
        self.rank = source.rank
        self.read_bytes = 0
        self.on_keys = on_keys
        self._batches = _batches(source, stamp, batch_bytes, self)
        self.batch: Batch | None = None
        self.refill()

    def refill(self) -> None:
        if self.batch is None or self.batch.rows.num_rows == 0:
            self.batch = next(self._batches, None)

    def bound(self) -> tuple[int, int]:
        """Every row still to come stands at or behind this place."""
        assert self.batch is not None
        return int(self.batch.clock[-1]), self.rank

    def take(self, bound: tuple[int, int]) -> pa.RecordBatch:
        """The rows up to and including the place `bound`."""
        assert self.batch is not None
        n = int(np.searchsorted(self.batch.clock, bound[0], "right" if self.rank <= bound[1] else "left"))
        taken = self.batch.rows.slice(0, n)
        self.batch = Batch(self.batch.rows.slice(n), self.batch.clock[n:])
        return taken


def _batches(source: Input, stamp: frames.Stamp, batch_bytes: int, reader: _Open) -> Iterator[Batch]:
    """A file's rows, then its marks; a file that went away since it was looked at is one more mark."""
    try:
        file = CaptureFile(source.path, batch_bytes, source.pipe)
    except InputError as error:
        yield _marks([frames.Mark(frames.INPUT_ERROR, source.first_ns, str(error.path), reason=error.reason)], stamp)
        return
    file.on_keys = reader.on_keys
    try:
        for batch in file.batches(stamp):
            reader.read_bytes = file.file_bytes
            yield batch
        reader.read_bytes = file.file_bytes
        if file.marks():
            yield _marks(file.marks(), stamp)
    finally:
        file.close()


def _marks(marks: list[frames.Mark], stamp: frames.Stamp) -> Batch:
    return Batch(frames.mark_rows(marks, stamp), np.array([mark.ts_ns for mark in marks], np.int64))


def merged(
    inputs: Sequence[Input],
    stamp: frames.Stamp,
    on_read: Callable[[int], None] = lambda _: None,
    batch_bytes: int = BATCH_BYTES,
    on_keys: Callable[[bytes], None] = lambda _: None,
) -> Iterator[pa.RecordBatch]:
    """All rows of all files in order. `on_read` gets the number of bytes read so far, `on_keys` each key log in the
    files.
    """
    waiting = deque(inputs)
    reading: list[_Open] = []
    finished_bytes = 0
    while waiting or reading:
        for file in reading:
            file.refill()
        finished_bytes += sum(file.read_bytes for file in reading if file.batch is None)
        reading = [file for file in reading if file.batch is not None]
        on_read(finished_bytes + sum(file.read_bytes for file in reading))
        while waiting and (not reading or _place(waiting[0]) <= min(file.bound() for file in reading)):
            share = max(min(_SMALLEST_BATCH_BYTES, batch_bytes), batch_bytes // (len(reading) + 1))
            opened = _Open(waiting.popleft(), stamp, share, on_keys)
            if opened.batch is None:
                finished_bytes += opened.read_bytes
            else:
                reading.append(opened)
        if reading:
            bound = min(file.bound() for file in reading)
            yield from _in_order(reading, bound)
    on_read(finished_bytes)


def _place(source: Input) -> tuple[int, int]:
    return source.first_ns, source.rank


def _in_order(reading: Sequence[_Open], bound: tuple[int, int]) -> Iterator[pa.RecordBatch]:
    """The rows of all open files up to the bound."""
    clocks, tables = [], []
    for file in reading:
        assert file.batch is not None
        clock = file.batch.clock
        taken = file.take(bound)
        if taken.num_rows:
            clocks.append(clock[: taken.num_rows])
            tables.append(pa.Table.from_batches([taken]))
    if len(tables) > 1:
        order = np.argsort(np.concatenate(clocks), kind="stable")  # files stand by rank: ties keep that order
        tables = [pa.concat_tables(tables).unify_dictionaries().combine_chunks().take(pa.array(order))]
    for table in tables:
        yield from table.to_batches()
