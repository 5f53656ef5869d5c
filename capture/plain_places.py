"""Frames of connections in which TLS was undone, as if they had been plain: for who reads them without keys.

Knows: overhead that rows declare, and how the numbers of both directions count without it.
Refuses to know: TLS. What was left out stays left out; what nobody could tell the length of is left out, too.
Rule: a byte keeps its distance from every other of its stream. Rows without overhead in their connection are untouched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

ACK, SYN = 16, 2
HALF, WHOLE = 1 << 31, 1 << 32
Direction = tuple[str, int, str, int]
Row = dict[str, Any]


class Places:
    """Sequence numbers of one direction, and where they stand once overhead is left aside."""

    def __init__(self, first: int) -> None:
        self._newest = self._first = first
        self._spans: dict[int, int] = {}
        self._begins: NDArray[np.int64] = np.zeros(0, np.int64)
        self._passed: NDArray[np.int64] = np.zeros(1, np.int64)

    def unwrapped(self, seq: int) -> int:
        """A number that does not wrap: the nearest to the newest one."""
        return self._newest + (seq - self._newest + HALF) % WHOLE - HALF

    def see(self, row: Row) -> None:
        at = self.unwrapped(row["tcp_seq"] + bool(row["tcp_flags"] & SYN))
        self._newest = max(self._newest, at)
        for span in row["overhead"]:
            if span["known"]:
                begin = at + span["offset"]
                self._spans[begin] = max(span["length"], self._spans.get(begin, 0))

    def settle(self) -> None:
        """All rows were seen. Stretches that several rows declare count once."""
        begins, lengths, end = [], [], self._first - WHOLE
        for begin, length in sorted(self._spans.items()):
            first = max(begin, end)
            if begin + length > first:
                begins.append(first)
                lengths.append(begin + length - first)
                end = begin + length
        self._begins = np.array(begins, np.int64)
        self._lengths = np.array(lengths, np.int64)
        self._passed = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    @property
    def moves(self) -> bool:
        return bool(len(self._begins))

    def plain(self, seq: int) -> int:
        """The number of the same place in the plain stream."""
        at = self.unwrapped(seq)
        i = int(np.searchsorted(self._begins, at, "right"))
        beyond = max(int(self._begins[i - 1] + self._lengths[i - 1]) - at, 0) if i else 0
        return (at - int(self._passed[i]) + beyond) % WHOLE


def as_plain(table: pa.Table) -> pa.Table:
    """The same frames, numbers and lengths counting plain bytes alone."""
    if not any(table["overhead"].to_pylist()):
        return table
    rows = table.to_pylist()
    places: dict[Direction, Places] = {}
    for row in rows:
        place = places.setdefault(direction(row), Places(row["tcp_seq"]))
        place.see(row)
    for place in places.values():
        place.settle()
    return pa.Table.from_pylist([_plain(row, places) for row in rows], table.schema)


def direction(row: Mapping[str, Any]) -> Direction:
    return row["src_ip"], row["src_port"], row["dst_ip"], row["dst_port"]


def _plain(row: Row, places: Mapping[Direction, Places]) -> Row:
    mine, other = places[direction(row)], places.get((row["dst_ip"], row["dst_port"], row["src_ip"], row["src_port"]))
    if not mine.moves and (other is None or not other.moves):
        return row
    left_out, passed = [], 0
    spans = [(s["offset"], s["length"], False) for s in row["left_out"]]
    spans += [(s["offset"], s["length"], s["known"]) for s in row["overhead"]]
    for offset, length, is_overhead in sorted(spans):
        if is_overhead:
            passed += length
        else:
            left_out.append({"offset": offset - passed, "length": length})
    ack = row["tcp_ack"] if other is None or not row["tcp_flags"] & ACK else other.plain(row["tcp_ack"])
    numbers = {"tcp_seq": mine.plain(row["tcp_seq"]), "tcp_ack": ack, "payload_len": row["payload_len"] - passed}
    return {**row, **numbers, "left_out": left_out, "overhead": []}
