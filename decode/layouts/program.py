"""All programs: what decode/interpret/interpreter.py walks messages by.

They are written once per process, in the order of the files of decode/schemas; the interpreter's bounds are asserted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wirecheck.decode.interpret.instruction import END
from wirecheck.decode.layouts.form import Form, Slot, number
from wirecheck.decode.layouts.layout import NEVER, SIDES, Field, Layout, layouts
from wirecheck.decode.layouts.program_writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from wirecheck.decode.interpret.instruction import Instruction
    from wirecheck.decode.layouts.program_writer import Part


class Dialect(IntEnum):
    """Which layouts a message is read by."""

    KAFKA = 0
    """What Kafka's releases put on the wire; of a version changed in place, its last layout."""
    KAFKA_CHANGED = 1
    """The layout before the last change in place."""
    KAFKA_CHANGED_TWICE = 2
    """The layout before the change before that."""
    KIP516_DRAFT = 3
    """KIP-516 as drafted: its versions are flexible, its starred fields tagged."""
    KIP516_DRAFT_LITERAL = 4
    """The same, UpdateMetadata with the fields of all versions that its listing shows."""
    KIP516_DRAFT_INLINE = 5
    """The drafts by the letter: inflexible, every field where it stands."""
    KIP4_DRAFT = 6
    """CreateTopicRequest of KIP-4's earliest draft, as CreateTopics v0; its next draft is what shipped."""

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")


def readings() -> Iterator[tuple[Dialect, Layout, int]]:
    """Dialect, layout and version of all there is; a draft has only what differs from Kafka's."""
    for name in ("kafka", "metadata_records", "other"):
        for layout in layouts(name):
            if layout.side != "header":
                yield from ((Dialect.KAFKA, layout, version) for version in layout.versions)
                yield from _changed(layout)
    for layout in layouts("kip516_draft"):
        version = layout.versions.low
        yield Dialect.KIP516_DRAFT, layout._replace(fields=_implied(layout.fields)), version
        if _implied(layout.fields) != layout.fields:
            yield Dialect.KIP516_DRAFT_LITERAL, layout, version
        yield Dialect.KIP516_DRAFT_INLINE, layout._replace(fields=_inline(layout.fields), flexible=NEVER), version
    for layout in layouts("kip4_draft"):
        yield Dialect.KIP4_DRAFT, layout, layout.versions.low


def _implied(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(field._replace(fields=_implied(field.fields)) for field in fields if not field.literal)


def _inline(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(field._replace(tag=None, fields=_inline(field.fields)) for field in fields)


def _changed(layout: Layout) -> Iterator[tuple[Dialect, Layout, int]]:
    for dialect, changed in zip(
        (Dialect.KAFKA_CHANGED, Dialect.KAFKA_CHANGED_TWICE), layout.changed[::-1], strict=False
    ):
        flexible = changed.versions if changed.flexible else NEVER
        former = layout._replace(versions=changed.versions, flexible=flexible, fields=changed.fields, changed=())
        yield from ((dialect, former, version) for version in changed.versions)


KEYS, VERSIONS = 128, 32  # bounds of the entries
MOST_LEVELS = 64  # of one message


class Runs(NamedTuple):
    """What the tokens of runs stand for; run r has the parts at[r]:at[r + 1]."""

    at: NDArray[np.int64]
    slot: NDArray[np.int32]
    """Of each part: slot number."""
    offset: NDArray[np.int64]
    """Where it begins in the run; in a run of rows its bytes, of an array those of an element."""
    op: NDArray[np.int32]
    """How it is read: an instruction."""
    stride: NDArray[np.int64]
    """Of each run: bytes from one row's to the next one's; `-1 - n` of a run of rows, with n bytes behind each."""


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
    writer.resolve([*forms.values()], len(slots))
    return Programs(writer.instructions, entries, forms, names, slots, levels, _runs(writer.run_numbers))


def _runs(numbers: Mapping[tuple[tuple[Part, ...], int], int]) -> Runs:
    parts = [part for run, _ in numbers for part in run]
    return Runs(
        np.cumsum([0, *(len(run) for run, _ in numbers)], dtype=np.int64),
        np.array([slot.number for slot, _, _ in parts], np.int32),
        np.array([offset for _, offset, _ in parts], np.int64),
        np.array([kind for _, _, kind in parts], np.int32),
        np.array([stride for _, stride in numbers], np.int64),
    )


def form(api: str | int, side: str) -> Form:
    """The message kind of an api, by name or key."""
    return programs().forms[SIDES.index(side), api] if isinstance(api, int) else programs().names[side, api]
