"""A follower's memory as bytes, and back.

Knows: how texts, a few numbers and blocks of connections are laid out in a blob, and which version of all that it is.
Refuses to know: what any of it means.
Rule: STATE_VERSION goes up whenever a column (attributes.py), a block's layout (parked.py), a text or a number changes;
what the version before wrote goes on (older_states.py).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode.connection.state import older_states
from wirecheck.decode.connection.state.parked import Block, Parked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STATE_VERSION = 6
MAGIC = b"wirecheck follower "
BLOCKS: dict[bytes, Callable[[memoryview], Block]] = {b"%d" % STATE_VERSION: Block, b"5": older_states.of_5}
"""By version, how a block of connections is read."""


def pack(texts: dict[str, Any], numbers: Sequence[int], parked: Parked) -> bytes:
    """A follower's memory: texts, some numbers, and its connections."""
    blocks = parked.stored()
    lengths = [sum(map(len, parts)) for parts in blocks]
    head = json.dumps({"texts": texts, "blocks": lengths}).encode()
    first = MAGIC + b"%d %d\n" % (STATE_VERSION, len(head))
    fixed = np.array(numbers, np.int64).tobytes()
    return b"".join(
        [first, head, len(fixed).to_bytes(8, "little"), fixed, *(part for parts in blocks for part in parts)]
    )


def unpack(blob: bytes) -> tuple[dict[str, Any], list[int], Parked]:
    """Texts, numbers and connections; ValueError for what a version wrote that is none of these."""
    line, _, _ = blob[:100].partition(b"\n")
    version, _, length = line.removeprefix(MAGIC).partition(b" ")
    block_of = BLOCKS.get(version) if line.startswith(MAGIC) else None
    if block_of is None:
        found = version.decode(errors="replace") if line.startswith(MAGIC) else "none"
        raise ValueError(f"state of version {found}, this program reads {STATE_VERSION}: start a new checkpoint")
    memory, at = memoryview(blob), len(line) + 1
    head = json.loads(bytes(memory[at : at + int(length)]))
    at += int(length)
    size = int.from_bytes(memory[at : at + 8], "little")
    numbers = np.frombuffer(memory, np.int64, size // 8, at + 8).tolist()
    at += 8 + size
    blocks = []
    for size in head["blocks"]:
        blocks.append(block_of(memory[at : at + size]))
        at += size
    return head["texts"], numbers, Parked(blocks)
