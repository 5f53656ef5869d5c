"""The bytes of a direction in order, for who reads them before they are framed: TLS is undone on them.

Knows: how what a tapped direction has in order (modes.py) becomes runs of bytes and gaps.
Refuses to know: what the bytes are.
Rule: every byte of a direction is taken once, in order; what was never seen, or left out, is a run without bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirecheck.decode.connection.stream.chunks import DATA, gathered
from wirecheck.decode.connection.stream.frame import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirecheck.decode.connection.stream.direction import Direction


class InOrder(NamedTuple):
    """A run of one direction, [begin, end)."""

    key: str
    """Of the connection's endpoints, as the follower knows them."""
    serial: int
    side: int
    begin: int
    end: int
    data: bytes | None


def take(key: str, serial: int, direction: Direction) -> Iterator[InOrder]:
    chunk = direction.ordered.detach(direction.next_offset)
    while chunk is not None:
        begin, end, data = chunk.begin, chunk.end, None
        if chunk.kind == DATA:
            data = gathered(chunk, begin, NEVER)
            end = begin + len(data)
        while chunk is not None and chunk.end <= end:
            chunk = chunk.next
        yield InOrder(key, serial, direction.side, begin, end, data)
