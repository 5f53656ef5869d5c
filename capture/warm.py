"""Compiles, or loads, every kernel that trimming needs, before the first packet comes.

Knows: decode's tiny connection (decode/warm.py), taken through trim in two parts, in the types the live agent has.
Refuses to know: rings; live.py warms what is on their way.
Rule: an agent that listens compiles nothing: for a minute it would lose packets. Numba stores what it compiles beside
the sources or in NUMBA_CACHE_DIR, for every later start.
"""

from __future__ import annotations

import pyarrow as pa

from capture import frames
from capture.trim import Trim
from decode import warm as decode_warm


def warm() -> None:
    decode_warm.warm()
    trim, rows = Trim(), _rows()
    middle = rows.num_rows // 2
    for part in (rows.slice(0, middle), rows.slice(middle)):
        for _ in trim.add(part):
            pass
    newest_ns = int(rows.column("ts_ns").to_numpy().max())
    for _ in trim.advance("warm", newest_ns + 10**10):
        pass
    assert sum(len(part) for part in trim.drain()) == 0, "trim waits for what is decided"


def _rows() -> pa.RecordBatch:
    found = decode_warm.frames()
    columns = {
        field.name: found[field.name] if field.name in found.column_names else pa.nulls(found.num_rows, field.type)
        for field in frames.FRAMES_CODED
    }
    (rows,) = pa.table(columns).cast(frames.FRAMES_CODED).combine_chunks().to_batches()
    return rows
