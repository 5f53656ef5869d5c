"""Kafka's error codes by name, from decode/schemas/errors.tsv: `KafkaError(100)`, `KafkaError.UNKNOWN_TOPIC_ID`.

A code that no release has is a member too, so that every value on the wire has one. Where codes occur is not
known here.
"""

from __future__ import annotations

from enum import EnumMeta, IntEnum
from typing import TYPE_CHECKING

from wirecheck.decode import schemas


class _Unknown(IntEnum):
    """A code that no release has is a member, too: `ERROR_12345`."""

    @classmethod
    def _missing_(cls, value: object) -> _Unknown | None:
        if not isinstance(value, int) or not -(1 << 15) <= value < 1 << 15:  # an int16 on the wire
            return None
        member = int.__new__(cls, value)
        member._name_, member._value_ = f"ERROR_{value}".replace("-", "MINUS_"), value
        return member


if TYPE_CHECKING:

    class _Names(EnumMeta):
        def __getattr__(cls, name: str) -> KafkaError: ...

    class KafkaError(IntEnum, metaclass=_Names):
        """An error code of Kafka; equal to its number."""

else:
    KafkaError = _Unknown("KafkaError", {error.name: code for code, error in schemas.errors().items()}, module=__name__)
    KafkaError.__doc__ = "An error code of Kafka; equal to its number. One that no release has is called `ERROR_12345`."
