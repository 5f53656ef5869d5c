"""Decompresses captures as a stream: gzip, bzip2, xz (standard library), zstd and LZ4 (Arrow).

Never decompresses more than was asked for. A truncated stream gives everything up to the cut, then EOFError.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import RawIOBase

MAGIC_BYTES = 6
_PACKED_BYTES = 1 << 16  # copied at the end of each stream, of which there may be one every 20 bytes
_XZ_BYTES = 1 << 28  # of memory: xz -9 asks for 65 MB, a header may ask for 4 GB
_PIECE_BYTES = (
    1 << 18
)  # what damage may cost beside itself, and what a cut one of Arrow's is read again by single bytes
_SKIPPED_BYTES = 1 << 20


class Unpacked(Protocol):
    """A packed file as it was."""

    def readinto(self, target: memoryview) -> int:
        """The next bytes, at least one; 0 at the end.

        Raises EOFError where the file ends too early or goes on with something else, ValueError where it is damaged
        (both say so in a few words), OSError where the disk fails.
        """


def unpacked(magic: bytes, file: RawIOBase) -> Unpacked | None:
    """What unpacks a file that begins with `magic`; None where it is not packed."""
    for name, begins, begin in _STREAMS:
        if magic.startswith(begins):
            return _Streams(file, name, begins, begin)
    for name, begins in _FRAMES:
        if magic.startswith(begins):
            return _Frames(file, name)
    return None


class _Streams:
    """By a decompressor of the standard library, one for each stream.

    The library's own readers lose what they have unpacked when the file turns out to be cut.
    """

    def __init__(self, file: RawIOBase, name: str, begins: bytes, begin: Callable[[], Any]) -> None:
        self._file, self._name, self._begins, self._begin = file, name, begins, begin
        self._packed = b""
        self._stream = begin()

    def readinto(self, target: memoryview) -> int:
        while not (self._stream.eof and self._at_end()):
            piece = self._piece(min(len(target), _PIECE_BYTES))
            if piece:
                target[: len(piece)] = piece
                return len(piece)
            if self._stream.eof:
                continue
            self._packed = self._packed or self._file.read(_PACKED_BYTES) or b""
            if not self._packed:
                raise EOFError(f"truncated {self._name} stream")
        return 0

    def _piece(self, limit: int) -> bytes:
        """The next bytes; when they are damaged, the sound ones before, if the library can be asked again."""
        before = self._stream.copy() if hasattr(self._stream, "copy") else None
        try:
            piece: bytes = self._stream.decompress(self._packed, limit)
        except (zlib.error, lzma.LZMAError, OSError) as error:  # bz2 raises OSError
            if "Memory usage limit" in str(error):
                raise ValueError(f"{self._name} stream that needs more than {_XZ_BYTES >> 20} MB of memory") from error
            if before is None or limit == 1:
                raise ValueError(f"corrupt {self._name} stream") from error
            self._stream = before
            return self._piece(limit // 2)
        self._packed = getattr(self._stream, "unconsumed_tail", b"")  # the others keep it themselves
        return piece

    def _at_end(self) -> bool:
        """After a stream: is there another? Zero padding between and behind streams is allowed."""
        self._packed = self._stream.unused_data.lstrip(b"\0")
        while not self._packed:
            read = self._file.read(_PACKED_BYTES)
            if not read:
                return True
            self._packed = read.lstrip(b"\0")
        if not self._packed.startswith(self._begins[: len(self._packed)]):
            raise EOFError(f"garbage after the {self._name} stream")
        self._stream = self._begin()
        return False


class _Frames:
    """By Arrow, whose reader gives nothing of a read that meets the end too early.

    Such a file is read again up to there, and then byte by byte; a pipe cannot be, and loses its last piece.
    """

    def __init__(self, file: RawIOBase, name: str) -> None:
        self._file, self._name = file, name
        self._stream = self._begun()
        self._given = 0
        self._wrong: Exception | None = None

    def readinto(self, target: memoryview) -> int:
        if self._wrong is not None:
            raise self._wrong
        count = 0
        try:
            count = self._stream.readinto(target[:_PIECE_BYTES])
        except OSError as error:
            if error.errno is not None:  # the disk's; Arrow's own have none
                raise
            cut = "Truncated" in str(error)
            self._wrong = (EOFError if cut else ValueError)(f"{'truncated' if cut else 'corrupt'} {self._name} stream")
            count = self._again(target[:_PIECE_BYTES])
        self._given += count
        return count

    def _begun(self) -> pa.NativeFile:
        return pa.CompressedInputStream(pa.PythonFile(_Lent(self._file), "r"), self._name)

    def _again(self, target: memoryview) -> int:
        """What a read that failed would have given before it did."""
        assert self._wrong is not None
        try:
            self._file.seek(0)
        except OSError:
            raise self._wrong from None
        self._stream = self._begun()
        left, count = self._given, 0
        with suppress(OSError):
            while left:
                left -= len(self._stream.read(min(left, _SKIPPED_BYTES)))
            while count < len(target):
                count += self._stream.readinto(target[count : count + 1])
        if not count:
            raise self._wrong
        return count


class _Lent:
    """A file for Arrow, which would close it when it has read enough."""

    closed = False

    def __init__(self, file: RawIOBase) -> None:
        self.read = file.read

    def close(self) -> None:
        """Does nothing: the file is closed where it was opened."""


_STREAMS: tuple[tuple[str, bytes, Callable[[], Any]], ...] = (
    ("gzip", b"\x1f\x8b", lambda: zlib.decompressobj(wbits=31)),
    ("bzip2", b"BZh", bz2.BZ2Decompressor),
    ("xz", b"\xfd7zXZ\0", lambda: lzma.LZMADecompressor(memlimit=_XZ_BYTES)),
)
_FRAMES = (("zstd", b"\x28\xb5\x2f\xfd"), ("lz4", b"\x04\x22\x4d\x18"))
