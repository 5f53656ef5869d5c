"""Finds message boundaries again: after a gap, and when a capture began in the middle.

A position is trusted only when a chain of headers confirms it: a believable header at p and another one of the same
client at p + 4 + its size; responses carry the correlation IDs of requests that were seen. An earlier candidate that
encloses later ones goes first, so that traffic inside records is not mistaken for the connection's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from wirecheck.decode.connection.connection import BY_CONTENT, KAFKA, OTHER, UNDECIDED
from wirecheck.decode.connection.framing import recognise
from wirecheck.decode.connection.framing.framing import RESCAN_BYTES
from wirecheck.decode.connection.framing.recognise import int16, int32, request_header, signs_in, taken_request
from wirecheck.decode.connection.stream.chunks import DATA, Chunk, begins_packet, chunk_at, fills_packets, gathered
from wirecheck.decode.connection.stream.direction import Candidate
from wirecheck.decode.connection.stream.frame import NEVER
from wirecheck.decode.connection.stream.modes import SEARCHING

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.shared import Shared
    from wirecheck.decode.connection.stream.direction import Direction
    from wirecheck.decode.connection.waiting import Message

WALK: Final = 8192  # chunks looked at, in one run of bytes, for a message that ends with a packet
PATIENCE_BYTES: Final = 4 << 20  # after so much of an unrecognised connection, keep only what a candidate needs
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


def search(shared: Shared, connection: Connection, direction: Direction) -> bool:
    """Look for a boundary in a direction; True if one was found."""
    if is_other_way_round(shared, connection, direction):
        turn_round(connection, direction)
    if connection.client < 0 or connection.carries_requests(direction):
        found = _find(shared, connection, direction, None)
    else:
        asked = connection.other(direction)
        found = False
        if asked.mode != SEARCHING and not asked.has_hole():  # it is known which ids to look for
            ids = InFlightIds(connection.in_flight.messages)
            if ids.count == 0:
                direction.scanned = max(direction.scanned, direction.next_offset - 7)
            else:
                found = _find(shared, connection, direction, ids)
    if not found:
        _drop_useless(shared, connection, direction)
    return found


def is_other_way_round(shared: Shared, connection: Connection, direction: Direction) -> bool:
    """Whether what is called the server sends requests of one client in turn, and has answered nothing: a response can
    look like a request, and then it was taken for one. Only what packets begin with is looked at.
    """
    doubtful = connection.role_by == BY_CONTENT and direction.messages == 0
    if not doubtful or connection.carries_requests(direction):
        return False
    begin = max(direction.scanned, direction.ordered.begin)
    chunk = direction.ordered.first
    while chunk is not None:
        if chunk.kind == DATA and chunk.begin >= begin:
            data = direction.ordered.look(chunk.begin, HEADER)
            verdict, _, client = request_header(shared.known, data, shared.limits.message_bytes)
            if verdict == recognise.STRONG:
                correlation = int32(data, 8)
                ahead = correlation - direction.last_correlation
                if client == direction.client_hash and 0 < ahead <= FAR:
                    return True
                direction.client_hash, direction.last_correlation = client, correlation
        chunk = chunk.next
    return False


def turn_round(connection: Connection, direction: Direction) -> None:
    """This side is the client's: nothing that was read of the connection so far is what it seemed."""
    for queue in (connection.in_flight, connection.early_responses):
        while queue.count > 0:
            queue.remove(0)
    answers = connection.other(direction)
    connection.client = direction.side
    for one in (direction, answers):
        one.lose_boundary()
    answers.messages, answers.client_hash = 0, -1


def last_chance(shared: Shared, connection: Connection, direction: Direction) -> bool:
    """Nothing follows: responses are searched for by the IDs that are known, whatever requests are missing, and a
    candidate that ends exactly where the stream ends is trusted. True if a boundary was found.
    """
    if direction.mode == SEARCHING:
        if connection.client >= 0 and not connection.carries_requests(direction):
            ids = InFlightIds(connection.in_flight.messages)
            if ids.count > 0 and _find(shared, connection, direction, ids):
                return True
        for candidate in direction.candidates:
            at_end = candidate.end == direction.next_offset and candidate.begin >= direction.ordered.begin
            if at_end and (connection.client >= 0 or connection.is_client_by_port(direction)):
                _trust(connection, direction, candidate.begin)
                return True
    return False


def _find(shared: Shared, connection: Connection, direction: Direction, ids: InFlightIds | None) -> bool:
    role_known = connection.client >= 0 or connection.is_client_by_port(direction)
    found = Scan(shared, direction, ids, role_known).run(connection)
    if found >= 0:
        _trust(connection, direction, found)
        return True
    return _resolve(shared, connection, direction, ids)


