"""What of a message that failed stands before its arrays.

Knows where in a message's program its first array is read. Refuses to know what may be kept of a message.
Rule: the programs themselves are never changed; what is walked here is a copy of what stands before the array.
"""

from __future__ import annotations

from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING

from librt.vecs import vec
from mypy_extensions import u8

from wirecheck.decode.interpret.instruction import COMPACT_ARRAY, END, FIXED, Instruction
from wirecheck.decode.interpret.interpreter import Interpreter
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.message import kept_message

if TYPE_CHECKING:
    from wirecheck.decode.message import Decoded

__all__ = ["before_arrays"]


def before_arrays(decoded: Decoded, row: int) -> int:
    """Where in a malformed message its body's first array begins, as on the wire; or where it failed before that."""
    messages, compiled = decoded.messages, programs()
    kind = messages.side[row], messages.key[row], messages.version[row]
    special = int(compiled.entries[decoded.dialect[row], *kind])
    entry = special if special >= 0 else int(compiled.entries[Dialect.KAFKA, *kind])
    nothing = vec[u8](bytes(len(compiled.slots) + len(compiled.runs.stride)))
    interpreter = Interpreter(nothing, compiled.levels)
    interpreter.walk(_until_array(entry), kept_message(messages, row), 0, 0)
    return int(interpreter.problem_at)


@cache
def _until_array(entry: int) -> Instruction:
    """A copy of a program that ends where its first array, of whatever, begins: its instructions stand in the order
    of the fields.
    """
    program = programs().instructions[entry:]
    first = next(now for now in program if now.op == END or FIXED <= now.op <= COMPACT_ARRAY)
    copies = {now: now.copy() for now in takewhile(lambda now: now is not first, program)}
    copies[first] = Instruction(END)
    for now in copies.values():
        now.next, now.target = copies.get(now.next, now.next), copies.get(now.target, now.target)
        now.first_tag = None if now.first_tag is None else copies.get(now.first_tag, now.first_tag)
        now.next_tag = None if now.next_tag is None else copies.get(now.next_tag, now.next_tag)
    return copies[program[0]]
