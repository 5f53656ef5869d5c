"""Which of a server's addresses brokers name in their answers, where a translation gives it several.

Knows: how a host name and a port stand in a broker list, one behind the other. Does not know which message holds them,
and whom an address belongs to: both addresses are the server's, so a wrong text chooses a name and nothing else.
Rule: no more bytes are searched than SEARCHED_BYTES, by one agent.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from wirecheck.capture.routes import Endpoint

SEARCHED_BYTES: Final = 256 << 20
MOST_SOUGHT: Final = 64


class Advertised:
    def __init__(self) -> None:
        self._sought: list[dict[Endpoint, bytes]] = []
        """Addresses of one server each, none of which was found, and how a broker list has them."""
        self._found: set[Endpoint] = set()
        self._left_bytes = SEARCHED_BYTES

    def best(self, ends: Sequence[Endpoint]) -> Endpoint:
        """The first one that brokers name; else the first."""
        return next((end for end in ends if end in self._found), ends[0])

    def look(self, servers: Iterable[set[Endpoint]], pieces: Sequence[pa.RecordBatch]) -> None:
        """Rows that come after those of former calls are the last piece. `servers`: addresses of one server each, which
        are looked for in all pieces, and from now on.
        """
        before, known = len(self._sought), self._found.union(*self._sought)
        for ends in servers:
            if len(ends) > 1 and known.isdisjoint(ends) and len(self._sought) < MOST_SOUGHT:
                known |= ends
                self._sought.append({end: end[0].encode() + struct.pack(">i", end[1]) for end in ends})
        if not self._sought or self._left_bytes <= 0:
            return
        for piece in pieces if len(self._sought) > before else pieces[-1:]:
            self._search(payload_of(piece))
        self._sought = [one for one in self._sought if not self._found & one.keys()]

    def _search(self, data: bytes) -> None:
        for one in self._sought:
            self._left_bytes -= len(data) * len(one)
            self._found |= {end for end, text in one.items() if text in data}


def payload_of(rows: pa.RecordBatch) -> bytes:
    """Of all rows, one behind the other."""
    column = rows.column("payload")
    _, offsets, values = column.buffers()
    if values is None:
        return b""
    begin, end = np.frombuffer(offsets, np.int32)[[column.offset, column.offset + len(column)]].tolist()
    return bytes(values.slice(begin, end - begin).to_pybytes())
