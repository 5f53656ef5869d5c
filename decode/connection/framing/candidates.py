"""Where a message may begin in a stream without boundaries, and whether what follows confirms it.

An earlier candidate that encloses later ones goes first: it must be refuted before one of them is trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from wirecheck.decode.connection.framing.recognise import (
    NO,
    RESERVED,
    SIGNING_IN,
    WAIT,
    signs_in,
    taken_request,
)
from wirecheck.decode.connection.stream.chunks import begins_packet

if TYPE_CHECKING:
    from wirecheck.decode.connection.shared import Shared
    from wirecheck.decode.connection.stream.direction import Candidate, Direction
    from wirecheck.decode.connection.waiting import Message

CANDIDATES: Final = 8
FIRST: Final = 4  # that no later one displaces: what begins within them is not trusted before they are refuted
LONG: Final = 2 << 20  # ... up to this length: max.request.size is 1 MiB by default, and a false one would hide as much
FAR: Final = 1 << 16  # correlation ids of consecutive requests we see differ by less, even after a long gap
NEAR: Final = 64
IDS: Final = 4096  # unanswered requests looked for at once: a burst of lost answers leaves as many behind
HEADER: Final = 300  # longest believable request header
WAITING: Final = 0
CONFIRMED: Final = 1
REFUTED: Final = 2


@final
class InFlightIds:
    """Correlation ids of the requests in flight, and how many requests went before each."""

    def __init__(self, requests: list[Message]) -> None:
        ids: list[tuple[int, int]] = []
        for request in requests:
            if len(ids) < IDS and not request.is_raw():
                ids.append((request.correlation, len(ids)))
        ids.sort()  # seldom of use: reauthentication takes ids from elsewhere
        self.count: i64 = len(ids)
        self.ids: vec[i64] = vec[i64]()
        self.places: vec[i64] = vec[i64]()
        for correlation, place in ids:
            self.ids = append(self.ids, correlation)
            self.places = append(self.places, place)

    def place(self, correlation: i64) -> i64:
        """How many requests went before the one with this id; -1 if there is none."""
        ids = self.ids
        low: i64 = 0
        high = self.count
        while low < high:
            middle = (low + high) >> 1
            if ids[middle] < correlation:
                low = middle + 1
            else:
                high = middle
        return self.places[low] if low < self.count and ids[low] == correlation else -1


def add_candidate(direction: Direction, candidate: Candidate) -> None:
    """Remember a candidate; when there are too many, the one that ends last makes room, but not one of the FIRST."""
    known = direction.candidates
    if len(known) < CANDIDATES:
        for other in known:
            if other.begin == candidate.begin:
                return
        known.append(candidate)
        return
    latest = -1
    for k, other in enumerate(known):
        kept = k < FIRST and other.end - other.begin <= LONG
        if not kept and (latest < 0 or other.end > known[latest].end):
            latest = k
    if known[latest].end > candidate.end:
        del known[latest]
        known.append(candidate)


def confirm(shared: Shared, direction: Direction, candidate: Candidate, ids: InFlightIds | None) -> i64:
    """What the bytes at the end of a candidate, where the next message should begin, say about it; of a response with
    the ids in flight.
    """
    end, window, largest = candidate.end, shared.window, shared.bounds.message_bytes
    have = direction.next_offset - end
    if have <= 0:
        return WAITING
    n = direction.ordered.look(window, end, min(have, HEADER))
    if ids is not None:
        if n < 8:
            return WAITING if n == have else REFUTED
        if not 4 <= window.int32(0) <= largest:
            return REFUTED
        return CONFIRMED if _follows(direction, candidate, window.int32(4), ids) else REFUTED
    verdict, _, client = taken_request(shared.known, window.data, window.at, window.end, largest)
    if verdict == WAIT:
        return WAITING if n == have else REFUTED
    correlation = window.int32(8)
    signing_in = window.int16(4) in SIGNING_IN
    nameless = signs_in(window.int16(4), correlation, client) or candidate.correlation >= RESERVED
    if verdict == NO or (client != candidate.client and not nameless):
        return REFUTED
    in_turn = 0 < correlation - candidate.correlation <= FAR
    return CONFIRMED if in_turn or signing_in or candidate.correlation >= RESERVED else REFUTED


def _follows(direction: Direction, candidate: Candidate, correlation: i64, ids: InFlightIds) -> bool:
    """Whether a response with this id can follow the candidate; small numbers are everywhere, so packets must agree."""
    chunk = direction.ordered.first
    first, last = begins_packet(chunk, candidate.begin), begins_packet(chunk, candidate.end)
    place = ids.place(candidate.correlation)
    if place >= 0 and ids.place(correlation) > place:
        return first or last or correlation > FAR
    return first and last and 0 < correlation - candidate.correlation <= NEAR
