"""What of messages that fail was understood: how far they are structure alone, and where content lies in that.

Knows where in each program the first array or tag is read, and which fields hold content: texts, bytes, records, and
arrays of fixed width. Refuses to know what may be kept of a message.
Rule: what is called structure are numbers, counts and lengths, read where their layout has them; the client id in a
request's header is called structure too. The programs of the machine are never changed, only copies of them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wirecheck.decode import machine
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.wire import wire_offset

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.wire import Ints, Messages

__all__ = ["Contents", "before_content", "contents"]

FEW_TOKENS = 1 << 10  # to begin with; a message may have more


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


def _walks(messages: Messages, table: NDArray[np.int32]) -> Any:
    """Of each message: where its content begins, how long it is, and where reading ends."""
    compiled, wanted, widths = programs(), _wanted(), _widths()
    entry = compiled.entries[Dialect.KAFKA, messages.side, messages.key, messages.version]
    counters, frames = np.zeros(compiled.levels, np.int64), np.zeros((machine.DEEPEST, 5), np.int64)
    tokens = _tokens(FEW_TOKENS)
    for i in range(len(messages)):
        while True:
            problem, used, ends, _ = machine.walk(
                messages.data, messages.at[i], messages.at[i + 1], messages.span_offset, messages.span_length,
                messages.span_at[i], messages.span_at[i + 1], table, entry[i], i, 0, wanted, counters, frames,
                *tokens, 0,
            )  # fmt: skip
            if problem != machine.FULL:
                break
            tokens = _tokens(2 * len(tokens[0]))
        length = widths[tokens[0][:used]] * tokens[3][:used]
        place = tokens[2][:used][length > 0]
        yield (
            wire_offset(messages, np.full(len(place), i), np.where(place < 0, -1 - place, place)),
            length[length > 0],
            ends,
        )


def _tokens(count: int) -> tuple[NDArray[Any], ...]:
    return tuple(np.empty(count, kind) for kind in (np.int32, np.int32, np.int64, np.int32))


@cache
def _single() -> NDArray[np.int32]:
    """The programs, no fields and elements taken together."""
    table = programs().table.copy()
    op = table[:, machine.OP]
    table[op == machine.RUN, machine.OP] = machine.STRUCT
    table[np.isin(op, [machine.BLOCK, machine.TAGGED_BLOCK, machine.ROWS]), machine.OP] = machine.NEXT
    return table


@cache
def _cut_short() -> NDArray[np.int32]:
    """The programs, each ending where its first array or tag is read."""
    table = _single().copy()
    op = table[:, machine.OP]
    table[((op >= machine.FIXED) & (op <= machine.COMPACT_ARRAY)) | (op == machine.NEXT_TAG), machine.OP] = machine.END
    return table


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
    """By slot, then run, as the machine asks; a tag's content comes with the tag."""
    tags = [s.kind == Kind.UNKNOWN_TAG for s in programs().slots]
    return np.append((_widths() > 0) | tags, np.zeros(len(programs().runs.stride), np.bool_)).astype(np.uint8)
