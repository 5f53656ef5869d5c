"""The agent's live half: interfaces in, a growing folder of frames out, until it is told to stop.

Knows: when a file ends (size, seconds, SIGHUP), when to ask the kernel what it lost, how to stop in order.
Refuses to know: packets and rings (live.py), Parquet (spool.py), Kafka.
Rule: the loop that empties the rings never waits for a disk: files are written and synced by a second thread behind a
short queue, and when that queue is full the kernel drops and counts. What was lost is a row before it is a message.
"""

from __future__ import annotations

import contextlib
import queue
import select
import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from capture import frames, ring
from capture.agent import Summary
from capture.live import Interface
from capture.spool import ROLL_BYTES, Spool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import FrameType

    import pyarrow as pa

_QUEUE_BATCHES = 64  # at most so many blocks of a ring wait for the disk
_SETTLED_NS = 1_000_000_000  # a packet this old has left the ring
_IDLE_S = 10.0  # an agent that sees nothing says so this often, for those who wait for its time
_DROPS_S = 1.0


@dataclass(frozen=True)
class Listening:
    """What to listen to and how."""

    interfaces: tuple[str, ...]
    ports: tuple[int, ...] = ()
    bpf: str | None = None  # instead of the ports
    promiscuous: bool = False
    buffer_bytes: int = 64 << 20
    roll_bytes: int = ROLL_BYTES
    roll_s: float = 2.0
    duration_s: float | None = None

    @property
    def filter(self) -> str:
        if self.bpf is not None:
            return self.bpf
        if not self.ports:
            return "tcp"
        return "tcp and (" + " or ".join(f"port {port}" for port in self.ports) + ")"


class Signals:
    """SIGTERM and SIGINT ask to stop, SIGHUP asks for a new file; the loop looks when it has time."""

    def __init__(self) -> None:
        self.stop = False
        self.roll = False
        self._before: dict[int, signal.Handlers | int | object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal() gave it takes

    def _take(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self.roll = True
        else:
            self.stop = True


class Writer(threading.Thread):
    """Puts rows on disk behind the loop's back. `error` is why it had to give up."""

    def __init__(self, spool: Spool) -> None:
        super().__init__(name="writer", daemon=True)
        self.error: OSError | None = None
        self._spool = spool
        self._queue: queue.Queue[pa.RecordBatch | int | None] = queue.Queue(_QUEUE_BATCHES)

    def put(self, rows: pa.RecordBatch) -> None:
        self._queue.put(rows)

    def roll(self, seen_ns: int) -> None:
        """End the file; everything up to seen_ns has been shown."""
        self._queue.put(seen_ns)

    def finish(self) -> None:
        self._queue.put(None)
        self.join()
        if self.error is not None:
            raise self.error

    def run(self) -> None:
        while (work := self._queue.get()) is not None:
            if self.error is not None:
                continue  # drained, so that the loop never waits for a dead writer
            try:
                if isinstance(work, int):
                    self._spool.progress(work)
                    self._spool.roll()
                else:
                    self._spool.append(work)
            except OSError as error:
                self.error = error
        with contextlib.suppress(OSError):
            self._spool.abandon() if self.error else self._spool.close()


def listen(what: Listening, out: Path, stamp: frames.Stamp, on_ready: Callable[[], None] = lambda: None) -> Summary:
    """Capture until told to stop; on_ready is called once nothing is missed any more.

    Raises ListenError, FolderInUseError, or OSError when it cannot write.
    """
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(Signals())
        spool = Spool(out, stamp, what.roll_bytes)
        stack.callback(spool.abandon)
        interfaces = []
        for name in what.interfaces:
            opened = Interface(name, what.filter, promiscuous=what.promiscuous, buffer_bytes=what.buffer_bytes)
            stack.callback(opened.close)
            interfaces.append(opened)
        writer = Writer(spool)
        writer.start()
        on_ready()
        loop = _Loop(what, stamp, interfaces, writer)
        try:
            loop.run(signals)
        finally:
            writer.finish()
        loop.summary.files = spool.files
        return loop.summary


class _Loop:
    def __init__(self, what: Listening, stamp: frames.Stamp, interfaces: Sequence[Interface], writer: Writer) -> None:
        self.summary = Summary()
        self._what, self._stamp, self._writer = what, stamp, writer
        self._interfaces = list(interfaces)
        self._rows_since_roll = False
        self._asked_ns = 0
        self._rolled_s = self._dropped_s = time.monotonic()

    def run(self, signals: Signals) -> None:
        began_s = time.monotonic()
        self._mark(frames.Mark(frames.STARTED, time.time_ns()))
        while not signals.stop and self._interfaces and self._writer.error is None:
            self._take_rows(ring.RETIRE_MS)
            self._tell_drops()
            if signals.roll or self._is_due():
                signals.roll = False
                self._roll()
            if self._what.duration_s is not None and time.monotonic() - began_s >= self._what.duration_s:
                break
        time.sleep(1.5 * ring.RETIRE_MS / 1000)  # what is in a block that is not full comes over by then
        self._take_rows(0)
        self._tell_drops(at_once=True)
        for interface in self._interfaces:
            self._tell_skipped(interface)
        self._mark(frames.Mark(frames.ENDED, time.time_ns()))

    def _take_rows(self, timeout_ms: int) -> None:
        poll = select.poll()
        self._asked_ns = time.time_ns()
        for interface in self._interfaces:
            poll.register(interface, select.POLLIN | select.POLLERR)
        for handle, event in poll.poll(timeout_ms):
            if event & select.POLLERR:
                self._give_up(next(i for i in self._interfaces if i.fileno() == handle))
        for interface in self._interfaces:
            for rows in interface.batches(self._stamp):
                self._put(rows)

    def _give_up(self, interface: Interface) -> None:
        error = interface.error()
        if error is not None:
            self._mark(frames.Mark(frames.INPUT_ERROR, time.time_ns(), interface.name, reason=error))
            self._tell_skipped(interface)
            self._interfaces.remove(interface)

    def _tell_drops(self, *, at_once: bool = False) -> None:
        if not at_once and time.monotonic() - self._dropped_s < _DROPS_S:
            return
        self._dropped_s = time.monotonic()
        for interface in self._interfaces:
            dropped = interface.dropped()
            if dropped:
                reason = "no room in the ring"
                self._mark(frames.Mark(frames.DROPPED, time.time_ns(), interface.name, dropped, reason))

    def _tell_skipped(self, interface: Interface) -> None:
        for mark in interface.rows.skipped_marks(interface.name, time.time_ns()):
            self._mark(mark)

    def _is_due(self) -> bool:
        age_s = time.monotonic() - self._rolled_s
        return age_s >= (self._what.roll_s if self._rows_since_roll else max(self._what.roll_s, _IDLE_S))

    def _roll(self) -> None:
        self._writer.roll(self._asked_ns - _SETTLED_NS)
        self._rolled_s, self._rows_since_roll = time.monotonic(), False

    def _mark(self, mark: frames.Mark) -> None:
        self._put(frames.mark_rows([mark], self._stamp))

    def _put(self, rows: pa.RecordBatch) -> None:
        self.summary.add(rows)
        self._writer.put(rows)
        self._rows_since_roll = True
