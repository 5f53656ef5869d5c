"""Headers of records: what may be one, and how much is behind it.

Knows: RFC 8446 5.1 and RFC 5246 6.2, as far as a record can be told from other bytes. Refuses to know what is inside.
"""

from __future__ import annotations

import re
from typing import Final

from mypy_extensions import i64

CHANGE_CIPHER: Final = 20
ALERT: Final = 21
HANDSHAKE: Final = 22
APPLICATION: Final = 23
HEADER_BYTES: Final = 5
LONGEST_BYTES: Final = (1 << 14) + 2048  # of a record's fragment (RFC 5246 6.2.3)
SHORTEST_BYTES: Final = HEADER_BYTES + 17  # of a record on the wire, encrypted
MAYBE_HEADER: Final = re.compile(rb"[\x15-\x17]\x03[\x01-\x03]")


def is_header(data: bytes, at: i64) -> bool:
    """Whether a record may begin here."""
    kind, major, minor = i64(data[at]), i64(data[at + 1]), i64(data[at + 2])
    return CHANGE_CIPHER <= kind <= APPLICATION and major == 3 and minor <= 4 and size_of(data, at) <= LONGEST_BYTES


def size_of(data: bytes, at: i64) -> i64:
    """Of the fragment behind the header that begins here."""
    return i64(data[at + 3]) << 8 | i64(data[at + 4])
