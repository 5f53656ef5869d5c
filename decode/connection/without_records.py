"""Large messages without their records: what is handed out where nobody wants the records.

Knows: where a message's structure lies is found by walking it over a few windows of its bytes, one more wherever the
walk stands before bytes it has not got, so that records are never copied.
Refuses to know layouts (decode/layouts/program.py compiled them), and what is done with the message.
Rule: only content of records fields is left away, only in messages that decode, and never what may be the metadata
log; in every other case the message is handed out whole, as it always was.
"""

# ruff: noqa: PLR0917 -- jitted kernels take arrays and indices one by one

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from wirecheck.decode import machine
from wirecheck.decode.connection.state.slots import (
    NEXT,
    P_ADDRESS,
    P_LENGTH,
    Q_KEY,
    Q_PIECES,
    Q_SIDE,
    Q_SIZE,
    Q_VERSION,
)
from wirecheck.decode.copying import copy
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.log.metadata_log import TOPIC_ID, TOPIC_NAME
from wirecheck.decode.wire import REQUEST, RESPONSE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.connection.state.slots import Bytes, Ints

LARGE = 4096  # smaller messages are cheaper to copy than to walk
FIRST_BYTES, LAST_BYTES, MORE_BYTES = 320, 64, 256  # of the windows
MOST_WINDOWS = 64
MOST_TOKENS = 1024
FETCH_SNAPSHOT, ENVELOPE = 59, 58  # carry the log or another message in what looks like content
LOG_NAME, LOG_ID = np.frombuffer(TOPIC_NAME.encode(), np.uint8), np.frombuffer(TOPIC_ID, np.uint8)


class Layouts(NamedTuple):
    """What the walk needs, as arrays; without any `carries` everything is handed out whole."""

    table: NDArray[np.int32]
    entries: NDArray[np.int32]
    """Row of the table by side, key and version."""
    wanted: NDArray[np.uint8]
    """By slot and run: whether it is a records field."""
    carries: NDArray[np.bool_]
    """By side and key: whether records can be in it."""
    levels: Ints
    """As many zeros as there are levels."""


@cache
def layouts() -> Layouts:
    compiled = programs()
    wanted = np.zeros(len(compiled.slots) + len(compiled.runs.stride), np.uint8)
    wanted[[slot.number for slot in compiled.slots if slot.kind == Kind.RECORDS]] = 1
    entries = np.ascontiguousarray(compiled.entries[Dialect.KAFKA, : RESPONSE + 1])
    carries = np.zeros(entries.shape[:2], np.bool_)
    for form in compiled.names.values():
        if form.side in {REQUEST, RESPONSE} and form.key not in {FETCH_SNAPSHOT, ENVELOPE}:
            carries[form.side, form.key] = any(slot.kind == Kind.RECORDS for slot in form.root.walk())
    return Layouts(machine.table(compiled.instructions), entries, wanted, carries, np.zeros(compiled.levels, np.int64))


@cache
def no_layouts() -> Layouts:
    table, entries, wanted, carries, levels = layouts()
    return Layouts(table[:0], entries[:, :0], wanted[:0], carries[:, :0], levels[:0])


@njit
def is_large(s: Ints, q: int, layouts: Layouts) -> Any:
    """Whether it is worth looking where this message has its records."""
    key, version = s[q + Q_KEY], s[q + Q_VERSION]
    _, entries, _, carries, _ = layouts
    if s[q + Q_SIZE] <= LARGE or not (0 <= key < carries.shape[1]) or not (0 <= version < entries.shape[2]):
        return False
    return carries[s[q + Q_SIDE], key] and entries[s[q + Q_SIDE], key, version] >= 0


@njit
def scratch(layouts: Layouts) -> Any:
    """Room for the walk's tokens, rows and frames, and for the windows."""
    return (
        np.empty(MOST_TOKENS, np.int32), np.empty(MOST_TOKENS, np.int32), np.empty(MOST_TOKENS, np.int64),
        np.empty(MOST_TOKENS, np.int32), layouts[4].copy(), np.zeros((machine.DEEPEST, 5), np.int64),
        np.empty((MOST_WINDOWS + 2, 2), np.int64),
    )  # fmt: skip


