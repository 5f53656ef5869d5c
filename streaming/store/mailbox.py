"""What stands between one batch of a label judged in parts and the next, in a checkpoint: one file a batch.

Knows: where that file lies, that it is there only where something stands, and that the one of the batch before is still
asked for where a batch is repeated. Refuses to know what parts tell each other, and when rows are told (`turns.py`).
Rule: a batch's file is written, or removed, before its tables are, and read with the batch after it: whoever repeats a
batch finds what the first one found.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress

import pyarrow as pa

from wirecheck.streaming.store import storage
from wirecheck.streaming.store.storage import at

FOLDER = "mail"
KEPT = 3
"""Batches: the last one, the one before where that is repeated, and one to spare."""
SCHEMA = pa.schema(
    [("waits", pa.bool_()), ("label", pa.string()), ("part", pa.int32()), ("route", pa.string()), ("cell", pa.binary())]
)
NUMBER = b"turn"
Row = tuple[bool, str, int, str, bytes]
"""Whether it is a row of a table that waits, or mail; then as rows are between steps."""


def place(batch_id: int) -> str:
    """Below the checkpoint."""
    return f"{FOLDER}/{batch_id}.arrow"


def write(checkpoint: str, batch_id: int, turn: int, rows: Iterable[Row]) -> None:
    """What stands after a batch; where nothing does, nothing is left of an earlier attempt either. Raises OSError."""
    system, folder = at(checkpoint)
    columns = [*zip(*rows, strict=True)]
    if columns:
        made = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, SCHEMA.with_metadata({NUMBER: str(turn).encode()})) as writer:
            writer.write_batch(pa.record_batch(made, SCHEMA))
        storage.put(system, f"{folder}/{place(batch_id)}", sink.getvalue().to_pybytes())
    else:
        with suppress(FileNotFoundError):
            system.delete_file(f"{folder}/{place(batch_id)}")
    with suppress(FileNotFoundError):
        system.delete_file(f"{folder}/{place(batch_id - KEPT)}")


def read(checkpoint: str, batch_id: int) -> tuple[int, list[Row]]:
    """The number of the turn and what stands after it. Raises OSError, and ValueError where it is damaged."""
    system, folder = at(checkpoint)
    with suppress(FileNotFoundError), system.open_input_file(f"{folder}/{place(batch_id)}") as file:
        try:
            with pa.ipc.open_file(pa.BufferReader(file.read_buffer())) as found:
                said: Mapping[bytes, bytes] = found.schema.metadata or {}
                columns = [column.to_pylist() for column in found.read_all().columns]
                return int(said[NUMBER]), [*zip(*columns, strict=True)]
        except (pa.ArrowInvalid, KeyError, ValueError) as wrong:
            raise ValueError(f"{place(batch_id)} is damaged") from wrong
    return 0, []
