"""The pcapng Decryption Secrets Block: keys that travel with a capture.

Knows: its layout (draft-ietf-opsawg-pcapng, 4.7), and which of its types is a TLS key log.
Refuses to know: what secrets open.
Rule: of other types, as of SSH or WireGuard, nothing is taken.
"""

from __future__ import annotations

import struct

BLOCK = 10
TLS_KEY_LOG = 0x544C534B


def key_log(body: memoryview, order: str) -> bytes | None:
    """The lines in such a block, `order` being its section's byte order; None where its length lies."""
    if len(body) < 8:
        return None
    kind, length = struct.unpack(order + "II", body[:8])
    if length > len(body) - 8:
        return None
    return bytes(body[8 : 8 + length]) if kind == TLS_KEY_LOG else b""
