"""What a bucket's follower is called with: frames of one round of files, in the order in which it hears them; and how
what it gives is handed on.

Knows: that frames of several agents are put in the order of their clocks, and of which file each frame is. Knows
nothing of what becomes of them.
Rule: a call takes so many frames that every one of its connections finds room; their order depends on no bucket.
"""

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.connection.exchanges import Exchanges, joined
from wirecheck.decode.connection.segments import Segments
from wirecheck.streaming.steps.pack_step import FrameFile, read_file, together

FRAMES_A_CALL = 20_000  # of as many connections at most: these can always be taken in, and are 60 MB of objects
MESSAGES_A_CELL = 10_000  # from here on, what a cell costs is little beside what its messages cost
Turns = dict[str, deque[bytes]]
"""The files to follow by agent, in order, as they came."""


def name_of(file: FrameFile) -> str:
    return file_name(file.agent, file.file_seq)


def file_name(agent: str, number: int) -> str:
    return f"{agent}-{number:010d}.parquet"


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


def in_time(segments: Segments) -> NDArray[np.int64] | None:
    """The order of frames of several agents by their clocks, so that one heals what another lost while it is awaited;
    None where they are of one agent, and in its order.
    """
    return np.argsort(segments.ts_ns, kind="stable") if len(np.unique(segments.agent)) > 1 else None


def rounds(turns: Turns) -> Iterator[list[FrameFile]]:
    """The files that are followed together, in order: all of them where several agents may heal each other's losses;
    of a single one only as many as make a call, so that their frames are held a few files at a time.
    """
    if len(turns) > 1:
        yield [read_file(cell) for name in sorted(turns) for cell in turns[name]]
        return
    some: list[FrameFile] = []
    count = 0
    for cells in turns.values():
        while cells:
            file = read_file(cells.popleft())
            count += len(file.segments) if file.segments is not None else 0
            if some and count > FRAMES_A_CALL:
                yield some
                some, count = [], len(file.segments) if file.segments is not None else 0
            some.append(file)
    if some:
        yield some


def some_together(learned: Iterable[Exchanges]) -> Iterator[Exchanges]:
    """Without those that tell nothing; small ones as one, for a cell costs more than a thousand messages."""
    parts: list[Exchanges] = []
    for exchanges in learned:
        if exchanges.connections:
            if parts and sum(len(part.messages) for part in (*parts, exchanges)) > MESSAGES_A_CELL:
                yield joined(parts)
                parts = []
            parts.append(exchanges)
    if parts:
        yield joined(parts)
