"""Records of one direction: bytes in order in, plaintext and overhead out.

Nothing is plaintext that no tag proves. Behind a gap, the beginning and the number of a record are tried a bounded
number of times; what opens is held until the records behind it prove its place (`proof`), or nothing follows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from librt.vecs import append, vec
from mypy_extensions import i64

from wirecheck.decode.connection.framing.opening import MORE, NO_HEADER, V1_MOST_BYTES, proxy_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirecheck.capture.tls.record_keys import Opened

CHANGE_CIPHER: Final = 20
HANDSHAKE: Final = 22
APPLICATION: Final = 23
HEADER_BYTES: Final = 5
LONGEST_BYTES: Final = (1 << 14) + 2048  # of a record's fragment (RFC 5246 6.2.3)
SHORTEST_BYTES: Final = HEADER_BYTES + 17  # of a record on the wire, encrypted
MAYBE_HEADER: Final = re.compile(rb"[\x15-\x17]\x03[\x01-\x03]")


def is_header(data: bytes) -> bool:
    """Whether these bytes, at least HEADER_BYTES, can begin a record (RFC 8446 5.1)."""
    kind, major, minor = i64(data[0]), i64(data[1]), i64(data[2])
    return CHANGE_CIPHER <= kind <= APPLICATION and major == 3 and minor <= 4 and size_of(data, 0) <= LONGEST_BYTES


def size_of(data: bytes, at: i64) -> i64:
    """Bytes of the fragment that follows the record header at this place."""
    return i64(data[at + 3]) << 8 | i64(data[at + 4])


MOST_NUMBERS: Final = 1 << 16
"""Record numbers that may be tried for a record behind a gap: 64 K lost records, a GB of full ones."""
MOST_TRIES: Final = 1 << 18
"""Records times numbers that did not open, on one direction: then it is given up."""
EARNED_TRIES: Final = 16


class Numbers(NamedTuple):
    """Keys, least and most of them, as they were."""

    keys: list[Any]
    least: int
    most: int


@final
class RecordNumbers:
    """`least` and `most` are those that the next record can have."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        """RecordKeys that records may be under: that of the newest record that opened, then those that may follow."""
        self.least: i64 = 0
        self.most: i64 = 0
        self.most_tries: i64 = MOST_TRIES
        self.given_up: bool = False
        self._tries: i64 = 0
        self._record_bytes: i64 = LONGEST_BYTES  # of the newest record that opened

    def now(self) -> Numbers:
        """For `forget`."""
        return Numbers(list(self.keys), self.least, self.most)

    def use(self, keys: Iterable[Any], least: i64, most: i64) -> None:
        self.keys = list(keys)
        self.least, self.most = least, most

    def lose(self, missing: i64) -> None:
        """So many bytes of records were not seen, and the rest of one."""
        self.most = min(self.most + 1 + missing // SHORTEST_BYTES, self.least + MOST_NUMBERS)

    def step(self) -> None:
        """A record that cannot be decrypted."""
        self.least += 1
        self.most += 1

    def fail(self) -> None:
        """A record did not open; it may be none."""
        self.most = min(self.most + 1, self.least + MOST_NUMBERS)

    def opened(self, record_bytes: i64) -> None:
        self._record_bytes = record_bytes
        self._tries = max(self._tries - EARNED_TRIES, 0)

    @property
    def is_exact(self) -> bool:
        """The next record can have one number only."""
        return self.least == self.most

    def forget(self, before: Numbers, record_bytes: i64) -> None:
        """What opened is not believed to stand there: as it was before, and so many bytes more of records unseen."""
        self.keys, self.least, self.most = before
        self.lose(record_bytes)

    def opens(self, ahead: i64, header: bytes, fragment: bytes) -> bool:
        """Whether this is the record so many behind the next one; nothing changes by it."""
        for place in range(i64(len(self.keys))):
            least = self.least + ahead if place == 0 else i64(0)
            most = self.least + ahead if place == 0 else ahead
            for number in range(least, most + 1):
                if self.keys[place].open(number, header, fragment) is not None:
                    return True
        return False

    def open(self, header: bytes, fragment: bytes) -> Opened | None:
        """By the key of the records before it and the likeliest number; by the next keys, if it is none of these."""
        for place in range(i64(len(self.keys))):
            least, most = (self.least, self.most) if place == 0 else (i64(0), self.most - self.least)
            above = least
            if place == 0:
                above += (most - least) * SHORTEST_BYTES // self._record_bytes
            below = above - 1
            while (above <= most or below >= least) and not self.given_up:
                opened = self._try(place, above, header, fragment) if above <= most else None
                if opened is None and below >= least:
                    opened = self._try(place, below, header, fragment)
                if opened is not None:
                    return opened
                above += 1
                below -= 1
        return None

    def _try(self, place: i64, number: i64, header: bytes, fragment: bytes) -> Opened | None:
        opened: Opened | None = self.keys[place].open(number, header, fragment)
        if opened is not None:
            self.least = self.most = number + 1
            self._renew(place)
            return opened
        self._tries += 1
        if self._tries > self.most_tries:
            self.given_up = True
        return None

    def _renew(self, place: i64) -> None:
        """The key at this place is in use; one of TLS 1.3 has a successor, behind a KeyUpdate."""
        del self.keys[:place]
        if len(self.keys) == 1 and self.keys[0].has_next:
            self.keys.append(self.keys[0].next())


MOST_FORGOTTEN: Final = 256  # of what stays in a list although it is forgotten


@final
class Runs:
    """Bytes by the offset they begin at, in order, none over another."""

    def __init__(self) -> None:
        self.begin: vec[i64] = vec[i64]()
        self.data: list[bytes] = []
        self.first: i64 = 0

    def add(self, begin: i64, data: bytes) -> None:
        self.begin = append(self.begin, begin)
        self.data.append(data)

    def end(self, i: i64) -> i64:
        return self.begin[i] + i64(len(self.data[i]))

    def at(self, offset: i64) -> i64:
        """The last that begins here or before; -1 where none does."""
        return last_from(self.begin, self.first, offset)

    def has(self, begin: i64, end: i64) -> bool:
        """All of [begin, end)."""
        i, reach = self.at(begin), begin
        while 0 <= i < i64(len(self.data)) and reach < end and self.begin[i] <= reach:
            reach = max(reach, self.end(i))
            i += 1
        return reach >= end

    def joined(self, begin: i64, end: i64) -> bytes:
        """Those of [begin, end), gaps left aside."""
        found: list[bytes] = []
        i = max(self.at(begin), self.first)
        while i < i64(len(self.data)) and self.begin[i] < end:
            data, at = self.data[i], self.begin[i]
            first, last = max(begin - at, 0), min(end - at, i64(len(data)))
            if first < last:
                found.append(data[first:last])
            i += 1
        return found[0] if len(found) == 1 else b"".join(found)

    def forget(self, upto: i64) -> None:
        """All that end here or before."""
        count = i64(len(self.begin))
        while self.first < count and self.end(self.first) <= upto:
            self.data[self.first] = b""
            self.first += 1
        if self.first >= MOST_FORGOTTEN and 2 * self.first >= count:
            self.begin = behind(self.begin, self.first)
            del self.data[: self.first]
            self.first = 0


@final
class PlainPieces:
    """Plain bytes of one row after another: where each piece stands, how long it is; nothing is missing within one."""

    def __init__(self) -> None:
        self.place: vec[i64] = vec[i64]()
        self.size: vec[i64] = vec[i64]()
        self.data: list[bytes] = []
        """Of all rows, one piece behind the other."""

    def begin_row(self) -> None:
        self.place = vec[i64]()
        self.size = vec[i64]()

    def add(self, place: i64, data: bytes) -> None:
        self.data.append(data)
        if self.end() == place:
            self.size[i64(len(self.size)) - 1] += i64(len(data))
        else:
            self.place = append(self.place, place)
            self.size = append(self.size, i64(len(data)))

    def end(self) -> i64:
        """Where the last piece of the row ends; -1 where there is none."""
        last = i64(len(self.place)) - 1
        return self.place[last] + self.size[last] if last >= 0 else -1


@final
class PlainSpace:
    """One direction; offsets count as the follower's do."""

    def __init__(self, begin: i64) -> None:
        self.begin: i64 = begin
        self.decided: i64 = begin
        """Up to here it is known what the bytes are."""
        self.forgotten: i64 = begin
        self._span_begin: vec[i64] = vec[i64]()  # of overhead
        self._span_end: vec[i64] = vec[i64]()
        self._passed: vec[i64] = vec[i64]()  # overhead up to the end of each span
        self._first: i64 = 0  # span that is not forgotten
        self._passed_before: i64 = 0  # overhead up to the first span
        self._wire = Runs()
        self._plain = Runs()

    # --- what the records say

    def see(self, begin: i64, data: bytes) -> None:
        """Bytes that are next on the wire."""
        self._wire.add(begin, data)

    def put(self, begin: i64, content: bytes) -> None:
        """The plain bytes from here on."""
        self._plain.add(begin, content)
        self.decided = begin + i64(len(content))

    def lose(self, upto: i64) -> None:
        """Bytes that were not seen, or not opened."""
        self.decided = max(self.decided, upto)

    def overhead(self, upto: i64) -> None:
        """Bytes that are not the plaintext's."""
        begin = self.decided
        if upto <= begin:
            return
        last = i64(len(self._span_begin)) - 1
        if last >= self._first and self._span_end[last] == begin:
            self._span_end[last] = upto
            self._passed[last] += upto - begin
        else:
            before = self._passed[last] if last >= self._first else self._passed_before
            self._span_begin = append(self._span_begin, begin)
            self._span_end = append(self._span_end, upto)
            self._passed = append(self._passed, before + upto - begin)
        self.decided = upto

    # --- what rows ask

    def place(self, offset: i64) -> i64:
        """Where what stands here on the wire stands in the plain stream."""
        if offset <= self.begin:
            return offset
        i = last_from(self._span_begin, self._first, offset)
        if i < 0:
            return offset - self._passed_before
        return offset - self._passed[i] + max(self._span_end[i] - offset, 0)

    def saw(self, begin: i64, wire: bytes) -> bool:
        """Whether these bytes were seen there, and it is known what they are; not where they were forgotten."""
        length, runs = i64(len(wire)), self._wire
        if begin < self.forgotten or begin + length > self.decided:
            return False
        i = runs.at(begin)
        if i < 0:
            return False
        at = begin - runs.begin[i]
        data = runs.data[i]
        if at + length <= i64(len(data)):
            return data.startswith(wire, at)
        done: i64 = 0
        while done < length:
            if i >= i64(len(runs.data)) or runs.begin[i] > begin + done:
                return False
            data, at = runs.data[i], begin + done - runs.begin[i]
            size = min(length - done, i64(len(data)) - at)
            if size <= 0 or data[at : at + size] != wire[done : done + size]:
                return False
            done += size
            i += 1
        return True

    def collect(self, begin: i64, end: i64, pieces: PlainPieces) -> None:
        """The plain bytes of [begin, end)."""
        runs = self._plain
        i = max(runs.at(begin), runs.first)
        while i < i64(len(runs.data)) and runs.begin[i] < end:
            data, at = runs.data[i], runs.begin[i]
            first, last = max(begin - at, 0), min(end - at, i64(len(data)))
            if first < last:
                pieces.add(self.place(at + first), data[first:last])
            i += 1

    def forget(self, upto: i64) -> None:
        """No row waits for what lies before this offset, if it is decided."""
        upto = min(upto, self.decided)
        self.forgotten = max(self.forgotten, upto)
        self._wire.forget(upto)
        self._plain.forget(upto)
        count = i64(len(self._span_begin))
        while self._first < count and self._span_end[self._first] <= upto:
            self._passed_before = self._passed[self._first]
            self._first += 1
        if self._first >= MOST_FORGOTTEN and 2 * self._first >= count:
            first, self._first = self._first, 0
            self._span_begin, self._span_end = behind(self._span_begin, first), behind(self._span_end, first)
            self._passed = behind(self._passed, first)


