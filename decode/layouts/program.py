"""All programs there are: what decode/interpret/interpreter.py walks messages by.

Knows which layouts there are and gives each version of each a program (program_writer.py beside it), each slot its
number. Refuses to know bytes and the instruction set.
Rule: all programs are written once per process, in the order of the files of decode/schemas; nothing here depends on
traffic, and whatever bounds the interpreter relies on (levels) is asserted here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.interpret.instruction import END
from wirecheck.decode.layouts.form import Form, Slot, number
from wirecheck.decode.layouts.program_writer import Runs, Writer
from wirecheck.decode.layouts.readings import Dialect, readings
from wirecheck.decode.wire import SIDES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.interpret.instruction import Instruction

__all__ = ["Dialect", "Programs", "form", "programs"]

KEYS, VERSIONS = 128, 32  # bounds of the entries
MOST_LEVELS = 64  # of one message


@dataclass(frozen=True, slots=True)
class Programs:
    """Everything that can be read."""

    instructions: list[Instruction]
    """Of all programs, one after the other; within one in the order of its fields."""
    entries: NDArray[np.int32]
    """[dialect, side, key, version] to the place of the program's first instruction, -1 if there is none."""
    forms: dict[tuple[int, int], Form]
    """(side, key) to message kind."""
    names: dict[tuple[str, str], Form]
    """(side, api name, an older one too) to message kind."""
    slots: tuple[Slot, ...]
    """By number."""
    levels: int
    """How many there are."""
    runs: Runs

    def program(self, entry: int) -> list[Instruction]:
        """The instructions of one program, END the last; entry: one of `entries`."""
        end = next(at for at in range(entry, len(self.instructions)) if self.instructions[at].op == END)
        return self.instructions[entry : end + 1]


@cache
def programs() -> Programs:
    sources = list(readings())
    forms: dict[tuple[int, int], Form] = {}
    names: dict[tuple[str, str], Form] = {}
    for _, layout, _ in sources:
        side = SIDES.index(layout.side)
        form = forms.setdefault((side, layout.key), Form(layout.api, side, layout.key))
        names |= {(layout.side, name): form for name in (layout.api, *layout.aka)}
    writer = Writer()
    entries = np.full((len(Dialect), len(SIDES), KEYS, VERSIONS), -1, np.int32)
    for dialect, layout, version in sources:
        side = SIDES.index(layout.side)
        entries[dialect, side, layout.key, version] = writer.message(forms[side, layout.key], layout, version)
    slots, levels = number(forms.values())
    assert all(len(form.levels) <= MOST_LEVELS for form in forms.values())
    writer.resolve(forms.values(), len(slots))
    return Programs(writer.instructions, entries, forms, names, slots, levels, writer.runs())


def form(api: str | int, side: str) -> Form:
    """The message kind of an api, by name or key."""
    return programs().forms[SIDES.index(side), api] if isinstance(api, int) else programs().names[side, api]
