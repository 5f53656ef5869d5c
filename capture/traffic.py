"""Bytes of payload by slots of time, from files of frames. Every frame counts in one slot; slots may be empty.

Where nothing was captured a slot is empty; nothing is interpolated. Who sent what is not looked at.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from wirecheck.capture import frames, frames_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

SLOTS = 160


@dataclass(frozen=True)
class Traffic:
    first_ns: int
    last_ns: int
    """Capture time of the first and the last frame."""
    payload_bytes: tuple[int, ...]
    """By slot: equal parts of the time from the first to the last."""


def traffic(files: Iterable[Path], slots: int = SLOTS) -> Traffic | None:
    """Of files that hold frames; None where there is no frame. Raises OSError."""
    named = list(files)
    if (between := ends(named)) is None:
        return None
    first_ns, last_ns = between
    sums = np.zeros(slots, np.int64)
    width_ns = max(-(-(last_ns - first_ns + 1) // slots), 1)
    for table in tables(named, ["kind", "ts_ns", "payload_len"]):
        slot = (table["ts_ns"].to_numpy() - first_ns) // width_ns
        np.add.at(sums, slot, table["payload_len"].to_numpy().astype(np.int64))
    return Traffic(first_ns, last_ns, tuple(sums.tolist()))


def ends(files: Iterable[Path]) -> tuple[int, int] | None:
    """Capture time of the first and the last frame; None where there is none. Raises OSError."""
    found = [pc.min_max(table["ts_ns"]).as_py() for table in tables(files, ["kind", "ts_ns"])]
    return (min(one["min"] for one in found), max(one["max"] for one in found)) if found else None


def tables(files: Iterable[Path], columns: list[str]) -> Iterator[pa.Table]:
    """These columns of each file that has frames. Invalid files are skipped: reading them in full reports them."""
    for file in files:
        try:
            table = frames_file.read(file, columns).filter(pc.field("kind") == frames.FRAME)
        except frames.NotFramesError:
            continue
        if table.num_rows:
            yield table


MOST = 5


def busiest(files: Iterable[Path], most: int = MOST) -> list[tuple[int, int]]:
    """(port, frames), the busiest first. Raises OSError."""
    ports = Ports()
    for table in tables(files, ["kind", "src_port", "dst_port"]):
        ports.add(table)
    return ports.busiest(most)


class Ports:
    """How many frames went between which ports."""

    def __init__(self) -> None:
        self._pairs: Counter[tuple[int, int]] = Counter()

    def add(self, table: pa.Table) -> None:
        """Rows that are frames."""
        sums = table.group_by(["src_port", "dst_port"]).aggregate([("kind", "count")])
        for row in sums.to_pylist():
            low, high = sorted((row["src_port"], row["dst_port"]))
            self._pairs[low, high] += row["kind_count"]

    def busiest(self, most: int = MOST) -> list[tuple[int, int]]:
        """(port, frames), the busiest first; a frame counts for that of its ports which has more."""
        pairs, ports = self._pairs, list[tuple[int, int]]()
        while pairs and len(ports) < most:
            totals: Counter[int] = Counter()
            for pair, count in pairs.items():
                totals.update(dict.fromkeys(pair, count))
            port, count = min(totals.items(), key=lambda item: (-item[1], item[0]))
            ports.append((port, count))
            pairs = Counter({pair: count for pair, count in pairs.items() if port not in pair})
        return ports


class Seen:
    """When frames were captured, and between which ports, of rows as they are read."""

    def __init__(self) -> None:
        self.ports = Ports()
        self.ends: tuple[int, int] | None = None
        """Capture time of the first and the last frame."""

    def add(self, table: pa.Table, *, with_ports: bool) -> None:
        is_frame = table["kind"].to_numpy() == frames.FRAME
        if not is_frame.any():
            return
        ts_ns = table["ts_ns"].to_numpy()[is_frame]
        first_ns, last_ns = self.ends or (int(ts_ns[0]), int(ts_ns[0]))
        self.ends = min(first_ns, int(ts_ns.min())), max(last_ns, int(ts_ns.max()))
        if with_ports:
            self.ports.add(table.select(["kind", "src_port", "dst_port"]).filter(pc.field("kind") == frames.FRAME))
