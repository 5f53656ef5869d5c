"""Bytes to messages, or the reason why not.

    batch = pack([request], [REQUEST], [1], [13])     # or what a follower cut from the wire
    decoded = decode(batch)                           # every field
    decoded = decode(batch, only({("Fetch", "request"): ["topics.topic_id", "client_id"]}))
    decoded.status[i]                                 # OK, or one of `Status`
    nested(decoded, i)                                # decode/nested.py: values for people
    tables(decoded, "Fetch", "request")               # decode/columns.py: columns for the pipeline

Foreign bytes raise nothing, and no message's outcome depends on its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from librt.vecs import vec
from mypy_extensions import i32, i64, u8

from wirecheck.decode import errors
from wirecheck.decode.interpret import interpreter
from wirecheck.decode.interpret.interpreter import (
    NO_REQUEST,
    OK,
    UNKNOWN_API,
    UNKNOWN_VERSION,
    Attempts,
    Interpreter,
    Outcomes,
    walk_all,
)
from wirecheck.decode.interpret.kept_bytes import Kept, one_message
from wirecheck.decode.interpret.vectors import bytes_of, int32s, int64s, vec64
from wirecheck.decode.layouts.layout import layouts
from wirecheck.decode.layouts.program import KEYS, VERSIONS, Dialect, form, programs
from wirecheck.decode.wire import REQUEST, RESPONSE, Ints, Messages, known, pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from wirecheck.decode.interpret.interpreter import Tokens
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


class Tolerance(IntEnum):
    """What real clients and servers send that no layout allows, decoded all the same."""

    NONE = 0
    METADATA_INT32_NULL = 1
    """librdkafka asks for all topics with an int32 null array in a flexible Metadata request: 3 bytes too many."""
    API_VERSIONS_EMPTY_ARRAY = 2
    """librdkafka up to 1.x asks for ApiVersions v0 with an empty array, as KIP-35 was drafted: 4 bytes too many."""
    LIST_GROUPS_SECOND_TAGS = 3
    """librdkafka 2.0 ends ListGroups v4 with two sections of tagged fields, both empty: 1 byte too many."""
    RESPONSE_SECOND_TAGS = 4
    """A server ends a response with two sections of tagged fields, both empty: 1 byte too many. librdkafka's mock
    cluster does so in Metadata v12 and v13. Clients never look for bytes left over (Kafka's AbstractResponse).
    """
    API_VERSIONS_WITHOUT_THROTTLE_TIME = 5
    """A server answers ApiVersions v1 or v2 as v0: its throttle_time_ms is missing (kafkajs issue 491)."""


METADATA, LIST_GROUPS, API_VERSIONS = 3, 16, 18
METADATA_INT32_NULL = np.array([0, 0, 0, 0, 1, 0, 0], np.uint8)  # librdkafka issue 5049, open in 2.16
METADATA_9_INT32_NULL = np.append(METADATA_INT32_NULL, np.uint8(0))  # 2.0 to 2.3; two of them read as a tagged field
METADATA_NO_CREATION, METADATA_9_NO_CREATION = np.zeros(7, np.uint8), np.zeros(8, np.uint8)  # of its consumers
EMPTY_ARRAY = np.zeros(4, np.uint8)  # librdkafka's rd_kafka_ApiVersionRequest before KIP-511, 2.x sends none
SECOND_TAGS = np.zeros(2, np.uint8)  # librdkafka's rd_kafka_ListGroupsRequest writes tags that its buffer adds, too
UNSUPPORTED_VERSION, NO_ERROR = np.array([0, 35], np.uint8), np.zeros(2, np.uint8)


@dataclass(frozen=True, slots=True)
class Plan:
    """How each message is to be read."""

    entry: NDArray[np.int32]
    second: NDArray[np.int32]
    spare: Ints
    tolerance: NDArray[np.int8]
    status: NDArray[np.int8]
    dialect: NDArray[np.int8]


def planned(messages: Messages, dialect: int | NDArray[np.int8]) -> Plan:
    """The dialect may differ by message."""
    entry, status, dialects = _entries(messages, np.broadcast_to(np.asarray(dialect, np.int8), (len(messages),)))
    second, granted = _second(messages)
    spare, tolerance = _spare(messages)
    exact = (second >= 0) | ((messages.side == RESPONSE) & (dialects != Dialect.KAFKA))
    spare[exact] = tolerance[exact] = 0
    tolerance[granted] = Tolerance.API_VERSIONS_WITHOUT_THROTTLE_TIME
    return Plan(entry, second, spare, tolerance, status, dialects)


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
    status = np.where(entry >= 0, OK, np.where(has_layout, UNKNOWN_VERSION, UNKNOWN_API))
    status[(messages.side == RESPONSE) & (messages.version < 0)] = NO_REQUEST
    return entry, status.astype(np.int8), np.where(special >= 0, dialect, Dialect.KAFKA).astype(np.int8)


def _second(messages: Messages) -> tuple[NDArray[np.int32], Ints]:
    """A broker that does not have the ApiVersions version asked for answers in v0, error 35 (KIP-511). Then the rows of
    other answers that may be in v0: without an error, in versions that differ by throttle_time_ms only.
    """
    second = np.full(len(messages), -1, np.int32)
    asked = (messages.side == RESPONSE) & (messages.key == API_VERSIONS) & (messages.version > 0)
    rows = np.flatnonzero(asked & (messages.at[1:] - messages.at[:-1] >= 4 + len(UNSUPPORTED_VERSION)))
    refused = _says(messages, messages.at[rows] + 4, UNSUPPORTED_VERSION)
    granted = _says(messages, messages.at[rows] + 4, NO_ERROR) & (messages.version[rows] <= 2)
    second[rows[refused | granted]] = programs().entries[Dialect.KAFKA, RESPONSE, API_VERSIONS, 0]
    return second, rows[granted]


def _spare(messages: Messages) -> tuple[Ints, NDArray[np.int8]]:
    """Trailing bytes that are tolerated, and by which name."""
    spare, tolerance = np.zeros(len(messages), np.int64), np.zeros(len(messages), np.int8)
    asked, version = messages.side == REQUEST, messages.version
    metadata = asked & (messages.key == METADATA) & ((version == 12) | (version == 13))
    metadata_9 = asked & (messages.key == METADATA) & (version == 9)
    empty = asked & (messages.key == API_VERSIONS) & (version == 0)
    groups = asked & (messages.key == LIST_GROUPS) & (version == 4)
    for where, end, count, name in (
        (metadata, METADATA_INT32_NULL, 3, Tolerance.METADATA_INT32_NULL),
        (metadata, METADATA_NO_CREATION, 3, Tolerance.METADATA_INT32_NULL),
        (metadata_9, METADATA_9_INT32_NULL, 1, Tolerance.METADATA_INT32_NULL),
        (metadata_9, METADATA_9_NO_CREATION, 3, Tolerance.METADATA_INT32_NULL),
        (empty, EMPTY_ARRAY, len(EMPTY_ARRAY), Tolerance.API_VERSIONS_EMPTY_ARRAY),
        (groups, SECOND_TAGS, 1, Tolerance.LIST_GROUPS_SECOND_TAGS),
        (_flexible_responses(messages), SECOND_TAGS[:1], 1, Tolerance.RESPONSE_SECOND_TAGS),
    ):
        rows = np.flatnonzero(where & (messages.at[1:] - messages.at[:-1] >= len(end)))
        rows = rows[_says(messages, messages.at[rows + 1] - len(end), end)]
        spare[rows], tolerance[rows] = count, name
    return spare, tolerance


def _flexible_responses(messages: Messages) -> NDArray[np.bool_]:
    """Which messages are responses in versions with tagged fields."""
    flexible = _flexible()
    keys, versions = flexible.shape
    key, version = messages.key.astype(np.int64), messages.version.astype(np.int64)
    inside = (messages.side == RESPONSE) & (key >= 0) & (key < keys) & (version >= 0) & (version < versions)
    found: NDArray[np.bool_] = inside & flexible[np.where(inside, key, 0), np.where(inside, version, 0)]
    return found


@cache
def _flexible() -> NDArray[np.bool_]:
    """By key and version: whether Kafka's response has tagged fields."""
    found = np.zeros((KEYS, VERSIONS), np.bool_)
    for layout in layouts("kafka"):
        if layout.side == "response":
            found[layout.key] = [version in layout.flexible for version in range(VERSIONS)]
    return found


def _says(messages: Messages, at: Ints, word: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether these places in the data hold the word."""
    matches: NDArray[np.bool_] = (messages.data[at[:, None] + np.arange(len(word))] == word).all(axis=1)
    return matches


class Status(IntEnum):
    """What became of a message. From TRUNCATED on it is malformed; before, we cannot say."""

    OK = interpreter.OK
    UNKNOWN_API = interpreter.UNKNOWN_API
    """No layout for the key."""
    UNKNOWN_VERSION = interpreter.UNKNOWN_VERSION
    """A layout for the key, but not for the version."""
    LEFT_OUT = interpreter.LEFT_OUT
    """Structure lies in bytes that were not kept."""
    NO_REQUEST = interpreter.NO_REQUEST
    """A response whose request, and so its api and version, was not seen."""
    POSSIBLY_A_DRAFT = interpreter.TRUNCATED - 1
    """Not in the shipped layout; a draft, which was not named, has another one for it (dialect.py)."""
    TRUNCATED = interpreter.TRUNCATED
    BAD_LENGTH = interpreter.BAD_LENGTH
    BAD_VARINT = interpreter.BAD_VARINT
    BAD_TEXT = interpreter.BAD_TEXT
    UNEXPECTED_NULL = interpreter.UNEXPECTED_NULL
    BAD_TAG = interpreter.BAD_TAG
    LEFTOVER_BYTES = interpreter.LEFTOVER_BYTES


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


@dataclass(frozen=True, slots=True)
class Projection:
    """Which fields to keep; checks are the same whatever is kept."""

    kept_slots: NDArray[np.uint8] | None
    """By slot number; None: all."""


EVERYTHING = Projection(None)


def only(paths_of: Mapping[tuple[str, str], Iterable[str]]) -> Projection:
    """Projection on column paths by (api, side): `only({("Metadata", "response"): ["topics.topic_id"]})`.

    The rows of the tables they stand in come with them; a message kind that is not named yields nothing but its status.
    """
    kept = np.zeros(len(programs().slots), np.uint8)
    for (api, side), paths in paths_of.items():
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
    deviation: NDArray[np.int8]
    """Status by the letter of what was read as Kafka's readers read it; OK of all others."""
    token_at: Ints
    """n+1 offsets into the tokens."""
    field: NDArray[np.int32]
    """Slot number of each token."""
    row: NDArray[np.int32]
    """Row of the table its slot stands in."""
    value: Ints
    length: NDArray[np.int32]
    """See decode/interpret/interpreter.py for both."""
    rows: Ints
    """How many rows each level has."""
    kept_slots: NDArray[np.uint8] | None = None
    """The projection: by slot, whether its tokens are here; None: all."""

    def __len__(self) -> int:
        return len(self.status)

    @property
    def malformed(self) -> NDArray[np.bool_]:
        """Messages that are not as their layout says, whether they could be read or not."""
        found: NDArray[np.bool_] = (self.status >= Status.TRUNCATED) | (self.deviation != Status.OK)
        return found

    def reason(self, i: int) -> Status:
        """Why a message is malformed, or was not decoded."""
        return Status(self.deviation[i] or self.status[i])

    def error_path(self, i: int) -> str:
        number = int(self.error_field[i])
        return programs().slots[number].label if number >= 0 else ""


def decode(
    messages: Messages, projection: Projection = EVERYTHING, dialect: int | NDArray[np.int8] = Dialect.KAFKA
) -> Decoded:
    """Decodes a batch; the dialect may differ by message. What a dialect does not change is read as Kafka's."""
    return _run(messages, projection, planned(messages, dialect), np.zeros(len(messages), np.bool_))


LENIENT = (Status.TRUNCATED, Status.BAD_LENGTH, Status.BAD_TEXT, Status.BAD_TAG, Status.LEFTOVER_BYTES)
"""Of what no writer of Kafka's writes, its readers read some: see `as_brokers` of the interpreter."""


def as_brokers(decoded: Decoded, projection: Projection, rows: Ints) -> Decoded:
    """The same batch with these malformed messages read as Kafka's readers read them, by the released layouts."""
    rows = rows[np.isin(decoded.status[rows], LENIENT) & (decoded.dialect[rows] == Dialect.KAFKA)]
    if not len(rows):
        return decoded
    lenient = np.zeros(len(decoded), np.bool_)
    lenient[rows] = True
    found = decode_as_brokers(decoded.messages, projection, decoded.dialect, lenient)
    read = lenient & (found.status == Status.OK)
    deviation = np.where(read, decoded.status, Status.OK).astype(np.int8)
    status = np.where(read, Status.OK, decoded.status).astype(np.int8)
    return replace(
        found, status=status, deviation=deviation, error_at=decoded.error_at, error_field=decoded.error_field
    )


def decode_as_brokers(
    messages: Messages, projection: Projection, dialect: int | NDArray[np.int8], lenient: NDArray[np.bool_]
) -> Decoded:
    """Decodes a batch, some messages as Kafka's readers read them; `error_at` of these is where they end for them."""
    return _run(messages, projection, planned(messages, dialect), lenient)


def kept(messages: Messages) -> Kept:
    """The messages as the interpreter takes them."""
    spans = vec64(messages.span_at), vec64(messages.span_offset), vec64(messages.span_length)
    return Kept(bytes_of(messages.data), vec64(messages.at), *spans)


def kept_message(messages: Messages, row: int) -> Kept:
    """One of them alone."""
    spans = slice(messages.span_at[row], messages.span_at[row + 1])
    data = messages.data[messages.at[row] : messages.at[row + 1]].tobytes()
    return one_message(data, vec[i64](messages.span_offset[spans]), vec[i64](messages.span_length[spans]))


def _run(messages: Messages, projection: Projection, plan: Plan, lenient: NDArray[np.bool_]) -> Decoded:
    compiled = programs()
    walk = Interpreter(vec[u8](_kept_fields(projection)), compiled.levels)
    outcomes = Outcomes(vec[u8](plan.status.view(np.uint8)))
    read_as = vec[i64](plan.spare), vec[u8](lenient.view(np.uint8))
    attempts = Attempts(vec[i32](plan.entry), vec[i32](plan.second), *read_as)
    walk_all(walk, compiled.instructions, kept(messages), attempts, outcomes)
    chosen = int32s(outcomes.chosen)
    fell_back = (chosen >= 0) & (chosen == plan.second)
    version = np.where(fell_back, 0, messages.version).astype(np.int16)
    tolerated = np.array(outcomes.tolerated, np.int8) | fell_back
    return Decoded(
        messages, np.array(outcomes.status, np.int8), np.array(outcomes.error_at), np.array(outcomes.error_field),
        tolerated * plan.tolerance, plan.dialect, version, np.zeros(len(messages), np.int8),
        int64s(outcomes.token_at), *_met(walk.tokens, walk.tokens.used),
        int64s(walk.rows), projection.kept_slots,
    )  # fmt: skip


def _met(tokens: Tokens, count: int) -> tuple[NDArray[np.int32], NDArray[np.int32], Ints, NDArray[np.int32]]:
    """The first tokens as arrays: fields, rows, values and lengths. They share the interpreter's memory."""
    return (
        int32s(tokens.field, count), int32s(tokens.row, count),
        int64s(tokens.value, count), int32s(tokens.length, count),
    )  # fmt: skip


def _kept_fields(projection: Projection) -> NDArray[np.uint8]:
    """By number of slot, then of run: a run is kept if any of its parts is."""
    slots, runs = len(programs().slots), programs().runs
    if projection.kept_slots is None:
        return np.ones(slots + len(runs.stride), np.uint8)
    return np.concatenate(
        [projection.kept_slots, np.logical_or.reduceat(projection.kept_slots[runs.slot], runs.at[:-1])]
    )
