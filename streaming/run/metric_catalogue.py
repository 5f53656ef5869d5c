"""Every metric's name, type, labels and meaning, and the bounds of histograms. docs/metrics.md is made from METRICS.

Labels come from closed sets, except those of `finding_info` (`story/worst_findings.py`) and of lags
(`judge/results/open_lags.py`), which have few series.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path

PREFIX = "wirecheck_"
SECONDS = (0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0)
TICK_NS = 100_000_000
"""Capture time is observed in tenths of a second."""
Labels = tuple[str, ...]


@dataclass(frozen=True)
class Named:
    """One metric: its name without prefix, as Prometheus shows it."""

    name: str
    kind: str
    labels: Labels
    measure: str
    """Of the totals table, if its samples are that measure as it stands; a detail has the labels behind the first."""
    meaning: str


def read() -> tuple[Named, ...]:
    """Of metrics.tsv."""
    lines = Path(__file__).with_name("metrics.tsv").read_text("ascii").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return tuple(Named(name, kind, tuple(labels.split()), *more) for name, kind, labels, *more in rows)


METRICS = read()


@dataclass
class Histogram:
    """Counts by upper bound in seconds; of this process, as batches end in it."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    seconds: float = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.seconds += seconds

    def observe_ticks(self, from_ns: int, to_ns: int, now_ns: int) -> None:
        """Each tick of capture time in (from, to], as old as it is now; as many per bound as fit, not one by one."""
        first, last = from_ns // TICK_NS + 1, to_ns // TICK_NS
        if last < first:
            return
        ages = [now_ns - round(bound * 1e9) for bound in SECONDS]  # a tick not before this is within the bound
        within = [max(0, last - max(first, -(-edge // TICK_NS)) + 1) for edge in ages]
        edges = [0, *within, last - first + 1]
        for index in range(len(self.counts)):
            self.counts[index] += edges[index + 1] - edges[index]
        middle_ns = (first + last) * TICK_NS / 2
        self.seconds += (now_ns - middle_ns) / 1e9 * (last - first + 1)

    def buckets(self) -> list[tuple[str, float]]:
        shown, sum_so_far = [], 0
        for bound, count in zip([*map(str, SECONDS), "+Inf"], self.counts, strict=True):
            sum_so_far += count
            shown.append((bound, float(sum_so_far)))
        return shown
