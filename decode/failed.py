"""What of messages that fail was understood: how far they are structure alone, and where content lies in that.

Knows where in each program the first array or tag is read, and which fields hold content: texts, bytes, records, and
arrays of fixed width. Refuses to know what may be kept of a message.
Rule: what is called structure are numbers, counts and lengths, read where their layout has them; the client id in a
request's header is called structure too. The programs themselves are never changed, only copies of them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from librt.vecs import vec
from mypy_extensions import u8

from wirecheck.decode.interpret.instruction import (
    BLOCK,
    COMPACT_ARRAY,
    END,
    FIXED,
    NEXT,
    NEXT_TAG,
    ROWS,
    RUN,
    STRUCT,
    TAGGED_BLOCK,
    Instruction,
)  # fmt: skip
from wirecheck.decode.interpret.interpreter import Interpreter
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.message import kept_message
from wirecheck.decode.vectors import int32s, int64s
from wirecheck.decode.wire import wire_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from wirecheck.decode.wire import Ints, Messages

__all__ = ["Contents", "before_content", "contents"]


class Contents(NamedTuple):
    """Content in messages, as on the wire; ascending within a message."""

    message: Ints
    offset: Ints
    length: Ints


def before_content(messages: Messages) -> Ints:
    """Where in each message, as on the wire, its first content, array or tag begins; or where it fails before that.

    Empty content is none. Of messages whose kind and version have a layout, by Kafka's own.
    """
    found = np.empty(len(messages), np.int64)
    for i, (places, _, ends) in enumerate(_walks(messages, _cut_short())):
        found[i] = min(ends, places[0]) if len(places) else ends
    return found


def contents(messages: Messages) -> Contents:
    """What each held before the place where it fails; messages as above."""
    parts = [
        (np.full(len(places), i), places, lengths) for i, (places, lengths, _) in enumerate(_walks(messages, _single()))
    ]
    empty = (np.empty(0, np.int64),) * 3
    return Contents(*(np.concatenate(column) for column in zip(empty, *parts, strict=True)))


def _walks(messages: Messages, instructions: list[Instruction]) -> Iterator[tuple[Ints, Ints, int]]:
    """Of each message: where its content begins, how long it is, and where reading ends."""
    entry = programs().entries[Dialect.KAFKA, messages.side, messages.key, messages.version]
    walk, widths = Interpreter(vec[u8](_wanted()), programs().levels), _widths()
    for i in range(len(messages)):
        walk.forget()
        walk.walk(instructions[entry[i]], kept_message(messages, i), 0, 0)
        met = slice(walk.met)  # of a message that fails they stand behind those that are used
        field, length = int32s(walk.tokens.field)[met], int32s(walk.tokens.length)[met].astype(np.int64)
        place = int64s(walk.tokens.value)[met]
        length = widths[field] * length
        place = np.where(place < 0, -1 - place, place)[length > 0] + messages.at[i]
        yield wire_offset(messages, np.full(len(place), i), place), length[length > 0], int(walk.problem_at)


def _copies(change: Callable[[Instruction], int]) -> list[Instruction]:
    """All programs, each instruction with another operation."""
    made = {now: now.copy() for now in programs().instructions}
    for copy in made.values():
        copy.op = change(copy)
        copy.next, copy.target, copy.after = (made[now] for now in (copy.next, copy.target, copy.after))
        copy.first_tag = copy.first_tag and made[copy.first_tag]
        copy.next_tag = copy.next_tag and made[copy.next_tag]
    return list(made.values())


@cache
def _single() -> list[Instruction]:
    """The programs, no fields and elements taken together."""
    return _copies(_singly)


def _singly(now: Instruction) -> int:
    if now.op == RUN:
        return STRUCT
    return NEXT if now.op in {BLOCK, TAGGED_BLOCK, ROWS} else int(now.op)


@cache
def _cut_short() -> list[Instruction]:
    """The programs, each ending where its first array or tag is read."""
    return _copies(lambda now: END if FIXED <= now.op <= COMPACT_ARRAY or now.op == NEXT_TAG else _singly(now))


@cache
def _widths() -> Ints:
    """By slot: bytes of content for each 1 of a token's length; 0 of what is none."""
    whole, arrays = {Kind.TEXT, Kind.BYTES, Kind.RECORDS}, {Kind.INTEGERS, Kind.UUIDS}
    return np.array([
        0 if s.label == "header.clientId" else 1 if s.kind in whole else s.width if s.kind in arrays else 0
        for s in programs().slots
    ], np.int64)  # fmt: skip


@cache
def _wanted() -> NDArray[np.uint8]:
    """By slot, then run, as the interpreter asks; a tag's content comes with the tag."""
    tags = [s.kind == Kind.UNKNOWN_TAG for s in programs().slots]
    return np.append((_widths() > 0) | tags, np.zeros(len(programs().runs.stride), np.bool_)).astype(np.uint8)
