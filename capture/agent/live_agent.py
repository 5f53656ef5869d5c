"""The live agent: interfaces in, a growing folder of frames out, until it is stopped.

The loop that empties the rings never waits for a disk: a second thread writes, behind a short queue. When the queue is
full, the kernel drops packets and counts them.
"""

from __future__ import annotations

import contextlib
import select
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from wirecheck import extension_modules
from wirecheck.capture import frames
from wirecheck.capture.agent.counts import KERNEL, Counts
from wirecheck.capture.agent.redaction import redacting
from wirecheck.capture.agent.shipper import Shipper
from wirecheck.capture.agent.spool import ROLL_BYTES, Spool
from wirecheck.capture.agent.writer import ClockWentBack, Shown, Writer
from wirecheck.capture.refusal import ListenError
from wirecheck.capture.source import ring
from wirecheck.capture.source.interface import BUFFER_BYTES, Interface, index_of, need_libpcap

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

    from wirecheck.capture.agent.shipper import Destination
    from wirecheck.capture.agent.spool_folder import Folder, Limits

BEGUN = "capturing "
"""How the line begins that says so."""
_SETTLED_NS = 500_000_000  # a packet this old has left the ring
_TIME_S = 0.25  # how often the writing thread gets the time
_GATHER_S = 0.05  # packets gather for so long while rings are nearly empty: what is taken together costs less
_NEARLY_EMPTY = 1 / 8  # of a ring
_IDLE_S = 10.0  # an agent without traffic writes a file this often: the checks wait for its time
_LOOKED_S = 1.0
_ONE_SIGNAL_S = 1.0  # timeout(1) sends its signal twice: to the process, and to its group
_BACK_NS = 1_000_000_000  # a clock that is set back by less only makes packets late


@dataclass(frozen=True)
class Listening:
    """What to listen to and how."""

    interfaces: tuple[str, ...]
    ports: tuple[int, ...] = ()
    bpf: str | None = None  # instead of the ports
    promiscuous: bool = False
    buffer_bytes: int = BUFFER_BYTES
    roll_bytes: int = ROLL_BYTES
    roll_s: float = 2.0
    duration_s: float | None = None
    limits: Limits | None = None
    keep_records: bool = False
    destination: Destination | None = None
    key_logs: tuple[Path, ...] = ()

    @property
    def filter(self) -> str:
        """As tcpdump would have it."""
        if self.bpf is not None:
            return self.bpf
        if not self.ports:
            return "tcp"
        return "tcp and (" + " or ".join(f"port {port}" for port in self.ports) + ")"

    def open(self, name: str) -> Interface:
        return Interface(name, self.ports, self.bpf, promiscuous=self.promiscuous, buffer_bytes=self.buffer_bytes)


class Signals:
    """SIGTERM and SIGINT ask to stop, SIGHUP asks for a new file; the loop looks when it has time."""

    def __init__(self) -> None:
        self.stop = False
        self.roll = False
        self._asked_s = 0.0
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
        elif not self.stop:
            self.stop, self._asked_s = True, time.monotonic()
        elif time.monotonic() - self._asked_s >= _ONE_SIGNAL_S:
            signal.signal(number, signal.SIG_DFL)  # who asks twice does not want to wait: only whole files are visible
            signal.raise_signal(number)


def listen(
    what: Listening,
    out: Path,
    stamp: frames.Stamp,
    say: Callable[[str], None] = lambda _: None,
    counts: Counts | None = None,
    *,
    begun: Callable[[str], None] | None = None,
) -> Counts:
    """Capture until a stop is requested; `say` gets one line for every event that matters to the operator.

    `begun`, or else `say`, gets the line that says so. `counts` grows meanwhile, for who wants to look. Records,
    secrets and all that is not known to be Kafka are left out unless `what` keeps them. Raises ListenError, or OSError
    when the folder cannot be used (FolderInUseError is one), or KeyLogError.
    """
    counts = Counts() if counts is None else counts
    if what.bpf is not None:
        need_libpcap()
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(Signals())
        spool = Spool(out, stamp, what.roll_bytes, what.limits)
        stack.callback(spool.abandon)
        shipper = what.destination and shipping(spool.folder, what.destination, stamp.agent, counts, say)
        interfaces: dict[str, Interface] = {}
        stack.callback(_close, interfaces)
        for name in what.interfaces:
            interfaces[name] = what.open(name)
        new_redaction = redacting(
            what.key_logs,
            counts,
            say,
            stack,
            keep_records=what.keep_records,
            in_turn=len(what.interfaces) > 1,
        )
        writer = Writer(spool, stamp, counts, say, new_redaction)
        loop = _Loop(what, stamp, interfaces, writer, counts)
        loop.say = say
        if line := extension_modules.slow():
            say(line)
        (begun or say)(f"{BEGUN}{what.filter!r} on {', '.join(interfaces)} into {out}")
        writer.start()
        if shipper:
            writer.on_file = shipper.wake
            shipper.start()
        try:
            loop.run(signals)
        finally:
            writer.finish()
            if shipper:
                shipper.finish()
    return counts


def shipping(
    folder: Folder, destination: Destination, agent: str, counts: Counts, say: Callable[[str], None]
) -> Shipper:
    """Who sends the folder's files. A new folder's numbers go on behind those that are there. Raises OSError."""
    if not folder.last:
        folder.number_from(destination.last_number(agent))
    return Shipper(folder, destination, counts, say)


def _close(interfaces: dict[str, Interface]) -> None:
    for interface in interfaces.values():
        interface.close()


