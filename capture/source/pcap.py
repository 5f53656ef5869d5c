"""Capture files in, frames out: pcap and pcapng, compressed or not, from a disk or a pipe.

A broken file gives every packet before the damage, then one line that names the byte. Files are walked by a compiled
loop, because scapy costs 10 us per packet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from wirecheck.capture import frames
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
}
_READ = "supported: Ethernet, raw IP, loopback, Linux cooked (see www.tcpdump.org/linktypes.html)"


class InputError(Exception):
    """Nothing of this file could be read, for this `reason`; `offset` is the byte at which reading failed."""

    def __init__(self, path: Path | str, offset: int, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.offset, self.reason = path, offset, reason


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of one source. `clock[i]` is the newest time of any packet up to row i: it never goes back."""

    rows: pa.RecordBatch
    clock: NDArray[np.int64]


class Walk(Protocol):
    """A container format: it knows where packets begin."""

    link_types: set[int]
    """Those that the file has declared so far."""
    key_logs: list[bytes]
    """TLS secrets in the file that have not been taken yet."""

    def walk(self, windows: Windows, rows: Rows, limit: int) -> tuple[bool, str | None]: ...

    def truncated(self, rest: int) -> str: ...

    def lies(self) -> list[str]: ...


class CaptureFile:
    """One capture file, read once from its beginning. Close it, or use it in a with statement."""

    def __init__(
        self, path: Path, batch_bytes: int = BATCH_BYTES, pipe: Pipe | None = None, *, grows: bool = False
    ) -> None:
        """`grows`: it is still being written, see `growing`.

        Raises InputError where it cannot be opened, begins as no capture file does, or is compressed and `grows`.
        """
        self.path = path
        self.source = str(path)
        self.on_keys: Callable[[bytes], None] = lambda _: None
        """Called with each key log in the file, before the packets that follow it."""
        self.error: tuple[int, str] | None = None  # (byte offset, reason) once the file turned out to be broken
        try:
            self._windows = Windows(path, batch_bytes, pipe)
        except OSError as error:
            raise InputError(path, 0, _why_not_opened(error)) from error
        self.rows = Rows(batch_bytes)
        try:
            if grows:
                self._windows.grow()
            self._windows.slide(0)
            while len(self._windows.data) < classic.HEADER_BYTES and not self._windows.ended:
                self._windows.slide(0)
            self._walk = self._recognise()
        except InputError:
            self.close()
            raise
        except ValueError as error:
            self.close()
            raise InputError(path, 0, str(error)) from error

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
                yield Batch(self.rows.batch(self.source, stamp), self.rows.clock())

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
        now = self.rows.newest_ns
        marks = self.rows.skipped_marks(self.source, now)
        dropped = min(int(self.rows.headers.dropped), frames.MOST_COUNT)
        if dropped:
            marks.append(frames.Mark(frames.DROPPED, now, self.source, dropped, "reported by the capture file"))
        cut, longest = self.rows.headers.cut, self.rows.headers.cut_bytes
        if cut:
            reason = f"{cut} packets are cut to at most {longest} bytes (snap length); capture whole packets"
            marks.append(frames.Mark(frames.INPUT_ERROR, now, self.source, reason=reason))
        lies = self._walk.lies()
        unread = int(self.rows.headers.skipped[link_type.UNSUPPORTED_LINK_TYPE])
        types = ", ".join(str(number) for number in sorted(self._walk.link_types) if not link_type.is_supported(number))
        if unread and types:
            lies = [*lies, f"{unread} packets of link type {types} are not supported; {_READ}"]
        reasons = lies if self.error is None else [*lies, self.error[1]]
        marks += [frames.Mark(frames.INPUT_ERROR, now, self.source, reason=reason) for reason in reasons]
        return marks

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


def first_look(path: Path) -> tuple[int, Pipe | None]:
    """Time of a capture file's first packet, 0 if it holds none; what to read it from if it can be opened only once.

    Raises InputError if nothing of it can be read.
    """
    try:
        pipe = Pipe.at(path)
    except OSError as error:
        raise InputError(path, 0, _why_not_opened(error)) from error
    file = CaptureFile(path, _PEEK_BYTES, pipe)
    try:
        first_ns = file.first_ns()
    except InputError:
        file.close()
        raise
    if pipe is None:
        file.close()
    else:
        pipe.seek(0)
    return first_ns, pipe


def _why_not_opened(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "a folder, not a capture file"
    return (error.strerror or str(error)).lower()
