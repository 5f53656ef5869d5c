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
    at = np.searchsorted(spans.message, np.arange(len(messages) + 1)).tolist()
    secrets = list(zip(spans.offset.tolist(), (spans.offset + spans.length).tolist(), strict=True))
    return [digest(messages, row, secrets[at[row] : at[row + 1]]) for row in range(len(messages))]


def digest(messages: Messages, row: int, secrets: list[tuple[int, int]]) -> str:
    """`secrets`: where they begin and end on the wire."""
    found = blake2b(int(messages.size[row]).to_bytes(8, "big"), digest_size=DIGEST_BYTES)
    for place, piece in without(messages, row, secrets):
        found.update(place.to_bytes(8, "big") + piece)
    return found.hexdigest()


def without(messages: Messages, row: int, secrets: list[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
    """Pieces of a message, each with its place on the wire, between these and what was left out of it. Anybody can
    send very many of both: they are gone through once.
    """
    spans = slice(messages.span_at[row], messages.span_at[row + 1])
    offset, length = messages.span_offset[spans], messages.span_length[spans]
    left_out = np.concatenate([np.zeros(1, np.int64), np.cumsum(length)])
    size, place = int(messages.size[row]), 0
    cuts = sorted([*zip(offset.tolist(), (offset + length).tolist(), strict=True), *secrets, (size, size)])
    for begin, end in cuts:
        if begin > place:
            at = int(messages.at[row] + place - left_out[np.searchsorted(offset, place)])
            yield place, messages.data[at : at + begin - place].tobytes()
        place = max(place, end)
