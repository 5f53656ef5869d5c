"""What can be wrong with foreign bytes: one closed family of errors.

A member is raised only for what was sent. Bytes that were not captured are values, never errors; our own bugs are plain
exceptions. A new member needs a builder in tests/decode/test_errors.py.
"""

# ruff: noqa: N818 -- the names are the reasons people read; "Error" behind each would say nothing

from __future__ import annotations


class DecodeError(Exception):
    """Captured bytes that do not match their schema."""

    def __init__(self, at: int, path: str = "") -> None:
        super().__init__(at, path)
        self.at = at  # offset in the bytes handed in, as on the wire
        self.path = path  # field, in Kafka's names, dotted; empty where no field had begun

    def __str__(self) -> str:
        return f"{type(self).__name__} at byte {self.at}" + (f" in {self.path}" if self.path else "")


class Truncated(DecodeError):
    """Fewer bytes than the length promised."""


class BadLength(DecodeError):
    """A count or length that is negative, or beyond a stated limit or what remains can hold."""


class BadVarint(DecodeError):
    """A varint longer than its type allows."""


class BadText(DecodeError):
    """Bytes that are not UTF-8 in a field that the schema declares as a string."""


class UnexpectedNull(DecodeError):
    """A null where the schema has none."""


class BadTag(DecodeError):
    """Tags not ascending and unique, or a known tag whose size disagrees with its content."""


class BadChecksum(DecodeError):
    """The checksum sent is not that of the bytes sent."""


class BadMagic(DecodeError):
    """A record batch format that was never released."""


class BadCompression(DecodeError):
    """A compressed block that its codec refuses."""


class UnknownApi(DecodeError):
    """No layout for the key: undecoded, not malformed."""


class UnknownVersion(DecodeError):
    """A layout for the key, but not for the version: undecoded, not malformed."""


class LeftoverBytes(DecodeError):
    """Decoded well, and bytes remain."""
