"""Which ports were busy in files of frames: for somebody who looked at the wrong one.

Knows: that a server's port takes part in more frames than those of its clients. Refuses to know what was spoken there.
Rule: a frame counts for one port only, that of the two which has more in all.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from wirecheck.capture import frames, frames_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MOST = 5


def busiest(files: Iterable[Path], most: int = MOST) -> list[tuple[int, int]]:
    """(port, frames) of the busiest ports, the busiest first; of files that hold frames. Raises OSError."""
    pairs: Counter[tuple[int, int]] = Counter()
    for file in files:
        try:
            table = frames_file.read(file, ["kind", "src_port", "dst_port"]).filter(pc.field("kind") == frames.FRAME)
        except frames.NotFramesError:  # whoever reads them whole has said so
            continue
        sums = table.group_by(["src_port", "dst_port"]).aggregate([("kind", "count")])
        for row in sums.to_pylist():
            low, high = sorted((row["src_port"], row["dst_port"]))
            pairs[low, high] += row["kind_count"]
    found: list[tuple[int, int]] = []
    while pairs and len(found) < most:
        totals: Counter[int] = Counter()
        for (low, high), count in pairs.items():
            totals[low] += count
            if high != low:
                totals[high] += count
        port, count = min(totals.items(), key=lambda item: (-item[1], item[0]))
        found.append((port, count))
        pairs = Counter({pair: count for pair, count in pairs.items() if port not in pair})
    return found
