"""Keys of one direction (RFC 8446 7, RFC 5246 6.3): opens records with the ciphers of `cryptography`.

A record is opened only if its tag or MAC proves every byte.
"""

from __future__ import annotations

import hmac
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from wirecheck.capture.tls.cipher_suites import CBC, CCM, CHACHA20, GCM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirecheck.capture.tls.cipher_suites import Suite

NONCE_BYTES, IMPLICIT_BYTES, EXPLICIT_BYTES, BLOCK_BYTES = 12, 4, 8, 16
HEADER_BYTES = 5
TAG_BYTES = 16
ENDS = np.isin(np.arange(256), (0, 22, 23))
"""A record's last byte: its content type (a handshake's or an application's), or padding (RFC 8446 5.2, 5.4)."""
_HASHES: dict[str, hashes.HashAlgorithm] = {"sha256": hashes.SHA256(), "sha384": hashes.SHA384()}
_MAC_BYTES = {"sha1": 20, "sha256": 32, "sha384": 48}


@dataclass(frozen=True, slots=True)
class Opened:
    """What was in a record: its content type, where its content begins behind the header, and the content."""

    kind: int
    at: int
    content: bytes


class RecordKey(Protocol):
    """Opens records of one direction and epoch."""

    has_next: bool
    """Another key may come of it (`next`)."""

    def open(self, number: int, header: bytes, fragment: bytes) -> Opened | None:
        """None: it is not the record of this number under this key, or not whole."""


def expand_label(prf: str, secret: bytes, label: str, length: int) -> bytes:
    """HKDF-Expand-Label of RFC 8446 7.1, without context."""
    name = b"tls13 " + label.encode()
    info = struct.pack(">HB", length, len(name)) + name + b"\0"
    return HKDFExpand(_HASHES[prf], length, info).derive(secret)


def prf_bytes(prf: str, secret: bytes, seed: bytes, length: int) -> bytes:
    """P_hash of RFC 5246 5; `seed` has the label in front."""
    out, chained = b"", seed
    while len(out) < length:
        chained = hmac.digest(secret, chained, prf)
        out += hmac.digest(secret, chained + seed, prf)
    return out[:length]


