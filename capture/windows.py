"""The bytes of a capture file, a window at a time, packed or not.

Knows: one reused buffer that slides over the file, and how to unpack gzip members as a stream.
Refuses to know: what the bytes mean.
Rule: memory is one window, whatever the file's size; a window grows only when its reader could consume nothing of it.
The file is read, not mapped: a mapped file that somebody truncates ends the process with SIGBUS, the whole mapping
counts as resident memory, and reading a warm file into a reused buffer costs 0.1 s per GB.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from io import FileIO
    from pathlib import Path

WINDOW_BYTES = 8 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_PACKED_BYTES = 1 << 18
_PIECE_BYTES = 1 << 20


class Windows:
    """`data[:filled]` are the bytes of the file from `start` on."""

    def __init__(self, path: Path, window_bytes: int = WINDOW_BYTES) -> None:
        self._file = path.open("rb", buffering=0)
        try:
            magic = self._file.read(2)
            self._file.seek(0)
        except OSError:
            self._file.close()
            raise
        self._gzip = _Gzip(self._file) if magic == _GZIP_MAGIC else None
        self.data = np.empty(max(window_bytes, 64), np.uint8)
        self.start = 0
        self.filled = 0
        self.ended = False
        self.broken: str | None = None  # why the bytes end here though the file goes on or should
        self.file_bytes = 0  # read so far of the file itself, packed as it is

    def close(self) -> None:
        self._file.close()

    def slide(self, consumed: int) -> None:
        """Forget the first `consumed` bytes and fill up behind the rest."""
        rest = self.filled - consumed
        if consumed == 0 and self.filled == self.data.size:
            grown = np.empty(2 * self.data.size, np.uint8)
            grown[:rest] = self.data[:rest]
            self.data = grown
        elif consumed:
            self.data[:rest] = self.data[consumed : self.filled].copy()
        self.start += consumed
        self.filled = rest
        while not self.ended and self.filled < self.data.size:
            self._fill()

    def _fill(self) -> None:
        room = self.data[self.filled :].data
        count = 0
        try:
            if self._gzip is None:
                count = self._file.readinto(room) or 0
                self.file_bytes += count
            else:
                count = self._gzip.readinto(room)
                self.file_bytes = self._file.tell()
        except OSError as error:
            self.broken = f"read error ({error.strerror})"
        except zlib.error:
            self.broken = "corrupt gzip stream"
        except EOFError as error:
            self.broken = str(error)
        self.filled += count
        self.ended = count == 0


class _Gzip:
    """Unpacks the members of a gzip file one after the other (RFC 1952), never more than asked for.

    The standard library's reader loses what it has already unpacked when the file turns out to be cut.
    """

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self._packed = b""
        self._member = zlib.decompressobj(wbits=31)

    def readinto(self, room: memoryview) -> int:
        while not (self._member.eof and self._at_end()):
            piece = self._unpacked(min(len(room), _PIECE_BYTES))
            self._packed = self._member.unconsumed_tail
            if piece:
                room[: len(piece)] = piece
                return len(piece)
            if self._member.eof:
                continue
            self._packed = self._packed or self._file.read(_PACKED_BYTES)
            if not self._packed:
                raise EOFError("truncated gzip stream")
        return 0

    def _unpacked(self, limit: int) -> bytes:
        """The next bytes; when they are damaged, the sound ones before."""
        while True:
            before = self._member.copy()
            try:
                return self._member.decompress(self._packed, limit)
            except zlib.error:
                if limit == 1:
                    raise
                self._member, limit = before, limit // 2

    def _at_end(self) -> bool:
        """After a member: is there another? Zero padding between and behind members is allowed."""
        self._packed = self._member.unused_data.lstrip(b"\0")
        while not self._packed:
            read = self._file.read(_PACKED_BYTES)
            if not read:
                return True
            self._packed = read.lstrip(b"\0")
        if not self._packed.startswith(_GZIP_MAGIC[: len(self._packed)]):
            raise EOFError("garbage after the gzip stream")
        self._member = zlib.decompressobj(wbits=31)
        return False
