"""Where the clock of a capture host was set between two files of one capture, such as rotated ones.

Files of one folder whose names differ by digits alone may be such a capture, in the order of their numbers. TCP shows
whether one goes on where the one before it ends: then its time does, too, and what it lacks becomes an offset of it.
Rule: files in the wrong order, files that overlap, and files of two capture points never go on so; they have no offset.
"""

from __future__ import annotations

import re
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

from wirecheck.capture import frames
from wirecheck.capture.source.clock_steps import (
    ANSWERS,
    LONG_NS,
    READ_BYTES,
    Clock,
    Sequences,
    answered_behind,
    newest,
    oldest,
)
from wirecheck.capture.source.pcap import STEP_NS, CaptureFile, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pyarrow as pa

NEXT_BYTES = 1 << 26
"""What a sender sends while a file is changed is less."""
DIGITS = re.compile(r"\d+")


class Dated(NamedTuple):
    """A capture file whose time does not step back, or once by a clock that was set."""

    path: Path
    first_ns: int
    newest_ns: int
    """0: unknown."""


def clocks_of(files: Iterable[Dated]) -> dict[Path, Clock]:
    """The clocks of files that are not dated by their own time."""
    found: dict[Path, Clock] = {}
    captures = sorted(files, key=lambda one: (of_capture(one.path), numbers(one.path)))
    for _, capture in groupby(captures, key=lambda one: of_capture(one.path)):
        for before, after in pairwise(capture):
            clock = found.get(before.path)
            if is_worth_a_look(before, after, clock) and (own := _behind(before, after, clock)) is not None:
                found[after.path] = own
    return found


def of_capture(path: Path) -> tuple[str, str]:
    return str(path.parent), DIGITS.sub("", path.name)


def numbers(path: Path) -> list[int]:
    return [int(number) for number in DIGITS.findall(path.name)]


def is_worth_a_look(before: Dated, after: Dated, clock: Clock | None) -> bool:
    """Whether the later file begins before the other one ends, or long after it."""
    if clock is not None:
        return True
    if not before.newest_ns:
        return after.first_ns <= before.first_ns
    return not before.newest_ns <= after.first_ns <= before.newest_ns + LONG_NS


def _behind(before: Dated, after: Dated, clock: Clock | None) -> Clock | None:
    """The clock of a file behind another one, where that one's time goes on in it."""
    own = Clock() if clock is None else clock.copy()
    try:
        rows, head = _last_rows(before.path, own), _first_rows(after.path)
    except InputError:
        return None
    if rows is None or head is None or own.newest_ns is None or not follows(newest(rows), head):
        return None
    behind_ns = own.newest_ns - after.first_ns
    if own.offset_ns and 0 <= own.offset_ns - behind_ns <= LONG_NS:  # as the file before ended
        return own.behind(after.first_ns, own.offset_ns, counted=False)
    is_ahead = -behind_ns > LONG_NS and answered_behind(rows, head) >= ANSWERS
    return own.behind(after.first_ns, behind_ns, counted=True) if behind_ns > STEP_NS or is_ahead else None


def follows(before: Sequences, rows: pa.RecordBatch) -> bool:
    """Whether more senders go on with these rows than do not."""
    found = oldest(rows).items()
    steps = [(now - before[sender][0]) % (1 << 32) for sender, (now, _) in found if sender in before]
    return sum(1 if step < NEXT_BYTES else -1 for step in steps if step) > 0


def _last_rows(path: Path, clock: Clock) -> pa.RecordBatch | None:
    """The last rows of a file, as this clock dates them."""
    file = CaptureFile(path, READ_BYTES)
    try:
        for _ in clock.dated(file.batches(frames.Stamp("", ""))):
            pass
    finally:
        file.close()
    return clock.before


def _first_rows(path: Path) -> pa.RecordBatch | None:
    file = CaptureFile(path, READ_BYTES)
    try:
        return next((batch.rows for batch in file.batches(frames.Stamp("", ""))), None)
    finally:
        file.close()
