"""Records of one direction: bytes in order in, plain bytes and overhead out.

Knows: where records begin (RFC 8446 5.1), which number the next one has, and how both are found again behind a gap.
Refuses to know: handshakes (tls_connection.py hands over keys when it has them), and rows.
Rule: nothing is plain that no tag proves. Behind a gap a record's beginning and its number are tried, a bounded number
of times; what lies between is unsure. Content that is no application data is overhead, like the frame of its record.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

from wirecheck.capture.tls.plain_space import PlainSpace
from wirecheck.capture.tls.record_keys import HEADER_BYTES, Tls13Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from wirecheck.capture.tls.record_keys import Opened, RecordKey

CHANGE_CIPHER, ALERT, HANDSHAKE, APPLICATION = 20, 21, 22, 23
LONGEST_BYTES = (1 << 14) + 2048  # of a record's fragment (RFC 5246 6.2.3)
SHORTEST_BYTES = HEADER_BYTES + 17  # of a record on the wire, encrypted
MOST_NUMBERS = 1 << 16
"""Record numbers that may be tried for a record behind a gap: 64 K lost records, a GB of full ones."""
MOST_TRIES = 1 << 18
"""Records times numbers that did not open, on one direction: then it is given up."""
_HEADER = re.compile(rb"[\x15-\x17]\x03[\x01-\x03]")


class RecordStream:
    """One direction. `run` goes as far as it can; it stops for bytes, or for keys."""

    def __init__(self, begin: int) -> None:
        self.space = PlainSpace(begin)
        self.on_handshake: Callable[[bytes], None] = lambda _: None
        self.keys: deque[RecordKey] = deque()
        """That records may be under: that of the newest record that opened, then those that may follow it."""
        self.encrypted = False
        """ChangeCipherSpec was seen: of TLS 1.2 no record behind it is plain."""
        self.strange = self.headless = False
        """Its first bytes are no record's; or those of an encrypted one: what came before was not seen."""
        self.opened = self.failed = 0
        self._tries = 0
        self._runs: deque[tuple[int, bytearray]] = deque()  # not decided; gaps between them
        self._begin = self._end = begin  # of all that was fed
        self._given_up = False
        self._lost = False  # where a record begins is not known
        self._resume = 0  # up to here it is the rest of a record that cannot be opened
        self._least = self._most = 0  # the number of the next record
        self._record_bytes = LONGEST_BYTES  # of the newest record that opened

    # --- bytes

    def feed(self, begin: int, end: int, data: bytes | None) -> None:
        """What is next on the wire; None was never seen, or not kept."""
        self._end = end
        if data is None:
            return
        self.space.see(begin, data)
        if self._runs and self._runs[-1][0] + len(self._runs[-1][1]) == begin:
            self._runs[-1][1].extend(data)
        else:
            self._runs.append((begin, bytearray(data)))

    def use(self, keys: Iterable[RecordKey]) -> None:
        """Encrypted records are under one of these, the first of them most likely; their numbers begin at 0."""
        self.keys = deque(keys)
        self._least = self._most = 0

    def follow_with(self, key: RecordKey) -> None:
        """Records may go over to this key (renegotiation)."""
        self.keys.append(key)

    @property
    def end(self) -> int:
        """Of all that was fed."""
        return self._end

    @property
    def waits_for_keys(self) -> bool:
        return not self.keys and not self._given_up

    def run(self) -> bool:
        """Whether anything became decided."""
        before = self.space.decided
        while True:
            while self._step():
                pass
            if not self._behind_is_gap() or (self.waits_for_keys and not self._lost):
                return self.space.decided > before
            self._pass_gap()

    def give_up(self, upto: int) -> None:
        """Nothing up to here is waited for any more."""
        while self.space.decided < upto and self._behind_is_gap():
            self._pass_gap()
        if self.space.decided < upto:
            self._abandon(upto)
            self._drop(min(upto - self.space.decided, len(self._at_hand())))

    def stop(self) -> None:
        """It is never going to be opened."""
        self._given_up = True
        self.run()

    # --- gaps

    def _at_hand(self) -> bytearray:
        """The bytes that are next, as far as nothing is missing."""
        if self._runs and self._runs[0][0] <= self.space.decided:
            return self._runs[0][1]
        return bytearray()

    def _behind_is_gap(self) -> bool:
        return self.space.decided + len(self._at_hand()) < self._end

    def _pass_gap(self) -> None:
        """What is at hand ends in a gap."""
        data = self._at_hand()
        behind = (
            self._runs[1][0] if data and len(self._runs) > 1 else self._runs[0][0] if self._runs and not data else 0
        )
        behind = behind or self._end
        self._abandon(behind)
        self._drop(len(data))
        self.space.unseen(behind)

    def _abandon(self, upto: int) -> None:
        """The record at hand will not be whole: bytes before this offset are missing, or waited for no more."""
        data, at = self._at_hand(), self.space.decided
        if self._resume <= at:
            if self._lost or len(data) < HEADER_BYTES or not is_header(data, 0):
                self._lose(upto - at)
                return
            self._resume = at + HEADER_BYTES + size_of(data, 0)
            self._least, self._most = self._least + 1, self._most + 1
        if self._resume < upto:
            missing, self._resume = upto - self._resume, 0
            self._lose(missing)

    def _lose(self, missing: int) -> None:
        """So many bytes of records were not seen, and the rest of the one at hand."""
        self._lost = True
        self._most = min(self._most + 1 + missing // SHORTEST_BYTES, self._least + MOST_NUMBERS)

    def _drop(self, count: int) -> None:
        """So many of the bytes at hand are of no record that can be opened."""
        self.space.unsure(self.space.decided + count)
        self._shorten(count)

    def _shorten(self, count: int) -> None:
        if not count:
            return
        begin, data = self._runs.popleft()
        del data[:count]
        if data:
            self._runs.appendleft((begin + count, data))

    # --- records

    def _step(self) -> bool:
        """Decide something of the bytes at hand."""
        data = self._at_hand()
        if self._given_up:
            self._drop(len(data))
            return False
        if self._resume > self.space.decided:
            self._drop(min(self._resume - self.space.decided, len(data)))
            return self._resume <= self.space.decided
        if self._lost:
            return self._find(data)
        if len(data) < HEADER_BYTES:
            return False
        if not is_header(data, 0):
            self.strange = self.strange or self.space.decided == self._begin
            self._lose(0)
            return not self.waits_for_keys
        end = HEADER_BYTES + size_of(data, 0)
        is_open = data[0] == CHANGE_CIPHER or (data[0] != APPLICATION and not self.encrypted)
        if self.waits_for_keys and not is_open:
            self.headless = self.space.decided == self._begin
            return False
        if len(data) < end:
            return False
        record = bytes(data[:end])
        self._shorten(end)
        if is_open:
            self._take_open(record)
        else:
            self._take(record, self._open(record))
        return True

    def _take_open(self, record: bytes) -> None:
        self.space.overhead(self.space.decided + len(record))
        if record[0] == CHANGE_CIPHER:
            self.encrypted = True
        elif record[0] == HANDSHAKE:
            self.on_handshake(record[HEADER_BYTES:])

    def _take(self, record: bytes, opened: Opened | None) -> None:
        space = self.space
        end = space.decided + len(record)
        if opened is None:
            self.failed += 1
            space.unsure(end)
            self._most = min(self._most + 1, self._least + MOST_NUMBERS)
            return
        self.opened += 1
        self._record_bytes = len(record)
        if opened.kind == APPLICATION and opened.content:
            space.overhead(space.decided + HEADER_BYTES + opened.at)
            space.put(space.decided, opened.content)
        elif opened.kind == HANDSHAKE:
            self.on_handshake(opened.content)
        space.overhead(end)

    def _find(self, data: bytearray) -> bool:
        """Behind a gap: a record begins where one opens."""
        if self.waits_for_keys:
            return False
        for found in _HEADER.finditer(bytes(data)):
            at = found.start()
            if len(data) < at + HEADER_BYTES or len(data) < (end := at + HEADER_BYTES + size_of(data, at)):
                if not self._may_grow(data, at):
                    continue
                self._drop(at)
                return False
            if size_of(data, at) > LONGEST_BYTES or (opened := self._open(record := bytes(data[at:end]))) is None:
                continue
            self._drop(at)
            self._shorten(end - at)
            self._lost = False
            self._take(record, opened)
            return True
        self._drop(max(len(data) - HEADER_BYTES + 1, 0))
        return False

    def _may_grow(self, data: bytearray, at: int) -> bool:
        """Whether what may be a record, cut at the end of the bytes at hand, may still come whole."""
        believable = len(data) < at + HEADER_BYTES or size_of(data, at) <= LONGEST_BYTES
        return believable and not self._behind_is_gap()

    # --- keys and numbers

    def _open(self, record: bytes) -> Opened | None:
        """By the key of the records before it and the likeliest number; by the next keys, if it is none of these."""
        header, fragment = record[:HEADER_BYTES], record[HEADER_BYTES:]
        for place, key in enumerate(self.keys):
            for number in self._numbers(place):
                if (opened := key.open(number, header, fragment)) is not None:
                    self._least = self._most = number + 1
                    self._renew(place)
                    return opened
                self._tries += 1
        self._given_up = self._tries > MOST_TRIES
        return None

    def _numbers(self, place: int) -> Iterator[int]:
        """Of the key at this place: those that are possible, the likeliest first."""
        if place:
            yield from range(self._most - self._least + 1)
            return
        guess = self._least + (self._most - self._least) * SHORTEST_BYTES // self._record_bytes
        yield guess
        for away in range(1, self._most - self._least + 1):
            if guess + away <= self._most:
                yield guess + away
            if guess - away >= self._least:
                yield guess - away

    def _renew(self, place: int) -> None:
        """The key at this place is in use; one of TLS 1.3 has a successor, behind a KeyUpdate."""
        for _ in range(place):
            self.keys.popleft()
        last = self.keys[-1]
        if len(self.keys) == 1 and isinstance(last, Tls13Key):
            self.keys.append(last.next())


def is_header(data: bytes | bytearray, at: int) -> bool:
    """Whether a record may begin here."""
    kind, major, minor = data[at : at + 3]
    return CHANGE_CIPHER <= kind <= APPLICATION and major == 3 and minor <= 4 and size_of(data, at) <= LONGEST_BYTES


def size_of(data: bytes | bytearray, at: int) -> int:
    """Of the fragment behind the header that begins here."""
    return data[at + 3] << 8 | data[at + 4]
