"""What each response comes down to: whether it grants anything, and else its first error.

Rule: an error at the top is a rejection, and so are errors in all parts; one part without an error grants. A part that
has parts of its own grants by these: a group without an error grants no offset of which each partition has one. An
answer can reject without a code: the table STATUSES has the fields in which some do.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode import schemas
from wirecheck.decode.columns import Table
from wirecheck.judge.claims.outcomes import (
    CLOSED,
    GIVEN_UP,
    IN_FLIGHT,
    LATE,
    OPEN,
    STATUS,
    STEP,
    SUCCESS,
    UNASKED,
    UNREADABLE,
    UNSEEN,
)

Ints = NDArray[np.int64]
FAILED, EMPTY, ONLY_BROKERS, GRANTED = range(4)
"""Rejected; no error and no part; a Metadata response that lists brokers and rejects all topics; something is granted.
"""
NO_RESPONSE = -1
EMPTY_IS_NOTHING = ("Fetch", "ShareFetch")
GRANTS_BY_ITSELF = ("Metadata",)
"""A topic that is there is what was asked for, also while its partitions have no leader."""
ERROR_CODES = ("error_code", "partition_error_code")
"""Kafka's names; the second is that of AddPartitionsToTxn."""
STATUSES: Mapping[str, tuple[str, str]] = {"StreamsGroupHeartbeat": ("status", "status_code")}
"""By API the table and the column of a status that says why its sender gets no work (KIP-1071)."""


STATUS_NAMES = (
    "STALE_TOPOLOGY", "MISSING_SOURCE_TOPICS", "INCORRECTLY_PARTITIONED_TOPICS", "MISSING_INTERNAL_TOPICS",
    "SHUTDOWN_APPLICATION", "ASSIGNMENT_DELAYED",
)  # fmt: skip
"""Of a Streams group (StreamsGroupHeartbeatResponse.Status)."""
NAMES = {
    SUCCESS: "granted",
    LATE: "granted late",
    GIVEN_UP: "NO_RESPONSE",
    CLOSED: "CLOSED_WITHOUT_RESPONSE",
    UNASKED: "sent without asking for a response",
    STEP: "one more round of the login",
    OPEN: "open at the end",
    IN_FLIGHT: "in flight at the end",
    UNSEEN: "response not captured",
    UNREADABLE: "response not decoded",
}
"""In place of an error's name."""


class ResponseOutcomes(NamedTuple):
    """Per message."""

    fate: Ints
    """NO_RESPONSE for requests, and for responses that were not decoded."""
    error: Ints
    """The first error code, or STATUS and a code; 0 where something is granted."""


def outcomes_of(api: str, tables: Mapping[str, Table]) -> tuple[Ints, Ints, Ints]:
    """Per response of one API its message, its fate and its error."""
    header = tables[""]
    count = int(header.message.max(initial=-1)) + 1
    parts, good, error = (np.zeros(count, np.int64) for _ in range(3))
    coded = [path for path, table in tables.items() if path and any(True for _ in codes_in(table))]
    for path in coded:
        table = tables[path]
        whole = np.ones(count, np.bool_)
        for below in coded if api not in GRANTS_BY_ITSELF else ():
            if below.startswith(f"{path}."):
                whole &= np.bincount(tables[below].message, minlength=count) == 0
        for codes in codes_in(table):
            counts = whole[table.message] | (codes != 0)
            parts += np.bincount(table.message, counts, minlength=count).astype(np.int64)
            good += np.bincount(table.message, counts & (codes == 0), minlength=count).astype(np.int64)
            bad = np.flatnonzero(codes != 0)[::-1]  # of a repeated index the last counts: the first error
            first = np.zeros(count, np.int64)
            first[table.message[bad]] = codes[bad]
            error = np.where(error == 0, first, error)
    at_top = header["error_code"] if "error_code" in header.names else np.zeros(len(header), np.int64)
    status = status_of(api, tables, count)[header.message]
    bad_top = (at_top != 0) | (status != 0)
    parts, good = parts[header.message], good[header.message]
    empty = (parts == 0) & (api in EMPTY_IS_NOTHING)
    refused = (parts > 0) & (good == 0)
    fates = (FAILED, ONLY_BROKERS if api == "Metadata" else FAILED, EMPTY)
    fate = np.select((bad_top, refused, empty), fates, GRANTED)
    found = np.select((at_top != 0, status != 0, refused), (at_top, status, error[header.message]), 0)
    return header.message, fate, found


def codes_in(table: Table) -> Iterator[Ints]:
    """The error codes of what its rows are about."""
    yield from (table[name] for name in ERROR_CODES if name in table.names and len(table))


def status_of(api: str, tables: Mapping[str, Table], count: int) -> Ints:
    """Per message the first status of an answer without an error code; 0 where it has none."""
    found = np.zeros(count, np.int64)
    path, column = STATUSES.get(api, ("", ""))
    if path in tables and path:
        table = tables[path]
        found[table.message[::-1]] = STATUS + table[column][::-1]
    return found


def outcome_name(outcome: int) -> str:
    """Kafka's name of the error, or what stands in its place."""
    if outcome in NAMES:
        return NAMES[outcome]
    if outcome >= STATUS:
        number = outcome - STATUS
        return STATUS_NAMES[number] if number < len(STATUS_NAMES) else f"status {number}"
    known_as = schemas.errors().get(outcome)
    return known_as.name if known_as else f"error {outcome}"
