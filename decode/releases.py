"""Which release supports which API versions: what advertised ranges show, and what Kafka 4.0 removed.

Rule: a release is an estimate. Servers that are not Apache Kafka match no release.
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache

from wirecheck.decode import schemas
from wirecheck.decode.api_names import BETWEEN_BROKERS

BASELINE = "4.0"
"""The first releases without the versions of before 2.1 (KIP-896)."""
PRODUCE, FETCH = 0, 1
ENOUGH = 0.9
"""Share of the advertised APIs whose highest version must be that of a release to be taken for it."""
Ranges = Mapping[int, tuple[int, int]]
RANGE = re.compile(r"(-?\d+):(-?\d+)-(-?\d+)")  # a server may say anything, below zero too


def written(ranges: Ranges) -> str:
    """Ranges as one short text, in the order of the keys."""
    return " ".join(f"{key}:{low}-{high}" for key, (low, high) in sorted(ranges.items()))


def digest(text: str) -> str:
    """A short name for ranges that are written elsewhere."""
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


@lru_cache(maxsize=256)
def read(text: str) -> Ranges:
    return {int(key): (int(low), int(high)) for key, low, high in RANGE.findall(text)}


@cache
def lowest(target: str) -> dict[int, int]:
    """Per key the lowest version that a release, or some release of a line (4.0), accepts; empty for an unknown one."""
    found: dict[int, int] = {}
    for release, ranges in schemas.releases().items():
        if target in {release, release.rpartition(".")[0]}:
            for key, versions in ranges.items():
                found[key] = min(versions.low, found.get(key, versions.low))
    return found


def lowest_in_4() -> dict[int, int]:
    """Per key the lowest version that a 4.0 accepts; 4.0.2 took some of them back."""
    return lowest(BASELINE)


def removed_in_4(key: int, version: int) -> bool:
    """Whether a client's request of this version is refused from 4.0 on. What only brokers send is their own affair."""
    return key not in BETWEEN_BROKERS and version < lowest_in_4().get(key, 0)


def is_4(ranges: Ranges) -> bool:
    """4.x advertises Produce from 0 but rejects 0 to 2. Its range of Fetch is accurate."""
    return FETCH in ranges and ranges[FETCH][0] >= lowest_in_4()[FETCH]


def accepts(ranges: Ranges, key: int, version: int) -> bool:
    low, high = ranges.get(key, (0, -1))
    if key == PRODUCE and is_4(ranges):
        low = max(low, lowest_in_4()[PRODUCE])
    return low <= version <= high


@lru_cache(maxsize=4096)  # texts come from traffic
def lines_of(text: str) -> tuple[str, ...]:
    """The release lines, such as 3.9, that advertise these ranges: several if they have the same ranges, () if none has
    them. A line that matches without unstable versions comes before one that needs them.
    """
    ranges = read(text)
    scores: dict[str, tuple[int, bool]] = {}
    for release, known in schemas.releases().items():
        line = release.rpartition(".")[0]
        for stable in (True, False):
            highest = {key: one.high - (stable and one.latest_unstable) for key, one in known.items()}
            same = sum(highest.get(key) == high for key, (_, high) in ranges.items())
            scores[line] = max(scores.get(line, (0, False)), (same, stable))
    best = max(scores.values())
    return tuple(line for line, score in scores.items() if score == best) if best[0] >= ENOUGH * len(ranges) else ()


OF_CONTROLLERS = 62
"""BrokerRegistration: an API that controllers serve, and brokers do not."""


def is_of_controller(text: str) -> bool:
    return OF_CONTROLLERS in read(text)


@lru_cache(maxsize=4096)
def beside_line(text: str) -> tuple[tuple[int, tuple[int, int]], ...]:
    """Of ranges that fit a release line the APIs whose lowest or highest version is that of none of its releases."""
    ranges = read(text)
    return tuple((key, ranges[key]) for key, span in beside(text) if span is not None)


