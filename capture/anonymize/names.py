"""One name for another of the same length, everywhere the same: words by a keyed hash, IDs and addresses in their form.

A text is mapped word by word, so that the group in a client ID, or the client ID in a member ID, stays the same as by
itself. Words of Kafka and its clients stay (public_words.txt), and so do small numbers, internal topics and loopback.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from itertools import count, product
from pathlib import Path

IPV4 = rb"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])"
IPV6 = rb"(?<![\w:])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:.])"
HEX_ID = rb"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])"
ID_TEXT = rb"(?<![\w-])[\w-]{21}[AQgw](?![\w-])"
WORD = rb"[0-9A-Za-z\x80-\xff]+"
PARTS = re.compile(
    rb"(?P<v4>" + IPV4 + rb")|(?P<v6>" + IPV6 + rb")|(?P<hex>" + HEX_ID + rb")|(?P<id>" + ID_TEXT + rb")|(?P<word>"
    + WORD + rb")", re.ASCII
)  # fmt: skip
WORDS, ADDRESSES = re.compile(WORD), re.compile(rb"(?P<v4>" + IPV4 + rb")|(?P<v6>" + IPV6 + rb")", re.ASCII)
BROKER_ID, NAMED_BY_ID = re.compile(rb"\d{1,5}"), re.compile(rb"\d{1,5}|broker-\d{1,5}-.*", re.DOTALL)
INTERNAL = frozenset({
    b"__consumer_offsets", b"__transaction_state", b"__cluster_metadata", b"__share_group_state",
    b"__remote_log_metadata",
})  # fmt: skip
SMALL_NUMBER_DIGITS = 3
RESERVED_IDS = 100
"""Uuid's: the metadata topic, and directories that are lost, unassigned or migrating."""
LETTERS, DIGITS, HEX = b"abcdefghijklmnopqrstuvwxyz", b"0123456789", b"0123456789abcdef"
MOST_TRIES = 4096
OF_NO_HOST = ip_network("0.0.0.0/8")
"""As text, these are versions: 0.10.2.1."""


@cache
def public_words() -> frozenset[bytes]:
    text = (Path(__file__).parent / "public_words.txt").read_bytes()
    return frozenset(text.split())


