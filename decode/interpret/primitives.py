"""Kafka's primitives that are more than a load: varints, text, and rows of an array that need no look inside.

Knows how Kafka's ByteUtils reads a varint and what UTF-8 is. Refuses to know fields and messages.
Rule: nothing behind `limit` is read. Typed Python that mypyc compiles; the source runs as it is too.
"""

# ruff: noqa: TC001 -- what compiled code names is imported when it runs

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be, read_i64_le
from mypy_extensions import i64

from wirecheck.decode.interpret.instruction import Instruction

NO_ASCII: Final = 0x80808080808080  # the highest bit of each of seven bytes; of eight it would be a boxed integer


def uvarint(data: bytes, at: i64, limit: i64) -> tuple[i64, i64]:
    """Value and the place behind it; -1 if cut off, -2 if its fifth byte asks for a sixth (Kafka's ByteUtils)."""
    number: i64 = 0
    shift: i64 = 0
    while at < limit:
        byte: i64 = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift == 35:
            return -2, at
    return -1, at


def is_text(data: bytes, at: i64, end: i64) -> bool:
    """Whether the bytes are UTF-8 (RFC 3629: shortest form, no surrogates, up to U+10FFFF)."""
    last = i64(len(data)) - 8  # from where on eight bytes cannot be read at once
    while at < end:
        if at <= last:
            word = read_i64_le(data, at)
            rest = end - at
            if rest < 7:
                word <<= 56 - 8 * rest  # what is behind the text falls off
            if word & NO_ASCII == 0:
                at += 7
                continue
        first: i64 = data[at]
        at += 1
        if first < 0x80:
            continue
        if first < 0xC2 or first > 0xF4:
            return False
        more: i64 = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if end - at < more:
            return False
        lowest: i64 = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
        highest: i64 = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
        for i in range(more):
            byte: i64 = data[at + i]
            if byte < lowest or byte > highest:
                return False
            lowest, highest = 0x80, 0xBF
        at += more
    return True


def plain_row(data: bytes, at: i64, limit: i64, skip: Instruction) -> i64:
    """Behind the element that begins here; -1 if it is not all here, has tags, a null, or a count of several bytes."""
    while True:
        at += skip.size
        head = skip.head
        width = skip.width
        if head == 0:
            if limit - at < width or (width and data[at]):
                return -1
            return at + width
        if limit - at < head:
            return -1
        count: i64 = data[at]
        count -= 1
        if head != 1:
            count = i64(read_i32_be(data, at))
        elif count > 126:
            return -1
        if count < 0:
            return -1
        at += head + count * width
        skip = skip.next
