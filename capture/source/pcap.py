"""Capture files in, frames out: pcap and pcapng, compressed or not, from a disk or a pipe.

A broken file gives every packet before the damage, then one line that names the byte. Files are walked by a compiled
loop, because scapy costs 10 us per packet.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from wirecheck.capture import frames
from wirecheck.capture.frames_file_name import text_of
from wirecheck.capture.link import link_type
from wirecheck.capture.source import classic, pcapng
from wirecheck.capture.source.rows import BATCH_BYTES, Rows
from wirecheck.capture.source.windows import Pipe, Windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_NO_LIMIT = 1 << 60
_PEEK_BYTES = 1 << 16
_OTHERS = {
    b"PAR1": "a frames file; give its folder instead",
    b"PK\x03\x04": "a zip archive; unpack it",
    b"snoo": "a snoop file; convert it with Wireshark's editcap",
    b"GMBU": "a Network Monitor file; convert it with Wireshark's editcap",
    b"RTSS": "a Network Monitor file; convert it with Wireshark's editcap",
}
_MOST_OF_TCPDUMP = 262_144 - 256
"""tcpdump keeps no more than 262,144 bytes of a packet with its headers, whatever it is asked for."""
_NO_MORE = "tcpdump keeps no more of a packet (BIG TCP): capture with wirecheck capture, or set gso_max_size to 65536"
_TOO_FAR = "too far from their place to be sorted; use Wireshark's reordercap, and read its output"
_READ = "supported: Ethernet, raw IP, loopback, Linux cooked, exported PDUs (see www.tcpdump.org/linktypes.html)"


class InputError(Exception):
    """Nothing of this file could be read, for this `reason`; `offset` is the byte at which reading failed."""

    def __init__(self, path: Path | str, offset: int, reason: str) -> None:
        name = text_of(path).replace("\n", "\\n")  # a file's name begins no line of its own
        super().__init__(f"{name}: {reason}")
        self.path, self.offset, self.reason = path, offset, reason


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of one source. `clock[i]` is the newest time of any packet up to row i: it never goes back."""

    rows: pa.RecordBatch
    clock: NDArray[np.int64]
    interfaces: NDArray[np.int64] | None = None
    """Number of each row's interface; None: all came by the first one, or it does not matter any more."""
    stamps: NDArray[np.int64] | None = None
    """TCP timestamp of each row, negative where it has none; None: none has one, or it does not matter any more."""

    def slice(self, begin: int) -> Batch:
        """The rows from this one on."""
        numbers = None if self.interfaces is None else self.interfaces[begin:]
        stamps = None if self.stamps is None else self.stamps[begin:]
        return Batch(self.rows.slice(begin), self.clock[begin:], numbers, stamps)


class Walk(Protocol):
    """A container format: it knows where packets begin."""

    link_types: set[int]
    """Those that the file has declared so far."""
    key_logs: list[bytes]
    """TLS secrets in the file that have not been taken yet."""

    def walk(self, windows: Windows, rows: Rows, limit: int) -> tuple[bool, str | None]: ...

    def survey(self, windows: Windows, rows: Rows, survey: classic.Survey) -> int: ...

    def copy(self) -> Walk: ...

    def interfaces(self) -> int: ...

    def truncated(self, rest: int) -> str: ...

    def lies(self) -> list[str]: ...


@dataclass(frozen=True)
class Stretch:
    """A part of a file in which time does not step back."""

    first_ns: int
    begin: int
    """Byte offset of its first packet."""
    end: int | None
    """Where the next stretch begins; None: it goes on to the end of the file."""
    packets: int
    """In the file before it."""
    walk: Walk | None
    """What the file has declared so far; None: nothing yet."""


