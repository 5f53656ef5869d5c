"""From where to where rows of a batch go.

Knows: how addresses stand in a batch. Does not know which routes are of interest.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.capture import frames

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Endpoint = tuple[str, int]
    Route = tuple[Endpoint, Endpoint]
    """Source and destination."""

PORT_BITS = 16
ADDRESSES, PORTS = ("src_ip", "dst_ip"), ("src_port", "dst_port")


def back(route: Route) -> Route:
    return route[1], route[0]


class Routes:
    """Of the rows of one batch."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.rows = rows

    def of(self, row: int) -> Route:
        texts, codes, ports = self._texts, self._codes, self._ports
        src, dst = ((texts[k][codes[k][row]] or "", int(ports[k][row])) for k in (0, 1))
        return src, dst

    @cached_property
    def _texts(self) -> list[list[str]]:
        """The addresses of sources and of destinations, by code."""
        return [self.rows.column(name).dictionary.to_pylist() or [""] for name in ADDRESSES]

    @cached_property
    def _codes(self) -> list[NDArray[np.int64]]:
        return [codes_of(self.rows.column(name)) for name in ADDRESSES]

    @cached_property
    def _ports(self) -> list[NDArray[np.int64]]:
        return [self.rows.column(name).to_numpy().astype(np.int64) for name in PORTS]

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """A number for each row, the same for the same route."""
        src, dst = (
            pa.array(codes << PORT_BITS | ports).dictionary_encode()
            for codes, ports in zip(self._codes, self._ports, strict=True)
        )
        pair: NDArray[np.int64] = src.indices.to_numpy().astype(np.int64) * len(dst.dictionary)
        pair += dst.indices.to_numpy()
        return pair

    def rows_by_route(self) -> dict[Route, NDArray[np.int64]]:
        """The rows of each route, in their order."""
        order = np.argsort(self.numbers, kind="stable")
        edges = [0, *(np.flatnonzero(np.diff(self.numbers[order])) + 1).tolist(), len(order)]
        return {self.of(int(order[begin])): order[begin:end] for begin, end in pairwise(edges) if begin < end}


def codes_of(column: pa.DictionaryArray) -> NDArray[np.int64]:
    """0 for what is null."""
    codes: NDArray[np.int64] = pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def with_routes(rows: pa.RecordBatch, new: Iterable[tuple[Route, NDArray[np.int64]]]) -> pa.RecordBatch:
    """These rows of a batch get new addresses."""
    if not (new := list(new)):
        return rows
    columns: dict[str, Any] = {name: rows.column(name) for name in rows.schema.names}
    at = np.concatenate([mine for _, mine in new])
    for side in (0, 1):
        old = columns[ADDRESSES[side]]
        texts = {text: code for code, text in enumerate(old.dictionary.to_pylist())}
        codes, ports = codes_of(old), columns[PORTS[side]].to_numpy().copy()
        for route, mine in new:
            codes[mine], ports[mine] = texts.setdefault(route[side][0], len(texts)), route[side][1]
        unknown = old.indices.is_null().to_numpy(zero_copy_only=False)
        unknown[at] = False
        indices = pa.array(codes.astype(np.int32), mask=unknown)
        columns[ADDRESSES[side]] = pa.DictionaryArray.from_arrays(indices, pa.array([*texts], pa.string()))
        columns[PORTS[side]] = pa.array(ports)
    return pa.RecordBatch.from_arrays([columns[name] for name in rows.schema.names], schema=frames.FRAMES_CODED)
