"""A follower's memory as bytes, and back.

Knows: how the arrays and the few texts are laid out in a blob, and which version of the memory's columns it is.
Refuses to know: what the columns mean.
Rule: STATE_VERSION goes up whenever a column of slots.py, a key of the texts or the layout here changes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from decode import slots

if TYPE_CHECKING:
    from decode.slots import Memory

STATE_VERSION = 1
MAGIC = b"wirecheck follower "
ARRAYS = ("whole", "connection", "way", "piece", "wait", "arena")


def pack(m: Memory, texts: dict[str, Any]) -> bytes:
    used = _used(m.whole)
    arrays = {name: getattr(m, name)[:count] for name, count in used.items()}
    head = json.dumps({"texts": texts, "shapes": {name: array.shape for name, array in arrays.items()}}).encode()
    opening = MAGIC + b"%d %d\n" % (STATE_VERSION, len(head))
    return b"".join([opening, head, *(array.tobytes() for array in arrays.values())])


def unpack(blob: bytes, fresh: Memory) -> tuple[Memory, dict[str, Any]]:
    """The memory (limits and tables of `fresh`) and the texts; ValueError for what this version did not write."""
    line, _, rest = blob.partition(b"\n")
    version, _, length = line.removeprefix(MAGIC).partition(b" ")
    if not line.startswith(MAGIC) or version != b"%d" % STATE_VERSION:
        found = version.decode(errors="replace") if line.startswith(MAGIC) else "none"
        raise ValueError(f"state of version {found}, this program reads {STATE_VERSION}: start a new checkpoint")
    head, at = json.loads(rest[: int(length)]), int(length)
    arrays = {}
    for name, shape in head["shapes"].items():
        kind = np.uint8 if name == "arena" else np.int64
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(rest, kind, count, at).reshape(shape)
        at += count * np.dtype(kind).itemsize
    kept = {
        name: slots.grown(array.copy(), len(array), max(0, len(getattr(fresh, name)) - len(array)))
        for name, array in arrays.items()
    }
    kept["way"] = slots.grown(kept["way"], len(kept["way"]), max(0, 2 * len(kept["connection"]) - len(kept["way"])))
    touched = slots.grown(fresh.touched, 0, len(kept["connection"]))
    return fresh._replace(**kept, touched=touched), head["texts"]


def _used(whole: slots.Ints) -> dict[str, int]:
    connections = int(whole[slots.G_CONN_TOP])
    return {
        "whole": len(whole),
        "connection": connections,
        "way": 2 * connections,
        "piece": int(whole[slots.G_PIECE_TOP]),
        "wait": int(whole[slots.G_WAIT_TOP]),
        "arena": int(whole[slots.G_ARENA]),
    }
