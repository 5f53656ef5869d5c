"""A follower's memory as bytes, and back.

Knows: how heap, arena and the few texts are laid out in a blob, and which version of the heap's columns it is.
Refuses to know: what the columns mean.
Rule: STATE_VERSION goes up whenever a column of slots.py, a key of the texts or the layout here changes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Bytes, Ints

STATE_VERSION = 4
MAGIC = b"wirecheck follower "


def pack(heap: Ints, arena: Bytes, texts: dict[str, Any]) -> bytes:
    head = json.dumps({"texts": texts, "heap": len(heap), "arena": len(arena)}).encode()
    return b"".join([MAGIC + b"%d %d\n" % (STATE_VERSION, len(head)), head, heap.tobytes(), arena.tobytes()])


def unpack(blob: bytes) -> tuple[Ints, Bytes, dict[str, Any]]:
    """Heap, arena and texts; ValueError for what another version wrote."""
    line, _, rest = blob.partition(b"\n")
    version, _, length = line.removeprefix(MAGIC).partition(b" ")
    if not line.startswith(MAGIC) or version != b"%d" % STATE_VERSION:
        found = version.decode(errors="replace") if line.startswith(MAGIC) else "none"
        raise ValueError(f"state of version {found}, this program reads {STATE_VERSION}: start a new checkpoint")
    head, at = json.loads(rest[: int(length)]), int(length)
    heap = np.frombuffer(rest, np.int64, head["heap"], at).copy()
    arena = np.frombuffer(rest, np.uint8, head["arena"], at + heap.nbytes).copy()
    return heap, arena, head["texts"]
