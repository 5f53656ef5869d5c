"""Bytes to messages, or the reason why not.

    batch = pack([request], [REQUEST], [1], [13])     # or what a follower cut from the wire
    decoded = decode(batch)                           # every field
    decoded = decode(batch, only({("Fetch", "request"): ["topics.topic_id", "client_id"]}))
    decoded.status[i]                                 # OK, or one of `Status`
    nested(decoded, i)                                # decode/nested.py: values for people
    tables(decoded, "Fetch", "request")               # decode/columns.py: columns for the pipeline

Knows how a batch goes through the machine: which program each message gets, the ApiVersions fallback, the named
tolerances. Refuses to know connections, and never guesses a layout: the dialect is given.
Rule: everything about one message's outcome is a row here; foreign bytes raise
nothing (decode/nested.py's `decode_one` does), and no message's outcome depends on its neighbours in the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode import errors, machine
from wirecheck.decode.layouts.program import Dialect, form, programs
from wirecheck.decode.wire import REQUEST, RESPONSE, Ints, Messages, known, pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from wirecheck.decode.layouts.form import Slot

__all__ = [
    "EVERYTHING",
    "REASONS",
    "Decoded",
    "Dialect",
    "Messages",
    "Projection",
    "Status",
    "Tolerance",
    "decode",
    "known",
    "only",
    "pack",
]


class Status(IntEnum):
    """What became of a message. From TRUNCATED on it is malformed; before, we cannot say."""

    OK = machine.OK
    UNKNOWN_API = machine.UNKNOWN_API
    """No layout for the key."""
    UNKNOWN_VERSION = machine.UNKNOWN_VERSION
    """A layout for the key, but not for the version."""
    LEFT_OUT = machine.LEFT_OUT
    """Structure lies in bytes that were not kept."""
    NO_REQUEST = machine.NO_REQUEST
    """A response whose request, and so its api and version, was not seen."""
    TRUNCATED = machine.TRUNCATED
    BAD_LENGTH = machine.BAD_LENGTH
    BAD_VARINT = machine.BAD_VARINT
    BAD_TEXT = machine.BAD_TEXT
    UNEXPECTED_NULL = machine.UNEXPECTED_NULL
    BAD_TAG = machine.BAD_TAG
    LEFTOVER_BYTES = machine.LEFTOVER_BYTES


REASONS: dict[Status, type[errors.DecodeError]] = {
    Status.UNKNOWN_API: errors.UnknownApi,
    Status.UNKNOWN_VERSION: errors.UnknownVersion,
    Status.TRUNCATED: errors.Truncated,
    Status.BAD_LENGTH: errors.BadLength,
    Status.BAD_VARINT: errors.BadVarint,
    Status.BAD_TEXT: errors.BadText,
    Status.UNEXPECTED_NULL: errors.UnexpectedNull,
    Status.BAD_TAG: errors.BadTag,
    Status.LEFTOVER_BYTES: errors.LeftoverBytes,
}


class Tolerance(IntEnum):
    """What real clients send that no layout allows, decoded all the same."""

    NONE = 0
    METADATA_INT32_NULL = 1
    """librdkafka asks for all topics with an int32 null array in a flexible Metadata request: 3 bytes too many."""
    API_VERSIONS_EMPTY_ARRAY = 2
    """librdkafka up to 1.x asks for ApiVersions v0 with an empty array, as KIP-35 was drafted: 4 bytes too many."""


METADATA, API_VERSIONS = 3, 18
METADATA_INT32_NULL = np.array([0, 0, 0, 0, 1, 0, 0], np.uint8)  # librdkafka issue 5049, open in 2.16
EMPTY_ARRAY = np.zeros(4, np.uint8)  # librdkafka's rd_kafka_ApiVersionRequest before KIP-511, 2.x sends none
UNSUPPORTED_VERSION = np.array([0, 35], np.uint8)


@dataclass(frozen=True, slots=True)
class Projection:
    """Which fields to keep; checks are the same whatever is kept."""

    wanted: NDArray[np.uint8] | None
    """By slot number; None: all."""


EVERYTHING = Projection(None)


def only(wanted: Mapping[tuple[str, str], Iterable[str]]) -> Projection:
    """Projection on column paths by (api, side): `only({("Metadata", "response"): ["topics.topic_id"]})`.

    The rows of the tables they stand in come with them; a message kind that is not named yields nothing but its status.
    """
    kept = np.zeros(len(programs().slots), np.uint8)
    for (api, side), paths in wanted.items():
        here = form(api, side)
        slots: dict[str, list[Slot]] = {}
        for slot in here.root.walk():
            slots[slot.path] = [*slots.get(slot.path, []), slot]
        for path in paths:
            for slot in slots[path]:
                for enclosing in slot.enclosing():
                    kept[enclosing.number] = 1
    return Projection(kept)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A batch after decoding: what became of each message, and the tokens of those that went well."""

    messages: Messages
    status: NDArray[np.int8]
    """Status of each message."""
    error_at: Ints
    """Where a failed message failed: offset in it as on the wire."""
    error_field: NDArray[np.int32]
    """Slot number being read there, -1 if reading did not begin."""
    tolerance: NDArray[np.int8]
    """Tolerance that was needed."""
    dialect: NDArray[np.int8]
    """Dialect it was read by."""
    version: NDArray[np.int16]
    """Version it was read by: not the one asked for where ApiVersions fell back to 0."""
    token_at: Ints
    """n+1 offsets into the tokens."""
    field: NDArray[np.int32]
    """Slot number of each token."""
    row: NDArray[np.int32]
    """Row of the table its slot stands in."""
    value: Ints
    length: NDArray[np.int32]
    """See decode/machine.py for both."""
    rows: Ints
    """How many rows each level has."""
    wanted: NDArray[np.uint8] | None = None
    """The projection: by slot, whether its tokens are here; None: all."""

    def __len__(self) -> int:
        return len(self.status)

    def error_path(self, i: int) -> str:
        number = int(self.error_field[i])
        return programs().slots[number].label if number >= 0 else ""


