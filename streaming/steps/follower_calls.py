"""What a bucket's follower is called with: frames of one round of files, in the order in which it hears them.

Knows: that frames of several agents are put in the order of their clocks, and of which file each frame is. Knows
nothing of what becomes of them.
Rule: a call takes so many frames that every one of its connections finds room; their order depends on no bucket.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.connection.segments import Segments
from wirecheck.streaming.steps.pack_step import FrameFile, together

FRAMES_A_CALL = 50_000  # a quarter of the connections a follower may hold: a call's own can always be taken in


def name_of(file: FrameFile) -> str:
    return f"{file.agent}-{file.file_seq:010d}.parquet"


def calls(files: list[FrameFile]) -> Iterator[tuple[Segments, NDArray[np.int64]]]:
    """Their frames as the follower is given them, and of which file each is."""
    pieces = [file.segments for file in files if file.segments is not None]
    if not pieces:
        return
    whole = together(pieces)
    whose = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
    if (order := in_time(whole)) is not None:
        whole, whose = whole.take(order), whose[order]
    for part in whole.parts(FRAMES_A_CALL):
        yield part, whose[: len(part)]
        whose = whose[len(part) :]


def by_time(segments: Segments) -> Segments:
    """Frames of several agents as their clocks have them, so that one heals what another lost while it is awaited."""
    order = in_time(segments)
    return segments if order is None else segments.take(order)


def in_time(segments: Segments) -> NDArray[np.int64] | None:
    """None where they are of one agent, and in its order."""
    return np.argsort(segments.ts_ns, kind="stable") if len(np.unique(segments.agent)) > 1 else None
