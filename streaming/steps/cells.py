"""Values in binary cells: how arrays cross between the steps.

A cell is a JSON head and the little-endian buffers of its arrays. Integers are stored as differences from the lowest,
which halves what passes through Java's heap. Dataclasses, arrays, bytes, tuples, texts and numbers come out equal.
"""

import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 8  # numpy reads int64 buffers in place only where they are aligned
NARROW = np.dtype("u1"), np.dtype("<u2"), np.dtype("<u4")
MANY = 64  # numbers that are worth a second look
Buffer = bytes | memoryview


def to_cell(value: Any, name: bytes = b"") -> bytes:
    """One value as bytes; `name` is a text before it, which can be read alone (`named`)."""
    buffers: list[Buffer] = []
    head = json.dumps(described(value, buffers), separators=(",", ":")).encode()
    sizes = [len(head), *(len(b) for b in buffers)]
    preamble = np.array([len(sizes), *sizes], "<i8").tobytes()
    pieces = (part for piece in (head, *buffers) for part in (piece, b"\0" * (-len(piece) % ALIGNMENT)))
    label = [len(name).to_bytes(ALIGNMENT, "little"), name, b"\0" * (-len(name) % ALIGNMENT)] if name else []
    return b"".join([*label, preamble, *pieces])


def named(cell: bytes) -> tuple[bytes, memoryview]:
    """The name of a cell that has one, and the cell: nothing in it is parsed or copied."""
    length = int.from_bytes(cell[:ALIGNMENT], "little")
    end = ALIGNMENT + length
    return cell[ALIGNMENT:end], memoryview(cell)[end + -length % ALIGNMENT :]


def from_cell(cell: bytes | memoryview, *classes: type) -> Any:
    """The value again; its arrays of bytes lie in the cell. `classes`: every dataclass and NamedTuple in it."""
    count = int(np.frombuffer(cell, "<i8", 1)[0])
    sizes = np.frombuffer(cell, "<i8", count, ALIGNMENT)
    starts = ALIGNMENT * (1 + count) + np.concatenate([[0], np.cumsum(sizes + -sizes % ALIGNMENT)])
    view = memoryview(cell)
    pieces = [view[start : start + size] for start, size in zip(starts[:-1].tolist(), sizes.tolist(), strict=True)]
    return rebuilt(json.loads(bytes(pieces[0])), pieces[1:], {cls.__name__: cls for cls in classes})


def described(value: Any, buffers: list[Buffer]) -> Any:
    """JSON for a value; arrays and bytes go to `buffers` and are named by their place there."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.generic():
            return value.item()
        case np.ndarray():
            least, narrow = narrowed(value)
            buffers.append(np.ascontiguousarray(narrow).reshape(-1).view(np.uint8).data)
            plan = {"array": value.dtype.newbyteorder("<").str, "shape": value.shape, "at": len(buffers) - 1}
            return plan if narrow is value else plan | {"over": least, "as": narrow.dtype.str}
        case bytes() | bytearray() | memoryview():
            buffers.append(bytes(value))
            return {"bytes": len(buffers) - 1}
        case tuple() if hasattr(value, "_fields"):
            return {type(value).__name__: [described(item, buffers) for item in value]}
        case tuple() | list():
            return [described(item, buffers) for item in value]
        case dict():
            return {"pairs": [[described(k, buffers), described(v, buffers)] for k, v in value.items()]}
    if is_dataclass(value):
        return {type(value).__name__: [described(getattr(value, f.name), buffers) for f in fields(value) if f.init]}
    msg = f"a {type(value).__name__} does not fit into a cell"
    raise TypeError(msg)


def narrowed(values: NDArray[Any]) -> tuple[int, NDArray[Any]]:
    """(least, each number's distance from it in as few bytes as hold the largest); as they are, where none is saved."""
    if values.dtype.kind != "i" or values.size < MANY:
        return 0, values
    least, most = int(values.min()), int(values.max())
    for narrow in NARROW:
        if most - least <= np.iinfo(narrow).max and narrow.itemsize < values.dtype.itemsize:
            return least, (values - values.dtype.type(least)).astype(narrow)
    return 0, values


def rebuilt(head: Any, pieces: list[memoryview], classes: dict[str, type]) -> Any:
    match head:
        case {"array": dtype, "shape": shape, "at": at, "over": least, "as": narrow}:
            wide = np.frombuffer(pieces[at], narrow).astype(dtype)
            wide += least
            return wide.reshape(shape)
        case {"array": "|u1", "shape": [_], "at": at}:
            return np.frombuffer(pieces[at], np.uint8)
        case {"array": dtype, "shape": shape, "at": at}:
            return np.frombuffer(bytearray(pieces[at]), dtype).reshape(shape)  # others can be written to
        case {"bytes": at}:
            return bytes(pieces[at])
        case {"pairs": pairs}:
            return {rebuilt(k, pieces, classes): rebuilt(v, pieces, classes) for k, v in pairs}
        case dict():
            ((name, values),) = head.items()
            return classes[name](*(rebuilt(item, pieces, classes) for item in values))
        case list():
            return tuple(rebuilt(item, pieces, classes) for item in head)
    return head
