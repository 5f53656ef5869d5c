"""Where the plain bytes of one direction stand: at the places of their ciphertext, less the overhead before them.

Knows: offsets on the wire, the bytes there as they were and as they are plain, and how many of them are overhead.
Refuses to know: records and keys; how rows look.
Rule: a place is decided once, in order. What was not seen, or not opened, keeps its length on the wire, which is more
than the plaintext had: a hole, never a splice. What no row waits for any more is forgotten (`forget`), and what comes
of it later has no plain bytes. Bytes are kept as they came, never copied.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

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
class Pieces:
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

    def collect(self, begin: i64, end: i64, pieces: Pieces) -> None:
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
