"""A follower's memory as bytes, and back.

Knows: how texts, a few numbers and blocks of connections are laid out in a blob, and which version of all that it is.
Refuses to know: what any of it means.
Rule: STATE_VERSION goes up whenever a column (attributes.py), a block's layout (parked.py), a text or a number changes;
a blob of another version is refused.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode.connection.state.parked import Block, Parked

if TYPE_CHECKING:
    from collections.abc import Sequence

STATE_VERSION = 1
MAGIC = b"wirecheck connections %d " % STATE_VERSION


def pack(texts: dict[str, Any], numbers: Sequence[int], parked: Parked) -> bytes:
    """A follower's memory: texts, some numbers, and its connections."""
    blocks = parked.stored()
    lengths = [sum(map(len, parts)) for parts in blocks]
    head = json.dumps({"texts": texts, "blocks": lengths}).encode()
    first = MAGIC + b"%d\n" % len(head)
    fixed = np.array(numbers, np.int64).tobytes()
    return b"".join(
        [first, head, len(fixed).to_bytes(8, "little"), fixed, *(part for parts in blocks for part in parts)]
    )


def unpack(blob: bytes) -> tuple[dict[str, Any], list[int], Parked]:
    """Texts, numbers and connections. Raises ValueError where another version wrote the blob."""
    line, _, _ = blob[:100].partition(b"\n")
    if not line.startswith(MAGIC):
        raise ValueError(f"the checkpoint holds no connections of state version {STATE_VERSION}")
    length = int(line.removeprefix(MAGIC))
    memory, at = memoryview(blob), len(line) + 1
    head = json.loads(bytes(memory[at : at + length]))
    at += length
    size = int.from_bytes(memory[at : at + 8], "little")
    numbers = np.frombuffer(memory, np.int64, size // 8, at + 8).tolist()
    at += 8 + size
    blocks = []
    for size in head["blocks"]:
        blocks.append(Block(memory[at : at + size]))
        at += size
    return head["texts"], numbers, Parked(blocks)
