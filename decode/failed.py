"""What of a message that failed stands before its arrays.

Knows where in a message's program its first array is read. Refuses to know what may be kept of a message.
Rule: the programs themselves are never changed; the copy that is cut short is whole again after every question.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode import machine
from wirecheck.decode.layouts.program import Dialect, programs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.message import Decoded

__all__ = ["before_arrays"]


def before_arrays(decoded: Decoded, row: int) -> int:
    """Where in a malformed message its body's first array begins, as on the wire; or where it failed before that."""
    messages, compiled, table = decoded.messages, programs(), _cut_short()
    kind = messages.side[row], messages.key[row], messages.version[row]
    special = int(compiled.entries[decoded.dialect[row], *kind])
    entry = special if special >= 0 else int(compiled.entries[Dialect.KAFKA, *kind])
    first = _first_array(entry)
    op, table[first, machine.OP] = table[first, machine.OP], machine.END
    spans = messages.span_at[row], messages.span_at[row + 1]
    nothing = np.zeros(len(compiled.slots) + len(compiled.runs.stride), np.uint8)
    tokens = tuple(np.empty(1, kind) for kind in (np.int32, np.int32, np.int64, np.int32))
    _, _, at, _ = machine.walk(
        messages.data, messages.at[row], messages.at[row + 1], messages.span_offset, messages.span_length, *spans,
        table, entry, row, 0, nothing, np.zeros(compiled.levels, np.int64),
        np.zeros((machine.DEEPEST, 5), np.int64), *tokens, 0,
    )  # fmt: skip
    table[first, machine.OP] = op
    return int(at)


@cache
def _cut_short() -> NDArray[np.int32]:
    """The programs once more, to end one of them early."""
    return programs().table.copy()


@cache
def _first_array(entry: int) -> int:
    """The row of a program that reads its first array, or that ends it: rows stand in the order of the fields."""
    ops = programs().table[entry:, machine.OP]
    return entry + int(np.argmax(((ops >= machine.FIXED) & (ops <= machine.COMPACT_ARRAY)) | (ops == machine.END)))
