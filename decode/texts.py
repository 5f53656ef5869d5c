"""Column values that are not numbers: text, bytes, lists and UUIDs, by place and length in a batch's data.

A unique value is made a Python string once; a place below zero means that the content was not kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from librt.vecs import vec
from mypy_extensions import i32, i64

from wirecheck.decode.holes import Field, laid_out
from wirecheck.decode.interpret.content import integers, numbered
from wirecheck.decode.interpret.vectors import bytes_of, int32s, int64s, vec64
from wirecheck.decode.wire import wire_offset

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.wire import Ints, Messages


@dataclass(frozen=True, slots=True)
class Text:
    """A column of strings."""

    data: NDArray[np.uint8]
    at: Ints
    """Place of the first byte; below zero if not all of it was kept."""
    length: NDArray[np.int32]
    """Bytes; -1 null."""
    coded: list[tuple[NDArray[np.int32], list[str]]] = field(default_factory=list, repr=False, compare=False)
    """What `codes` found: several families of claims ask for the same column."""

    def __len__(self) -> int:
        return len(self.at)

    def codes(self) -> tuple[NDArray[np.int32], list[str]]:
        """A number for each row, -1 if null or not kept, and the strings they stand for in order of first sight.

        What was decoded is UTF-8; the client ID of a message that was not decoded may be any bytes.
        """
        if not self.coded:
            codes, unique = numbered(bytes_of(self.data), vec64(self.at), vec[i32](self.length))
            self.coded.append((int32s(codes), [text.decode(errors="replace") for text in unique]))
        return self.coded[0]

    def strings(self) -> list[str | None]:
        """One string per row; None if null or not kept."""
        codes, unique = self.codes()
        lookup: list[str | None] = [*unique, None]
        return [lookup[code] for code in codes.tolist()]


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
    coded: list[tuple[NDArray[np.int32], list[list[int]]]] = field(default_factory=list, repr=False, compare=False)
    """What `codes` found."""

    def __len__(self) -> int:
        return len(self.at)

    def codes(self) -> tuple[NDArray[np.int32], list[list[int]]]:
        """A number for each row, -1 if null or not kept, and the lists they stand for; for integers."""
        if not self.coded:
            length = np.where(self.count < 0, -1, self.count * self.width).astype(np.int32)
            codes, unique = numbered(bytes_of(self.data), vec64(self.at), vec[i32](length))
            self.coded.append((int32s(codes), [np.frombuffer(one, f">i{self.width}").tolist() for one in unique]))
        return self.coded[0]

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
        values = integers(bytes_of(self.data), vec64(self.at), vec[i64](kept), self.width)
        return int64s(values), offsets


def uuids(data: NDArray[np.uint8], at: Ints) -> NDArray[np.uint8]:
    """uint8[rows, 16] of these places; zeros for a place below zero."""
    rows = np.flatnonzero(at >= 0)
    everywhere: NDArray[Any] = np.ndarray((max(len(data) - 15, 0),), "V16", data, strides=(1,))
    found = everywhere[at[rows]].view(np.uint8).reshape(-1, 16)
    if len(rows) == len(at):
        return found
    out = np.zeros((len(at), 16), np.uint8)
    out[rows] = found
    return out


def id_codes(ids: NDArray[np.uint8]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """A number for each uuid, and the uuids they stand for in order of first sight."""
    at = np.arange(len(ids), dtype=np.int64) * 16
    codes, unique = numbered(ids.tobytes(), vec[i64](at), vec[i32](np.full(len(ids), 16, np.int32)))
    return int32s(codes), np.frombuffer(b"".join(unique), np.uint8).reshape(-1, 16)
