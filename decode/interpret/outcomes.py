"""Walks all messages of a batch, and notes what became of each. A message may have a second program to try.

When it has one is decided in decode/message.py; why the second one fails is not kept. Typed Python that mypyc compiles;
the source runs too.
"""

# ruff: noqa: TC001 -- what compiled code names is imported when it runs

from __future__ import annotations

from typing import Any, final

from librt.vecs import vec
from mypy_extensions import i32, i64, u8

from wirecheck.decode.interpret.instruction import Instruction
from wirecheck.decode.interpret.interpreter import OK, TOLERATED, Interpreter
from wirecheck.decode.interpret.kept_bytes import Kept


@final
class Attempts:
    """How each message of a batch is to be read."""

    def __init__(self, entry: Any, second: Any, spare: Any) -> None:
        self.entry: vec[i32] = entry
        """Place of the program, -1 if there is none."""
        self.second: vec[i32] = second
        """Of another one to try, -1 if there is none."""
        self.spare: vec[i64] = spare
        """Trailing bytes that are allowed."""


@final
class Outcomes:
    """What became of each message of a batch; `status` stays as it was where there is no program."""

    def __init__(self, status: Any) -> None:
        self.status: vec[u8] = status
        count = i64(len(self.status))
        self.token_at: vec[i64] = vec[i64]([0] * (count + 1))
        self.error_at: vec[i64] = vec[i64]([-1] * count)
        self.error_field: vec[i32] = vec[i32]([-1] * count)
        self.chosen: vec[i32] = vec[i32]([-1] * count)
        self.tolerated: vec[u8] = vec[u8]([0] * count)


def walk_all(
    interpreter: Interpreter, instructions: list[Instruction], kept: Kept, attempts: Attempts, outcomes: Outcomes
) -> None:
    """All messages of a batch by their programs."""
    count = i64(len(attempts.entry))
    for message in range(count):
        outcomes.token_at[message] = interpreter.tokens.used
        for attempt in range(i64(2)):
            entry = attempts.entry[message] if attempt == 0 else attempts.second[message]
            if entry < 0:
                continue
            problem = interpreter.walk(instructions[i64(entry)], kept, message, attempts.spare[message])
            if problem in (OK, TOLERATED):
                outcomes.status[message] = OK
                outcomes.tolerated[message] = 1 if problem == TOLERATED else 0
                outcomes.chosen[message] = entry
                break
            if attempt == 0:
                outcomes.status[message] = u8(problem)
                outcomes.error_at[message] = interpreter.problem_at
                outcomes.error_field[message] = i32(interpreter.problem_field)
    outcomes.token_at[count] = interpreter.tokens.used
