"""A file of the spool without its frames: what travels in its place when there was no room to keep it.

Knows: that all marks stay, that the frames become one mark of losses per source, and how such a file is told from a
full one. Refuses to know: when there is no room (spool.py), and names (spool_folder.py).
Rule: the number stays. Who reads the files sees no hole in the numbers, hears what was lost and from where, and time
goes on as the full file said.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.frames_writer import FramesWriter

if TYPE_CHECKING:
    from pathlib import Path

REASON = "the spool was full before it was shipped"
_SAID = "wirecheck.emptied"


def empty(file: Path, into: Path) -> Counter[str] | None:
    """Write what is left of a file of frames; how many frames are lost, by source. Raises OSError.

    None, and nothing is written, for what is no full file of frames.
    """
    try:
        if is_emptied(file):
            return None
        table = frames_file.read(file)
    except (frames.NotFramesError, pa.ArrowException):
        return None
    is_frame = pc.equal(table["kind"], frames.FRAME)
    lost = Counter(table["source"].filter(is_frame).to_pylist())
    marks = table.filter(pc.invert(is_frame))
    progress = marks.slice(marks.num_rows - 1)
    stamp = frames.Stamp(progress["cluster"][0].as_py(), progress["agent"][0].as_py())
    at_ns = progress["ts_ns"][0].as_py()
    said = frames.mark_rows(
        [frames.Mark(frames.DROPPED, at_ns, source, n, REASON) for source, n in lost.items()], stamp
    )
    kept = [marks.slice(0, marks.num_rows - 1), pa.Table.from_batches([said]), progress]
    whole = pa.concat_tables([part.select(frames.FRAMES.names).cast(frames.FRAMES) for part in kept])
    writer = FramesWriter(into, stamp, progress["file_seq"][0].as_py())
    writer.write(whole.cast(frames.FRAMES_CODED))
    writer.close({_SAID: str(lost.total())})
    return lost


def is_emptied(file: Path) -> bool:
    """Whether a file is what was left of one."""
    return _SAID.encode() in (pq.read_metadata(file).metadata or {})