class Tls13Key:
    """RFC 8446 5.2: the record's own type is inside, padding behind it."""

    has_next = True

    def __init__(self, suite: Suite, secret: bytes) -> None:
        self._suite, self.secret = suite, secret
        self._key = expand_label(suite.prf, secret, "key", suite.key_bytes)
        self._aead = _aead(suite, self._key)
        self._iv = int.from_bytes(expand_label(suite.prf, secret, "iv", NONCE_BYTES), "big")

    def open(self, number: int, header: bytes, fragment: bytes) -> Opened | None:
        try:
            inner = self._aead.decrypt((self._iv ^ number).to_bytes(NONCE_BYTES, "big"), fragment, header)
        except InvalidTag:
            return None
        end = len(inner)
        if not end or not inner[end - 1]:
            end = len(inner.rstrip(b"\0"))
        return Opened(inner[end - 1], 0, inner[: end - 1]) if end else None

    def likely(self, least: int, most: int, fragment: bytes) -> Sequence[int]:
        """Of the numbers [least, most) those under which the record ends as records do; its tag proves the one.

        For AES-GCM, one block of counter mode gives a record's last byte (NIST SP 800-38D 6.5), for all numbers in one
        call: some 30 ns each, where asking the tag takes 5 to 10 us.
        """
        last = len(fragment) - TAG_BYTES - 1
        if self._suite.cipher != GCM or last < 0:
            return range(least, most)
        numbers = np.arange(least, most, dtype=np.uint64)
        blocks = np.empty((len(numbers), BLOCK_BYTES), np.uint8)
        iv = self._iv.to_bytes(NONCE_BYTES, "big")
        blocks[:, :4] = np.frombuffer(iv[:4], np.uint8)
        own = numbers ^ np.uint64(int.from_bytes(iv[4:], "big"))
        blocks[:, 4:12] = own.astype(">u8").view(np.uint8).reshape(-1, 8)
        blocks[:, 12:] = np.frombuffer((last // BLOCK_BYTES + 2).to_bytes(4, "big"), np.uint8)
        encryptor = Cipher(algorithms.AES(self._key), modes.ECB()).encryptor()  # noqa: S305 - GCM is made of it
        stream = np.frombuffer(encryptor.update(blocks.tobytes()), np.uint8)[last % BLOCK_BYTES :: BLOCK_BYTES]
        return [least + at for at in np.flatnonzero(ENDS[stream ^ fragment[last]]).tolist()]

    def next(self) -> Tls13Key:
        """The key behind a KeyUpdate (RFC 8446 7.2)."""
        length = _HASHES[self._suite.prf].digest_size
        return Tls13Key(self._suite, expand_label(self._suite.prf, self.secret, "traffic upd", length))


class Tls12Aead:
    """RFC 5288, 6655 (a nonce in every record) and 7905 (none)."""

    has_next = False

    def __init__(self, suite: Suite, key: bytes, iv: bytes) -> None:
        self._aead, self._iv, self._tag = _aead(suite, key), iv, suite.tag_bytes
        self._explicit = EXPLICIT_BYTES if len(iv) == IMPLICIT_BYTES else 0

    def open(self, number: int, header: bytes, fragment: bytes) -> Opened | None:
        length = len(fragment) - self._explicit - self._tag
        if length < 0:
            return None
        if self._explicit:
            nonce = self._iv + fragment[:EXPLICIT_BYTES]
        else:
            nonce = (int.from_bytes(self._iv, "big") ^ number).to_bytes(NONCE_BYTES, "big")
        associated = number.to_bytes(8, "big") + header[:3] + length.to_bytes(2, "big")
        try:
            return Opened(header[0], self._explicit, self._aead.decrypt(nonce, fragment[self._explicit :], associated))
        except InvalidTag:
            return None


class Tls12Cbc:
    """RFC 5246 6.2.3.2, its IV in the record; the MAC inside, or outside by RFC 7366 (encrypt-then-MAC)."""

    has_next = False

    def __init__(self, suite: Suite, key: bytes, mac_key: bytes, *, mac_outside: bool) -> None:
        self._cipher, self._mac_key, self._mac = algorithms.AES(key), mac_key, suite.mac
        self._mac_bytes, self._mac_outside = _MAC_BYTES[suite.mac], mac_outside

    def open(self, number: int, header: bytes, fragment: bytes) -> Opened | None:
        associated = number.to_bytes(8, "big") + header[:3]
        if self._mac_outside:
            fragment, mac = fragment[: -self._mac_bytes], fragment[-self._mac_bytes :]
            if not self._is_mac(associated, fragment, mac):
                return None
        if len(fragment) < 2 * BLOCK_BYTES or len(fragment) % BLOCK_BYTES:
            return None
        decryptor = Cipher(self._cipher, modes.CBC(fragment[:BLOCK_BYTES])).decryptor()
        padded = decryptor.update(fragment[BLOCK_BYTES:]) + decryptor.finalize()
        padding = padded[-1] + 1
        inside = 0 if self._mac_outside else self._mac_bytes
        length = len(padded) - padding - inside
        if length < 0 or padded[len(padded) - padding :] != padded[-1:] * padding:
            return None
        content = padded[:length]
        if inside and not self._is_mac(associated, content, padded[length : length + inside]):
            return None
        return Opened(header[0], BLOCK_BYTES, content)

    def _is_mac(self, associated: bytes, data: bytes, mac: bytes) -> bool:
        expected = hmac.digest(self._mac_key, associated + len(data).to_bytes(2, "big") + data, self._mac)
        return hmac.compare_digest(expected, mac)


def tls12_keys(
    suite: Suite, master: bytes, randoms: tuple[bytes, bytes], *, mac_outside: bool
) -> tuple[RecordKey, RecordKey]:
    """(the client's, the server's) of a master secret and (client random, server random)."""
    client, server = randoms
    mac_bytes = _MAC_BYTES.get(suite.mac, 0)
    iv_bytes = {GCM: IMPLICIT_BYTES, CCM: IMPLICIT_BYTES, CHACHA20: NONCE_BYTES, CBC: 0}[suite.cipher]
    sizes = [mac_bytes, mac_bytes, suite.key_bytes, suite.key_bytes, iv_bytes, iv_bytes]
    block = prf_bytes(suite.prf, master, b"key expansion" + server + client, sum(sizes))
    parts = []
    for size in sizes:
        parts.append(block[:size])
        block = block[size:]
    found: list[RecordKey] = []
    for mac_key, key, iv in (parts[0::2], parts[1::2]):
        if suite.cipher == CBC:
            found.append(Tls12Cbc(suite, key, mac_key, mac_outside=mac_outside))
        else:
            found.append(Tls12Aead(suite, key, iv))
    return found[0], found[1]


def _aead(suite: Suite, key: bytes) -> AESGCM | AESCCM | ChaCha20Poly1305:
    if suite.cipher == GCM:
        return AESGCM(key)
    return ChaCha20Poly1305(key) if suite.cipher == CHACHA20 else AESCCM(key, suite.tag_bytes)
