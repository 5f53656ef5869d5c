"""What a request was, in eight bytes: a broker that forwards one puts it byte for byte into an Envelope (KIP-590).

Knows: which bytes of a request were captured, and which are secret.
Refuses to know: who sent it, and what it asks for.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.secrecy import confidential

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirecheck.decode.wire import Messages

DIGEST_BYTES = 8


def request_digests(messages: Messages) -> list[str]:
    """By message, hexadecimal digits that are the same for the same bytes.

    Secrets are not part of it, as agents leave them out, and a digest of a password could be guessed. Bytes that were
    not captured make another digest.
    """
    spans, _ = confidential(messages, np.full(len(messages), -1))
    at = np.searchsorted(spans.message, np.arange(len(messages) + 1))
    offset, end = spans.offset.tolist(), (spans.offset + spans.length).tolist()
    return [
        digest(messages, row, list(zip(offset[at[row] : at[row + 1]], end[at[row] : at[row + 1]], strict=True)))
        for row in range(len(messages))
    ]


def digest(messages: Messages, row: int, secrets: list[tuple[int, int]]) -> str:
    found = blake2b(int(messages.size[row]).to_bytes(8, "big"), digest_size=DIGEST_BYTES)
    for begin, piece in captured(messages, row):
        place = begin
        for first, last in [*secrets, (begin + len(piece), begin + len(piece))]:
            if place < first <= begin + len(piece):
                found.update(place.to_bytes(8, "big") + piece[place - begin : first - begin])
            place = max(place, last)
    return found.hexdigest()


def captured(messages: Messages, row: int) -> Iterator[tuple[int, bytes]]:
    """Pieces of a message between what was left out, each with its place on the wire."""
    kept, spans = int(messages.at[row]), slice(messages.span_at[row], messages.span_at[row + 1])
    place, end = 0, int(messages.at[row + 1])
    lengths = messages.span_length[spans].tolist()
    for offset, length in zip(messages.span_offset[spans].tolist(), lengths, strict=True):
        yield place, messages.data[kept : kept + offset - place].tobytes()
        kept, place = kept + offset - place, offset + length
    yield place, messages.data[kept:end].tobytes()
