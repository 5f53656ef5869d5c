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
    """(port, frames), the busiest first; a frame counts for that of its ports which has more. Raises OSError."""
    pairs: Counter[tuple[int, int]] = Counter()
    for table in tables(files, ["kind", "src_port", "dst_port"]):
        sums = table.group_by(["src_port", "dst_port"]).aggregate([("kind", "count")])
        for row in sums.to_pylist():
            low, high = sorted((row["src_port"], row["dst_port"]))
            pairs[low, high] += row["kind_count"]
    ports: list[tuple[int, int]] = []
    while pairs and len(ports) < most:
        totals: Counter[int] = Counter()
        for pair, count in pairs.items():
            totals.update(dict.fromkeys(pair, count))
        port, count = min(totals.items(), key=lambda item: (-item[1], item[0]))
        ports.append((port, count))
        pairs = Counter({pair: count for pair, count in pairs.items() if port not in pair})
    return ports
