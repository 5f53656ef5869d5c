"""Rows of a file that have another time than the rows around them, though they are in their place.

Two kinds: few rows whose time is no time (0, the year 2100, a bit that was flipped), and all rows of one interface from
a row on, because its clock was set. What the file's order shows is asked of TCP: a row that is only late has the
sequence numbers of where its time belongs.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wirecheck.capture import frames
from wirecheck.capture.source.classic import LONE
from wirecheck.capture.source.pcap import STEP_NS

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

Sender = tuple[str, int, str, int]
FAR_NS = 120_000_000_000
"""Where TCP does not show it, a row is late by less."""
ROWS = 2_000
"""So many before a row, and behind it, are looked at."""
AROUND = 8
"""So many rows before it and behind it say what time it is."""
HALF = 1 << 31
MASK = (1 << 32) - 1


class Run(NamedTuple):
    """Rows begin to end - 1."""

    begin: int
    end: int


def steps_back(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows behind which time steps back."""
    found: NDArray[np.int64] = np.flatnonzero(times[1:] < times[:-1] - STEP_NS)
    return found


def lone_rows(rows: pa.RecordBatch, times: NDArray[np.int64]) -> list[Run]:
    """Runs of few rows that have another time than those around them, and stand where they belong."""
    runs, done = list[Run](), 0
    back = steps_back(times)
    if not len(back):
        return []
    senders = _Senders(rows, times)
    for at in back:
        for run in (_of_behind(times, int(at)), _of_ahead(times, int(at))):
            if run is None or run.begin < done or not _is_among_others(times, run):
                continue
            if senders.are_in_place(run):
                runs.append(run)
                done = run.end
                break
    return runs


def _of_behind(times: NDArray[np.int64], at: int) -> Run | None:
    """Rows behind this one that are older than it, where time returns behind them."""
    for end in range(at + 2, min(at + 2 + LONE, len(times))):
        if times[end] >= times[at] - STEP_NS:
            return Run(at + 1, end)
    return None


def _of_ahead(times: NDArray[np.int64], at: int) -> Run | None:
    """Rows up to this one that are newer than the next, where those before them are not."""
    for begin in range(at, max(at - LONE, -1), -1):
        if begin == 0 or times[begin - 1] <= times[at + 1] + STEP_NS:
            return Run(begin, at + 1)
    return None


def _is_among_others(times: NDArray[np.int64], run: Run) -> bool:
    """Whether enough rows around have about one time: without that, none is another time."""
    around = np.concatenate([times[max(run.begin - AROUND, 0) : run.begin], times[run.end : run.end + AROUND]])
    near_ns = times[run.begin - 1] if run.begin else times[run.end]
    return int((np.abs(around - near_ns) < FAR_NS).sum()) >= AROUND


