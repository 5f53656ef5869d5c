"""Followers' memories as earlier versions wrote them, made into today's.

Knows: what has changed in the columns of a connection since, version by version. Refuses to know what they mean.
Rule: a version that was in a release goes on: what it did not know is what a new connection begins with. A state of
each is kept in tests/decode/connection/state/followers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.connection.state.attributes import COLUMNS, CONNECTIONS
from wirecheck.decode.connection.state.parked import WIDTHS, Block
from wirecheck.decode.connection.stream.modes import OFF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

OF_CONNECTION = 27
"""Columns before those of the first direction, in 5 as today."""
BEFORE_OVERHEAD = 13
"""Columns of a direction before those that 5 lacks."""
LACKING = 3
"""It knew nothing of overhead."""
WIDTHS_OF_5 = [WIDTHS[CONNECTIONS] - 2 * LACKING, *WIDTHS[CONNECTIONS + 1 :]]


def of_5(memory: memoryview) -> Block:
    """A block of version 5 as one of today."""
    keys, tables, data = Block(memory, WIDTHS_OF_5).left()
    rows = tables[CONNECTIONS]
    life = rows[:, COLUMNS["life"]]
    life[life > OFF] += 1  # the modes of connections stand behind those of directions, which are one more
    directions = np.split(rows[:, OF_CONNECTION:], 2, axis=1)
    tables[CONNECTIONS] = np.concatenate([rows[:, :OF_CONNECTION], *map(widened, directions)], axis=1)
    return Block.of(keys, tables, data)


def widened(direction: Ints) -> Ints:
    """The same columns, and no overhead."""
    none = np.zeros((len(direction), LACKING), np.int64)
    return np.concatenate([direction[:, :BEFORE_OVERHEAD], none, direction[:, BEFORE_OVERHEAD:]], axis=1)