@dataclass
class Unread:
    """What could not be read of a file that is read in `parts`."""

    parts: int = 1
    skipped: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    cut: int = 0
    cut_bytes: int = 0
    lies: list[str] = field(default_factory=list)
    unsupported: set[int] = field(default_factory=set)
    """Link types."""
    errors: list[str] = field(default_factory=list)
    late: int = 0
    """Packets so far out of order that they were not moved to their place."""
    clock_steps: list[str] = field(default_factory=list)
    """How the clock of the file was set."""
    apart: list[str] = field(default_factory=list)
    """How far its clock is from that of another file, by which it is dated."""
    redated: int = 0
    """Packets that alone had another time than those around them."""
    newest_ns: int = 0

    def marks(self, source: str) -> list[frames.Mark]:
        now = self.newest_ns
        marks = [frames.Mark(frames.SKIPPED, now, source, count, reason) for reason, count in self.skipped.items()]
        if self.dropped:
            dropped = min(self.dropped, frames.MOST_COUNT)
            marks.append(frames.Mark(frames.DROPPED, now, source, dropped, "reported by the capture file"))
        if self.clock_steps:
            marks.append(frames.Mark(frames.CLOCK, now, source, len(self.clock_steps), set_clock(self.clock_steps)))
        marks += [frames.Mark(frames.CLOCK, now, source, 1, words) for words in self.apart]
        if self.redated:
            marks.append(frames.Mark(frames.CLOCK, now, source, self.redated, single_packets(self.redated)))
        reasons = []
        if self.cut:
            are = "1 packet is" if self.cut == 1 else f"{self.cut} packets are"
            what_helps = _NO_MORE if self.cut_bytes >= _MOST_OF_TCPDUMP else "capture whole packets"
            reasons.append(f"{are} cut to at most {self.cut_bytes} bytes (snap length); {what_helps}")
        if self.late:
            reasons.append(f"{self.late} packets are out of order and {_TOO_FAR}")
        reasons += self.lies
        unread = self.skipped.get(link_type.REASONS[link_type.UNSUPPORTED_LINK_TYPE], 0)
        if unread and self.unsupported:
            types = ", ".join(map(str, sorted(self.unsupported)))
            reasons.append(f"{unread} packets of link type {types} are not supported; {_READ}")
        reasons += self.errors
        return [*marks, *(frames.Mark(frames.INPUT_ERROR, now, source, reason=reason) for reason in reasons)]


def set_clock(steps: list[str]) -> str:
    more = f", and {len(steps) - SHOWN_STEPS} times more" if len(steps) > SHOWN_STEPS else ""
    return f"its clock was set {', '.join(steps[:SHOWN_STEPS])}{more}; later packets are dated without that"


def single_packets(count: int) -> str:
    what = "1 packet has" if count == 1 else f"{count:,} packets have"
    return f"{what} another time than the packets around; TCP shows the order, and the packet before gives the time"


SHOWN_STEPS = 3
SURVEYED_BYTES = 64 << 20
"""A file up to this size is read twice: once for its times, which takes 1 % of the CPU time of reading it."""
SAMPLES, SAMPLE_BYTES = 256, 1 << 17
"""Of a larger pcapng file: places in it, and how much is looked at there for a packet."""
STEP_NS = 1_000_000_000
"""Where time steps back further, packets are sorted. Where it jumps further, packets of other parts may be between."""
SMALL_STEP_NS = 10_000_000
"""As far as packets of several interfaces and cores may be out of order. Further is sorted where it is rare."""
MOST_STRETCHES = 256
"""Of one file; where time steps back more often, packets are interleaved, and a window of rows sorts them."""