def _resolve(shared: Shared, connection: Connection, direction: Direction, ids: InFlightIds | None) -> bool:
    """Confirm or refute candidates by what stands where they end; True if one is trusted now."""
    kept: list[Candidate] = []
    covered: i64 = -1
    begin = direction.ordered.begin
    for candidate in direction.candidates:
        if candidate.end < begin:  # what stands there was given up
            continue
        state = confirm(shared, direction, candidate, ids)
        if state == REFUTED:
            continue
        if state == CONFIRMED and candidate.begin >= covered:
            _trust(connection, direction, candidate.begin if candidate.begin >= begin else candidate.end)
            return True
        if state == WAITING:
            covered = max(covered, candidate.end)
        kept.append(candidate)
    direction.candidates = kept
    return False


def _trust(connection: Connection, direction: Direction, at: i64) -> None:
    direction.find_boundary(at)
    connection.resynchronised += 1
    connection.protocol = KAFKA
    if connection.client < 0:
        connection.client = direction.side
        connection.role_by = BY_CONTENT
        answers = connection.other(direction)
        answers.candidates = []
        answers.scanned = answers.ordered.begin


def _drop_useless(shared: Shared, connection: Connection, direction: Direction) -> None:
    """Give up what no candidate needs."""
    limits, ordered = shared.limits, direction.ordered
    if connection.protocol == UNDECIDED and connection.searched_bytes > limits.give_up_bytes:
        connection.turn_off(OTHER)
        return
    is_response = connection.client >= 0 and not connection.carries_requests(direction)
    if connection.client < 0:
        keep_all = connection.searched_bytes < PATIENCE_BYTES
    else:
        asked = connection.other(direction)
        keep_all = is_response and (asked.mode == SEARCHING or asked.has_hole())
    if not keep_all:
        upto = direction.scanned
        if len(direction.candidates) > 0:
            upto = min(upto, direction.candidates[0].begin)
        if is_response:
            upto = min(upto, max(ordered.begin, direction.next_offset - RESCAN_BYTES))
        direction.drop(upto)
    first = ordered.first
    while first is not None and (ordered.kept > limits.search_bytes or ordered.count > limits.search_pieces):
        direction.drop(first.end)
        first = ordered.first


