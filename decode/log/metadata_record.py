"""What opens the records of the metadata log: their frames, or the keys of control records, and why one is refused.

Knows: the errors that a row of the table (frame_table.py) stands for. Does not know the bodies behind the frames.
Rule: one row per record, a status each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.decode.errors import BadVarint, DecodeError, Truncated, UnexpectedNull, UnknownApi, UnknownVersion
from wirecheck.decode.holes import pairs
from wirecheck.decode.log.frame_table import (
    BAD_VARINT,
    FRAME_COLUMNS,
    NULL,
    TRUNCATED,
    UNKNOWN_TYPE,
    UNKNOWN_VERSION,
    FrameTable,
)

if TYPE_CHECKING:
    from wirecheck.decode.log.record import Records

REASONS: dict[int, type[DecodeError]] = {
    NULL: UnexpectedNull,
    TRUNCATED: Truncated,
    BAD_VARINT: BadVarint,
    UNKNOWN_VERSION: UnknownVersion,
    UNKNOWN_TYPE: UnknownApi,
}


def frames(records: Records, *, control: bool) -> np.ndarray:
    """int64[n, 5]: for each record its status, type, version, and where its body is."""
    rows = vec[i64](np.zeros(len(records) * FRAME_COLUMNS, np.int64))
    data, holes = records.field.data.tobytes(), pairs(records.field.holes)
    FrameTable(data, holes, vec[i64](records.table.ravel()), rows).fill(control)
    return np.array(rows).reshape(-1, FRAME_COLUMNS)
