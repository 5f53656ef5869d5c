"""The packets of a capture that carry one message, as findings, changes and messages name them.

It imports nothing of the project, so that every package can use it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Frame:
    """Packets of a capture that carry one message."""

    source: str
    """File name of the capture, or interface of an agent."""
    first: int
    """Number of the packet in its source, as Wireshark counts."""
    last: int
    """Number of the last packet; of a change the same as `first`."""
