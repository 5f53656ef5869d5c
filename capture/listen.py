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

import numpy as np

from capture import frames, ring
from capture.agent import Summary
from capture.live import Interface
from capture.spool import ROLL_BYTES, Spool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import FrameType

    import pyarrow as pa

    from capture.folder import Limits

_QUEUE_BATCHES = 64  # at most so many blocks of a ring wait for the disk
_SETTLED_NS = 1_000_000_000  # a packet this old has left the ring
_IDLE_S = 10.0  # an agent that sees nothing says so this often, for those who wait for its time
_DROPS_S = 1.0
_RETRY_S = 1.0


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
    limits: Limits | None = None

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
    """Puts rows on disk behind the loop's back. While the disk takes nothing, rows are lost, counted and announced."""

    def __init__(self, spool: Spool, stamp: frames.Stamp, say: Callable[[str], None]) -> None:
        super().__init__(name="writer", daemon=True)
        self.lost = 0  # frames that are in no file and will not be
        self._spool, self._stamp, self._say = spool, stamp, say
        self._queue: queue.Queue[pa.RecordBatch | int | None] = queue.Queue(_QUEUE_BATCHES)
        self._taken = self._told = 0
        self._retry_s: float | None = None  # when to try again, while the disk takes nothing

    def put(self, rows: pa.RecordBatch | int) -> None:
        while True:
            with contextlib.suppress(queue.Full):
                return self._queue.put(rows, timeout=1)
            if not self.is_alive():
                raise RuntimeError("the writing thread ended")

    def roll(self, seen_ns: int) -> None:
        """End the file; everything up to seen_ns has been shown."""
        self.put(seen_ns)

    def finish(self) -> None:
        self._queue.put(None)
        self.join()

    def run(self) -> None:
        while (work := self._queue.get()) is not None:
            if not isinstance(work, int):
                self._taken += int(np.count_nonzero(work.column("kind").to_numpy() == frames.FRAME))
            if self._retry_s is None or time.monotonic() >= self._retry_s:
                self._try(work)
            else:
                self.lost = self._taken - self._spool.written_frames
        self._try(None)

    def _try(self, work: pa.RecordBatch | int | None) -> None:
        try:
            if self._retry_s is not None:
                self._go_on()
            if work is None:
                self._spool.close()
            elif isinstance(work, int):
                self._spool.progress(work)
                self._spool.roll()
            else:
                self._spool.append(work)
        except OSError as error:
            self._spool.discard()
            self.lost = self._taken - self._spool.written_frames
            if self._retry_s is None:
                self._say(f"cannot write: {error.strerror or error}; frames are dropped until it goes again")
            self._retry_s = time.monotonic() + _RETRY_S

    def _go_on(self) -> None:
        """Write what was lost as a file of its own: only when that holds, the disk takes rows again."""
        lost = self.lost - self._told
        mark = frames.Mark(frames.DROPPED, self._spool.newest_ns, None, lost, "could not be written")
        self._spool.append(frames.mark_rows([mark], self._stamp))
        self._spool.roll()
        self._told = self.lost
        self._say(f"writing again; {lost} frames could not be written")
        self._retry_s = None


def listen(what: Listening, out: Path, stamp: frames.Stamp, say: Callable[[str], None] = lambda _: None) -> Summary:
    """Capture until told to stop; `say` gets one line for every event that matters to who runs it.

    Raises ListenError, or OSError when the folder cannot be used (FolderInUseError is one).
    """
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(Signals())
        spool = Spool(out, stamp, what.roll_bytes, what.limits)
        stack.callback(spool.abandon)
        interfaces = []
        for name in what.interfaces:
            opened = Interface(name, what.filter, promiscuous=what.promiscuous, buffer_bytes=what.buffer_bytes)
            stack.callback(opened.close)
            interfaces.append(opened)
        writer = Writer(spool, stamp, say)
        writer.start()
        say(f"capturing {what.filter!r} on {', '.join(what.interfaces)} into {out}")
        loop = _Loop(what, stamp, interfaces, writer)
        loop.say = say
        try:
            loop.run(signals)
        finally:
            writer.finish()
        loop.summary.files = spool.files
        loop.summary.dropped += writer.lost
        loop.summary.frames -= writer.lost
        return loop.summary


class _Loop:
    def __init__(self, what: Listening, stamp: frames.Stamp, interfaces: Sequence[Interface], writer: Writer) -> None:
        self.summary = Summary()
        self.say: Callable[[str], None] = lambda _: None
        self._what, self._stamp, self._writer = what, stamp, writer
        self._interfaces = list(interfaces)
        self._rows_since_roll = False
        self._asked_ns = 0
        self._rolled_s = self._dropped_s = time.monotonic()

    def run(self, signals: Signals) -> None:
        began_s = time.monotonic()
        self._mark(frames.Mark(frames.STARTED, time.time_ns()))
        while not signals.stop and self._interfaces:
            self._take_rows(ring.RETIRE_MS)
            self._tell_losses()
            if signals.roll or self._is_due():
                signals.roll = False
                self._roll()
            if self._what.duration_s is not None and time.monotonic() - began_s >= self._what.duration_s:
                break
        time.sleep(1.5 * ring.RETIRE_MS / 1000)  # what is in a block that is not full comes over by then
        self._take_rows(0)
        self._tell_losses(at_once=True)
        self._mark(frames.Mark(frames.ENDED, time.time_ns()))

    def _take_rows(self, timeout_ms: int) -> None:
        poll = select.poll()
        self._asked_ns = time.time_ns()
        for interface in self._interfaces:
            poll.register(interface, select.POLLIN | select.POLLERR)
        for handle, event in poll.poll(timeout_ms):
            if event & select.POLLERR:
                self._take_error(next(i for i in self._interfaces if i.fileno() == handle))
        for interface in self._interfaces:
            for rows in interface.batches(self._stamp):
                self._put(rows)

    def _take_error(self, interface: Interface) -> None:
        error = interface.take_error()
        if error is not None:
            self.say(error)

    def _give_up(self, interface: Interface) -> None:
        self._mark(frames.Mark(frames.INPUT_ERROR, time.time_ns(), interface.name, reason="interface went away"))
        self._interfaces.remove(interface)
        self.say(f"interface {interface.name} went away")

    def _tell_losses(self, *, at_once: bool = False) -> None:
        """What the kernel dropped and what is no frame, since this was last told."""
        if not at_once and time.monotonic() - self._dropped_s < _DROPS_S:
            return
        self._dropped_s = time.monotonic()
        for interface in list(self._interfaces):
            dropped = interface.dropped()
            if dropped:
                reason = "no room in the ring"
                self._mark(frames.Mark(frames.DROPPED, time.time_ns(), interface.name, dropped, reason))
            for mark in interface.rows.skipped_marks(interface.name, time.time_ns()):
                self._mark(mark)
            interface.rows.state.skipped[:] = 0
            if not interface.is_there():
                self._give_up(interface)

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
