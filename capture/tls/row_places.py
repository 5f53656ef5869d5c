"""Where the payloads of rows stand: for what a row of a TLS connection waits, and what becomes of it then.

Knows: rows that came together as columns, places of payloads in their directions, sequence numbers that wrap.
Refuses to know: when rows leave (decryption.py), records, keys, and how rows lie in a table (plain_rows.py).
Rule: a row has the plain bytes of its place only if its own bytes are those that were seen there first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

if TYPE_CHECKING:
    from wirecheck.capture.tls.plain_space import PlainSpace
    from wirecheck.capture.tls.record_stream import RecordStream

ACK: Final = 16
QUARTER: Final = 1 << 30
HALF: Final = 1 << 31
MASK: Final = (1 << 32) - 1
UNKNOWN: Final = -1


@final
class Known:
    """A connection that may be TLS, with what rows need to know of it."""

    def __init__(self, tls: Any, streams: list[RecordStream | None]) -> None:
        self.tls = tls  # its TlsConnection
        self.streams = streams
        self.key: str = ""
        self.base: vec[i64] = vec[i64]([UNKNOWN, UNKNOWN])
        """By side, the sequence number of offset 0."""

    @property
    def is_open(self) -> bool:
        return any(stream is not None and stream.opened > 0 for stream in self.streams)


@final
class Columns:
    """Rows in the order they came; `serial` is -1 where a row is of no connection."""

    def __init__(self, placed: Any, tcp: Any) -> None:
        """Vecs: serials, directions and offsets; numbers, acknowledgements and flags of TCP."""
        self.serial: vec[i64] = placed[0]
        self.direction: vec[i64] = placed[1]
        self.offset: vec[i64] = placed[2]
        self.seq: vec[i64] = tcp[0]
        self.ack: vec[i64] = tcp[1]
        self.flags: vec[i64] = tcp[2]
        self.length: vec[i64] = vec[i64]()

    def carry(self, length: Any) -> None:
        """So many bytes each; a vec."""
        self.length = length


@final
class Payloads:
    """What rows carry: `at` are n+1 offsets into `data`, `left_at` such of spans that are not there."""

    def __init__(self, data: bytes, at: Any, left_at: Any) -> None:
        self.data = data
        self.at: vec[i64] = at
        self.left_at: vec[i64] = left_at

    def of(self, row: i64) -> bytes:
        return self.data[self.at[row] : self.at[row + 1]]


@final
class Spans:
    """Spans of rows; `at` are n+1 offsets by row."""

    def __init__(self) -> None:
        self.at: vec[i64] = vec[i64]([0])
        self.offset: vec[i64] = vec[i64]()
        self.length: vec[i64] = vec[i64]()
        self.known: vec[i64] = vec[i64]()

    def fill(self, at: Any, offset: Any, length: Any, known: Any) -> None:
        """All of them, as vecs."""
        self.at = at
        self.offset = offset
        self.length = length
        self.known = known

    def add(self, offset: i64, length: i64, known: i64) -> None:
        self.offset = append(self.offset, offset)
        self.length = append(self.length, length)
        self.known = append(self.known, known)

    def end_row(self) -> None:
        self.at = append(self.at, i64(len(self.offset)))


@final
class Changed:
    """What becomes of the rows of TLS connections, one entry each."""

    def __init__(self) -> None:
        self.row: vec[i64] = vec[i64]()  # its number among those that leave
        self.seq: vec[i64] = vec[i64]()
        self.ack: vec[i64] = vec[i64]()
        self.kept: vec[i64] = vec[i64]()  # plain bytes
        self.length: vec[i64] = vec[i64]()
        """Of the plain payload, with what is left out and what is unsure."""
        self.pieces: list[bytes] = []
        self.left_out = Spans()
        self.overhead = Spans()
        """Of the plain payload. The first span of a row that carries bytes is empty: it says that overhead is about, so
        that nobody knows how much of what is missing around the row is the stream's.
        """
        self.on_the_wire = Spans()
        """Overhead, by the places on the wire."""


def first_waiting(rows: Columns, first: i64, known: dict[int, Known]) -> i64:
    """The first row that waits, from this one on; their number where none does."""
    count = i64(len(rows.serial))
    for row in range(first, count):
        serial = rows.serial[row]
        if serial >= 0:
            found = known.get(serial)
            if found is not None and (not found.is_open or waits(rows, row, found)):
                return row
    return count


def waits(rows: Columns, row: i64, known: Known) -> bool:
    for side in range(i64(2)):
        stream = known.streams[side]
        if stream is not None and stream.space.decided < needs(rows, row, known, side):
            return True
    return False


def needs(rows: Columns, row: i64, known: Known, side: i64) -> i64:
    """Up to where this direction must be decided before it is known what the row is; UNKNOWN where it need not be."""
    stream = known.streams[side]
    if stream is None:
        return UNKNOWN
    if side == rows.direction[row]:
        return rows.offset[row] + rows.length[row] if rows.length[row] > 0 else UNKNOWN
    if not rows.flags[row] & ACK or known.base[side] == UNKNOWN:
        return UNKNOWN
    at = near(rows.ack[row], known.base[side], stream.space.decided)
    return min(at, stream.end) if at - stream.space.decided < QUARTER else UNKNOWN


def change(rows: Columns, payloads: Payloads, first: i64, upto: i64, known: dict[int, Known]) -> Changed:
    """The rows [first, upto)."""
    out = Changed()
    for row in range(first, upto):
        serial = rows.serial[row]
        if serial >= 0:
            found = known.get(serial)
            if found is not None:
                out.row = append(out.row, row - first)
                _change(out, rows, payloads, row, found)
    return out


def _change(out: Changed, rows: Columns, payloads: Payloads, row: i64, known: Known) -> None:
    side, length = rows.direction[row], rows.length[row]
    seq, ack = rows.seq[row], rows.ack[row]
    mine, other = known.streams[side], known.streams[1 - side]
    if other is not None and rows.flags[row] & ACK and known.base[1 - side] != UNKNOWN:
        ack = _moved(ack, known.base[1 - side], other.space)
    if mine is None or known.base[side] == UNKNOWN:
        _nothing_known(out, seq, ack, length, length)
        return
    space = mine.space
    offset = rows.offset[row] if length > 0 else near(seq, known.base[side], space.decided)
    begin = space.place(offset)
    seq += begin - offset
    if length == 0 or offset < 0:
        _nothing_known(out, seq, ack, length, length)
    elif payloads.left_at[row] != payloads.left_at[row + 1] or not space.saw(offset, payloads.of(row)):
        _nothing_known(out, seq, ack, length, space.place(offset + length) - begin)
    else:
        _plain(out, (seq, ack), space, offset, offset + length)


def _nothing_known(out: Changed, seq: i64, ack: i64, wire_length: i64, length: i64) -> None:
    """A row without payload, or with one of which nobody knows what it is."""
    if length > 0:
        out.left_out.add(0, length, 1)
    if wire_length > 0:
        out.overhead.add(0, 0, 0)
    _end(out, seq, ack, 0, max(length, 0))


def _plain(out: Changed, numbers: tuple[i64, i64], space: PlainSpace, begin: i64, end: i64) -> None:
    out.overhead.add(0, 0, 0)
    passed, unsure = i64(0), i64(0)
    number = space.first_span(begin)
    while space.has_span(number, end):
        at, length, known = space.span(number, begin, end)
        number += 1
        if length == 0:
            continue
        out.on_the_wire.add(at, length, known)
        if known != 0:
            passed += length
        else:
            out.overhead.add(at - passed, length, 0)
            unsure += length
    kept = space.contents(begin, end, out.pieces)
    _end(out, numbers[0], numbers[1], kept, kept + unsure)


def _end(out: Changed, seq: i64, ack: i64, kept: i64, length: i64) -> None:
    out.seq = append(out.seq, seq & MASK)
    out.ack = append(out.ack, ack & MASK)
    out.kept = append(out.kept, kept)
    out.length = append(out.length, length)
    out.left_out.end_row()
    out.overhead.end_row()
    out.on_the_wire.end_row()


def near(seq: i64, base: i64, offset: i64) -> i64:
    """The offset of a sequence number: the place nearest to this one."""
    return offset + ((seq - base - offset + HALF) & MASK) - HALF


def _moved(seq: i64, base: i64, space: PlainSpace) -> i64:
    """The sequence number of the same place, among plain bytes."""
    offset = near(seq, base, space.decided)
    return seq - offset + space.place(offset)


# --- and back


def left_on_the_wire(left_out: Spans, sizes: Any, overhead: Spans, wire_sizes: Any) -> Spans:
    """Of plain rows what is neither kept nor overhead, by the places on the wire."""
    size: vec[i64] = sizes
    wire_size: vec[i64] = wire_sizes
    found = Spans()
    for row in range(i64(len(size))):
        spans = overhead.at[row + 1] - overhead.at[row]
        if wire_size[row] == 0 or (left_out.at[row] == left_out.at[row + 1] and spans == 0):
            for i in range(left_out.at[row], left_out.at[row + 1]):
                found.add(left_out.offset[i], left_out.length[i], 1)
        else:
            _complement(found, _taken(left_out, size[row], overhead, row), wire_size[row])
        found.end_row()
    return found


def _taken(left_out: Spans, size: i64, overhead: Spans, row: i64) -> Spans:
    """What is kept or overhead."""
    taken = Spans()
    for i in range(overhead.at[row], overhead.at[row + 1]):
        taken.add(overhead.offset[i], overhead.length[i], 1)
    at: i64 = 0
    for i in range(left_out.at[row], left_out.at[row + 1]):
        _wire_parts(taken, at, left_out.offset[i], overhead, row)
        at = left_out.offset[i] + left_out.length[i]
    _wire_parts(taken, at, size, overhead, row)
    return taken


def _wire_parts(taken: Spans, begin: i64, end: i64, overhead: Spans, row: i64) -> None:
    """[begin, end) of a plain payload, by its places on the wire; known overhead parts it."""
    for i in range(overhead.at[row], overhead.at[row + 1]):
        if overhead.known[i] != 0:
            if overhead.offset[i] > begin:
                if overhead.offset[i] >= end:
                    break
                taken.add(begin, overhead.offset[i] - begin, 1)
                begin = overhead.offset[i]
            begin += overhead.length[i]
            end += overhead.length[i]
    if begin < end:
        taken.add(begin, end - begin, 1)


def _complement(found: Spans, taken: Spans, size: i64) -> None:
    """What of [0, size) is not taken."""
    begin, length = taken.offset, taken.length
    for i in range(i64(1), i64(len(begin))):  # few, and in two runs that are in order
        k = i
        while k > 0 and begin[k - 1] > begin[k]:
            begin[k - 1], begin[k] = begin[k], begin[k - 1]
            length[k - 1], length[k] = length[k], length[k - 1]
            k -= 1
    at: i64 = 0
    for i in range(i64(len(begin))):
        if begin[i] > at:
            found.add(at, begin[i] - at, 1)
        at = max(at, begin[i] + length[i])
    if at < size:
        found.add(at, size - at, 1)
