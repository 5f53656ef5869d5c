"""Column values that are not numbers: text, bytes, lists and uuids, by place and length in a batch's data.

Knows how to compare, number and cut them out without a Python object per row. Refuses to know which field they are of.
Rule: what is unique is made a Python string once; a place below zero means that the content was not kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.compiled import cached_njit
from wirecheck.decode.holes import Field, laid_out
from wirecheck.decode.wire import wire_offset

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.wire import Ints, Messages

__all__ = ["Bytes", "Lists", "Text", "id_codes", "uuids"]


@dataclass(frozen=True, slots=True)
class Text:
    """A column of strings."""

    data: NDArray[np.uint8]
    at: Ints
    """Place of the first byte; below zero if not all of it was kept."""
    length: NDArray[np.int32]
    """Bytes; -1 null."""

    def __len__(self) -> int:
        return len(self.at)

    def codes(self) -> tuple[NDArray[np.int32], list[str]]:
        """A number for each row, -1 if null or not kept, and the strings they stand for in order of first sight."""
        codes, firsts = numbered(self.data, self.at, self.length)
        return codes, [self._string(int(row)) for row in firsts]

    def strings(self) -> list[str | None]:
        """One string per row; None if null or not kept."""
        codes, unique = self.codes()
        lookup: list[str | None] = [*unique, None]
        return [lookup[code] for code in codes.tolist()]

    def _string(self, row: int) -> str:
        return self.data[self.at[row] : self.at[row] + self.length[row]].tobytes().decode()


@dataclass(frozen=True, slots=True)
class Bytes:
    """A column of bytes or records."""

    messages: Messages
    at: Ints
    """Place of the first kept byte; `-1 - place` if not all of it was kept."""
    length: NDArray[np.int32]
    """Bytes on the wire; -1 null."""

    def __len__(self) -> int:
        return len(self.at)

    def raw(self, row: int) -> bytes | None:
        """The bytes; None if null or not all kept."""
        if self.length[row] < 0 or self.at[row] < 0:
            return None
        return self.messages.data[self.at[row] : self.at[row] + self.length[row]].tobytes()

    def field(self, row: int) -> Field | None:
        """The bytes with holes where they were not kept; None if null."""
        if self.length[row] < 0:
            return None
        place, length = int(self.at[row]), int(self.length[row])
        if place >= 0:
            return laid_out(self.messages.data[place : place + length])
        return partly_kept(self.messages, -1 - place, length)


def partly_kept(messages: Messages, place: int, length: int) -> Field:
    """Content of `length` bytes on the wire whose first kept byte is at `place`, and of which some were left out."""
    message = int(np.searchsorted(messages.at, place, "right")) - 1
    while (
        message > 0 and messages.at[message] == place
    ):  # content at a message's end, followed by messages without bytes
        message -= 1
    begin, end = messages.span_at[message], messages.span_at[message + 1]
    spans = list(zip(messages.span_offset[begin:end].tolist(), messages.span_length[begin:end].tolist(), strict=True))
    offset = int(wire_offset(messages, np.array([message]), np.array([place]))[0])
    inside = [
        (max(start, offset) - offset, min(start + size, offset + length) - max(start, offset))
        for start, size in spans
        if start < offset + length and start + size > offset
    ]
    kept = length - sum(size for _, size in inside)
    return laid_out(messages.data[place : place + kept], inside)


@dataclass(frozen=True, slots=True)
class Lists:
    """A column of arrays of integers or uuids."""

    data: NDArray[np.uint8]
    at: Ints
    count: NDArray[np.int32]
    """Elements; -1 null."""
    width: int
    """Bytes of an element; 16 for uuids."""

    def __len__(self) -> int:
        return len(self.at)

    def row(self, i: int) -> NDArray[np.int64] | NDArray[np.uint8]:
        """The elements: int64[count], of uuids uint8[count, 16]; empty if null."""
        size = max(0, int(self.count[i])) * self.width
        part = self.data[self.at[i] : self.at[i] + size] if self.at[i] >= 0 else self.data[:0]
        if self.width == 16:
            return part.reshape(-1, 16)
        return np.frombuffer(part.tobytes(), f">i{self.width}").astype(np.int64)

    def flat(self) -> tuple[Ints, Ints]:
        """All elements of all rows, and rows+1 offsets into them; for integers."""
        kept = np.where(self.at >= 0, np.maximum(self.count, 0), 0)
        offsets = np.zeros(len(self.at) + 1, np.int64)
        np.cumsum(kept, out=offsets[1:])
        values = np.empty(offsets[-1], np.int64)
        read_integers(self.data, self.at, offsets, self.width, values)
        return values, offsets


def uuids(data: NDArray[np.uint8], at: Ints) -> NDArray[np.uint8]:
    """uint8[rows, 16] of these places; zeros for a place below zero."""
    out = np.zeros((len(at), 16), np.uint8)
    gather(data, at, out)
    return out


def id_codes(ids: NDArray[np.uint8]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """A number for each uuid, and the uuids they stand for in order of first sight."""
    at = np.arange(len(ids), dtype=np.int64) * 16
    codes, firsts = numbered(ids.reshape(-1), at, np.full(len(ids), 16, np.int32))
    return codes, ids[firsts]


@cached_njit
def gather(data, at, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for row in range(len(at)):
        if at[row] >= 0:
            for i in range(16):
                out[row, i] = data[np.uint64(at[row] + i)]


@cached_njit
def read_integers(data, at, offsets, width, values):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for row in range(len(at)):
        place = at[row]
        for i in range(offsets[row], offsets[row + 1]):
            number = (np.int64(data[place]) ^ 0x80) - 0x80
            for j in range(1, width):
                number = number << 8 | np.int64(data[place + j])
            values[i] = number
            place += width


@cached_njit
def same(data, a, b, length):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for i in range(length):  # noqa: SIM110 -- numba has no all() over generators
        if data[a + i] != data[b + i]:
            return False
    return True


@cached_njit
def hashed(data, at, length):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """FNV-1a, folded to 31 bits a step so that plain Python integers give the same."""
    number = np.int64(2166136261)
    for i in range(length):
        number = ((number ^ np.int64(data[np.uint64(at + i)])) * 16777619) & 0x7FFFFFFF
    return number


@cached_njit
def numbered(data, at, length):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Codes of equal content in order of first sight, -1 for null and not kept; and each code's first row."""
    codes = np.full(len(at), -1, np.int32)
    firsts = np.empty(len(at), np.int64)
    hashes = np.empty(len(at), np.int64)
    unique = 0
    mask = 255
    table = np.full(mask + 1, -1, np.int64)
    for row in range(len(at)):
        if length[row] < 0 or at[row] < 0:
            continue
        number = hashed(data, at[row], length[row])
        spot = number & mask
        while table[spot] >= 0:
            code = table[spot]
            first = firsts[code]
            if hashes[code] == number and length[first] == length[row] and same(data, at[first], at[row], length[row]):
                break
            spot = (spot + 1) & mask
        if table[spot] < 0:
            table[spot] = unique
            firsts[unique] = row
            hashes[unique] = number
            unique += 1
        codes[row] = table[spot]
        if unique * 2 > mask:
            mask = mask * 2 + 1
            table = np.full(mask + 1, -1, np.int64)
            for code in range(unique):
                spot = hashes[code] & mask
                while table[spot] >= 0:
                    spot = (spot + 1) & mask
                table[spot] = code
    return codes, firsts[:unique]
