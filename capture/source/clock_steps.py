"""Where time steps back in a capture: packets in the wrong order, or a clock that was set back.

TCP tells which. Over a clock that was set back (NTP, a virtual machine that was resumed) the sequence numbers of a
connection go on; where parts of a capture are in the wrong order, they step back as time does. Rows of a clock that was
set back are in order as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wirecheck.capture import frames
from wirecheck.capture.source.pcap import STEP_NS, CaptureFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from wirecheck.capture.source.pcap import Stretch

Sender = tuple[str, int, str, int]
"""Its address and port, and those of the receiver."""
SENDER = ("src_ip", "src_port", "dst_ip", "dst_port")
Sequences = dict[Sender, tuple[int, int]]
"""A sequence number of each, and its time."""
ROWS = 2_000
"""So many before a step, and behind it, are looked at."""
READ_BYTES = 1 << 20


def newest(rows: pa.RecordBatch) -> Sequences:
    """The last of each sender."""
    return dict(_of_frames(rows.slice(max(rows.num_rows - ROWS, 0))))


def go_on(before: Sequences, rows: pa.RecordBatch) -> int:
    """How many more senders go on with these rows than step back, of those whose time steps back; 0 where nothing
    shows it.
    """
    found: Sequences = {}
    for sender, place in _of_frames(rows.slice(0, ROWS)):
        found.setdefault(sender, place)
    both = ((*before[sender], *place) for sender, place in found.items() if sender in before)
    steps = ((now - then) % (1 << 32) for then, then_ns, now, now_ns in both if now_ns < then_ns)
    return sum(1 if step < 1 << 31 else -1 for step in steps if step)


def _of_frames(rows: pa.RecordBatch) -> Iterator[tuple[Sender, tuple[int, int]]]:
    columns = (rows.column(name).to_pylist() for name in ("kind", *SENDER, "tcp_seq", "ts_ns"))
    for kind, src_ip, src_port, dst_ip, dst_port, seq, ts_ns in zip(*columns, strict=True):
        if kind == frames.FRAME:
            yield (src_ip, src_port, dst_ip, dst_port), (seq, ts_ns)


class Steps:
    """Looks for a clock that was set back in rows as they are read."""

    def __init__(self) -> None:
        self.was_set_back = False
        self._before: pa.RecordBatch | None = None
        self._last_ns = 0

    def look(self, rows: pa.RecordBatch) -> None:
        """The next rows of a file."""
        if self.was_set_back or not rows.num_rows:
            return
        ts_ns = rows.column("ts_ns").to_numpy()
        steps = np.flatnonzero(np.diff(ts_ns, prepend=self._last_ns) < -STEP_NS)
        if len(steps):
            at = int(steps[0])
            before = {} if self._before is None else newest(self._before)
            self.was_set_back = go_on(before | newest(rows.slice(0, at)), rows.slice(at)) > 0
        self._before, self._last_ns = rows.slice(max(rows.num_rows - ROWS, 0)), int(ts_ns[-1])


def was_set_back(path: Path, stretches: Sequence[Stretch]) -> bool:
    """Whether time steps back between the stretches of a file because its clock was set back."""
    stamp, going_on, newest_ns = frames.Stamp("", ""), 0, 0
    before: Sequences = {}
    for stretch in stretches:
        file = CaptureFile(path, READ_BYTES, stretch=stretch)
        first, steps_back = True, stretch.first_ns < newest_ns
        try:
            for batch in file.batches(stamp):
                if first and steps_back:
                    going_on += go_on(before, batch.rows)
                first, last = False, batch
                newest_ns = int(batch.clock[-1])
        finally:
            file.close()
        before = before if first else newest(last.rows)
    return going_on > 0
