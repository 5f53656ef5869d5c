"""How far the clocks of two captures of one network are apart, by the packets that are in both.

Two hosts capture the two ends of a connection: each of its segments is in both captures, within milliseconds. Where all
segments that both have are as far apart, the clocks are, and one capture is dated by the clock of the other.
Captures without a connection in common show nothing of each other's clock, unless people began and ended them
together. If they are of the same time, an order of events in both proves nothing.
Rule: no order between captures is guessed. Without segments in common, or where they disagree, nothing is moved.
"""

from __future__ import annotations

from hashlib import blake2b
from itertools import combinations, groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wirecheck.capture import frames
from wirecheck.capture.frames_file_name import text_of
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
MOST_CAPTURES, MOST_FILES = 64, 16
"""So many captures are compared, by so many files of each; of large ones 16."""
MANY_CAPTURES, MANY_BYTES = 16, 1 << 30
TOGETHER_NS = 10_000_000_000
"""Captures that begin and end so near to one another, by the clock of each, were begun and ended by one hand."""
MINUTE_NS = 60_000_000_000
"""At a full minute, each may have been begun by its own clock."""


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
    links: NDArray[np.uint64]
    """The connection of each, the same in both directions."""

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


class Compared(NamedTuple):
    """What is known of the clocks of some files."""

    apart: dict[Path, Apart]
    """Those whose clock is not that of most others."""
    unknown: dict[Path, str]
    """Those of which nothing shows how far their clock is from that of most others, with the words for it: the same for
    files whose clocks agree.
    """


def clocks_apart(files: Iterable[Dated], clocks: Mapping[Path, Clock]) -> Compared:
    """How the clocks of these files differ. `clocks`: of files that are not dated by their own time."""
    every = [*_captures((one for one in files if one.newest_ns), clocks)]
    captures = [*_compared(every)]
    if len(captures) < 2:
        return Compared({}, {})
    seen = [_seen(capture, clocks) for capture in captures]
    apart: dict[int, dict[int, int]] = {number: {} for number in range(len(captures))}
    for (one, other), later_ns, ways in _in_common(seen):
        if (ahead := ahead_ns(later_ns, ways)) is not None:
            apart[one][other], apart[other][one] = ahead, -ahead
    known = [(one, other) for one, others in apart.items() for other in others]
    known += _with_links_in_common(seen)
    return Compared(_moved(captures, apart), _unknown(every, known))


def _moved(captures: Sequence[Sequence[Dated]], apart: Mapping[int, Mapping[int, int]]) -> dict[Path, Apart]:
    """The files of the captures whose clock is not that of most of those that show it."""
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


def _unknown(captures: Sequence[Sequence[Dated]], known: Iterable[tuple[int, int]]) -> dict[Path, str]:
    """The words for the captures of which no pair that is known leads to the one that lasts longest, nor were they
    captured at another time.
    """
    near: dict[int, dict[int, int]] = {number: {} for number in range(len(captures))}
    together = (pair for pair in combinations(near, 2) if _are_together(*(captures[at] for at in pair)))
    for one, other in (*known, *together):
        near[one][other] = near[other][one] = 0
    first = max(near, key=lambda at: (_ends(captures[at]) - captures[at][0].first_ns, -at))
    found: dict[Path, str] = {}
    left = near.keys() - _reached(first, near).keys()
    while left:
        own = _reached(min(left), near).keys()
        others = [captures[at] for at in near.keys() - own]
        if any(_overlap(captures[at], other) for at in own for other in others):
            both = (text_of(captures[at][0].path) for at in (min(own), first))
            words = f"no packet shows how far the clocks of {' and '.join(both)} differ"
            found |= {one.path: words for at in own for one in captures[at]}
        left -= own
    return found


def _ends(capture: Sequence[Dated]) -> int:
    return max(one.newest_ns for one in capture)


def _are_together(one: Sequence[Dated], other: Sequence[Dated]) -> bool:
    begins = [capture[0].first_ns for capture in (one, other)]
    by_schedule = all(begin_ns % MINUTE_NS < TOGETHER_NS for begin_ns in begins)
    return not by_schedule and max(abs(begins[0] - begins[1]), abs(_ends(one) - _ends(other))) < TOGETHER_NS


def _overlap(one: Sequence[Dated], other: Sequence[Dated]) -> bool:
    """Whether they may be of the same time: no clock is further off than a minute."""
    return max(one[0].first_ns, other[0].first_ns) < min(_ends(one), _ends(other)) + MINUTE_NS


def _with_links_in_common(seen: Sequence[SeenOnce]) -> Iterator[tuple[int, int]]:
    """Captures with connections in common, as queues of one card have, or the two directions of a line: of hosts that
    are ends of most of one of them.
    """
    links = [np.unique(one.links) for one in seen]
    for one, other in combinations(range(len(seen)), 2):
        both = np.intersect1d(links[one], links[other], assume_unique=True)
        if not len(both):
            continue
        at = np.isin(seen[one].links, both)
        hosts = np.unique(np.concatenate([seen[one].sources[at], seen[one].targets[at]]))
        if max(seen[one].share_of(hosts), seen[other].share_of(hosts)) >= MOST_TRAFFIC:
            yield one, other


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
            behind_ns = after.first_ns - before.newest_ns  # packets of several queues may be out of order
            is_next = -STEP_NS < behind_ns <= LONG_NS
            if not is_next and after.path not in clocks:
                begins.append(at)
        yield from (own[begin:end] for begin, end in pairwise([*begins, len(own)]))


def _compared(captures: Sequence[Sequence[Dated]]) -> Iterator[Sequence[Dated]]:
    read_bytes = 0
    for number, capture in enumerate(captures[:MOST_CAPTURES]):
        read_bytes += sum(_size(one.path) for one in capture[:MOST_FILES])
        if number >= MANY_CAPTURES and read_bytes > MANY_BYTES:
            return
        yield capture


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _seen(capture: Sequence[Dated], clocks: Mapping[Path, Clock]) -> SeenOnce:
    none = np.zeros(0, np.uint64)
    parts = [SeenOnce(none, np.zeros(0, np.int64), none, none, none, none)]
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
    senders, receivers = (
        mixed(hosts ^ mixed(rows.column(name).to_numpy()[at].astype(np.uint64)))
        for name, hosts in (("src_port", sources), ("dst_port", targets))
    )
    ways = mixed(senders ^ mixed(receivers))
    prints = ways
    for name in ("tcp_seq", "tcp_ack", "payload_len"):
        prints = mixed(prints ^ rows.column(name).to_numpy()[at].astype(np.uint64))
    return SeenOnce(prints, rows.column("ts_ns").to_numpy()[at], ways, sources, targets, mixed(senders ^ receivers))


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
    prints, ts_ns, ways, sources, targets, _ = (np.concatenate(column) for column in zip(*seen, strict=True))
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
