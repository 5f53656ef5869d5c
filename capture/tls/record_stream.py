"""Records of one direction: bytes in order in, plain bytes and overhead out.

Knows: where records begin (RFC 8446 5.1), which number the next one has, and how both are found again behind a gap.
Refuses to know: handshakes (tls_connection.py hands over keys when it has them), and rows.
Rule: nothing is plain that no tag proves. Behind a gap a record's beginning and its number are tried, a bounded number
of times; what opens then is held until what follows it proves its place (record_proof.py), or nothing follows. What
lies between is lost. Content that is no application data is overhead, like the frame of its record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import i64

from wirecheck.capture.tls.plain_space import PlainSpace, Runs
from wirecheck.capture.tls.record_header import (
    APPLICATION,
    CHANGE_CIPHER,
    HANDSHAKE,
    HEADER_BYTES,
    LONGEST_BYTES,
    MAYBE_HEADER,
    is_header,
    size_of,
)
from wirecheck.capture.tls.record_numbers import RecordNumbers
from wirecheck.capture.tls.record_proof import NOT_YET, PROVEN, proof
from wirecheck.decode.connection.framing.opening import MORE, NO_HEADER, V1_MOST_BYTES, proxy_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirecheck.capture.tls.record_keys import Opened
    from wirecheck.capture.tls.record_numbers import Numbers

WINDOW_BYTES: Final = 4 * LONGEST_BYTES  # in which a beginning is looked for at once


def nobody(_: bytes) -> None:
    """Reads handshakes where no connection does."""


@final
class RecordStream:
    """One direction. `run` goes as far as it can; it stops for bytes, or for keys."""

    def __init__(self, begin: i64) -> None:
        self.space = PlainSpace(begin)
        self.on_handshake: Callable[[bytes], None] = nobody
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
            if len(head) < HEADER_BYTES or not is_header(head, 0):
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
        if at == self._begin and not is_header(head, 0) and self._on_proxy_header(at, count):
            return at < self._begin
        if not is_header(head, 0):
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
