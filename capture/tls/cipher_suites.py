"""Cipher suites of TLS 1.2 and 1.3 that Kafka uses, by IANA number. A suite that is not here is reported, not tried.

Source: the IANA registry "TLS Cipher Suites"; RFC 5246, 5288, 5289, 6655, 7251, 7905, 8446.
"""

from __future__ import annotations

from dataclasses import dataclass

GCM, CHACHA20, CCM, CBC = "AES-GCM", "ChaCha20-Poly1305", "AES-CCM", "AES-CBC"


@dataclass(frozen=True, slots=True)
class Suite:
    """How records are protected."""

    cipher: str
    key_bytes: int
    prf: str
    """Hash of the key schedule."""
    mac: str = ""
    """Of CBC: the hash of its HMAC."""
    tag_bytes: int = 16

    @property
    def prf_bytes(self) -> int:
        return 48 if self.prf == "sha384" else 32


def _alike(numbers: str, suite: Suite) -> dict[int, Suite]:
    return {int(number, 16): suite for number in numbers.split()}


TLS_1_3: dict[int, Suite] = {
    0x1301: Suite(GCM, 16, "sha256"),
    0x1302: Suite(GCM, 32, "sha384"),
    0x1303: Suite(CHACHA20, 32, "sha256"),
    0x1304: Suite(CCM, 16, "sha256"),
    0x1305: Suite(CCM, 16, "sha256", tag_bytes=8),
}

TLS_1_2: dict[int, Suite] = {
    **_alike("009c 009e 00a0 00a2 00a4 00a6 00a8 00aa 00ac c02b c02d c02f c031 d001", Suite(GCM, 16, "sha256")),
    **_alike("009d 009f 00a1 00a3 00a5 00a7 00a9 00ab 00ad c02c c02e c030 c032 d002", Suite(GCM, 32, "sha384")),
    **_alike("cca8 cca9 ccaa ccab ccac ccad ccae", Suite(CHACHA20, 32, "sha256")),
    **_alike("c09c c09e c0ac", Suite(CCM, 16, "sha256")),
    **_alike("c09d c09f c0ad", Suite(CCM, 32, "sha256")),
    **_alike("c0a0 c0a2 c0ae", Suite(CCM, 16, "sha256", tag_bytes=8)),
    **_alike("c0a1 c0a3 c0af", Suite(CCM, 32, "sha256", tag_bytes=8)),
    **_alike("002f 0030 0031 0032 0033 0034 c004 c009 c00e c013 c018", Suite(CBC, 16, "sha256", "sha1")),
    **_alike("0035 0036 0037 0038 0039 003a c005 c00a c00f c014 c019", Suite(CBC, 32, "sha256", "sha1")),
    **_alike("003c 003e 003f 0040 0067 006c c023 c025 c027 c029", Suite(CBC, 16, "sha256", "sha256")),
    **_alike("003d 0068 0069 006a 006b 006d", Suite(CBC, 32, "sha256", "sha256")),
    **_alike("c024 c026 c028 c02a", Suite(CBC, 32, "sha384", "sha384")),
}
