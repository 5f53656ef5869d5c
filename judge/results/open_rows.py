"""Open rows as the metrics page counts them: of each row only the columns that are counted.

Rule: labels come from closed sets. A column that an earlier release did not write counts as null.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.decode import api_names
from wirecheck.decode.releases import removed_in_4
from wirecheck.judge.results.result_table import rows_of

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "topics": ("id", "revision", "label", "withdrawn", "state", "others"),
    "clients": ("id", "revision", "label", "withdrawn", "apis", "others"),
    "activities": ("id", "revision", "label", "withdrawn", "step", "state"),
}
"""What is looked at; of findings and totals all."""
OLD = "speaks_removed"
"""The column that replaces a client's `apis`."""


def rows(table: str, part: pa.Table) -> Iterator[dict[str, Any]]:
    """A part's rows, to be counted by `counts_as`."""
    looked_at = [name for name in COLUMNS.get(table, part.column_names) if name in part.column_names]
    if table == "clients":
        looked_at.remove("apis")
        part = part.append_column(OLD, pa.array(speak_removed(part["apis"])))
        looked_at.append(OLD)
    yield from rows_of(part.select(looked_at))


def counts_as(table: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    if table == "findings":
        return row["label"], row["code"], row["kind"]
    if table == "topics":
        return row["label"], row["state"]
    if table == "activities":
        return row["label"], row["step"], row["state"]
    return row["label"], "removed" if row[OLD] else "kept"


def speak_removed(apis: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each row of the column `apis`, whether Kafka 4.0 rejects one of its versions."""
    found = np.zeros(len(apis), np.bool_)
    used = apis.combine_chunks()
    if not pa.types.is_struct(used.type.value_type):  # nobody in it speaks
        return found
    whose = pc.list_parent_indices(used).to_numpy()
    used = pc.list_flatten(used)
    versions = pc.struct_field(used, "versions")
    at = pc.list_parent_indices(versions).to_numpy()
    names = pc.struct_field(used, "api").dictionary_encode()
    pairs = names.indices.to_numpy()[at].astype(np.int64) << 32 | pc.list_flatten(versions).to_numpy().astype(np.uint32)
    known, codes = np.unique(pairs, return_inverse=True)
    keys = [api_names.keys().get(name) for name in names.dictionary.to_pylist()]
    old = [removed(keys[pair >> 32], np.uint32(pair & 0xFFFFFFFF).astype(np.int32).item()) for pair in known.tolist()]
    found[whose[at[np.array(old, np.bool_)[codes.ravel()]]]] = True
    return found


def removed(key: int | None, version: int) -> bool:
    return key is not None and removed_in_4(key, version)