@final
class Scan:
    """One look at every position of a direction that was not tested yet."""

    def __init__(self, shared: Shared, direction: Direction, ids: InFlightIds | None, role_known: bool) -> None:
        self.shared: Shared = shared
        self.role_known: bool = role_known
        self.direction: Direction = direction
        self.ids: InFlightIds | None = ids
        """Of a response's direction."""
        self.steps: i64 = WALK
        self.chunk: Chunk | None = None
        """Where the position that is tested lies."""
        far = direction.next_offset - direction.message_begin >= PATIENCE_BYTES
        self.sure: bool = direction.client_hash >= 0 and direction.messages >= recognise.KNOWN_BY and not far
        """Whose connection it is is known: requests of others are none of its own."""

    def run(self, connection: Connection) -> i64:
        """Candidates are remembered; the offset of a message that needs no further proof, or -1."""
        direction = self.direction
        chunk = direction.ordered.first
        at = max(direction.scanned, direction.ordered.begin)
        while chunk is not None:
            if chunk.end <= at or chunk.kind != DATA:
                at = max(at, chunk.end)
                chunk = chunk.next
                continue
            at = max(at, chunk.begin)
            self.chunk = chunk
            data = gathered(chunk, at, NEVER)
            while chunk is not None and chunk.kind == DATA:
                chunk = chunk.next
            tested, found = self._run(data, at, chunk is None)
            if found >= 0:
                return found
            if connection.protocol == UNDECIDED:
                connection.searched_bytes += tested
            at += tested
        direction.scanned = max(at, direction.scanned)
        return -1

    def _run(self, data: bytes, at: i64, last: bool) -> tuple[i64, i64]:
        """(positions tested, offset of a message that needs no further proof or -1) of bytes that lie at `at`."""
        self.steps = WALK
        n = i64(len(data))
        highest = self.shared.limits.message_bytes >> 24
        for i in range(n - 7):
            if i64(data[i]) > highest:
                continue
            if self.ids is not None:
                if self._is_response(data, i, at, self.ids):
                    return i, at + i
            elif i64(data[i + 4]) == 0 and i64(data[i + 6]) == 0:
                found = self._is_request(data, i, at)
                if found == recognise.WAIT and last:
                    return i, -1
                if found == recognise.STRONG:
                    return i, self._first_of_its_client(at + i)
        return (max(n - 7, 0) if last else n), -1

    def _is_response(self, data: bytes, i: i64, at: i64, ids: InFlightIds) -> bool:
        size, correlation = int32(data, i), int32(data, i + 4)
        if size < 4 or size > self.shared.limits.message_bytes or ids.place(correlation) < 0:
            return False
        if self._fills_packets(at + i, at + i + 4 + size):
            return True
        add_candidate(self.direction, Candidate(at + i, at + i + 4 + size, correlation, 0))
        return False

    def _is_request(self, data: bytes, i: i64, at: i64) -> i64:
        """STRONG: for certain, WAIT: too few bytes to say, NO: not, or a candidate."""
        direction, known, largest = self.direction, self.shared.known, self.shared.limits.message_bytes
        head = data[i : i + recognise.HEADER_LIMIT]
        verdict, _, client = request_header(known, head, largest)
        if verdict == recognise.NO and self.sure:  # an unusual client ID counts if it is this connection's
            verdict, _, client = taken_request(known, head, largest)
            if verdict == recognise.DOUBT and client == direction.client_hash:
                verdict = recognise.STRONG
        if verdict == recognise.WAIT:
            return recognise.WAIT
        correlation: i64 = -1 if verdict in (recognise.NO, recognise.DOUBT) else int32(data, i + 8)
        if correlation < 0:
            return recognise.NO
        is_known = direction.client_hash >= 0 and client == direction.client_hash
        signing_in = correlation >= recognise.RESERVED and signs_in(int16(data, i + 4), correlation, client)
        if self.sure and not (is_known or signing_in):
            return recognise.NO
        ahead = correlation - direction.last_correlation
        end = at + i + 4 + int32(data, i)
        if signing_in:
            verdict = recognise.STRONG
        if verdict == recognise.STRONG:
            self.chunk = chunk_at(self.chunk, at + i)
            if is_known and 0 < ahead <= FAR and begins_packet(self.chunk, at + i):
                return recognise.STRONG
            if self._fills_packets(at + i, end) and self._is_not_alone(correlation, client):
                return recognise.STRONG
        if verdict == recognise.STRONG or (verdict == recognise.WEAK and is_known and 0 < ahead <= NEAR):
            add_candidate(direction, Candidate(at + i, end, correlation, client))
        return recognise.NO

    def _is_not_alone(self, correlation: i64, client: i64) -> bool:
        """Whether the side is the client's, or may be by its port, or sent another request of this client before: one
        message of a side with the lower port decides nothing, a response can look like a request.
        """
        direction = self.direction
        if self.role_known:
            return True
        alone = direction.client_hash != client or not 0 < correlation - direction.last_correlation <= FAR
        direction.client_hash, direction.last_correlation = client, correlation
        return not alone

    def _first_of_its_client(self, found: i64) -> i64:
        """Where to go on: also what the request that is confirmed now confirms is read."""
        direction = self.direction
        if not self.role_known:
            for candidate in direction.candidates:
                is_its = candidate.client == direction.client_hash and candidate.end <= found
                if is_its and candidate.begin >= direction.ordered.begin:
                    return min(candidate.begin, found)
        return found

    def _fills_packets(self, begin: i64, end: i64) -> bool:
        self.chunk = chunk_at(self.chunk, begin)
        fills, walked = fills_packets(self.chunk, begin, end, self.steps)
        self.steps -= walked
        return fills


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
    """Add a candidate. If there are too many, the one that ends last is removed, except for the FIRST ones."""
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
    end, largest = candidate.end, shared.limits.message_bytes
    have = direction.next_offset - end
    if have <= 0:
        return WAITING
    data = direction.ordered.look(end, min(have, HEADER))
    n = i64(len(data))
    if ids is not None:
        if n < 8:
            return WAITING if n == have else REFUTED
        if not 4 <= int32(data, 0) <= largest:
            return REFUTED
        return CONFIRMED if _follows(direction, candidate, int32(data, 4), ids) else REFUTED
    verdict, _, client = taken_request(shared.known, data, largest)
    if verdict == recognise.WAIT:
        return WAITING if n == have else REFUTED
    correlation = int32(data, 8)
    signing_in = int16(data, 4) in recognise.SIGNING_IN
    nameless = signs_in(int16(data, 4), correlation, client) or candidate.correlation >= recognise.RESERVED
    if verdict == recognise.NO or (client != candidate.client and not nameless):
        return REFUTED
    in_turn = 0 < correlation - candidate.correlation <= FAR
    return CONFIRMED if in_turn or signing_in or candidate.correlation >= recognise.RESERVED else REFUTED


def _follows(direction: Direction, candidate: Candidate, correlation: i64, ids: InFlightIds) -> bool:
    """Whether a response with this id can follow the candidate; small numbers are everywhere, so packets must agree."""
    chunk = direction.ordered.first
    first, last = begins_packet(chunk, candidate.begin), begins_packet(chunk, candidate.end)
    place = ids.place(candidate.correlation)
    if place >= 0 and ids.place(correlation) > place:
        return first or last or correlation > FAR
    return first and last and 0 < correlation - candidate.correlation <= NEAR
