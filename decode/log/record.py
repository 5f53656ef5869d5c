"""The records of one batch as a table of positions (record_table.py).

Millions of records of a large cluster's log stay a table, because checks read columns. Batches and compression are not
known here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.decode.errors import BadLength, BadVarint, DecodeError, LeftoverBytes, Truncated
from wirecheck.decode.holes import Field, pairs
from wirecheck.decode.log import record_table as columns
from wirecheck.decode.log.record_table import RecordTable

SMALLEST_RECORD_BYTES = 7  # length, attributes, two deltas, two lengths, header count

_ERRORS: dict[int, type[DecodeError]] = {
    columns.TRUNCATED: Truncated,
    columns.BAD_LENGTH: BadLength,
    columns.BAD_VARINT: BadVarint,
    columns.LEFTOVER: LeftoverBytes,
}


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one batch: a row of positions for each."""

    field: Field  # the records' own bytes: those of the field, or what was decompressed
    table: np.ndarray  # int64[n, COLUMNS]
    unseen: int = 0  # records behind the last row: a hole took the place where they begin

    def __len__(self) -> int:
        return len(self.table)


def walk_records(field: Field, begin: int, end: int, count: int) -> Records:
    """Records of format v2 in [begin, end); offsets and timestamps are still deltas."""
    if count < 0 or count > (end - begin) // SMALLEST_RECORD_BYTES:
        raise BadLength(begin, "records")
    rows = vec[i64](np.zeros(count * columns.COLUMNS, np.int64))
    walk = RecordTable(field.bytes(begin, end), begin, pairs(field.holes), rows)
    walk.fill()
    table = np.array(rows).reshape(-1, columns.COLUMNS)[: walk.filled]
    if walk.reader.status == columns.LENGTH_UNSEEN:
        return Records(field, table, count - walk.filled)
    if walk.reader.status != columns.OK:
        raise _ERRORS[walk.reader.status](begin + walk.reader.at, "records")
    return Records(field, table, 0)