class _Senders:
    """Where rows of each sender are."""

    def __init__(self, rows: pa.RecordBatch, times: NDArray[np.int64]) -> None:
        self.times = times
        names = ("kind", "src_ip", "src_port", "dst_ip", "dst_port", "tcp_seq", "tcp_ack")
        columns = [rows.column(name).to_pylist() for name in names]
        self.kinds, self.seqs, self.acks = columns[0], columns[5], columns[6]
        self.senders: list[Sender] = [*zip(*columns[1:5], strict=True)]
        self.places: dict[Sender, list[int]] = {}
        for at, sender in enumerate(self.senders):
            self.places.setdefault(sender, []).append(at)

    def are_in_place(self, run: Run) -> bool:
        """Whether the run is where it belongs, as far as TCP shows it: one row has to show it, none the opposite."""
        found = [self._is_in_place(at, run) for at in range(run.begin, run.end) if self.kinds[at] == frames.FRAME]
        return any(found) and False not in found

    def _is_in_place(self, at: int, run: Run) -> bool | None:
        """None: nothing shows it."""
        of_sender = self.places[self.senders[at]]
        before, behind = bisect_left(of_sender, run.begin), bisect_left(of_sender, run.end)
        if before and self._goes_back(of_sender[before - 1], at):
            return False
        if behind < len(of_sender) and self._goes_back(at, of_sender[behind]):
            return False
        now_ns = int(self.times[at])
        if run.begin and now_ns < self.times[run.begin - 1]:
            near = self._near(of_sender, run.begin - ROWS, run.begin)
            other = next((of_sender[one] for one in near if self.times[of_sender[one]] > now_ns), None)
            is_wrong = other is not None and self._goes_back(at, other)
        else:
            near = self._near(of_sender, run.end, run.end + ROWS)
            other = next((of_sender[one] for one in reversed(near) if self.times[of_sender[one]] < now_ns), None)
            is_wrong = other is not None and self._goes_back(other, at)
        if is_wrong or (self._has_others(at, run) and self._distance_ns(at, run) > FAR_NS):
            return True
        return None

    def _has_others(self, at: int, run: Run) -> bool:
        """Whether other rows of the connection are near it."""
        sender = self.senders[at]
        both = (self.places.get(one, []) for one in (sender, sender[2:] + sender[:2]))
        return sum(len(self._near(of, run.begin - ROWS, run.end + ROWS)) for of in both) > 1  # the row is one of them

    @staticmethod
    def _near(places: list[int], begin: int, end: int) -> range:
        """Which of these places are between two."""
        return range(bisect_left(places, begin), bisect_left(places, end))

    def _distance_ns(self, at: int, run: Run) -> int:
        near = self.times[run.begin - 1] if run.begin else self.times[run.end]
        return abs(int(self.times[at]) - int(near))

    def _goes_back(self, first: int, second: int) -> bool:
        """Whether the second of two rows of a sender was sent before the first."""
        seq, ack = (self.seqs[second] - self.seqs[first]) & MASK, (self.acks[second] - self.acks[first]) & MASK
        return seq >= HALF or (ack >= HALF and 0 not in (self.acks[first], self.acks[second]))


def redated(times: NDArray[np.int64], runs: list[Run]) -> NDArray[np.int64]:
    """Times where each run has that of the row before it; the first rows that of the row behind them."""
    found = times.copy()
    for begin, end in runs:
        found[begin:end] = found[begin - 1] if begin else found[end]
    return found


def last_rows(interfaces: NDArray[np.int64]) -> NDArray[np.int64]:
    """The newest rows, and the last of each interface with the row of another one before it."""
    kept = [*range(max(len(interfaces) - ROWS, 0), len(interfaces))]
    for number in np.unique(interfaces):
        last = int(np.flatnonzero(interfaces == number)[-1])
        kept += [last, *np.flatnonzero(interfaces[:last] != number)[-1:]]
    return np.unique(np.array(kept, np.int64))


class InterfaceStep(NamedTuple):
    """From this row on, the rows of an interface are to be moved."""

    at: int
    interface: int
    by_ns: int


def interface_step(times: NDArray[np.int64], interfaces: NDArray[np.int64]) -> InterfaceStep | None:
    """The first row at which the clock of one interface was set, while that of others went on around it."""
    for number in np.unique(interfaces):
        own, others = np.flatnonzero(interfaces == number), np.flatnonzero(interfaces != number)
        if len(own) < 2 or len(others) < 2:
            continue
        steps = np.diff(times[own])
        for at in np.flatnonzero(np.abs(steps) > STEP_NS):
            before, here = int(own[at]), int(own[at + 1])
            first, last = np.searchsorted(others, before) - 1, np.searchsorted(others, here)
            if first < 0 or last == len(others):
                continue
            elapsed_ns = int(times[others[last]] - times[others[first]])
            step_ns = int(steps[at])
            behind = times[own[at + 1 : at + 2 + LONE]]
            stays = len(behind) > LONE and np.abs(behind - times[here]).max() * 2 < abs(step_ns)
            if stays and -STEP_NS <= elapsed_ns < abs(step_ns) - STEP_NS:
                near_ns = max(int(times[others[last - 1]]), int(times[before]))
                return InterfaceStep(here, int(number), near_ns - int(times[here]))
    return None
