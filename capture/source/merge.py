"""Several capture files as one capture, ordered by time.

Where time steps back within a file by more than a second, its parts are read as files of their own, so that sections of
a pcapng file come in order, whatever their distance; unless its clock was set (`clock_steps.py`). A file that can be
read only once, or unpacked, is sorted within a window of rows. Otherwise rows of one file keep their order; ties follow
the order of files. A file is opened when its first packet is due.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from wirecheck.capture import frames
from wirecheck.capture.source.clock_between import Dated, clocks_of
from wirecheck.capture.source.clock_steps import Clock, has_wrong_times, interfaces_were_set, was_set_back
from wirecheck.capture.source.clocks_apart import Apart, clocks_apart
from wirecheck.capture.source.pcap import SMALL_STEP_NS, STEP_NS, Batch, CaptureFile, InputError, Unread, first_look
from wirecheck.capture.source.rows import BATCH_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from wirecheck.capture.source.pcap import Look, Stretch
    from wirecheck.capture.source.windows import Pipe

_SMALLEST_BATCH_BYTES = 1 << 20


@dataclass(frozen=True)
class Input:
    """One readable file, or a stretch of one, and its place in the order."""

    path: Path
    first_ns: int
    rank: int
    pipe: Pipe | None = None
    """What it is read from, if it can be opened only once."""
    stretch: Stretch | None = None
    """The part that it is, if its file has several."""
    is_in_order: bool = True
    """Whether time is known not to step back in it."""
    unread: Unread = field(default_factory=Unread)
    """Of the file, shared by its stretches."""
    key_logs: tuple[bytes, ...] = ()
    """TLS secrets that stand anywhere in the file."""
    clock: Clock | None = None
    """Of a file whose time is not that of the files before it."""
    clock_unknown: str | None = None
    """The words for a file of which nothing shows how far its clock is from that of the others."""

    @property
    def size(self) -> int:
        """Bytes to read. Raises OSError."""
        size = self.path.stat().st_size
        if self.stretch is None:
            return size
        return (size if self.stretch.end is None else self.stretch.end) - self.stretch.begin


def inputs_in_order(paths: Sequence[Path]) -> tuple[list[Input], list[InputError]]:
    """Files by their first packet's time and by name, each once; and those that cannot be read at all."""
    found, errors, files = list[Input](), [], list[Dated]()
    looks: dict[Path, Look] = {}
    for path in sorted({path.resolve(): path for path in sorted(paths)}.values()):
        try:
            look = first_look(path)
            looks[path] = first_look(path, lone=False) if look.lone and not has_wrong_times(path) else look
        except InputError as error:
            errors.append(error)
    for path, look in looks.items():
        found += (parts := [*_parts(path, look, looks)])
        if len(parts) == 1 and look.pipe is None and look.first_ns:
            files.append(Dated(path, look.first_ns, look.newest_ns))
    clocks = clocks_of(files)
    found = [_by_clock(one, clocks[one.path]) if one.path in clocks else one for one in found]
    known = {one.path: one.clock for one in found if one.clock is not None}
    apart, unknown = clocks_apart(files, known)
    found = [_by_other(one, apart[one.path]) if one.path in apart else one for one in found]
    found = [replace(one, clock_unknown=unknown.get(one.path)) for one in found]
    found.sort(key=lambda one: (one.first_ns, str(one.path)))  # stable: stretches of one file stay in its order
    return [replace(one, rank=rank) for rank, one in enumerate(found)], errors


def _parts(path: Path, look: Look, looks: Mapping[Path, Look]) -> Iterator[Input]:
    in_order = bool(look.stretches) and not look.lone
    known = Input(path, look.first_ns, 0, look.pipe, None, in_order, Unread(), look.key_logs)
    if len(look.stretches) < 2:
        yield known
        return
    others = [(one.first_ns, one.newest_ns) for other, one in looks.items() if other != path and one.newest_ns]
    if was_set_back(path, look.stretches, others):
        yield replace(known, key_logs=(), clock=Clock(restarts=True))
        return
    if any(one.walk is not None and one.walk.interfaces() > 1 for one in look.stretches) and interfaces_were_set(path):
        yield replace(known, key_logs=(), is_in_order=False)
        return
    known.unread.parts = len(look.stretches)
    for stretch in look.stretches:
        yield replace(known, first_ns=stretch.first_ns, stretch=stretch)


def _by_clock(source: Input, clock: Clock) -> Input:
    return replace(source, first_ns=source.first_ns + clock.offset_ns, clock=clock)


