"""Tokens to values for people: the canonical JSON of one message.

Knows how Kafka's values are written as JSON: names with the first letter lowered, bytes in base64, uuids as Kafka
prints them, a tagged field only if its tag was there, unknown tags kept. Refuses to know layouts and encodings.
Rule: what was on the wire and nothing else; two messages with the same value differ in no byte that matters.
"""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from decode.form import Kind, Slot
from decode.program import programs

if TYPE_CHECKING:
    from decode.message import Decoded

__all__ = ["nested"]


def nested(decoded: Decoded, i: int, *, contents: bool = True) -> dict[str, Any]:
    """`{"header": ..., "body": ...}` of message i, `{"body": ...}` of a record or blob, `{}` if it was not decoded.

    Without `contents` records and secret fields appear as `{"left_out": bytes}`, as they do where they were not kept.
    """
    slots = programs().slots
    open_: dict[int, Any] = {}
    out: dict[str, Any] = {}
    for token in range(decoded.token_at[i], decoded.token_at[i + 1]):
        slot = slots[decoded.field[token]]
        if slot.kind == Kind.MESSAGE:
            open_[slot.number] = out
        else:
            _place(slot, _value(decoded, token, slot, contents=contents), open_)
    return out


def _place(slot: Slot, value: Any, open_: dict[int, Any]) -> None:
    """Puts a value where its slot belongs, and keeps what later values are put into."""
    parent = slot.parent
    assert parent is not None
    container = open_[parent.number]
    if slot.kind == Kind.UNKNOWN_TAG:
        container.setdefault(slot.name, []).append(value)
    elif slot.kind == Kind.ENTRY:
        value = container
    elif isinstance(container, list):
        container.append(value)
    else:
        container[slot.name] = value
    open_[slot.number] = value


def _value(decoded: Decoded, token: int, slot: Slot, *, contents: bool) -> Any:
    value, length = int(decoded.value[token]), int(decoded.length[token])
    kind = slot.kind
    if length < 0:
        return None
    if kind in {Kind.STRUCT, Kind.ELEMENT, Kind.UNKNOWN_TAG, Kind.ENTRY}:
        return {}
    if kind == Kind.ARRAY:
        return []
    if kind == Kind.INTEGER:
        return value
    if kind == Kind.BOOLEAN:
        return bool(value)
    if kind == Kind.FLOAT:
        return struct.unpack(">d", struct.pack(">q", value))[0]
    return _content(decoded, slot, value, length, contents=contents)


def _content(decoded: Decoded, slot: Slot, value: int, length: int, *, contents: bool) -> Any:
    width = 16 if slot.kind == Kind.UUID else length * (slot.width or 1)
    if value < 0 or ((slot.secret or slot.kind == Kind.RECORDS) and not contents):
        return {"left_out": width}
    data = decoded.messages.data[value : value + width].tobytes()
    if slot.kind == Kind.TEXT:
        return data.decode()
    if slot.kind == Kind.UUID:
        return _uuid(data)
    if slot.kind == Kind.UUIDS:
        return [_uuid(data[at : at + 16]) for at in range(0, width, 16)]
    if slot.kind == Kind.INTEGERS:
        return np.frombuffer(data, f">i{slot.width}").tolist()
    return base64.b64encode(data).decode()


def _uuid(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
