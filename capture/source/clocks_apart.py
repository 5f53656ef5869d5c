"""How far the clocks of two captures of one network are apart, by the packets that are in both.

Two hosts capture the two ends of a connection: each of its segments is in both captures, within milliseconds. Where all
segments that both have are as far apart, the clocks are, and one capture is dated by the clock of the other.
Rule: no order between captures is guessed. Without segments in common, or where they disagree, nothing is moved.
"""

from __future__ import annotations

from hashlib import blake2b
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wirecheck.capture import frames
from wirecheck.capture.source.clock_between import Dated, numbers, of_capture
from wirecheck.capture.source.clock_steps import LONG_NS, READ_BYTES, Clock
from wirecheck.capture.source.pcap import STEP_NS, SURVEYED_BYTES, CaptureFile, InputError
from wirecheck.capture.source.tcp_stamps import EXACT_NS
from wirecheck.decode.forwarding import mixed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

LEAST = 8
"""So many segments in common show it."""
AGREE = 0.9
"""So many of them are as far apart as most: a segment may be sent again on one way alone."""
MOST_TRAFFIC = 0.5
"""Hosts whose segments are in both are ends of so much of one capture: others may send theirs again, past the other."""
MOST_CAPTURES, MOST_FILES = 16, 16
"""So many captures are compared, by so many files of each."""


class SeenOnce(NamedTuple):
    """The segments with data that a capture has once."""

    prints: NDArray[np.uint64]
    """What each is known by: addresses, ports, numbers, length."""
    ts_ns: NDArray[np.int64]
    ways: NDArray[np.uint64]
    """Of each segment by whom to whom."""
    sources: NDArray[np.uint64]
    """The address of its sender."""
    targets: NDArray[np.uint64]

    def share_of(self, hosts: NDArray[np.uint64]) -> float:
        """Of how many of its segments one of these hosts is an end."""
        return float((np.isin(self.sources, hosts) | np.isin(self.targets, hosts)).mean()) if len(self.prints) else 0.0


class Apart(NamedTuple):
    """A capture whose clock is so far ahead of that of another one."""

    by_ns: int
    other: Path

    @property
    def words(self) -> str:
        way = "ahead of" if self.by_ns > 0 else "behind"
        return (
            f"its clock is {abs(self.by_ns) / 1e9:,.1f} s {way} that of {self.other.name}, by the packets in both; its "
            "packets are dated by that one"
        )


def clocks_apart(files: Iterable[Dated], clocks: Mapping[Path, Clock]) -> dict[Path, Apart]:
    """The files whose clock is not that of most others. `clocks`: of files that are not dated by their own time."""
    captures = [*_captures((one for one in files if one.newest_ns), clocks)][:MOST_CAPTURES]
    if len(captures) < 2:
        return {}
    seen = [_seen(capture, clocks) for capture in captures]
    apart: dict[int, dict[int, int]] = {number: {} for number in range(len(captures))}
    for (one, other), later_ns, ways in _in_common(seen):
        if (ahead := ahead_ns(later_ns, ways)) is not None:
            apart[one][other], apart[other][one] = ahead, -ahead
    found: dict[Path, Apart] = {}
    left = {number for number, others in apart.items() if others}
    while left:
        first = max(sorted(left), key=lambda one: sum(abs(by_ns) <= STEP_NS for by_ns in apart[one].values()))
        behind = _reached(first, apart)
        left -= behind.keys()
        for number, by_ns in behind.items():
            if abs(by_ns) > STEP_NS:
                found |= dict.fromkeys((one.path for one in captures[number]), Apart(by_ns, captures[first][0].path))
    return found


def _reached(first: int, apart: Mapping[int, Mapping[int, int]]) -> dict[int, int]:
    """How far the clock of each capture that has packets in common with this one, or with one that has, is ahead."""
    found, waiting = {first: 0}, [first]
    for one in waiting:
        for other, by_ns in apart[one].items():
            if other not in found:
                found[other] = found[one] + by_ns
                waiting.append(other)
    return found


