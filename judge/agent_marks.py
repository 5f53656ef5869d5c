"""What agents say about themselves: frames dropped or skipped, input that could not be read, files that never came.

Knows: which marks are counted, and under which measure of coverage. Does not know frames or files.
Rule: a mark is counted once, where it is said; a measure is only added, never renamed.
"""

from collections.abc import Iterator
from typing import Protocol

from wirecheck.capture import frames
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.reduce import moment

MARKS = {
    frames.DROPPED: "dropped_frames",
    frames.SKIPPED: "skipped_frames",
    frames.INPUT_ERROR: "input_errors",
    frames.UNDECRYPTED: "undecrypted_connections",
    frames.QUARANTINED: "quarantined_files",
    frames.LATE: "late_frames",
}
"""Marks that are counted, and the measure of coverage each adds to."""


class Marks(Protocol):
    """What an agent says about itself, in order."""

    @property
    def agent(self) -> str: ...
    @property
    def marks(self) -> tuple[frames.Mark, ...]: ...
    @property
    def missing_files(self) -> int: ...


def claims_of(said: Marks, now_ns: int) -> Iterator[Claim]:
    for mark in said.marks:
        if mark.kind in MARKS:
            seen = moment(mark.ts_ns, source=mark.source or "")
            key = (said.agent, MARKS[mark.kind], mark.source, mark.reason)
            yield Claim("mark", key, seen, tally={"count": max(1, mark.count)})
    if said.missing_files:
        seen = moment(now_ns)
        yield Claim("mark", (said.agent, "missing_files", None, None), seen, tally={"count": said.missing_files})