class _Loop:
    def __init__(
        self, what: Listening, stamp: frames.Stamp, interfaces: dict[str, Interface], writer: Writer, counts: Counts
    ) -> None:
        self.say: Callable[[str], None] = lambda _: None
        self._what, self._stamp, self._writer, self._counts = what, stamp, writer, counts
        self._interfaces = interfaces  # those that are there
        self._cannot = ""  # why one cannot be opened again, as it was last reported
        self._rolled_s = self._looked_s = self._timed_s = time.monotonic()
        self._asked_ns = time.time_ns()
        self._offset_ns = self._asked_ns - time.monotonic_ns()

    def run(self, signals: Signals) -> None:
        began_s = time.monotonic()
        self._tell_time()
        self._mark(frames.Mark(frames.STARTED, self._asked_ns))
        while not signals.stop:
            fullest = self._take_rows(ring.RETIRE_MS)
            self._look()
            if signals.roll or self._is_due():
                self._tell_time(roll=True)
                signals.roll, self._rolled_s = False, time.monotonic()
            elif time.monotonic() - self._timed_s >= _TIME_S:
                self._tell_time()
            if self._what.duration_s is not None and time.monotonic() - began_s >= self._what.duration_s:
                break
            if fullest < _NEARLY_EMPTY:
                time.sleep(_GATHER_S)
        self._take_last_rows()
        self._tell_losses()
        self._mark(frames.Mark(frames.ENDED, time.time_ns()))

    def _take_rows(self, timeout_ms: int) -> float:
        """How full the fullest ring was, 0 to 1."""
        fullest = 0.0
        poll = select.poll()
        self._asked_ns, self._counts.alive_s = time.time_ns(), time.monotonic()
        for interface in self._interfaces.values():
            poll.register(interface, select.POLLIN | select.POLLERR)
        for handle, event in poll.poll(timeout_ms):
            if event & select.POLLERR:
                error = next(i for i in self._interfaces.values() if i.fileno() == handle).take_error()
                if error is not None:
                    self.say(error)
        for name, interface in self._interfaces.items():
            fill = interface.fill()
            fullest = max(fullest, fill)
            self._counts.ring_fill[name] = max(fill, self._counts.ring_fill.get(name, 0.0))
            for rows in interface.batches(self._stamp):
                if not rows.num_rows:
                    continue
                self._counts.frames[name] += rows.num_rows
                self._counts.payload_bytes[name] += int(rows.column("payload_len").to_numpy().sum())
                self._counts.last_frame_ns = rows.column("ts_ns")[-1].as_py()
                self._writer.put(rows)
        return fullest

    def _take_last_rows(self) -> None:
        time.sleep(1.5 * ring.RETIRE_MS / 1000)  # what is in a block that is not full comes over by then
        self._take_rows(0)

    def _is_due(self) -> bool:
        age_s = time.monotonic() - self._rolled_s
        return age_s >= (self._what.roll_s if self._writer.holds_rows else max(self._what.roll_s, _IDLE_S))

    def _tell_time(self, *, roll: bool = False) -> None:
        self._timed_s = time.monotonic()
        self._writer.put(Shown(self._asked_ns - _SETTLED_NS, roll))

    # --- now and then

    def _look(self) -> None:
        """At the clock always; at what the kernel lost and which interfaces are there once a second."""
        self._look_at_clock()
        if time.monotonic() - self._looked_s < _LOOKED_S:
            return
        self._looked_s = time.monotonic()
        self._writer.check()
        for name in self._interfaces:
            self._counts.ring_fill[name] = 0.0
        self._tell_losses()
        for name in self._what.interfaces:
            if name not in self._interfaces:
                self._take_back(name)
            elif not self._interfaces[name].is_there():
                self._give_up(self._interfaces.pop(name))

    def _look_at_clock(self) -> None:
        offset_ns = time.time_ns() - time.monotonic_ns()
        back_ns, self._offset_ns = self._offset_ns - offset_ns, offset_ns
        if back_ns < _BACK_NS:
            return
        self._take_last_rows()  # they are still of the old time
        self._writer.put(ClockWentBack())
        reason = f"went back by {back_ns / 1e9:.1f} s"
        self._mark(frames.Mark(frames.CLOCK, time.time_ns(), "the agent's clock", 1, reason))
        self.say(f"the clock {reason}; payload that waited for redaction is redacted completely")

    def _tell_losses(self) -> None:
        """What the kernel dropped and what is not a frame, since the last report."""
        for interface in self._interfaces.values():
            dropped = interface.dropped()
            if dropped:
                reason = "the ring was full"
                self._counts.lost[interface.name, KERNEL] += dropped
                self._mark(frames.Mark(frames.DROPPED, time.time_ns(), interface.name, dropped, reason))
            for mark in interface.rows.skipped_marks(interface.name, time.time_ns()):
                self._counts.skipped[str(mark.reason)] += mark.count
                self._mark(mark)
            interface.rows.forget_skipped()

    def _give_up(self, interface: Interface) -> None:
        self._mark(frames.Mark(frames.INPUT_ERROR, time.time_ns(), interface.name, reason="interface went away"))
        self.say(f"interface {interface.name} went away; waiting for it")
        interface.close()

    def _take_back(self, name: str) -> None:
        try:
            if index_of(name) is None:
                return
            self._interfaces[name] = self._what.open(name)
        except (ListenError, OSError) as error:  # it is not ready yet, or something else is missing
            if str(error) != self._cannot:
                self._cannot = str(error)
                self.say(f"cannot capture on interface {name}: {getattr(error, 'strerror', None) or error}")
            return
        self._cannot = ""
        self.say(f"interface {name} is back")

    def _mark(self, mark: frames.Mark) -> None:
        self._writer.put(frames.mark_rows([mark], self._stamp))