def last_from(begins: vec[i64], first: i64, offset: i64) -> i64:
    """The last of these, from the first on, that is this offset or less; -1 where none is."""
    low, high = first, i64(len(begins))
    while low < high:
        middle = (low + high) >> 1
        if begins[middle] <= offset:
            low = middle + 1
        else:
            high = middle
    return low - 1 if low > first else -1


def behind(values: vec[i64], first: i64) -> vec[i64]:
    """From this one on."""
    found: vec[i64] = vec[i64]()
    for i in range(first, i64(len(values))):
        found = append(found, values[i])
    return found


LIKELY_HEADER: Final = b"\x17\x03\x03\0\0"  # the rest of one whose first bytes are there
MOST_RECORDS: Final = 16
"""Behind the one in question."""
NOT_YET: Final = 0
PROVEN: Final = 1
REFUTED: Final = 2
NEVER: Final = 3
"""A gap hides where the next record begins."""


def proof(runs: Runs, numbers: RecordNumbers, begin: i64, end: i64) -> i64:
    """Of the record that ends at `begin`, behind which `numbers` goes on; what was fed ends at `end`."""
    at, ahead = begin, i64(0)
    farthest, farthest_ahead = i64(-1), i64(0)
    verdict: i64 = NEVER
    while ahead < MOST_RECORDS:
        seen = min(end - at, HEADER_BYTES)
        head = runs.joined(at, at + seen)
        if i64(len(head)) < seen:
            break
        if not is_header(head + LIKELY_HEADER[seen:]):
            return REFUTED
        behind = at + HEADER_BYTES + (size_of(head, 0) if seen == HEADER_BYTES else 0)
        if behind > end or seen < HEADER_BYTES:
            verdict = NOT_YET
            break
        if i64(head[0]) != CHANGE_CIPHER:
            if runs.has(at, behind):
                farthest, farthest_ahead = at, ahead
            ahead += 1
        at = behind
    if farthest < 0:
        return verdict
    body = farthest + HEADER_BYTES
    head = runs.joined(farthest, body)
    return PROVEN if numbers.opens(farthest_ahead, head, runs.joined(body, body + size_of(head, 0))) else REFUTED


