"""Messages inside Envelopes: what a KRaft broker forwards to the controller, request and response.

Knows where an Envelope carries the other message (header and body, without size). Refuses to know who forwards what.
Rule: an inner response is read by its inner request; where that was not seen, its version is unknown, never guessed.
Kafka does not put an Envelope into an Envelope, so there is one step, not a recursion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from decode.columns import tables
from decode.wire import REQUEST, RESPONSE, UNKNOWN_VERSION_YET, pack

if TYPE_CHECKING:
    from decode.holes import Field
    from decode.message import Decoded
    from decode.wire import Ints, Messages

__all__ = ["CARRIED", "ENVELOPE", "unwrapped"]

ENVELOPE = 58
CARRIED = ("requestData", "responseData")
"""Fields of an Envelope, and of nothing else, that hold the other message."""
UNKNOWN_KEY = -1


def unwrapped(decoded: Decoded, request_of: Ints) -> tuple[Messages, Ints]:
    """Inner messages of all Envelopes in a batch, and the message each came in.

    `request_of` is, by message, the one it answers: -1 of a request, and of a response whose request was not seen.
    """
    inner: list[tuple[int, Field, int, int, int]] = []
    asked: dict[int, tuple[int, int]] = {}
    for outer, field in _contents(decoded, "request", "request_data"):
        key, version = (field.integer(0, 2), field.integer(2, 2)) if field.known(0, 4) and len(field) >= 4 else UNKNOWN
        asked[outer] = key, version
        inner.append((outer, field, REQUEST, key, version))
    for outer, field in _contents(decoded, "response", "response_data"):
        key, version = asked.get(int(request_of[outer]), UNKNOWN)
        inner.append((outer, field, RESPONSE, key, version))
    messages = pack(
        [field.data.tobytes() for _, field, *_ in inner],
        [side for _, _, side, _, _ in inner],
        [key for *_, key, _ in inner],
        [version for *_, version in inner],
        [[(int(begin), int(end - begin)) for begin, end in field.holes] for _, field, *_ in inner],
    )
    return messages, np.array([outer for outer, *_ in inner], np.int64)


UNKNOWN = (UNKNOWN_KEY, UNKNOWN_VERSION_YET)


def _contents(decoded: Decoded, side: str, name: str) -> list[tuple[int, Field]]:
    table = tables(decoded, ENVELOPE, side)[""]
    column = table[name]
    fields = ((int(message), column.field(row)) for row, message in enumerate(table.message))
    return [(message, field) for message, field in fields if field is not None]
