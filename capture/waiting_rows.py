"""Rows of one agent that wait for decryption or redaction. They leave in the order in which they came.

A row that waits holds back all that came after it. What becomes of a row is up to tls/decryption.py and
trim/trimmer.py.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.capture import frames
from wirecheck.decode.connection.segments import segments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.connection.follower import Follower
    from wirecheck.decode.connection.segments import Segments
    from wirecheck.decode.wire import Ints

SECOND = 1_000_000_000
LATENESS_NS = 1 * SECOND  # packets in a capture are shuffled; what is asked of the follower stays that far behind


class Batch:
    """Rows that came together; `taken` of them have left. Marks are such rows, and wait only for their turn."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.rows, self.taken = rows, 0

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def oldest_ns(self) -> int:
        """Time of the oldest row that has not left."""
        return int(self.rows.column("ts_ns").to_numpy()[self.taken :].min(initial=frames.LATEST_NS))

    def first_waiting(self) -> int:
        """The first row that waits; their number where none does."""
        return len(self)

    def take(self, upto: int) -> pa.RecordBatch:
        """The rows up to this one that have not left."""
        first, self.taken = self.taken, upto
        return self.made_of(self.rows.slice(first, upto - first), first)

    def made_of(self, rows: pa.RecordBatch, first: int) -> pa.RecordBatch:  # noqa: ARG002 -- of rows that change
        """What becomes of these rows, the first of which has this number in the batch."""
        return rows


class WaitingRows:
    """`add` gives back what is decided; `drain` the rest, when nothing more comes."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._batches: deque[Batch] = deque()
        self._newest_ns = 0

    @property
    def oldest_ns(self) -> int | None:
        """Time of the oldest row that waits; None if none does."""
        return min((batch.oldest_ns for batch in self._batches), default=None)

    def add(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for part, is_mark in _split(rows):
            if is_mark:
                self._on_marks(part)
            else:
                self._follow(part)
        yield from self._decided()

    def advance(self, agent: str, now_ns: int) -> Iterator[pa.RecordBatch]:
        """The agent has shown everything up to now_ns: what has waited long enough by then goes, rows or no rows."""
        self._newest_ns = max(self._newest_ns, now_ns)
        self._on_progress(self._follower.advance(agent, self._newest_ns - LATENESS_NS))
        yield from self._decided()

    def _follow(self, rows: pa.RecordBatch) -> None:
        table = segments(pa.Table.from_batches([rows]))
        exchanges = self._follower.receive(table)
        self._newest_ns = max(self._newest_ns, int(table.ts_ns.max(initial=0)))
        self._on_rows(rows, table)
        self._on_progress(exchanges)
        for agent in {table.names[i] for i in np.flatnonzero(np.bincount(table.agent)).tolist()}:
            self._on_progress(self._follower.advance(agent, self._newest_ns - LATENESS_NS))

    def _leave(self, first_waiting: Callable[[Batch], int]) -> Iterator[pa.RecordBatch]:
        """Rows up to the first one that waits."""
        while self._batches:
            batch = self._batches[0]
            upto = first_waiting(batch)
            if upto > batch.taken:
                yield batch.take(upto)
            if upto < len(batch):
                return
            self._batches.popleft()

    def _on_marks(self, rows: pa.RecordBatch) -> None:
        self._batches.append(Batch(rows))

    def _on_rows(self, rows: pa.RecordBatch, table: Segments) -> None:
        """Frames that the follower has placed begin to wait."""
        raise NotImplementedError

    def _on_progress(self, exchanges: Exchanges) -> None:
        """The follower has handed out more."""
        raise NotImplementedError

    def _decided(self) -> Iterator[pa.RecordBatch]:
        """Rows that wait no longer."""
        raise NotImplementedError


def _split(rows: pa.RecordBatch) -> Iterable[tuple[pa.RecordBatch, bool]]:
    """Runs of frames and of marks."""
    marks = rows.column("kind").to_numpy() != frames.FRAME
    edges = [0, *(np.flatnonzero(marks[1:] != marks[:-1]) + 1).tolist(), len(marks)]
    for begin, end in pairwise(edges):
        if end > begin:
            yield rows.slice(begin, end - begin), bool(marks[begin])


def vector(values: NDArray[Any]) -> vec[i64]:
    """The numbers as compiled code has them; a copy."""
    return vec[i64](cast("Any", np.ascontiguousarray(values, np.int64)))


def array(values: vec[i64]) -> Ints:
    """The numbers of a vector, which they share."""
    return np.frombuffer(cast("Any", values), np.int64)