class CaptureFile:
    """One capture file, read once from its beginning. Close it, or use it in a with statement."""

    def __init__(
        self,
        path: Path,
        batch_bytes: int = BATCH_BYTES,
        pipe: Pipe | None = None,
        *,
        grows: bool = False,
        stretch: Stretch | None = None,
    ) -> None:
        """`grows`: it is still being written, see `growing`. `stretch`: read this part of it alone.

        Raises InputError where it cannot be opened, begins as no capture file does, or is compressed and `grows`.
        """
        self.path = path
        self.source = text_of(path)
        self.on_keys: Callable[[bytes], None] = lambda _: None
        """Called with each key log in the file, before the packets that follow it."""
        self.error: tuple[int, str] | None = None  # (byte offset, reason) once the file turned out to be broken
        try:
            self._windows = Windows(path, batch_bytes, pipe)
        except OSError as error:
            raise InputError(path, 0, _why_not_opened(error)) from error
        self.rows = Rows(batch_bytes)
        self.surveyed_ns = 0
        """The newest time that `stretches` saw."""
        self.surveyed_lone = 0
        """Packets that alone have another time than those around them, as `stretches` saw."""
        try:
            if grows:
                self._windows.grow()
            self._windows.slide(0)
            while len(self._windows.data) < classic.HEADER_BYTES and not self._windows.ended:
                self._windows.slide(0)
            self._walk = self._recognise()
            if stretch is not None:
                self._begin_at(stretch)
        except InputError:
            self.close()
            raise
        except ValueError as error:
            self.close()
            raise InputError(path, 0, str(error)) from error

    def _begin_at(self, stretch: Stretch) -> None:
        headers, windows = self.rows.headers, self._windows
        windows.limit(stretch.begin, stretch.end)
        if stretch.walk is not None:
            self._walk = stretch.walk.copy()
            headers.position = 0
        headers.packets = stretch.packets
        windows.slide(0)

    def close(self) -> None:
        self._windows.close()

    @property
    def file_bytes(self) -> int:
        """Bytes of the file read so far, packed as they are."""
        return self._windows.file_bytes

    def _recognise(self) -> Walk:
        windows = self._windows
        head = windows.data[: classic.HEADER_BYTES]
        if not head:
            raise InputError(self.path, 0, windows.broken or "empty file")
        if head[:4] == pcapng.MAGIC:
            return pcapng.Blocks()
        if head[:4] not in classic.MAGIC:
            raise InputError(self.path, 0, _OTHERS.get(head[:4], "not a pcap or pcapng file"))
        if len(head) < classic.HEADER_BYTES:
            raise InputError(self.path, len(head), f"truncated file header at byte offset {len(head)}")
        return classic.Classic(windows, self.rows)

    def batches(self, stamp: frames.Stamp) -> Iterator[Batch]:
        self._windows.settle()
        going_on = True
        while going_on:
            self.rows.begin()
            going_on = self._read_batch()
            if self.rows.count:
                beside = self.rows.interfaces(), self.rows.stamps()
                yield Batch(self.rows.batch(self.source, stamp), self.rows.clock(), *beside)

    def growing(self, stamp: frames.Stamp) -> Iterator[Batch | None]:
        """Whole packets as they are written; None where there is none by now. Ends where the file is broken.

        What is piped in ends with the pipe.
        """
        windows = self._windows
        windows.settle()
        while self.error is None:
            self.rows.begin()
            used_up, broken = self._walk_on()
            yield Batch(self.rows.batch(self.source, stamp), self.rows.clock()) if self.rows.count else None
            position = int(self.rows.headers.position)
            if broken is not None:
                self._fail(windows.start + position, broken)
            elif used_up:
                if windows.ended and windows.is_pipe:
                    return
                windows.grow()
                windows.slide(position)
                self.rows.headers.position = 0

    def _read_batch(self) -> bool:
        """Read rows until the batch is full; False if the file ends before that."""
        used_up = going_on = True
        while used_up and going_on and self.rows.has_space:
            used_up, broken = self._walk_on()
            going_on = self._go_on(used_up, broken)
        return going_on

    def _walk_on(self) -> tuple[bool, str | None]:
        """As far as the window goes; whether it is used up, and why the file ends where it is broken."""
        used_up, broken = self._walk.walk(self._windows, self.rows, _NO_LIMIT)
        self.rows.keep(self._windows.data)
        while self._walk.key_logs:
            self.on_keys(self._walk.key_logs.pop(0))
        return used_up, broken

    def marks(self) -> list[frames.Mark]:
        """Marks for what could not be read; complete once the file was read to its end."""
        unread = Unread()
        self.add_unread(unread)
        return unread.marks(self.source)

    def add_unread(self, unread: Unread) -> None:
        """What could not be read of this part of the file, once it was read to its end."""
        headers = self.rows.headers
        for reason, count in zip(link_type.REASONS, headers.skipped, strict=True):
            if count:
                unread.skipped[reason] = unread.skipped.get(reason, 0) + int(count)
        unread.dropped += int(headers.dropped)
        unread.cut += int(headers.cut)
        unread.cut_bytes = max(unread.cut_bytes, int(headers.cut_bytes))
        unread.lies += self._walk.lies()
        unread.unsupported |= {number for number in self._walk.link_types if not link_type.is_supported(number)}
        unread.errors += [] if self.error is None else [self.error[1]]
        unread.newest_ns = max(unread.newest_ns, self.rows.newest_ns)
        unread.parts -= 1

    def look_for_keys(self) -> None:
        """Read it to its end for the key logs in it."""
        for _ in self.batches(frames.Stamp("", "")):
            pass

    def first_ns(self) -> int:
        """Time of the first packet, 0 if there is none. Uses the reader up; InputError if it is broken before that."""
        going_on = True
        while going_on and self.rows.packets == 0:
            going_on = self._go_on(*self._walk.walk(self._windows, self.rows, 1))
        if self.rows.packets == 0 and self.error is not None:
            raise InputError(self.path, *self.error)
        return self.rows.newest_ns

    def stretches(self, step_ns: int, *, lone: bool = True) -> list[Stretch]:
        """The parts of the file in which time does not step back so far, in the file's order, once `first_ns` was
        called. Sections of a pcapng file are parts of their own where time steps back at all. Uses the reader up.

        Empty if there are too many, the file can be read from its beginning only, or is large and seems to be in order.
        """
        windows, rows = self._windows, self.rows
        if not windows.is_seekable or not self._is_worth_a_survey():
            return []
        windows.widen()
        survey = classic.Survey(rows.headers.position, rows.packets, rows.newest_ns, step_ns)
        survey.jump_ns = STEP_NS
        survey.most_away = classic.LONE if lone else 0
        begins, jumps = [Stretch(rows.newest_ns, 0, None, 0, None)], list[tuple[int, Stretch]]()
        while len(begins) <= MOST_STRETCHES:
            status = self._walk.survey(windows, rows, survey)
            if status in {classic.STEPS_BACK, classic.JUMPS}:
                at, newest_ns = windows.start + int(survey.position), int(survey.newest_ns)
                self.surveyed_ns = max(self.surveyed_ns, newest_ns)
                found = Stretch(int(survey.ts_ns), at, None, int(survey.packets), self._walk.copy())
                survey.newest_ns = survey.ts_ns
                if status == classic.STEPS_BACK:
                    begins.append(found)
                elif len(jumps) < MOST_STRETCHES:
                    jumps.append((newest_ns, found))
                else:
                    survey.jump_ns = frames.LATEST_NS
            elif status == classic.MORE and not windows.ended:
                if survey.away:
                    survey.go_back()
                windows.slide(int(survey.position))
                survey.position = 0
            elif survey.away:  # to the end of the file
                survey.go_back()
                survey.most_away = 0
            else:
                self.surveyed_ns = max(self.surveyed_ns, int(survey.newest_ns))
                is_counted = link_type.LINK_EXPORTED_PDU in self._walk.link_types  # from the file's beginning on
                self.surveyed_lone = int(survey.lone)
                too_many = survey.lone > MOST_STRETCHES
                return [] if is_counted or too_many else _cut_at(self._without_lone(begins, classic.LONE * lone), jumps)
        return []

    def _without_lone(self, begins: list[Stretch], most: int) -> list[Stretch]:
        """Without a first one of at most so many packets, which alone have another time."""
        if len(begins) < 2 or begins[1].packets > most or isinstance(self._walk, pcapng.Blocks):
            return begins
        self.surveyed_lone += begins[1].packets
        return [replace(begins[0], first_ns=begins[1].first_ns), *begins[2:]]

    def _is_worth_a_survey(self) -> bool:
        """Whether it is small, or a pcapng whose time steps back between samples."""
        size = self.path.stat().st_size
        if size <= SURVEYED_BYTES:
            return True
        if not isinstance(self._walk, pcapng.Blocks):
            return False
        starts = range(0, size, max(size // SAMPLES & ~3, 4))
        found = [ticks for start in starts if (ticks := pcapng.ticks_in(self._windows.sample(start, SAMPLE_BYTES)))]
        return any(later < earlier for earlier, later in pairwise(found))

    @property
    def key_logs(self) -> tuple[bytes, ...]:
        """TLS secrets that a survey found."""
        return tuple(self._walk.key_logs)

    def _go_on(self, used_up: bool, broken: str | None) -> bool:
        """Move the window on. False: the file ends here, in order or not."""
        windows, position = self._windows, int(self.rows.headers.position)
        if broken is not None:
            self._fail(windows.start + position, broken)
            return False
        if used_up and windows.ended:
            rest = len(windows.data) - position
            if windows.broken is not None:
                self._fail(windows.start + len(windows.data), windows.broken)
            elif rest:
                self._fail(windows.start + position, self._walk.truncated(rest))
            return False
        if used_up:
            windows.slide(position)
            self.rows.headers.position = 0
        return True

    def _fail(self, offset: int, what: str) -> None:
        self.error = (offset, f"{what} at byte offset {offset}")


@dataclass(frozen=True)
class Look:
    """What is known of a capture file before it is read."""

    first_ns: int
    """Time of its first packet, 0 if it holds none."""
    pipe: Pipe | None = None
    """What it is read from, if it can be opened only once."""
    stretches: tuple[Stretch, ...] = ()
    """Empty: unknown."""
    key_logs: tuple[bytes, ...] = ()
    """TLS secrets in it, if it is read in several stretches."""
    newest_ns: int = 0
    """The newest time in it; 0: unknown."""
    lone: int = 0
    """Packets that alone have another time."""


def _cut_at(begins: list[Stretch], jumps: list[tuple[int, Stretch]]) -> list[Stretch]:
    """Stretches, also cut where time jumps (from a time, to a stretch) over the beginning of another one: what is read
    at a time is small then.
    """
    times = sorted(one.first_ns for one in begins)
    cuts = [to for newest_ns, to in jumps if bisect_right(times, newest_ns) < bisect_left(times, to.first_ns)]
    every = sorted([*begins, *cuts], key=lambda one: one.begin)
    ends = [*(one.begin for one in every[1:]), None]
    return [replace(one, end=end) for one, end in zip(every, ends, strict=True)]


def first_look(path: Path, *, lone: bool = True) -> Look:
    """`lone`: few packets of another time are no stretch. Raises InputError if nothing of it can be read."""
    try:
        pipe = Pipe.at(path)
    except OSError as error:
        raise InputError(path, 0, _why_not_opened(error)) from error
    if pipe is None:
        look = _surveyed(path, SMALL_STEP_NS, lone=lone)
        return look if look.stretches else _surveyed(path, STEP_NS, lone=lone)
    file = CaptureFile(path, _PEEK_BYTES, pipe)
    try:
        first_ns = file.first_ns()
    except InputError:
        file.close()
        raise
    pipe.seek(0)
    return Look(first_ns, pipe)


def _surveyed(path: Path, step_ns: int, *, lone: bool) -> Look:
    file = CaptureFile(path, _PEEK_BYTES)
    try:
        first_ns = file.first_ns()
        stretches = tuple(file.stretches(step_ns, lone=lone))
        first_ns = stretches[0].first_ns if stretches else first_ns
        key_logs = file.key_logs if len(stretches) > 1 else ()
        return Look(first_ns, None, stretches, key_logs, file.surveyed_ns, file.surveyed_lone)
    finally:
        file.close()


def _why_not_opened(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "a folder, not a capture file"
    return (error.strerror or str(error)).lower()
