"""Who a broker forwards a request for: the principal and the client's address in an Envelope.

Knows: the form in which Kafka's own KafkaPrincipalSerde writes a principal (DefaultPrincipalData.json, version 0:
int16 version, compact type and name, tokenAuthenticated, tags; KIP-590), and an address as InetAddress.getAddress()
gives it. Refuses to know Envelopes and what was forwarded.
Rule: a custom KafkaPrincipalBuilder may write anything. What is not exactly Kafka's form gives None, never a guess.
"""

from __future__ import annotations

from ipaddress import ip_address

ADDRESS_BYTES = (4, 16)
LONGEST_TEXT = 1 << 14
"""Bytes of a type or a name; longer ones are not read (a principal is a distinguished name at most)."""


def client_host(address: bytes | None) -> str | None:
    """The address as text; None where it is neither IPv4 nor IPv6."""
    return str(ip_address(address)) if address is not None and len(address) in ADDRESS_BYTES else None


def principal(data: bytes | None) -> str | None:
    """`User:alice`; None where the bytes are not in the form of Kafka's default principal."""
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
