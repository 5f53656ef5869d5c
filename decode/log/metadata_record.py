"""The frames of metadata records and the keys of control records: what an entry of the metadata log is, in one kernel.

Knows: AbstractApiMessageSerde's frame (uvarint frame version, type, version) and ControlRecordType's key. Does not know
the bodies behind them.
Rule: one row per record, a status each; nothing read in a hole (decode.holes) is believed.
"""

from __future__ import annotations

import numpy as np

from wirecheck.decode.compiled import cached_njit
from wirecheck.decode.errors import BadVarint, DecodeError, Truncated, UnexpectedNull, UnknownApi, UnknownVersion
from wirecheck.decode.holes import hidden
from wirecheck.decode.log.record import KEY_AT, KEY_BYTES, STRUCTURE_UNSEEN, UNSEEN, VALUE_AT, VALUE_BYTES, Records

FRAME_VERSION = 1  # AbstractApiMessageSerde.DEFAULT_FRAME_VERSION; 0 was the preview in 2.8
CONTROL_KEY_BYTES = 4  # version int16, type int16
_FRAME_BYTES = 15  # at most: three varints
_LARGEST = 0x7FFF  # types and versions are int16 wherever Kafka keeps them
_FIRST_CONTROL, _LAST_CONTROL = 2, 6  # LEADER_CHANGE to KRAFT_VOTERS; ABORT and COMMIT are no part of a metadata log

# Columns of a frame table.
STATUS, TYPE, VERSION, BODY_AT, BODY_END = range(5)

OK, _NULL, TRUNCATED, _BAD_VARINT, _UNKNOWN_VERSION, _UNKNOWN_TYPE, IN_HOLE = range(7)
REASONS: dict[int, type[DecodeError]] = {
    _NULL: UnexpectedNull,
    TRUNCATED: Truncated,
    _BAD_VARINT: BadVarint,
    _UNKNOWN_VERSION: UnknownVersion,
    _UNKNOWN_TYPE: UnknownApi,
}


def frames(records: Records, *, control: bool) -> np.ndarray:
    """int64[n, 5]: for each record its status, type, version, and where its body is."""
    table = np.zeros((len(records), 5), np.int64)
    _frames(records.field.data, records.field.holes, records.table, control, table)
    return table


@cached_njit
def read_uvarint(data: np.ndarray, at: int, end: int) -> tuple[int, int]:
    """(value, next position); the value is minus the status where there is none."""
    value = 0
    for i in range(5):
        if at + i >= end:
            return -TRUNCATED, at
        byte = int(data[at + i])
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return (value, at + i + 1) if value <= 0xFFFFFFFF else (-_BAD_VARINT, at)
    return -_BAD_VARINT, at


@cached_njit
def _frame(data: np.ndarray, begin: int, end: int, out: np.ndarray) -> int:
    """Status of the frame (uvarint frame version, type, version) that opens a value."""
    version, at = read_uvarint(data, begin, end)
    if version < 0:
        return -int(version)
    if version != FRAME_VERSION:
        return _UNKNOWN_VERSION
    kind, at = read_uvarint(data, at, end)
    if kind < 0 or kind > _LARGEST:
        return -kind if kind < 0 else _UNKNOWN_TYPE
    version, at = read_uvarint(data, at, end)
    if version < 0 or version > _LARGEST:
        return -version if version < 0 else _UNKNOWN_VERSION
    out[TYPE], out[VERSION], out[BODY_AT] = kind, version, at
    return OK


@cached_njit
def _control(data: np.ndarray, row: np.ndarray, out: np.ndarray) -> int:
    """Status of a control record: its type is in the key, its version opens the value and is part of the message."""
    if row[KEY_BYTES] < CONTROL_KEY_BYTES or row[VALUE_BYTES] < 2:
        return TRUNCATED
    key, value = row[KEY_AT], row[VALUE_AT]
    out[TYPE] = int(data[key + 2]) << 8 | int(data[key + 3])
    out[VERSION] = int(data[value]) << 8 | int(data[value + 1])
    out[BODY_AT] = value
    return OK if _FIRST_CONTROL <= out[TYPE] <= _LAST_CONTROL else _UNKNOWN_TYPE


@cached_njit
def _frames(data: np.ndarray, holes: np.ndarray, table: np.ndarray, control: bool, out: np.ndarray) -> None:
    for i in range(len(table)):
        row = table[i]
        if row[UNSEEN] == STRUCTURE_UNSEEN:
            out[i, STATUS] = IN_HOLE
            continue
        if row[VALUE_BYTES] < 0:
            out[i, STATUS] = _NULL
            continue
        begin, end = row[VALUE_AT], row[VALUE_AT] + row[VALUE_BYTES]
        status = _control(data, row, out[i]) if control else _frame(data, begin, end, out[i])
        read_from = row[KEY_AT] if control else begin
        read_to = begin + 2 if control else (out[i, BODY_AT] if status == OK else min(end, begin + _FRAME_BYTES))
        if len(holes) and hidden(holes, read_from, read_to) > 0:
            status = IN_HOLE
        out[i, STATUS] = status
        out[i, BODY_END] = end
