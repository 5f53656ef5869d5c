"""How each message of a batch is to be read: by which program, by which other one, with which tolerance.

Knows the ApiVersions fallback and the named tolerances. Refuses to know what comes of it.
Rule: what a dialect does not change is read as Kafka's; a message for which there is no program has its status from
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.interpret.interpreter import NO_REQUEST, OK, UNKNOWN_API, UNKNOWN_VERSION
from wirecheck.decode.layouts.program import programs
from wirecheck.decode.layouts.readings import Dialect
from wirecheck.decode.wire import REQUEST, RESPONSE, Ints

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.wire import Messages


class Tolerance(IntEnum):
    """What real clients send that no layout allows, decoded all the same."""

    NONE = 0
    METADATA_INT32_NULL = 1
    """librdkafka asks for all topics with an int32 null array in a flexible Metadata request: 3 bytes too many."""
    API_VERSIONS_EMPTY_ARRAY = 2
    """librdkafka up to 1.x asks for ApiVersions v0 with an empty array, as KIP-35 was drafted: 4 bytes too many."""
    LIST_GROUPS_SECOND_TAGS = 3
    """librdkafka 2.0 ends ListGroups v4 with two sections of tagged fields, both empty: 1 byte too many."""


METADATA, LIST_GROUPS, API_VERSIONS = 3, 16, 18
METADATA_INT32_NULL = np.array([0, 0, 0, 0, 1, 0, 0], np.uint8)  # librdkafka issue 5049, open in 2.16
METADATA_9_INT32_NULL = np.append(METADATA_INT32_NULL, np.uint8(0))  # 2.0 to 2.3; two of them read as a tagged field
EMPTY_ARRAY = np.zeros(4, np.uint8)  # librdkafka's rd_kafka_ApiVersionRequest before KIP-511, 2.x sends none
SECOND_TAGS = np.zeros(2, np.uint8)  # librdkafka's rd_kafka_ListGroupsRequest writes tags that its buffer adds, too
UNSUPPORTED_VERSION = np.array([0, 35], np.uint8)


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
    return Plan(entry, _second(messages), *_spare(messages), status, dialects)


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
    metadata_9 = asked & (messages.key == METADATA) & (version == 9)
    empty = asked & (messages.key == API_VERSIONS) & (version == 0)
    groups = asked & (messages.key == LIST_GROUPS) & (version == 4)
    for where, end, count, name in (
        (metadata, METADATA_INT32_NULL, 3, Tolerance.METADATA_INT32_NULL),
        (metadata_9, METADATA_9_INT32_NULL, 1, Tolerance.METADATA_INT32_NULL),
        (empty, EMPTY_ARRAY, len(EMPTY_ARRAY), Tolerance.API_VERSIONS_EMPTY_ARRAY),
        (groups, SECOND_TAGS, 1, Tolerance.LIST_GROUPS_SECOND_TAGS),
    ):
        rows = np.flatnonzero(where & (messages.at[1:] - messages.at[:-1] >= len(end)))
        rows = rows[_says(messages, messages.at[rows + 1] - len(end), end)]
        spare[rows], tolerance[rows] = count, name
    return spare, tolerance


def _says(messages: Messages, at: Ints, word: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether these places in the data hold the word."""
    said: NDArray[np.bool_] = (messages.data[at[:, None] + np.arange(len(word))] == word).all(axis=1)
    return said
