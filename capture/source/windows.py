"""The bytes of a capture file, a window at a time, from a disk or a pipe.

Memory is one window, small enough for the processor's cache; it grows only when its reader could consume nothing. A
compressed file that grows out of all proportion ends with an error line. Files are read, not mapped: truncating a
mapped file would end the process with SIGBUS.
"""

from __future__ import annotations

import io
import os
import select
import stat
from typing import TYPE_CHECKING

from wirecheck.capture.source import archives, compressed_files

if TYPE_CHECKING:
    from pathlib import Path

_PIECE_BYTES = 1 << 19
UNPACKED_BYTES = 1 << 30  # so much of a packed file is read whatever it was packed to
_LOOK_MS = 500  # so often a signal is looked for that came just before the wait
MOST_TIMES = 200  # beyond: captures of zeros, in segments as offloading joins them, are packed to 100 times less


class Pipe(io.RawIOBase):
    """A pipe, which can be read only once. It keeps what was read and can start again, until `settle`."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._ready = select.poll()
        self._ready.register(file, select.POLLIN)
        self._kept = bytearray()
        self._at = 0
        self._keeps = True

    @classmethod
    def at(cls, path: Path) -> Pipe | None:
        """None of a file that can be opened again. Raises OSError."""
        try:
            mode = path.stat().st_mode
        except NotADirectoryError:  # in an archive
            return None
        return None if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else cls(path.open("rb", buffering=0))

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override] # callers here pass a memoryview
        if self._at < len(self._kept):
            piece = self._kept[self._at : self._at + len(target)]
            target[: len(piece)] = piece
            self._at += len(piece)
            return len(piece)
        # A signal that comes after Python last looked and before a read begins does not end that read: a Ctrl-C was
        # lost in 14 of 3,000 tries.
        while not self._ready.poll(_LOOK_MS):
            pass
        count = self._file.readinto(target) or 0
        self._at += count
        if self._keeps:
            self._kept += target[:count]
        else:
            self._kept.clear()
        return count

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if not self._keeps or offset or whence:
            raise io.UnsupportedOperation("a pipe is read once")
        self._at = 0
        return 0

    def tell(self) -> int:
        return self._at

    def settle(self) -> None:
        """It will not begin again."""
        self._keeps = False

    def close(self) -> None:
        self._file.close()
        super().close()


def _opened(path: Path) -> io.RawIOBase:
    try:
        return path.open("rb", buffering=0)
    except NotADirectoryError:
        return archives.opened(path)


class Windows:
    """`data` are the bytes of the file from `start` on."""

    def __init__(self, path: Path, window_bytes: int, pipe: Pipe | None = None) -> None:
        """Raises OSError where it cannot be opened or read."""
        self._file: io.RawIOBase = pipe or Pipe.at(path) or _opened(path)
        try:
            magic = self._file.read(compressed_files.MAGIC_BYTES) or b""
            self._file.seek(0)
        except OSError:
            self._file.close()
            raise
        self._packed = compressed_files.unpacked(magic, self._file)
        self._seekable = isinstance(self._file, io.FileIO)
        self._most_bytes = max(min(window_bytes, 2 * _PIECE_BYTES), 64)
        self.data = b""
        self.start = 0
        self.ended = False
        self.broken: str | None = None  # why the bytes end here though the file goes on or should
        self.file_bytes = 0  # read so far of the file itself, packed as it is
        self._grows = False
        self._end_bytes: int | None = None  # what is read ends here, though the file goes on

    @property
    def is_seekable(self) -> bool:
        """Whether reading can begin anywhere in the file."""
        return self._seekable and self._packed is None

    def widen(self) -> None:
        """Read larger pieces: the rest of the file is about to be read."""
        self._most_bytes = max(self._most_bytes, 2 * _PIECE_BYTES)

    def sample(self, start: int, size: int) -> bytes:
        """Bytes of a seekable file, as far as they are there. The windows stay where they are."""
        return os.pread(self._file.fileno(), size, start)

    def limit(self, start: int, end: int | None) -> None:
        """Read this part of a seekable file."""
        self.start, self._end_bytes = self._file.seek(start), end
        self.data, self.ended = b"", False

    @property
    def is_pipe(self) -> bool:
        return isinstance(self._file, Pipe)

    def close(self) -> None:
        self._file.close()

    def settle(self) -> None:
        """The beginning is not read again: keep no more of it."""
        if isinstance(self._file, Pipe):
            self._file.settle()

    def grow(self) -> None:
        """The file may have grown since it ended: what is there is given, and no window is waited for to be full.

        Raises ValueError where it is packed: what is packed ends with its last byte.
        """
        if self._packed is not None:
            raise ValueError("a compressed capture cannot be followed")
        self._grows, self.ended = True, False

    def slide(self, consumed: int) -> None:
        """Remove the first `consumed` bytes and append the next piece of the file, up to the window's size."""
        if consumed == 0 and len(self.data) == self._most_bytes:
            self._most_bytes *= 2
        self.start += consumed
        rest = self.data[consumed:]
        size = min(len(rest) + _PIECE_BYTES, self._most_bytes)
        if self._end_bytes is not None:
            size = min(size, self._end_bytes - self.start)
        self.data = self._read_again(rest, size) if self._packed is None and self._seekable else rest
        while not self.ended and len(self.data) < size:
            self.data += self._read(min(_PIECE_BYTES, self._most_bytes - len(self.data)))
            if self._grows:
                return
        if self._end_bytes is not None and self.start + len(self.data) >= self._end_bytes:
            self.ended = True

    def _read_again(self, rest: bytes, size: int) -> bytes:
        """The rest and what follows in one read: cheaper than to read what follows and join them."""
        try:
            found = os.pread(self._file.fileno(), size, self.start)
        except OSError:  # the next read raises it
            found = b""
        if len(found) <= len(rest):
            found = rest
        self.file_bytes = self._file.seek(self.start + len(found))
        return found

    def _read(self, most: int) -> bytes:
        piece = b""
        try:
            piece = self._file.read(most) or b"" if self._packed is None else self._unpack(self._packed, most)
            self.file_bytes = self._file.tell()
        except (EOFError, ValueError) as error:
            self.broken = str(error)
        except OSError as error:
            self.broken = f"read error ({error.strerror})"
        unpacked_bytes = self.start + len(self.data) + len(piece)
        if self._packed is not None and unpacked_bytes > max(UNPACKED_BYTES, MOST_TIMES * self.file_bytes):
            self.broken = f"expands beyond {MOST_TIMES} times its packed size; unpack it to read all of it; ended"
        self.ended = not piece or self.broken is not None
        return piece

    @staticmethod
    def _unpack(packed: compressed_files.Unpacked, most: int) -> bytes:
        target = bytearray(most)
        return bytes(memoryview(target)[: packed.readinto(memoryview(target)) or 0])