def decode(
    messages: Messages, projection: Projection = EVERYTHING, dialect: int | NDArray[np.int8] = Dialect.KAFKA
) -> Decoded:
    """Decodes a batch; the dialect may differ by message. What a dialect does not change is read as Kafka's."""
    entry, status, dialects = _entries(messages, np.broadcast_to(np.asarray(dialect, np.int8), (len(messages),)))
    second, (spare, tolerance) = _second(messages), _spare(messages)
    return _run(messages, projection, _Plan(entry, second, spare, tolerance, status, dialects))


@dataclass(frozen=True, slots=True)
class _Plan:
    """How each message is to be read."""

    entry: NDArray[np.int32]
    second: NDArray[np.int32]
    spare: Ints
    tolerance: NDArray[np.int8]
    status: NDArray[np.int8]
    dialect: NDArray[np.int8]


def _entries(
    messages: Messages, dialect: NDArray[np.int8]
) -> tuple[NDArray[np.int32], NDArray[np.int8], NDArray[np.int8]]:
    entries = programs().entries
    keys, versions = entries.shape[2:]
    key, version = messages.key.astype(np.int64), messages.version.astype(np.int64)
    inside = (key >= 0) & (key < keys)
    key = np.where(inside, key, keys - 1)  # the last key has no layout
    of_version = (version >= 0) & (version < versions)
    version = np.where(of_version, version, versions - 1)  # nor has the last version
    plain = entries[Dialect.KAFKA, messages.side, key, version]
    special = entries[dialect, messages.side, key, version]
    entry = np.where(special >= 0, special, plain)
    has_layout = (entries[Dialect.KAFKA] >= 0).any(axis=2)[messages.side, key]
    status = np.where(entry >= 0, Status.OK, np.where(has_layout, Status.UNKNOWN_VERSION, Status.UNKNOWN_API))
    status[(messages.side == RESPONSE) & (messages.version < 0)] = Status.NO_REQUEST
    return entry, status.astype(np.int8), np.where(special >= 0, dialect, Dialect.KAFKA).astype(np.int8)


