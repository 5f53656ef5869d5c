"""The agent's second thread: rows from the loop, redacted, into files.

A file ends with a time before which nothing is still to come from a ring or from redaction. Marks of a file that could
not be written are written again; its frames are counted as lost.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.capture import frames
from wirecheck.capture.agent.counts import DISK, SPOOL
from wirecheck.capture.agent.spool import frames_by_source
from wirecheck.capture.translation import TRANSLATED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from wirecheck.capture.agent.counts import Counts
    from wirecheck.capture.agent.redaction import Redaction
    from wirecheck.capture.agent.spool import Spool

_QUEUE_BATCHES = 32  # of what was taken from a ring at once wait for the disk, at most
_TOGETHER_BYTES = 4 << 20  # are trimmed in one pass, or what came before the next time: a pass has its own price
_RETRY_S = 1.0


@dataclass(frozen=True)
class Shown:
    """Everything up to this time has come over from the rings."""

    ns: int
    roll: bool = False


@dataclass(frozen=True)
class ClockWentBack:
    """What comes from here on is older than what came."""


class Writer(threading.Thread):
    """Puts rows on disk behind the loop's back. While the disk takes nothing, rows are lost, counted and announced."""

    def __init__(
        self,
        spool: Spool,
        stamp: frames.Stamp,
        counts: Counts,
        say: Callable[[str], None],
        new_redaction: Callable[[], Redaction],
    ) -> None:
        super().__init__(name="writer", daemon=True)
        self._spool, self._stamp, self._counts, self._say = spool, stamp, counts, say
        self._new_redaction = new_redaction
        self._redaction = new_redaction()
        self._copies = 0  # that this redaction removed
        self._left_out_before: dict[str, int] = {}  # until the clock went back
        self._tls_before = counts.tls
        self._queue: queue.Queue[pa.RecordBatch | Shown | ClockWentBack | None] = queue.Queue(_QUEUE_BATCHES)
        self._taken: dict[str, int] = {}
        self._reported: dict[str, int] = {}
        self._newest_ns = self._shown_ns = 0
        self._unseen: dict[tuple[int, str | None, str | None], frames.Mark] = {}  # marks that are in no file yet
        self._retry_s: float | None = None  # when to try again, while the disk takes nothing
        self.on_file: Callable[[], None] = lambda: None
        spool.on_file = self._appeared
        counts.disk_bytes = spool.disk_bytes

    # --- the loop's side

    def put(self, work: pa.RecordBatch | Shown | ClockWentBack) -> None:
        """Blocks while the queue is full; the kernel then drops packets and counts them."""
        while True:
            with contextlib.suppress(queue.Full):
                self._queue.put(work, timeout=1)
                return
            self.check()

    def check(self) -> None:
        if not self.is_alive():
            raise RuntimeError("the writing thread ended")

    def finish(self) -> None:
        """Write everything that was put; what the disk cannot take is lost and counted."""
        while self.is_alive():
            with contextlib.suppress(queue.Full):
                self._queue.put(None, timeout=1)
                break
        self.join()

    @property
    def holds_rows(self) -> bool:
        """Is something in no file yet that could be?"""
        return self._spool.holds_rows

    # --- the thread

    def run(self) -> None:
        batches: list[pa.RecordBatch] = []
        waiting_bytes = 0
        for work in iter(self._queue.get, None):
            if isinstance(work, pa.RecordBatch):
                batches.append(work)
                waiting_bytes += work.nbytes
                if waiting_bytes < _TOGETHER_BYTES:
                    continue
            self.take(batches)
            batches, waiting_bytes = [], 0
            if isinstance(work, Shown):
                self.show(work)
            elif isinstance(work, ClockWentBack):
                self.restart()
        self.take(batches)
        self.close()

    def take(self, batches: list[pa.RecordBatch]) -> None:
        if batches:
            self._keep(self._redaction.add(_together(batches)))

    def show(self, shown: Shown) -> None:
        """Time went on; what waits for it is decided, and the file may end."""
        self._keep(self._redaction.advance(self._stamp.agent, shown.ns))
        oldest_ns = self._redaction.oldest_ns
        upto_ns = shown.ns if oldest_ns is None else min(shown.ns, oldest_ns - 1)
        self._shown_ns = max(self._shown_ns, upto_ns)

        def act() -> None:
            self._spool.promise(self._shown_ns)
            if shown.roll:
                self._spool.roll()

        self._attempt(act)

    def restart(self) -> None:
        """The clock went back: what waits by the old time waits no longer, and the old time promises nothing."""
        self._keep(self._redaction.drain())
        self._left_out_before, self._tls_before = self._counts.left_out_bytes, self._counts.tls
        self._redaction, self._copies = self._new_redaction(), 0
        self._newest_ns = self._shown_ns = 0
        self._spool.forget_time()

    def close(self) -> None:
        self._keep(self._redaction.drain())
        self._retry_s = None if self._retry_s is None else 0.0
        self._attempt(self._spool.close)

    def _keep(self, parts: Iterator[pa.RecordBatch]) -> None:
        for rows in parts:
            self._count(rows)
            self._attempt(lambda rows=rows: self._spool.append(rows))  # type: ignore[misc]  # bound at once
            if self._spool.holds_rows or self._retry_s is not None:
                self._remember(rows)
        counts, before = self._counts, self._left_out_before
        if new_copies := self._redaction.copies - self._copies:
            counts.skipped[TRANSLATED] += new_copies
            self._copies += new_copies
        counts.connections = self._redaction.connections
        counts.left_out_bytes = {why: n + before.get(why, 0) for why, n in self._redaction.left_out.items()}
        if self._tls_before is not None:
            counts.tls = self._redaction.tls_counts(self._tls_before)

    def _count(self, rows: pa.RecordBatch) -> None:
        for source, n in frames_by_source(rows).items():
            self._taken[source] = self._taken.get(source, 0) + n
        self._counts.kept_bytes += pc.sum(pc.binary_length(rows.column("payload"))).as_py() or 0
        self._newest_ns = max(self._newest_ns, pc.max(rows.column("ts_ns")).as_py() or 0)

    # --- the disk

    def _attempt(self, act: Callable[[], None]) -> None:
        if self._retry_s is None or time.monotonic() >= self._retry_s:
            try:
                if self._retry_s is not None:
                    self._go_on()
                act()
            except OSError as error:
                self._spool.discard()
                if self._retry_s is None:
                    self._say(f"cannot write: {error.strerror or error}; frames are dropped until writing works again")
                self._retry_s = time.monotonic() + _RETRY_S
        if self._retry_s is not None:
            for source, n in self._taken.items():
                self._counts.lost[source, DISK] = n - self._spool.written.get(source, 0)

    def _go_on(self) -> None:
        """Write what was lost as a file of its own: only when that holds, the disk takes rows again."""
        lost = {source: self._counts.lost[source, DISK] for source in self._taken}
        known = self._reported
        news = {source: n - known.get(source, 0) for source, n in lost.items() if n > known.get(source, 0)}
        marks = [
            frames.Mark(frames.DROPPED, self._newest_ns, source, n, "could not be written")
            for source, n in news.items()
        ]
        every = [*self._unseen.values(), *marks]
        if every:
            self._spool.append(frames.mark_rows(every, self._stamp))
            self._spool.roll()
        self._reported = lost
        self._say(f"writing again; {sum(news.values())} frames could not be written")
        self._retry_s = None

    def _remember(self, rows: pa.RecordBatch) -> None:
        """Marks that would be lost with the file: one of each kind, with what all of them count."""
        columns = rows.select(["kind", "ts_ns", "source", "count", "reason"])
        for row in columns.filter(pc.not_equal(columns.column("kind"), frames.FRAME)).to_pylist():
            mark = frames.Mark(row["kind"], row["ts_ns"], row["source"], row["count"], row["reason"])
            name = mark.kind, mark.source, mark.reason
            before = self._unseen.get(name)
            self._unseen[name] = replace(mark, count=mark.count + before.count) if before else mark

    def _appeared(self, _: Path, seconds: float) -> None:
        self._unseen.clear()
        counts, spool = self._counts, self._spool
        counts.files += 1
        counts.rolls.add(seconds)
        counts.kept_frames = spool.written.total() - spool.emptied.total()
        counts.disk_bytes = spool.disk_bytes
        for source, n in spool.emptied.items():
            counts.lost[source, SPOOL] = n
        self.on_file()


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (batch,) = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().to_batches()
    return batch