WINDOW_BYTES: Final = 4 * LONGEST_BYTES  # in which a beginning is looked for at once


def ignore(_: bytes) -> None:
    """Reads handshakes where no connection does."""


@final
class RecordStream:
    """One direction. `run` goes as far as it can; it stops for bytes, or for keys."""

    def __init__(self, begin: i64) -> None:
        self.space = PlainSpace(begin)
        self.on_handshake: Callable[[bytes], None] = ignore
        self.numbers = RecordNumbers()
        self.encrypted: bool = False
        """ChangeCipherSpec was seen: of TLS 1.2 no record behind it is plain."""
        self.strange: bool = False
        """Its first bytes are no record's."""
        self.headless: bool = False
        """Its first bytes are those of an encrypted one: what came before was not seen."""
        self.opened: i64 = 0
        self.failed: i64 = 0
        self._runs = Runs()  # not decided; gaps between them
        self._hand_end: i64 = begin  # up to here nothing is missing
        self._begin: i64 = begin
        self.end: i64 = begin
        """Of all that was fed."""
        self._lost: bool = False  # where a record begins is not known
        self._resume: i64 = 0  # up to here it is the rest of a record that cannot be opened
        self._held: Opened | None = None  # what is next, if the place is its own
        self._held_end: i64 = 0
        self._before: Numbers = self.numbers.now()  # it opened

    @property
    def size(self) -> i64:
        """Bytes from its first to its last."""
        return self.end - self._begin

    # --- bytes

    def feed(self, begin: i64, end: i64, data: bytes | None) -> None:
        """What is next on the wire; None was never seen, or not kept."""
        self.end = end
        if data is None:
            return
        self.space.see(begin, data)
        self._runs.add(begin, data)
        if begin == self._hand_end:
            self._hand_end = end

    def use(self, keys: Iterable[Any]) -> None:
        """Encrypted records are under one of these, the first of them most likely; their numbers begin at 0."""
        self.numbers.use(keys, 0, 0)

    def follow_with(self, key: Any) -> None:
        """Records may go over to this key (renegotiation)."""
        self.numbers.keys.append(key)

    def join(self, key: Any, least: i64, most: i64) -> None:
        """A record under this key may begin anywhere in what is at hand; its number is one of these."""
        self.strange = self.headless = False
        self.numbers.use([key], least, most)
        self._lost, self._resume, self._held = True, 0, None

    @property
    def waits_for_keys(self) -> bool:
        return len(self.numbers.keys) == 0 and not self.numbers.given_up

    def run(self) -> bool:
        """Whether anything became decided."""
        before = self.space.decided
        while True:
            while self._step():
                pass
            if self._held is not None or not self._behind_is_gap() or (self.waits_for_keys and not self._lost):
                return self.space.decided > before
            self._pass_gap()

    def give_up(self, upto: i64) -> None:
        """Nothing up to here is waited for any more. What is held is believed: nothing speaks against it."""
        if self._held is not None:
            self._believe(self._held)
        while self.space.decided < upto and self._behind_is_gap():
            self._pass_gap()
        if self.space.decided < upto:
            self._abandon(upto)
            self._drop(min(upto - self.space.decided, self._at_hand()))
            self.space.lose(upto)  # rows wait for what never came

    def stop(self) -> None:
        """It is never going to be opened."""
        self.numbers.given_up = True
        self.run()

    # --- gaps

    def _at_hand(self) -> i64:
        """How many bytes are next, as far as nothing is missing."""
        decided = self.space.decided
        if self._hand_end <= decided:
            self._find_hand(decided)
        return self._hand_end - decided

    def _find_hand(self, decided: i64) -> None:
        runs = self._runs
        runs.forget(decided)
        i = runs.first
        self._hand_end = decided
        while i < i64(len(runs.data)) and runs.begin[i] <= self._hand_end:
            self._hand_end = runs.end(i)
            i += 1

    def _behind_is_gap(self) -> bool:
        return self.space.decided + self._at_hand() < self.end

    def _pass_gap(self) -> None:
        """What is at hand ends in a gap."""
        count, runs = self._at_hand(), self._runs
        i = max(runs.at(self._hand_end - 1), runs.first - 1) + 1
        behind = runs.begin[i] if i < i64(len(runs.data)) else self.end
        self._abandon(behind)
        self._drop(count)
        self.space.lose(behind)

    def _abandon(self, upto: i64) -> None:
        """The record at hand will not be whole: bytes before this offset are missing, or waited for no more."""
        at = self.space.decided
        if self._resume <= at:
            head = b"" if self._lost else self._runs.joined(at, at + min(self._at_hand(), HEADER_BYTES))
            if len(head) < HEADER_BYTES or not is_header(head):
                self._lose(upto - at)
                return
            self._resume = at + HEADER_BYTES + size_of(head, 0)
            self.numbers.step()
        if self._resume < upto:
            missing = upto - self._resume
            self._resume = 0
            self._lose(missing)

    def _lose(self, missing: i64) -> None:
        """So many bytes of records were not seen, and the rest of the one at hand."""
        self._lost = True
        self.numbers.lose(missing)

    def _drop(self, count: i64) -> None:
        """So many of the bytes at hand are of no record that can be opened."""
        self.space.lose(self.space.decided + count)
        self._runs.forget(self.space.decided)

    # --- records

    def _step(self) -> bool:
        """Decide something of the bytes at hand."""
        count, at = self._at_hand(), self.space.decided
        if self.numbers.given_up:
            self._held = None
            self._drop(count)
            return False
        if self._held is not None:
            return self._settle(self._held)
        if self._resume > at:
            self._drop(min(self._resume - at, count))
            return self._resume <= self.space.decided
        if self._lost:
            return self._find(count)
        if count < HEADER_BYTES:
            return False
        head = self._runs.joined(at, at + HEADER_BYTES)
        if at == self._begin and not is_header(head) and self._on_proxy_header(at, count):
            return at < self._begin
        if not is_header(head):
            self.strange = self.strange or at == self._begin
            self._lose(0)
            return not self.waits_for_keys
        end = at + HEADER_BYTES + size_of(head, 0)
        kind = i64(head[0])
        is_open = kind == CHANGE_CIPHER or (kind != APPLICATION and not self.encrypted)
        if self.waits_for_keys and not is_open:
            self.headless = at == self._begin
            return False
        if count < end - at:
            return False
        fragment = self._runs.joined(at + HEADER_BYTES, end)
        if is_open:
            self._take_open(kind, fragment, end)
        elif self.numbers.is_exact:
            self._take(end, self.numbers.open(head, fragment))
        elif not self._hold(end, head, fragment):
            self._take(end, None)
        self._runs.forget(self.space.decided)
        return True

    def _on_proxy_header(self, at: i64, count: i64) -> bool:
        """Whether the stream begins with a PROXY header, or may: it is plain as it is, and TLS begins behind it."""
        length = proxy_header(self._runs.joined(at, at + min(count, V1_MOST_BYTES))).length
        if at > 0 or length == NO_HEADER or (length == MORE and count >= V1_MOST_BYTES):
            return False
        if length != MORE and length <= count:
            self.space.put(at, self._runs.joined(at, at + length))
            self._begin = at + length
            self._runs.forget(self._begin)
        return True

    def _take_open(self, kind: i64, fragment: bytes, end: i64) -> None:
        self.space.overhead(end)
        if kind == CHANGE_CIPHER:
            self.encrypted = True
        elif kind == HANDSHAKE:
            self.on_handshake(fragment)

    def _take(self, end: i64, opened: Opened | None) -> None:
        space = self.space
        if opened is None:
            self.failed += 1
            space.lose(end)
            self.numbers.fail()
            return
        self.opened += 1
        self.numbers.opened(end - space.decided)
        content: bytes = opened.content
        kind: i64 = opened.kind
        if kind == APPLICATION and len(content) > 0:
            begin: i64 = opened.at
            space.overhead(space.decided + HEADER_BYTES + begin)
            space.put(space.decided, content)
        elif kind == HANDSHAKE:
            self.on_handshake(content)
        space.overhead(end)

    def _hold(self, end: i64, head: bytes, fragment: bytes) -> bool:
        """Whether a record up to here opens, if it is one."""
        self._before, self._held_end = self.numbers.now(), end
        self._held = self.numbers.open(head, fragment)
        return self._held is not None

    def _settle(self, held: Opened) -> bool:
        """What follows may have come."""
        verdict = proof(self._runs, self.numbers, self._held_end, self.end)
        if verdict == NOT_YET:
            return False
        if verdict == PROVEN:
            self._believe(held)
            return True
        self._held, self._lost = None, True
        self.numbers.forget(self._before, self._held_end - self.space.decided)
        self._drop(1)
        return True

    def _believe(self, held: Opened) -> None:
        self._held, self._lost = None, False
        self._take(self._held_end, held)
        self._runs.forget(self.space.decided)

    def _find(self, count: i64) -> bool:
        """Behind a gap: a record begins where one opens."""
        if self.waits_for_keys or count == 0:
            return False
        begin = self.space.decided
        size = min(count, WINDOW_BYTES)
        data = self._runs.joined(begin, begin + size)
        for found in MAYBE_HEADER.finditer(data):
            if self.numbers.given_up:
                break
            at: i64 = found.start()
            end = at + HEADER_BYTES + (size_of(data, at) if size >= at + HEADER_BYTES else 0)
            if size < at + HEADER_BYTES or size < end:
                if not self._may_grow(data, at):
                    continue
                self._drop(at)
                return size < count
            if end - at - HEADER_BYTES > LONGEST_BYTES:
                continue
            if self._hold(begin + end, data[at : at + HEADER_BYTES], data[at + HEADER_BYTES : end]):
                self._drop(at)
                return True
        self._drop(max(size - HEADER_BYTES + 1, 0))
        return size < count

    def _may_grow(self, data: bytes, at: i64) -> bool:
        """Whether what may be a record, cut at the end of these bytes, may still come whole."""
        believable = i64(len(data)) < at + HEADER_BYTES or size_of(data, at) <= LONGEST_BYTES
        return believable and (self._at_hand() > i64(len(data)) or not self._behind_is_gap())