@dataclass(slots=True)
class Names:
    """The names of one key; `back` maps what was written to what it was."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    words: dict[bytes, bytes] = field(default_factory=dict)
    ids: dict[bytes, bytes] = field(default_factory=dict)
    addresses: dict[bytes, bytes] = field(default_factory=dict)
    """Packed."""
    texts: dict[bytes, bytes] = field(default_factory=dict)
    """Whole texts, as they were met."""
    _used: set[bytes] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._used = {*self.words.values(), *self.addresses.values()}

    def text(self, text: bytes) -> bytes:
        """Another text of this length."""
        if text not in self.texts:
            self.texts[text] = self._text(text)
        return self.texts[text]

    def _text(self, text: bytes) -> bytes:
        if text in INTERNAL:
            return text
        numbers_stay = NAMED_BY_ID.fullmatch(text) is not None
        return PARTS.sub(lambda found: self._part(found, numbers_stay=numbers_stay), text)

    def _part(self, found: re.Match[bytes], *, numbers_stay: bool) -> bytes:
        part, kind = found[0], found.lastgroup
        if kind in {"v4", "v6"}:
            mapped = self.address_text(part)
            return self._words(part) if mapped is None else mapped
        if kind == "hex":
            return b"-".join(self._hex(piece, part) for piece in self._pieces(part))
        if kind == "id":
            mapped = self._id_text(part)
            return self._words(part) if mapped is None else mapped
        return part if numbers_stay and BROKER_ID.fullmatch(part) else self.word(part)

    def _words(self, part: bytes) -> bytes:
        return WORDS.sub(lambda found: self.word(found[0]), part)

    def word(self, word: bytes) -> bytes:
        low = word.lower()
        if low in public_words() or (low.isdigit() and len(low) <= SMALL_NUMBER_DIGITS):
            return word
        if low not in self.words:
            self.words[low] = self._new_word(low)
        new = self.words[low]
        return bytes(new[i] - 32 if 65 <= word[i] <= 90 else new[i] for i in range(len(word)))

    def _new_word(self, low: bytes) -> bytes:
        new = low
        for attempt in range(MOST_TRIES):
            stream = self._stream(b"word", low, attempt, len(low))
            new = bytes(_like(old, number, at) for at, (old, number) in enumerate(zip(low, stream, strict=True)))
            if new not in self._used and new not in public_words() and (new != low or len(low) < 2):
                break
        self._used.add(new)
        return new

    def _stream(self, kind: bytes, name: bytes, attempt: int, size: int) -> bytes:
        """Keyed bytes for a name."""
        blocks = (
            hmac.digest(self.key, b"%s %d %d " % (kind, attempt, block) + name, "sha256")
            for block in range(size // 32 + 1)
        )
        return b"".join(blocks)[:size]

    # --- IDs

    def topic_id(self, value: bytes) -> bytes:
        """Sixteen bytes; an ID of Kafka's own, below RESERVED_IDS, stays."""
        if int.from_bytes(value) < RESERVED_IDS:
            return value
        if value not in self.ids:
            new = bytearray(self._stream(b"id", value, 0, 16))
            if _is_random(value):
                new[6], new[8] = new[6] & 0x0F | 0x40, new[8] & 0x3F | 0x80
            self.ids[value] = bytes(new)
        return self.ids[value]

    def _id_text(self, part: bytes) -> bytes | None:
        value = base64.urlsafe_b64decode(part + b"==")
        if not _is_random(value):
            return None
        return base64.urlsafe_b64encode(self.topic_id(value)).rstrip(b"=")

    def _pieces(self, part: bytes) -> list[bytes]:
        value = bytes.fromhex(part.replace(b"-", b"").decode())
        text = self.topic_id(value).hex().encode()
        return [text[begin:end] for begin, end in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))]

    def _hex(self, piece: bytes, like: bytes) -> bytes:
        return piece.upper() if like.upper() == like and like.lower() != like else piece

    # --- addresses

    def address_text(self, text: bytes) -> bytes | None:
        """An address as text, in its own way of writing; None if it is none."""
        try:
            value = ip_address(text.decode("ascii"))
        except ValueError:
            return None
        new = self.address(value.packed)
        if value.version == 4:
            return str(IPv4Address(new)).encode()
        return _groups_written(text, new)

    def address(self, packed: bytes) -> bytes:
        """Packed."""
        value = ip_address(packed)
        if value.is_loopback or value.is_unspecified or value.is_multicast or value in OF_NO_HOST:
            return packed
        if packed not in self.addresses:
            make = self._ipv4 if len(packed) == 4 else self._ipv6
            for attempt in count():
                new = make(packed, attempt)
                if (new not in self._used and new != packed) or attempt > MOST_TRIES:
                    break
            self._used.add(new)
            self.addresses[packed] = new
        return self.addresses[packed]

    def _ipv4(self, packed: bytes, attempt: int) -> bytes:
        """Private, and as long when written."""
        size = len(str(IPv4Address(packed)))
        drawn = self._stream(b"ip", packed, attempt, 16)
        first = {7: [1 + drawn[0] % 9], 15: [192, 168]}.get(size, [10])
        left = size - 3 - sum(len(str(each)) for each in first)
        lengths = [each for each in product((1, 2, 3), repeat=4 - len(first)) if sum(each) == left]
        spans = [{1: (0, 10), 2: (10, 90), 3: (100, 156)}[each] for each in lengths[drawn[1] % len(lengths)]]
        return bytes([*first, *(low + drawn[2 + i] % most for i, (low, most) in enumerate(spans))])

    def _ipv6(self, packed: bytes, attempt: int) -> bytes:
        """Groups of zeros stay, others have as many digits; prefixes of link-local and mapped addresses stay."""
        value = IPv6Address(packed)
        if value.ipv4_mapped is not None:
            return packed[:12] + self.address(packed[12:])
        drawn = self._stream(b"ip", packed, attempt, 32)
        groups = []
        for i in range(8):
            old, new = (int.from_bytes(data[2 * i : 2 * i + 2]) for data in (packed, drawn))
            digits = len(f"{old:x}")
            low = 16 ** (digits - 1)
            groups.append(old and low + new % (15 * low))
        if value.is_link_local:
            groups[0] = int.from_bytes(packed[:2])
        elif groups[0] >= 0x1000:
            groups[0] = 0xFD00 | groups[0] & 0xFF
        return b"".join(group.to_bytes(2) for group in groups)

    def addresses_in(self, text: bytes) -> bytes:
        """The text with its addresses alone mapped."""
        return ADDRESSES.sub(lambda found: self.address_text(found[0]) or bytes(len(found[0])), text)


def _like(old: int, number: int, at: int) -> int:
    """A character of the same kind."""
    if old in DIGITS:
        return DIGITS[1 + number % 9] if at == 0 and old != DIGITS[0] else DIGITS[number % 10]
    return LETTERS[number % 26]


def _is_random(value: bytes) -> bool:
    """Whether it is a UUID of version 4, as Uuid.randomUuid makes them."""
    return len(value) == 16 and value[6] >> 4 == 4 and value[8] >> 6 == 2


def _groups_written(text: bytes, packed: bytes) -> bytes:
    """The groups of an IPv6 address in place of those of the text."""
    groups = [f"{int.from_bytes(packed[i : i + 2]):x}".encode() for i in range(0, 16, 2)]
    left, shortened, right = text.partition(b"::")
    front, back = ([each for each in side.split(b":") if each] for side in (left, right))
    new = [groups[i] for i in range(len(front))], [groups[8 - len(back) + i] for i in range(len(back))]
    written = [
        b":".join(_written(old, each) for old, each in zip(olds, news, strict=True))
        for olds, news in zip((front, back), new, strict=True)
    ]
    return written[0] + shortened + written[1]


def _written(old: bytes, new: bytes) -> bytes:
    padded = new.rjust(len(old), b"0")
    return padded.upper() if old.upper() == old and old.lower() != old else padded
