"""Where the packets of a call belong: what trimming needs to leave secrets out of packets that wait.

Knows: which stretch of which stream every packet carried, as the follower placed it.
Refuses to know: which bytes are secret, and how packets are kept.
Rule: every packet with payload of a connection that is followed has a place, copies and retransmissions too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the packets of one call belong, one row each."""

    serial: Ints
    """Number of the connection, -1 for none."""
    direction: Ints
    offset: Ints
    """Of the first payload byte in its direction; -1 if the packet carries none that matters."""

    @classmethod
    def none(cls) -> Placed:
        return cls(*np.zeros((3, 0), np.int64))
