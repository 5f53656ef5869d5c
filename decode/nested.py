"""The canonical JSON of one message: Kafka's names with the first letter lowered, bytes in base64, UUIDs as Kafka
prints them, tagged fields only if their tag was sent, unknown tags kept.

Nothing is added to what was on the wire: messages with one value have one text. Layouts are not known here.
"""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode.interpret import instruction
from wirecheck.decode.layouts.form import Kind, Slot
from wirecheck.decode.layouts.program import programs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.message import Decoded

WIDTH_AND_SIGN = {
    instruction.INT8: (1, True), instruction.INT16: (2, True), instruction.UINT16: (2, False),
    instruction.INT32: (4, True), instruction.INT64: (8, True), instruction.BOOL: (1, False),
}  # fmt: skip


def nested(decoded: Decoded, i: int, *, contents: bool = True) -> dict[str, Any]:
    """`{"header": ..., "body": ...}` of message i, `{"body": ...}` of a record or blob, `{}` if it was not decoded.

    Without `contents` records and secret fields appear as `{"left_out": bytes}`, as they do where they were not kept.
    """
    builder = _Builder(decoded, contents)
    for token in range(decoded.token_at[i], decoded.token_at[i + 1]):
        builder.add(
            int(decoded.field[token]), int(decoded.row[token]), int(decoded.value[token]), int(decoded.length[token])
        )
    return builder.out


@dataclass(slots=True)
class _Builder:
    """One message's value while its tokens come in."""

    decoded: Decoded
    contents: bool
    out: dict[str, Any] = field(default_factory=dict)
    open: dict[int, Any] = field(default_factory=dict)
    """By slot number: the object or list that its children go into; of elements, their first row and objects."""

    def add(self, number: int, row: int, value: int, length: int) -> None:
        compiled = programs()
        if number >= len(compiled.slots):
            self.run(number - len(compiled.slots), row, value, length)
            return
        slot = compiled.slots[number]
        if slot.kind == Kind.MESSAGE:
            self.open[number] = self.out
        elif slot.kind == Kind.ELEMENT:
            objects: list[Any] = [{} for _ in range(length)]
            self.container(slot, value).extend(objects)
            self.open[number] = row, objects
        elif slot.kind == Kind.ENTRY:
            self.open[number] = self.container(slot, value)
        elif slot.kind == Kind.UNKNOWN_TAG:
            tag: dict[str, Any] = {}
            self.open[number] = tag
            self.container(slot, value).setdefault(slot.name, []).append(tag)
        else:
            self.place(slot, row, _value(self.decoded, slot, value, length, contents=self.contents))

    def run(self, number: int, row: int, place: int, count: int) -> None:
        runs, slots = programs().runs, programs().slots
        stride = int(runs.stride[number])
        parts = range(runs.at[number], runs.at[number + 1])
        for i in range(count):
            for part in parts:
                slot, op, offset = slots[runs.slot[part]], int(runs.op[part]), int(runs.offset[part])
                if stride >= 0:
                    self.fixed(slot, op, row + i, place + i * stride + offset)
                    continue
                if op < instruction.FIXED:
                    self.fixed(slot, op, row + i, place)
                place += offset if op < instruction.FIXED else self.fixed_list(slot, op, row + i, place)
            place += max(0, -1 - stride)  # the empty tag section

    def fixed(self, slot: Slot, op: int, row: int, at: int) -> None:
        value = at if slot.kind == Kind.UUID else _fixed(self.decoded.messages.data, at, op)
        self.place(slot, row, _value(self.decoded, slot, value, 0, contents=self.contents))

    def fixed_list(self, slot: Slot, op: int, row: int, at: int) -> int:
        """An array of fixed width in a run of rows; its bytes."""
        head = 4 if op == instruction.FIXED else 1
        length = int.from_bytes(self.decoded.messages.data[at : at + head].tobytes()) - int(head == 1)
        self.place(slot, row, _value(self.decoded, slot, at + head, length, contents=self.contents))
        return head + length * slot.width

    def place(self, slot: Slot, row: int, value: Any) -> None:
        container = self.container(slot, row)
        if isinstance(container, list):
            container.append(value)
        else:
            container[slot.name] = value
        self.open[slot.number] = value

    def container(self, slot: Slot, row: int) -> Any:
        """What the value of a slot goes into; `row` is that of the table the slot stands in."""
        assert slot.parent is not None
        container = self.open[slot.parent.number]
        if slot.parent.kind != Kind.ELEMENT:
            return container
        first, objects = container
        return objects[row - first]


def _fixed(data: NDArray[np.uint8], at: int, op: int) -> int:
    width, signed = WIDTH_AND_SIGN[op]
    return int.from_bytes(data[at : at + width].tobytes(), "big", signed=signed)


def _value(decoded: Decoded, slot: Slot, value: int, length: int, *, contents: bool) -> Any:
    if length < 0:
        return None
    if slot.kind == Kind.STRUCT:
        return {}
    if slot.kind == Kind.ARRAY:
        return []
    if slot.kind == Kind.INTEGER:
        return value
    if slot.kind == Kind.BOOLEAN:
        return bool(value)
    if slot.kind == Kind.FLOAT:
        return struct.unpack(">d", struct.pack(">q", value))[0]
    return _content(decoded, slot, value, length, contents=contents)


def _content(decoded: Decoded, slot: Slot, value: int, length: int, *, contents: bool) -> Any:
    width = 16 if slot.kind == Kind.UUID else length * (slot.width or 1)
    if value < 0 or ((slot.secret or slot.kind == Kind.RECORDS) and not contents):
        return {"left_out": width}
    data = decoded.messages.data[value : value + width].tobytes()
    if slot.kind == Kind.TEXT:
        return data.decode(errors="replace")  # as Kafka's readers do; others refuse what is not UTF-8
    if slot.kind == Kind.UUID:
        return id_text(data)
    if slot.kind == Kind.UUIDS:
        return [id_text(data[at : at + 16]) for at in range(0, width, 16)]
    if slot.kind == Kind.INTEGERS:
        return np.frombuffer(data, f">i{slot.width}").tolist()
    return base64.b64encode(data).decode()


def id_text(data: bytes) -> str:
    """A UUID as Kafka prints it."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
