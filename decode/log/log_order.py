"""Which entries of a metadata log hold, from everything seen of it in any order.

High watermarks, leader epochs, ends of epochs (DivergingEpoch) and metadata transactions (KIP-868) are merged by
maxima, minima and unions, so order and repetition do not matter. What is not known is PENDING: an open transaction, or
a closing marker without its Begin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.wire import RECORD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.log.metadata_log import Entries

PENDING, COMMITTED, VOID = 0, 1, 2

BEGIN, END, ABORT = 23, 24, 25  # types of BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord

NO_MARKER = 0

# The fate of entries between two markers, where it is not to be committed. An ABORT without its BEGIN, or a BEGIN
# without its end, means that a marker was not captured: the entries before (after) it cannot be assigned.
_FATES = {
    (BEGIN, ABORT): VOID,
    (BEGIN, NO_MARKER): PENDING,
    (BEGIN, BEGIN): PENDING,
    (END, ABORT): PENDING,
    (ABORT, ABORT): PENDING,
    (NO_MARKER, ABORT): PENDING,
}

_NEVER = np.iinfo(np.int64).max

# A leader election is an epoch, a migration some transactions: ten thousand of either is noise, not a cluster's life.
MOST_REMEMBERED = 10_000


@dataclass(slots=True)
class LogOrder:
    """What has been learned about the order of one cluster's metadata log."""

    high_watermark: int = -1
    starts: dict[int, int] = field(default_factory=dict)  # leader epoch -> lowest offset seen of it
    ends: dict[int, int] = field(default_factory=dict)  # leader epoch -> lowest end that a leader reported
    markers: dict[int, tuple[int, int]] = field(default_factory=dict)  # offset -> (epoch, BEGIN | END | ABORT)

    def absorb(self, entries: Entries) -> None:
        """Learn from entries of the log itself (a snapshot's are `covered`)."""
        epochs, which = np.unique(entries.epoch, return_inverse=True)
        lowest = np.full(len(epochs), _NEVER)
        np.minimum.at(lowest, which, entries.offset)
        for epoch, start in zip(epochs.tolist(), lowest.tolist(), strict=True):
            self._start(epoch, start)
        kinds = entries.messages.key
        marked = (entries.messages.side == RECORD) & (kinds >= BEGIN) & (kinds <= ABORT)
        for i in np.flatnonzero(marked).tolist():
            self._mark(int(entries.offset[i]), int(entries.epoch[i]), int(kinds[i]))
        self._forget()

    def below(self, high_watermark: int) -> None:
        """Everything below is committed: a leader's high watermark."""
        self.high_watermark = max(self.high_watermark, high_watermark)

    def covered(self, end_offset: int, epoch: int) -> None:
        """A snapshot holds everything below its end offset; snapshots are made of committed entries only."""
        self.below(end_offset)
        self._start(epoch, end_offset - 1)

    def diverged(self, epoch: int, end_offset: int) -> None:
        """A leader's DivergingEpoch: in its log this epoch ends here."""
        if epoch >= 0:
            self.ends[epoch] = min(end_offset, self.ends.get(epoch, end_offset))
            self._forget()

    def aborted_alone(self) -> dict[int, tuple[int, int]]:
        """The markers of aborted transactions. Where offsets were used twice, what else stands between two markers is
        unknown: they may belong to different logs.
        """
        pairs = pairwise(sorted(self.markers.items()))
        found = (pair for pair in pairs if [kind for _, (_, kind) in pair] == [BEGIN, ABORT])
        return {offset: marker for pair in found for offset, marker in pair}

    def merge(self, other: LogOrder) -> None:
        self.below(other.high_watermark)
        for epoch, start in other.starts.items():
            self._start(epoch, start)
        for epoch, end in other.ends.items():
            self.diverged(epoch, end)
        for offset, (epoch, kind) in other.markers.items():
            self._mark(offset, epoch, kind)
        self._forget()

    def fates(self, offset: NDArray[np.int64], epoch: NDArray[np.int64]) -> NDArray[np.int8]:
        """COMMITTED, PENDING or VOID for each (offset, epoch)."""
        markers, fates = self._transactions()
        following = np.searchsorted(markers, offset, "right") - 1
        fate = np.where(np.isin(offset, markers), COMMITTED, fates[following])
        result = np.where(offset < self.high_watermark, fate, PENDING).astype(np.int8)
        result[self._replaced(offset, epoch)] = VOID
        return result

    def _replaced(self, offset: NDArray[np.int64], epoch: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Entries on a branch that a later leader cut off."""
        later, ended = _lowest_from(self.starts, epoch + 1), _lowest_from(self.ends, epoch)
        replaced: NDArray[np.bool_] = np.minimum(later, ended) <= offset
        return replaced

    def _transactions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Offsets of committed markers, before them all -1, and the fate of what follows each up to the next."""
        offsets = np.array(sorted(o for o in self.markers if o < self.high_watermark), np.int64)
        epochs = np.array([self.markers[o][0] for o in offsets.tolist()], np.int64)
        offsets = offsets[~self._replaced(offsets, epochs)]
        kinds = [NO_MARKER, *(self.markers[o][1] for o in offsets.tolist()), NO_MARKER]
        fates = [_FATES.get(pair, COMMITTED) for pair in pairwise(kinds)]
        return np.concatenate([[-1], offsets]), np.array(fates, np.int64)

    def _start(self, epoch: int, offset: int) -> None:
        self.starts[epoch] = min(offset, self.starts.get(epoch, offset))

    def _mark(self, offset: int, epoch: int, kind: int) -> None:
        self.markers[offset] = max((epoch, kind), self.markers.get(offset, (epoch, kind)))

    def _forget(self) -> None:
        """Drop what cannot matter any more, and the oldest of what there is too much of."""
        self.starts, self.ends = _undominated(self.starts), _undominated(self.ends)
        for offset in sorted(self.markers)[:-MOST_REMEMBERED]:
            del self.markers[offset]


def _lowest_from(by_epoch: dict[int, int], epoch: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each epoch the lowest value of it or a later one."""
    epochs = np.array(sorted(by_epoch), np.int64)
    values = np.array([by_epoch[e] for e in epochs.tolist()] + [_NEVER], np.int64)
    lowest: NDArray[np.int64] = np.minimum.accumulate(values[::-1])[::-1][np.searchsorted(epochs, epoch)]
    return lowest


def _undominated(by_epoch: dict[int, int]) -> dict[int, int]:
    """Without the epochs that have a later one with a value as low: those decide nothing."""
    kept: dict[int, int] = {}
    lowest = _NEVER
    for epoch in sorted(by_epoch, reverse=True)[:MOST_REMEMBERED]:
        if by_epoch[epoch] < lowest:
            lowest = kept[epoch] = by_epoch[epoch]
    return kept