def _by_other(source: Input, apart: Apart) -> Input:
    """A file that is dated by the clock of another one."""
    clock = (source.clock or Clock()).moved(-apart.by_ns)
    source.unread.apart.append(apart.words)
    return replace(source, first_ns=source.first_ns - apart.by_ns, clock=clock)


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
        if self.batch is None:
            self._batches = iter(())  # which refers to this object: nothing else frees the columns of a file

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
    unread = source.unread
    try:
        file = CaptureFile(source.path, batch_bytes, source.pipe, stretch=source.stretch)
    except InputError as error:
        yield _marks([frames.Mark(frames.INPUT_ERROR, source.first_ns, str(error.path), reason=error.reason)], stamp)
        return
    file.on_keys = reader.on_keys
    for key_log in source.key_logs:
        reader.on_keys(key_log)
    begin = 0 if source.stretch is None else source.stretch.begin
    if source.clock_unknown is not None:  # first: what is judged of its rows depends on it
        yield _marks([frames.Mark(frames.CLOCK, source.first_ns, file.source, 0, source.clock_unknown)], stamp)
    try:
        clock = source.clock or Clock(is_set=source.stretch is None)
        every = file.batches(stamp)
        if source.stretch is None or not source.is_in_order:
            every = clock.dated(every)
        for batch in every if source.is_in_order else sorted_within(every, unread):
            reader.read_bytes = file.file_bytes - begin
            yield batch
        reader.read_bytes = file.file_bytes - begin
        file.add_unread(unread)
        clock.add_unread(unread)
        if unread.parts == 0 and (marks := unread.marks(file.source)):
            yield _marks(marks, stamp)
    finally:
        file.close()


WINDOW_BYTES = 16 << 20
"""Of rows that wait for earlier ones, where it is unknown whether time steps back in a file."""


def sorted_within(batches: Iterable[Batch], unread: Unread, window_bytes: int = WINDOW_BYTES) -> Iterator[Batch]:
    """Rows that step back, moved to their place if it is in the window; the others are counted in `unread`, where they
    are more than a second late. Batches that need nothing pass as they are.
    """
    waiting: deque[Batch] = deque()
    size, passed_ns = 0, 0
    for batch in batches:
        waiting.append(batch)
        size += batch.rows.nbytes
        if _late(batch).any():
            waiting = deque(_cut(_sorted(waiting), size, window_bytes))
        while size > window_bytes and len(waiting) > 1:
            first = waiting.popleft()
            size -= first.rows.nbytes
            yield _passed(first, passed_ns, unread)
            passed_ns = max(passed_ns, int(first.clock[-1]))
    for one in waiting:
        yield _passed(one, passed_ns, unread)
        passed_ns = max(passed_ns, int(one.clock[-1]))


def _late(batch: Batch) -> NDArray[np.bool_]:
    """Which rows step back."""
    found: NDArray[np.bool_] = batch.rows.column("ts_ns").to_numpy() < batch.clock - SMALL_STEP_NS
    return found


def _sorted(batches: Iterable[Batch]) -> Batch:
    """One batch of these: late rows by their own time, the others as they came."""
    every = list(batches)
    clock = np.concatenate([one.clock for one in every])
    late = np.concatenate([_late(one) for one in every])
    table = pa.Table.from_batches([one.rows for one in every]).unify_dictionaries().combine_chunks()
    due = np.where(late, table.column("ts_ns").to_numpy(), clock)
    order = np.argsort(due, kind="stable")
    (rows,) = table.take(pa.array(order)).combine_chunks().to_batches()
    return Batch(rows, due[order])


def _cut(batch: Batch, size: int, window_bytes: int) -> Iterator[Batch]:
    """The rows that are too many for the window, if there are, and the others."""
    at = batch.rows.num_rows * max(size - window_bytes, 0) // size
    yield from (Batch(batch.rows.slice(0, at), batch.clock[:at]),) if at else ()
    yield Batch(batch.rows.slice(at), batch.clock[at:])


def _passed(batch: Batch, passed_ns: int, unread: Unread) -> Batch:
    """The batch behind rows up to this time; rows that should have come before these are counted."""
    unread.late += int((batch.rows.column("ts_ns").to_numpy() < passed_ns - STEP_NS).sum())
    return Batch(batch.rows, np.maximum(batch.clock, passed_ns))


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
        bound = min((file.bound() for file in reading), default=None)
        if waiting and (bound is None or _place(waiting[0]) <= bound):
            yield from _in_order(reading, _place(waiting[0]))  # before another file is opened: few are at a time
            share = max(min(_SMALLEST_BATCH_BYTES, batch_bytes), batch_bytes // (len(reading) + 1))
            opened = _Open(waiting.popleft(), stamp, share, on_keys)
            if opened.batch is None:
                finished_bytes += opened.read_bytes
            else:
                reading.append(opened)
        elif bound is not None:
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
