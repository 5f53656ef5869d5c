"""Equal texts numbered, texts that are none, and integers of lists, by place and length. A place or length below zero
means that there is none.

Which field the content belongs to is not known here. Typed Python that mypyc compiles; the source runs too.
"""

from __future__ import annotations

from typing import Any

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from librt.vecs import append, vec
from mypy_extensions import i32, i64

from wirecheck.decode.interpret.interpreter import is_text


def numbered(data: bytes, places: Any, lengths: Any) -> tuple[vec[i32], list[bytes]]:
    """Codes of equal content in order of first sight, -1 for nothing; and the content of each code.

    A dict, because its hash is keyed: chosen topic names cannot all collide.
    """
    at: vec[i64] = places
    length: vec[i32] = lengths
    count = i64(len(length))
    codes = vec[i32]([-1] * count)
    seen: dict[bytes, int] = {}
    unique: list[bytes] = []
    for row in range(count):
        size = i64(length[row])
        place = at[row]
        if size < 0 or place < 0:
            continue
        content = data[place : place + size]
        code = seen.get(content, -1)
        if code < 0:
            code = len(unique)
            seen[content] = code
            unique.append(content)
        codes[row] = i32(code)
    return codes, unique


def no_text(data: bytes, places: Any, lengths: Any) -> vec[i64]:
    """The rows whose content is not UTF-8."""
    at: vec[i64] = places
    length: vec[i64] = lengths
    found = vec[i64]()
    for row in range(i64(len(length))):
        size = length[row]
        if size > 0 and at[row] >= 0 and not is_text(data, at[row], at[row] + size):
            found = append(found, row)
    return found


def integers(data: bytes, places: Any, counts: Any, width: i64) -> vec[i64]:
    """The elements of all lists, one list after the other: big-endian, signed, of 1, 2, 4 or 8 bytes."""
    at: vec[i64] = places
    count: vec[i64] = counts
    total: i64 = 0
    for number in count:
        total += number
    out = vec[i64]([0] * total)
    used: i64 = 0
    for row in range(i64(len(count))):
        place = at[row]
        end = used + count[row]
        while used < end:
            if width == 4:
                out[used] = i64(read_i32_be(data, place))
            elif width == 8:
                out[used] = read_i64_be(data, place)
            elif width == 2:
                out[used] = i64(read_i16_be(data, place))
            else:
                byte: i64 = data[place]
                out[used] = (byte ^ 0x80) - 0x80
            place += width
            used += 1
    return out