def _second(messages: Messages) -> NDArray[np.int32]:
    """A broker that does not have the ApiVersions version asked for answers in v0, error 35 (KIP-511)."""
    second = np.full(len(messages), -1, np.int32)
    asked = (messages.side == RESPONSE) & (messages.key == API_VERSIONS) & (messages.version > 0)
    rows = np.flatnonzero(asked & (messages.at[1:] - messages.at[:-1] >= 4 + len(UNSUPPORTED_VERSION)))
    refused = _says(messages, messages.at[rows] + 4, UNSUPPORTED_VERSION)
    second[rows[refused]] = programs().entries[Dialect.KAFKA, RESPONSE, API_VERSIONS, 0]
    return second


def _spare(messages: Messages) -> tuple[Ints, NDArray[np.int8]]:
    """Trailing bytes that are tolerated, and by which name."""
    spare, tolerance = np.zeros(len(messages), np.int64), np.zeros(len(messages), np.int8)
    asked, version = messages.side == REQUEST, messages.version
    metadata = asked & (messages.key == METADATA) & ((version == 12) | (version == 13))
    empty = asked & (messages.key == API_VERSIONS) & (version == 0)
    for where, end, count, name in (
        (metadata, METADATA_INT32_NULL, 3, Tolerance.METADATA_INT32_NULL),
        (empty, EMPTY_ARRAY, len(EMPTY_ARRAY), Tolerance.API_VERSIONS_EMPTY_ARRAY),
    ):
        rows = np.flatnonzero(where & (messages.at[1:] - messages.at[:-1] >= len(end)))
        rows = rows[_says(messages, messages.at[rows + 1] - len(end), end)]
        spare[rows], tolerance[rows] = count, name
    return spare, tolerance


def _says(messages: Messages, at: Ints, word: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether these places in the data hold the word."""
    said: NDArray[np.bool_] = (messages.data[at[:, None] + np.arange(len(word))] == word).all(axis=1)
    return said


def _run(messages: Messages, projection: Projection, plan: _Plan) -> Decoded:
    compiled, count = programs(), len(messages)
    rows = np.zeros(compiled.levels, np.int64)
    token_at = np.zeros(count + 1, np.int64)
    error_at, error_field = np.full(count, -1, np.int64), np.full(count, -1, np.int32)
    chosen, tolerated = np.full(count, -1, np.int32), np.zeros(count, np.int8)
    status = plan.status.copy()
    done = np.zeros(2, np.int64)
    tokens = _tokens(len(messages.data) // (4 if projection.wanted is None else 16) + 16 * count + 64)
    while True:
        machine.run(
            messages.data, messages.at, messages.span_at, messages.span_offset, messages.span_length,
            compiled.table, plan.entry, plan.second, plan.spare, _wanted(projection), rows, *tokens, token_at,
            status, error_at, error_field, chosen, tolerated, done,
        )  # fmt: skip
        if done[machine.NEXT_MESSAGE] == count:
            break
        tokens = tuple(np.concatenate([array, np.empty_like(array)]) for array in tokens)
    used = done[machine.TOKENS]
    version = np.where((chosen >= 0) & (chosen == plan.second), 0, messages.version).astype(np.int16)
    return Decoded(
        messages, status, error_at, error_field, tolerated * plan.tolerance, plan.dialect, version,
        token_at, tokens[0][:used], tokens[1][:used], tokens[2][:used], tokens[3][:used], rows,
        projection.wanted,
    )  # fmt: skip


def _wanted(projection: Projection) -> NDArray[np.uint8]:
    """By number of slot, then of run: a run is kept if any of its parts is."""
    slots, runs = len(programs().slots), programs().runs
    if projection.wanted is None:
        return np.ones(slots + len(runs.stride), np.uint8)
    return np.concatenate([projection.wanted, np.logical_or.reduceat(projection.wanted[runs.slot], runs.at[:-1])])


def _tokens(capacity: int) -> tuple[NDArray[Any], ...]:
    return tuple(np.empty(capacity, kind) for kind in (np.int32, np.int32, np.int64, np.int32))