@lru_cache(maxsize=4096)
def beside(text: str) -> tuple[tuple[int, tuple[int, int] | None], ...]:
    """Of ranges that fit a release line the APIs that none of its releases has like that, with what the newest of them
    has; None where none has the API.
    """
    lines = lines_of(text)
    spans: dict[int, set[tuple[int, int]]] = {}
    newest: dict[int, tuple[int, int]] = {}
    for release, ranges in schemas.releases().items():
        for key, one in ranges.items() if release.rpartition(".")[0] in lines else ():
            newest[key] = one.low, one.high - one.latest_unstable
            for low in {one.low, 0} if key == PRODUCE else {one.low}:  # 4.x advertises what it does not accept
                spans.setdefault(key, set()).update({(low, one.high), (low, one.high - one.latest_unstable)})
    odd = [key for key, span in read(text).items() if span not in spans.get(key, ())] if lines else []
    return tuple((key, newest.get(key)) for key in odd)


@lru_cache(maxsize=4096)
def role_of(text: str) -> str:
    """Whose APIs these are most like: Z a broker with ZooKeeper, B a KRaft broker, C a controller."""
    keys, newest = read(text).keys(), [*schemas.releases().values()][-1:]
    lines = lines_of(text)
    known = [ranges for release, ranges in schemas.releases().items() if release.rpartition(".")[0] in lines] or newest
    served = {role: {key for key, one in known[-1].items() if role in one.listeners} for role in "ZBC"}
    return min(served, key=lambda role: len(served[role] ^ keys))


KRAFT_BROKER = "B"


def gives_ids(texts: Collection[str]) -> bool:
    """Whether a server with these ranges is a KRaft broker of a release: there each topic has an ID."""
    return bool(texts) and all(lines_of(text) and role_of(text) == KRAFT_BROKER for text in texts)


def upside_down(text: str) -> list[int]:
    """The APIs whose lowest version is above their highest one. Some servers have 0 to -1 for none, and a proxy that
    states what its own release and the broker's have in common (Kroxylicious 0.12) has the lowest version of one of
    them and the highest of the other: ShareFetch 1-0, of 4.4 and 4.0. Clients take both for an API that is not there.
    """
    return [key for key, (low, high) in read(text).items() if low > high >= 0 and (low, high) not in apart(key)]


@cache
def apart(key: int) -> set[tuple[int, int]]:
    """The lowest version of each release, with the highest of each that has no version in common with it."""
    known = [ranges[key] for ranges in schemas.releases().values() if key in ranges]
    highest = {one.high for one in known} | {one.high - one.latest_unstable for one in known}
    return {(one.low, high) for one in known for high in highest if high < one.low}


def is_narrowed(text: str) -> bool:
    """Whether ranges fit a release but for single APIs, as those of a proxy do."""
    return not is_unknown(text) and bool(beside_line(text))


def estimate(text: str) -> str | None:
    """The release lines as text: 3.9, or 3.7-3.8; None if none matches."""
    lines = lines_of(text)
    return spelled(lines) if lines else None


def spelled(lines: Sequence[str]) -> str:
    return lines[0] if len(lines) == 1 else f"{lines[0]}-{lines[-1]}"


@lru_cache(maxsize=4096)
def of_no_release(text: str) -> bool:
    """Whether ranges are between those of the oldest and the newest release, but match no release."""
    ranges, known = read(text), schemas.releases()
    oldest = known[min(known, key=numbers)]
    newer = any(high > newest_of(key) for key, (_, high) in ranges.items())
    older = all(key in oldest and high <= oldest[key].high for key, (_, high) in ranges.items())
    return bool(ranges) and not newer and not older and estimate(text) is None


@lru_cache(maxsize=4096)
def is_unknown(text: str) -> bool:
    """Whether a server is of no known release: its ranges are of none, or reach beyond the newest."""
    return of_no_release(text) or any(high > newest_of(key) for key, (_, high) in read(text).items())


@cache
def newest_of(key: int) -> int:
    """The highest version of an API in any release; -1 for an API that no release has."""
    return max((ranges[key].high for ranges in schemas.releases().values() if key in ranges), default=-1)


@cache
def newest_line() -> str:
    return max(schemas.releases(), key=numbers).rpartition(".")[0]


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def order_of(line: str) -> tuple[int, ...]:
    """A release line as numbers, for comparing; of several the first."""
    return tuple(int(part) for part in line.partition("-")[0].split("."))
