"""Where the plain bytes of one direction stand: at the places of their ciphertext, overhead between them.

Knows: offsets on the wire, the bytes there as they were and as they are plain, which of them are overhead, and where a
plain byte stands once overhead is left aside.
Refuses to know: records and keys; how rows look.
Rule: a place is decided once, in order. What nobody waits for any more is forgotten (`forget`), and what comes of it
later has no plain bytes. Bytes are kept as they came, never copied.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from librt.vecs import append, vec
from mypy_extensions import i64

MOST_FORGOTTEN: Final = 256  # of what stays in a list although it is forgotten


class Span(NamedTuple):
    """Bytes of the wire that are none of the stream's; or, not `known`, of which nobody can tell how many are."""

    begin: int
    length: int
    known: bool


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
        begin = self.begin
        low, high = self.first, i64(len(begin))
        while low < high:
            middle = (low + high) >> 1
            if begin[middle] <= offset:
                low = middle + 1
            else:
                high = middle
        return low - 1 if low > self.first else -1

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
        self.collect(begin, end, found)
        return found[0] if len(found) == 1 else b"".join(found)

    def collect(self, begin: i64, end: i64, found: list[bytes]) -> i64:
        """The bytes of [begin, end), gaps left aside, are added; how many they are."""
        i, count = max(self.at(begin), self.first), i64(0)
        while i < i64(len(self.data)) and self.begin[i] < end:
            data, at = self.data[i], self.begin[i]
            first, last = max(begin - at, 0), min(end - at, i64(len(data)))
            if first < last:
                found.append(data[first:last])
                count += last - first
            i += 1
        return count

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
class PlainSpace:
    """One direction; offsets count as the follower's do."""

    def __init__(self, begin: i64) -> None:
        self.begin: i64 = begin
        self.decided: i64 = begin
        """Up to here it is known what the bytes are."""
        self.forgotten: i64 = begin
        self._span_begin: vec[i64] = vec[i64]()
        self._span_end: vec[i64] = vec[i64]()
        self._span_known: vec[i64] = vec[i64]()
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

    def overhead(self, upto: i64) -> None:
        self._pass(upto, 1)

    def unsure(self, upto: i64) -> None:
        self._pass(upto, 0)

    def unseen(self, upto: i64) -> None:
        """A gap."""
        self.decided = max(self.decided, upto)

    def _pass(self, upto: i64, known: i64) -> None:
        begin = self.decided
        if upto <= begin:
            return
        passed = upto - begin if known != 0 else 0
        last = i64(len(self._span_begin)) - 1
        if last >= self._first and self._span_end[last] == begin and self._span_known[last] == known:
            self._span_end[last] = upto
            self._passed[last] += passed
        else:
            before = self._passed[last] if last >= self._first else self._passed_before
            self._span_begin = append(self._span_begin, begin)
            self._span_end = append(self._span_end, upto)
            self._span_known = append(self._span_known, known)
            self._passed = append(self._passed, before + passed)
        self.decided = upto

    # --- what rows ask

    def place(self, offset: i64) -> i64:
        """Where what stands here on the wire stands in the plain stream."""
        if offset <= self.begin:
            return offset
        i = self._span_at(offset)
        if i < 0:
            return offset - self._passed_before
        end = self._span_end[i]
        beyond = end - offset if self._span_known[i] != 0 and offset < end else 0
        return offset - self._passed[i] + beyond

    def _span_at(self, offset: i64) -> i64:
        """The last that begins here or before; -1 where none does."""
        begin = self._span_begin
        low, high = self._first, i64(len(begin))
        while low < high:
            middle = (low + high) >> 1
            if begin[middle] <= offset:
                low = middle + 1
            else:
                high = middle
        return low - 1 if low > self._first else -1

    def first_span(self, begin: i64) -> i64:
        """Number of the first one that may reach beyond this offset, for `span`."""
        return max(self._span_at(begin), self._first)

    def has_span(self, number: i64, end: i64) -> bool:
        return number < i64(len(self._span_begin)) and self._span_begin[number] < end

    def span(self, number: i64, begin: i64, end: i64) -> tuple[i64, i64, i64]:
        """(begin, length, known) of it within [begin, end), counted from there; a length may be 0."""
        first, last = max(self._span_begin[number], begin), min(self._span_end[number], end)
        return first - begin, max(last - first, 0), self._span_known[number]

    def spans(self, begin: i64, end: i64) -> list[Span]:
        """Those within [begin, end), cut to it and counted from there."""
        found: list[Span] = []
        number = self.first_span(begin)
        while self.has_span(number, end):
            at, length, known = self.span(number, begin, end)
            if length > 0:
                found.append(Span(at, length, known != 0))
            number += 1
        return found

    def saw(self, begin: i64, wire: bytes) -> bool:
        """Whether these bytes were seen there, and it is known what they are; not where nobody remembers."""
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

    def contents(self, begin: i64, end: i64, found: list[bytes]) -> i64:
        """The plain bytes of [begin, end) are added; how many they are."""
        return self._plain.collect(begin, end, found)

    def plain_bytes(self, begin: i64, end: i64) -> bytes:
        """Those of [begin, end)."""
        return self._plain.joined(begin, end)

    def forget(self, upto: i64) -> None:
        """Nobody waits for what lies before this offset, if it is decided."""
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
            self._span_known, self._passed = behind(self._span_known, first), behind(self._passed, first)


def behind(values: vec[i64], first: i64) -> vec[i64]:
    """From this one on."""
    found: vec[i64] = vec[i64]()
    for i in range(first, i64(len(values))):
        found = append(found, values[i])
    return found