@njit
def hollow(
    s: Ints, new: Bytes, old: Bytes, q: int, data: Bytes, span: Ints, at: int, spans: int, layouts: Layouts, room: Any
) -> Any:
    """Copy the message without its records; (where the next one's bytes and spans begin), at = -1: it cannot be."""
    table, entries, wanted, _, _ = layouts
    field, row, value, length, counters, frames, windows = room
    size = s[q + Q_SIZE]
    begin = entries[s[q + Q_SIDE], s[q + Q_KEY], s[q + Q_VERSION]]
    windows[0, 0], windows[0, 1], windows[1, 0], windows[1, 1] = 0, FIRST_BYTES, size - LAST_BYTES, size
    count = 2
    while count <= MOST_WINDOWS:
        kept = _windows(s, new, old, s[q + Q_PIECES], windows, count, data, at)
        for k in range(count - 1):
            span[spans + k, 0], span[spans + k, 1] = windows[k, 1], windows[k + 1, 0] - windows[k, 1]
        problem, used, where, _ = machine.walk(
            data, at, at + kept, span[:, 0], span[:, 1], spans, spans + count - 1, table, begin, 0, 0, wanted,
            counters, frames, field, row, value, length, 0,
        )  # fmt: skip
        if problem == machine.OK:
            hidden = 0
            for i in range(used):
                hidden += value[i] < 0 < length[i]
            if hidden < count - 1 or _says(data, at, at + kept, LOG_NAME) or _says(data, at, at + kept, LOG_ID):
                return -1, spans
            return at + kept, spans + count - 1
        if problem != machine.LEFT_OUT:
            return -1, spans
        count = _opened(windows, count, where, size)
    return -1, spans


@njit
def _opened(windows: Ints, count: int, where: int, size: int) -> Any:
    """One window more, from this place on; windows that touch become one. How many there are."""
    k = 0
    while k < count and windows[k, 1] < where:
        k += 1
    end = min(where + MORE_BYTES, size)
    if windows[k, 0] <= where:  # within a window, or at its end: that one grows
        windows[k, 1] = max(windows[k, 1], end)
    else:
        for i in range(count, k, -1):
            windows[i, 0], windows[i, 1] = windows[i - 1, 0], windows[i - 1, 1]
        windows[k, 0], windows[k, 1] = where, end
        count += 1
    if k + 1 < count and windows[k + 1, 0] <= windows[k, 1]:
        windows[k, 1] = max(windows[k, 1], windows[k + 1, 1])
        count -= 1  # it was the last: a walk stands behind all that was opened for it before
    return count


@njit
def _windows(s: Ints, new: Bytes, old: Bytes, p: int, windows: Ints, count: int, data: Bytes, at: int) -> Any:
    """Copy these windows of the message, whose pieces all hold bytes, one behind the other; how many bytes."""
    k, offset, used = 0, 0, at
    while p >= 0 and k < count:
        length, address = s[p + P_LENGTH], s[p + P_ADDRESS]
        while k < count and windows[k, 0] < offset + length:
            first, last = max(windows[k, 0], offset), min(windows[k, 1], offset + length)
            if address >= 0:
                copy(new, address + first - offset, data, used, last - first)
            else:
                copy(old, -1 - address + first - offset, data, used, last - first)
            used += last - first
            if windows[k, 1] > offset + length:
                break
            k += 1
        offset += length
        p = s[p + NEXT]
    return used - at


@njit
def _says(data: Bytes, begin: int, end: int, word: NDArray[np.uint8]) -> Any:
    """Whether the word stands there; it is looked for from its last byte on, which is rarer than its first."""
    n = len(word)
    for i in range(begin, end - n + 1):
        if data[i + n - 1] == word[n - 1]:
            j = 0
            while j < n and data[i + j] == word[j]:
                j += 1
            if j == n:
                return True
    return False