def _captures(files: Iterable[Dated], clocks: Mapping[Path, Clock]) -> Iterator[list[Dated]]:
    """Files one behind another are of one capture, as rotated ones are."""
    by_name = sorted(files, key=lambda one: (of_capture(one.path), numbers(one.path)))
    for _, group in groupby(by_name, key=lambda one: of_capture(one.path)):
        own = [*group]
        begins = [0]
        for at, (before, after) in enumerate(pairwise(own), 1):
            is_next = before.newest_ns <= after.first_ns <= before.newest_ns + LONG_NS
            if not is_next and after.path not in clocks:
                begins.append(at)
        yield from (own[begin:end] for begin, end in pairwise([*begins, len(own)]))


def _seen(capture: Sequence[Dated], clocks: Mapping[Path, Clock]) -> SeenOnce:
    none = np.zeros(0, np.uint64)
    parts = [SeenOnce(none, np.zeros(0, np.int64), none, none, none)]
    for one in capture[:MOST_FILES]:
        try:
            if one.path.stat().st_size > SURVEYED_BYTES:
                continue
            file = CaptureFile(one.path, READ_BYTES)
        except (OSError, InputError):
            continue
        clock = clocks[one.path].copy() if one.path in clocks else Clock()
        try:
            parts += [_of_rows(batch.rows) for batch in clock.dated(file.batches(frames.Stamp("", "")))]
        finally:
            file.close()
    every = SeenOnce(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    prints, first, counts = np.unique(every.prints, return_index=True, return_counts=True)
    once = first[counts == 1]
    return SeenOnce(prints[counts == 1], *(column[once] for column in every[1:]))


def _of_rows(rows: pa.RecordBatch) -> SeenOnce:
    size = rows.column("payload_len").to_numpy()
    at = np.flatnonzero((size > 0) & (rows.column("kind").to_numpy() == frames.FRAME))
    sources, targets = (_addresses(rows.column(name))[at] for name in ("src_ip", "dst_ip"))
    ways = mixed(sources ^ mixed(targets))
    for name in ("src_port", "dst_port"):
        ways = mixed(ways ^ rows.column(name).to_numpy()[at].astype(np.uint64))
    prints = ways
    for name in ("tcp_seq", "tcp_ack", "payload_len"):
        prints = mixed(prints ^ rows.column(name).to_numpy()[at].astype(np.uint64))
    return SeenOnce(prints, rows.column("ts_ns").to_numpy()[at], ways, sources, targets)


def _addresses(column: pa.DictionaryArray) -> NDArray[np.uint64]:
    """A number for each address, which no other one is found to have."""
    texts = column.dictionary.to_pylist()
    hashes = [int.from_bytes(blake2b(one.encode(), digest_size=8).digest(), "big") for one in texts]
    found: NDArray[np.uint64] = np.array(hashes, np.uint64)[column.indices.to_numpy()]
    return found


def _in_common(seen: Sequence[SeenOnce]) -> Iterator[tuple[tuple[int, int], NDArray[np.int64], NDArray[np.uint64]]]:
    """Of two captures how much later the second one has each segment that is in both, and by whom these were sent. What
    is in more than two is compared from one to the next.
    """
    numbers_of = np.repeat(np.arange(len(seen)), [len(one.prints) for one in seen])
    prints, ts_ns, ways, sources, targets = (np.concatenate(column) for column in zip(*seen, strict=True))
    order = np.argsort(prints, kind="stable")
    at = np.flatnonzero(prints[order][1:] == prints[order][:-1])
    first, second = order[at], order[at + 1]
    pairs = numbers_of[first] * len(seen) + numbers_of[second]
    for pair in np.unique(pairs).tolist():
        both, of_pair = divmod(pair, len(seen)), pairs == pair
        hosts = np.unique(np.concatenate([sources[first[of_pair]], targets[first[of_pair]]]))
        if max(seen[one].share_of(hosts) for one in both) >= MOST_TRAFFIC:
            yield both, (ts_ns[second] - ts_ns[first])[of_pair], ways[first][of_pair]


def ahead_ns(by_ns: NDArray[np.int64], ways: NDArray[np.uint64]) -> int | None:
    """How far one clock is ahead of the other, by so much later times of these segments; None: nothing shows it."""
    if len(by_ns) < LEAST:
        return None
    middle = int(np.median(by_ns))
    near = np.abs(by_ns - middle) < EXACT_NS
    agreeing = len(np.unique(ways[near]))
    return middle if near.mean() >= AGREE and 1 < agreeing == len(np.unique(ways)) else None
