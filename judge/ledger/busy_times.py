"""When the connections to an endpoint carried requests, and when bytes of them were missing: times without names.

Knows: spans of time, as the union of those of single connections. Does not know connections, nor who asks.
Rule: a union does not depend on the order of what is united, and bounds are by number: silences shorter than QUIET_NS
are none, and of more than MOST the shortest are given up, so that too much is called busy, never too little.
"""

from collections.abc import Iterable
from itertools import pairwise

Spans = list[list[int]]
QUIET_NS = 1_000_000_000
MOST = 256


def united(spans: Spans, more: Iterable[tuple[int, int]]) -> Spans:
    """Spans that do not touch each other, in order."""
    found: Spans = []
    for first_ns, last_ns in sorted([*map(tuple, spans), *more]):
        if found and first_ns <= found[-1][1] + QUIET_NS:
            found[-1][1] = max(found[-1][1], last_ns)
        else:
            found.append([first_ns, last_ns])
    return bounded(found)


def bounded(spans: Spans) -> Spans:
    """The longest silences between them stay."""
    if len(spans) <= MOST:
        return spans
    silences = sorted((before[1] - after[0], place) for place, (before, after) in enumerate(pairwise(spans), 1))
    begins = sorted(place for _, place in silences[: MOST - 1])
    return [[spans[at][0], spans[until - 1][1]] for at, until in pairwise([0, *begins, len(spans)])]


def since(spans: Spans, oldest_ns: int) -> Spans:
    """Without those that were over before."""
    return [span for span in spans if span[1] >= oldest_ns]
