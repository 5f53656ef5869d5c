"""Rows of a minute put together: what many cells counted of one client, server and API is one row.

    together("requests_by_minute", rows)

Rule: who reads these tables adds up the rows of a minute, and gets the same however many were put together before.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]
OF_MINUTE = ("label", "time", "client_id", "host", "api")
KEYS = {
    "requests_by_minute": (*OF_MINUTE, "server"),
    "uses_by_minute": (*OF_MINUTE, "topic", "follower"),
}
"""By table what its rows are about. What was named, and not asked for, has rows of its own, whose count is 0."""
HOW: dict[str, Callable[..., Ints]] = {
    **dict.fromkeys(("count", "request_bytes", "response_bytes"), np.add.reduceat),
    "first_seen": np.minimum.reduceat,
    **dict.fromkeys(("last_seen", "granted", "fetch_begun", "named", "forgotten"), np.maximum.reduceat),
}


def together(table: str, rows: pa.Table) -> pa.Table:
    """One row of each key, with the ID of the first, in the order in which these came."""
    codes = [*(codes_of(rows[key]) for key in KEYS[table]), (rows["count"].to_numpy() > 0).astype(np.int64)]
    order: Ints = np.lexsort(codes)
    new = np.ones(len(order), np.bool_)
    new[1:] = np.any([np.diff(code[order]) != 0 for code in codes], axis=0)
    starts = np.flatnonzero(new)
    if len(starts) == rows.num_rows:
        return rows
    came: Ints = np.argsort(order[starts], kind="stable")
    group = np.empty(len(order), np.int64)
    group[order] = np.argsort(came)[np.cumsum(new) - 1]
    firsts = rows.take(pa.array(order[starts][came]))
    made = []
    for column in rows.schema:
        values = rows[column.name].combine_chunks()
        if column.name in HOW:
            whole = HOW[column.name](values.cast(pa.int64()).fill_null(0).to_numpy()[order], starts)[came]
            made.append(pa.array(whole, pa.int64(), mask=(whole == 0) & bool(values.null_count)).cast(column.type))
        elif pa.types.is_list(column.type):
            made.append(lists(values, group, len(starts)))
        else:
            made.append(firsts[column.name].combine_chunks())
    return pa.Table.from_arrays(made, schema=rows.schema)


def codes_of(column: pa.ChunkedArray) -> Ints:
    """Numbers that are equal where the values are; a null is a value."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    found: Ints = encoded.indices.to_numpy().astype(np.int64)
    return found


def lists(values: pa.Array, group: Ints, groups: int) -> pa.Array:
    """The elements of all lists of a group, each once and in order: numbers, or counts that are added up."""
    elements, parent = values.flatten(), group[pc.list_parent_indices(values).to_numpy()]
    counted = pa.types.is_struct(elements.type)
    names = elements.field(0) if counted else elements
    different = pc.unique(names)
    ranks = pc.index_in(names, different.take(pc.sort_indices(different))).to_numpy()
    order = np.lexsort((ranks, parent))
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(parent[order]) != 0) | (np.diff(ranks[order]) != 0)
    starts = np.flatnonzero(new)
    kept = names.take(pa.array(order[starts]))
    if counted:
        counts = elements.field(1).to_numpy()[order]
        sums = np.add.reduceat(counts, starts) if len(starts) else counts
        kept = pa.StructArray.from_arrays([kept, pa.array(sums, pa.int64())], fields=list(elements.type))
    ends = np.searchsorted(parent[order[starts]], np.arange(groups + 1))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), kept, type=values.type)
