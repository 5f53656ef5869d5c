"""Compiles, or loads, every kernel on the query's way, with the array types it has there.

Knows: one tiny connection (decode/warm.py's) cut into two frames files, taken through the plain loop in two batches, so
that state is stored and restored between them. Numba stores what it compiles for every later process.
Rule: a worker that has run this meets no kernel for the first time. `python -m wirecheck.streaming.steps.warm` saves
the first replay a minute.
"""

import pyarrow as pa

from wirecheck.capture import frames
from wirecheck.decode import warm as decode_warm
from wirecheck.streaming.steps.pack_step import pack
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings

STAMP = frames.Stamp("warm", "warm")


def warm() -> Loop:
    loop = Loop(Settings(buckets=1))
    whole = decode_warm.frames()
    middle = whole.num_rows // 2
    loop.rows_of(pack(file_of(whole.slice(0, middle), 1), loop.settings))
    loop.rows_of(pack(file_of(whole.slice(middle), 2, frames.Mark(frames.ENDED, 1)), loop.settings))
    return loop


def file_of(rows: pa.Table, file_seq: int, *marks: frames.Mark) -> pa.Table:
    """Frames as one file has them, with its marks behind them."""
    ends = frames.mark_rows([*marks, frames.Mark(frames.PROGRESS, file_seq)], STAMP)
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in frames.FRAMES
    ]
    table = pa.table(columns, frames.FRAMES)
    return frames.with_file_seq(pa.concat_tables([table, pa.Table.from_batches([ends]).cast(frames.FRAMES)]), file_seq)


if __name__ == "__main__":
    decode_warm.warm()  # what only `wirecheck decode` calls
    warm()
