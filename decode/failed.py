"""How far messages that fail are structure alone (numbers, counts, lengths, the client ID), and where content lies.

Interpreter programs are never changed, only copies of them. What may be kept of a message is decided elsewhere.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from librt.vecs import vec
from mypy_extensions import u8

from wirecheck.decode.interpret import instruction as op
from wirecheck.decode.interpret.interpreter import Interpreter
from wirecheck.decode.interpret.vectors import int32s, int64s
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.message import kept_message
from wirecheck.decode.wire import wire_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from wirecheck.decode.interpret.instruction import Instruction
    from wirecheck.decode.wire import Ints, Messages


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
    for i, (places, _, ends) in enumerate(_walks(messages, _cut_short)):
        found[i] = min(ends, places[0]) if len(places) else ends
    return found


def contents(messages: Messages) -> Contents:
    """What each held before the place where it fails; messages as above."""
    parts = [
        (np.full(len(places), i), places, lengths) for i, (places, lengths, _) in enumerate(_walks(messages, _single))
    ]
    empty = (np.empty(0, np.int64),) * 3
    return Contents(*(np.concatenate(column) for column in zip(empty, *parts, strict=True)))


def _walks(messages: Messages, program: Callable[[int], Instruction]) -> Iterator[tuple[Ints, Ints, int]]:
    """Of each message: where its content begins, how long it is, and where reading ends."""
    entry = programs().entries[Dialect.KAFKA, messages.side, messages.key, messages.version]
    walk = Interpreter(vec[u8](_content_fields()), programs().levels)
    for i in range(len(messages)):
        walk.forget()
        walk.walk(program(int(entry[i])), kept_message(messages, i), 0, 0)
        tokens, met = walk.tokens, walk.met
        length = _widths()[int32s(tokens.field, met)] * int32s(tokens.length, met)
        place = int64s(tokens.value, met)[length > 0]
        place = np.where(place < 0, -1 - place, place) + messages.at[i]
        yield wire_offset(messages, np.full(len(place), i), place), length[length > 0], walk.problem_at


@cache
def _single(entry: int) -> Instruction:
    """A program, no fields and elements taken together."""
    return _with(entry, {op.RUN: op.STRUCT, op.BLOCK: op.NEXT, op.TAGGED_BLOCK: op.NEXT, op.ROWS: op.NEXT})


@cache
def _cut_short(entry: int) -> Instruction:
    """The same, but ending where its first array or tag is read."""
    arrays = (op.FIXED, op.COMPACT_FIXED, op.ARRAY, op.COMPACT_ARRAY)
    return _with(entry, {op.RUN: op.STRUCT, op.NEXT_TAG: op.END} | dict.fromkeys(arrays, op.END))


def _with(entry: int, other: dict[int, int]) -> Instruction:
    """A copy of a program in which other operations stand for these."""
    program = programs().program(entry)
    copies = {now: now.copy() for now in program}
    for now in copies.values():
        now.op = other.get(now.op, now.op)
        now.next, now.target, now.after = copies[now.next], copies[now.target], copies[now.after]
        now.first_tag = copies[now.first_tag] if now.first_tag else None
        now.next_tag = copies[now.next_tag] if now.next_tag else None
    return copies[program[0]]


@cache
def _widths() -> Ints:
    """By slot: bytes of content for each 1 of a token's length; 0 of what is none."""
    whole, arrays = {Kind.TEXT, Kind.BYTES, Kind.RECORDS}, {Kind.INTEGERS, Kind.UUIDS}
    return np.array([
        0 if s.label == "header.clientId" else 1 if s.kind in whole else s.width if s.kind in arrays else 0
        for s in programs().slots
    ], np.int64)  # fmt: skip


@cache
def _content_fields() -> NDArray[np.uint8]:
    """By slot, then run, as the interpreter asks; a tag's content only comes with the tag."""
    tags = [s.kind == Kind.UNKNOWN_TAG for s in programs().slots]
    return np.append((_widths() > 0) | tags, np.zeros(len(programs().runs.stride), np.bool_)).astype(np.uint8)
