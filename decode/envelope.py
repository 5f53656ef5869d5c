"""Messages inside Envelopes: what a KRaft broker forwards to the controller.

An inner response is read by its inner request; where that was not seen, its version is unknown. Brokers refuse nested
Envelopes; here DEEPEST of them are read.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wirecheck.decode.columns import tables
from wirecheck.decode.wire import REQUEST, RESPONSE, UNKNOWN_VERSION_YET, pack

if TYPE_CHECKING:
    from wirecheck.decode.holes import Field
    from wirecheck.decode.message import Decoded
    from wirecheck.decode.wire import Ints, Messages

ENVELOPE = 58
CARRIED = ("requestData", "responseData")
"""Fields of an Envelope, and of nothing else, that hold the other message."""
FORWARDED_FOR = ("requestPrincipal", "clientHostAddress")
"""Fields of an Envelope that say for whom its request is."""
DEEPEST = 4
"""Messages below one Envelope that are read: Kafka knows one, and ENVELOPE itself is not forwardable (ApiKeys)."""
UNKNOWN_KEY = -1


class Unwrapped(NamedTuple):
    """What the Envelopes of a batch carry, one step down."""

    messages: Messages
    outer: Ints
    """By message, the row of the Envelope it came in."""
    request_of: Ints
    """By message, the one of these that it answers; -1 of a request, and where that was not seen."""


def unwrapped(decoded: Decoded, request_of: Ints) -> Unwrapped:
    """Inner messages of all Envelopes in a batch.

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
    came_in = np.array([outer for outer, *_ in inner], np.int64)
    row = {outer: i for i, outer in enumerate(came_in.tolist())}
    answered = np.array([row.get(outer, -1) for outer in request_of[came_in].tolist()], np.int64)
    return Unwrapped(messages, came_in, answered)


UNKNOWN = (UNKNOWN_KEY, UNKNOWN_VERSION_YET)


def _contents(decoded: Decoded, side: str, name: str) -> list[tuple[int, Field]]:
    table = tables(decoded, ENVELOPE, side)[""]
    column = table[name]
    fields = ((int(message), column.field(row)) for row, message in enumerate(table.message))
    return [(message, field) for message, field in fields if field is not None]


ADDRESS_BYTES = (4, 16)
LONGEST_TEXT = 1 << 14
"""Bytes of a type or a name; longer ones are not read (a principal is a distinguished name at most)."""


def client_host(address: bytes | None) -> str | None:
    """The address as text; None where it is neither IPv4 nor IPv6, or zeros, which evidence has in its place."""
    is_known = address is not None and len(address) in ADDRESS_BYTES and any(address)
    return str(ip_address(address)) if address is not None and is_known else None


def principal(data: bytes | None) -> str | None:
    """`User:alice`; None where the bytes are not exactly as Kafka's KafkaPrincipalSerde writes them: a custom
    KafkaPrincipalBuilder may write anything (DefaultPrincipalData.json, KIP-590).
    """
    if data is None or data[:2] != b"\0\0":
        return None
    kind, at = compact_text(data, 2)
    name, at = compact_text(data, at)
    token_authenticated_and_tags = data[at:] if at > 0 else b""
    whole = token_authenticated_and_tags in {b"\0\0", b"\1\0"}
    return f"{kind}:{name}" if whole and kind is not None and name is not None else None


def compact_text(data: bytes, at: int) -> tuple[str | None, int]:
    """A compact string and where it ends; (None, -1) if there is none."""
    if at < 0:
        return None, -1
    length, shift = 0, 0
    for place in range(at, min(at + 3, len(data))):
        length |= (data[place] & 0x7F) << shift
        shift += 7
        if data[place] < 0x80:
            begin, end = place + 1, place + length
            if not 0 < length <= LONGEST_TEXT or end > len(data):
                return None, -1
            try:
                return data[begin:end].decode(), end
            except UnicodeDecodeError:
                return None, -1
    return None, -1
