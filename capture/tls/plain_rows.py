"""What a row of a TLS connection waits for, and which rows it becomes.

A row gets the plaintext of its place only if its bytes are those that were seen there first. Numbers count plaintext;
over what was not opened they jump, so that nothing continues across it. A row with such a hole becomes two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from wirecheck.capture.tls.records import PlainPieces

if TYPE_CHECKING:
    from wirecheck.capture.tls.records import PlainSpace, RecordStream

FIN: Final = 1
ACK: Final = 16
QUARTER: Final = 1 << 30
HALF: Final = 1 << 31
MASK: Final = (1 << 32) - 1
UNKNOWN: Final = -1


@final
class Known:
    """A connection that may be TLS, with what rows need to know of it."""

    def __init__(self, tls: Any, streams: list[RecordStream | None], run: i64) -> None:
        self.tls = tls  # its TlsConnection
        self.run: i64 = run
        """What its rows have as `decrypted`."""
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

    def __init__(self, placed: Any, tcp: Any, length: Any) -> None:
        """Vecs: serials, directions and offsets; numbers, acknowledgements and flags of TCP; bytes that they carry."""
        self.serial: vec[i64] = placed[0]
        self.direction: vec[i64] = placed[1]
        self.offset: vec[i64] = placed[2]
        self.seq: vec[i64] = tcp[0]
        self.ack: vec[i64] = tcp[1]
        self.flags: vec[i64] = tcp[2]
        self.length: vec[i64] = length


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
class PlainRows:
    """What becomes of rows: one entry each, more where bytes in their middle were not opened."""

    def __init__(self, first: i64) -> None:
        self._first: i64 = first
        self._run: i64 = 0
        self.row: vec[i64] = vec[i64]()  # its number among those that leave
        self.run: vec[i64] = vec[i64]()  # 0: the row stays as it is, and the rest means nothing
        self.seq: vec[i64] = vec[i64]()
        self.ack: vec[i64] = vec[i64]()
        self.flags: vec[i64] = vec[i64]()
        self.size: vec[i64] = vec[i64]()
        self.pieces = PlainPieces()

    def begin_row(self, run: i64) -> None:
        self._run = run
        self.pieces.begin_row()

    def leave(self, row: i64) -> None:
        self.add(row, 0, 0, 0, 0)
        self.run[i64(len(self.run)) - 1] = 0

    def add(self, row: i64, seq: i64, ack: i64, flags: i64, size: i64) -> None:
        self.row = append(self.row, row - self._first)
        self.run = append(self.run, self._run)
        self.seq = append(self.seq, seq & MASK)
        self.ack = append(self.ack, ack & MASK)
        self.flags = append(self.flags, flags)
        self.size = append(self.size, size)


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


def plain_rows(rows: Columns, payloads: Payloads, first: i64, upto: i64, known: dict[int, Known]) -> PlainRows:
    """The rows [first, upto)."""
    out = PlainRows(first)
    for row in range(first, upto):
        found = known.get(rows.serial[row])
        if found is None:
            out.leave(row)
        else:
            _add(out, rows, payloads, row, found)
    return out


def _add(out: PlainRows, rows: Columns, payloads: Payloads, row: i64, known: Known) -> None:
    side, length, flags = rows.direction[row], rows.length[row], rows.flags[row]
    seq, ack = rows.seq[row], rows.ack[row]
    mine, other = known.streams[side], known.streams[1 - side]
    if other is not None and flags & ACK and known.base[1 - side] != UNKNOWN:
        ack = _moved(ack, known.base[1 - side], other.space)
    out.begin_row(known.run)
    if mine is not None and known.base[side] != UNKNOWN:
        space = mine.space
        begin = rows.offset[row] if length > 0 else near(seq, known.base[side], space.decided)
        end = begin + length
        if length > 0 and payloads.left_at[row] == payloads.left_at[row + 1] and space.saw(begin, payloads.of(row)):
            space.collect(begin, end, out.pieces)
        base, seq = seq - begin, seq - begin + space.place(end)
        place, size = out.pieces.place, out.pieces.size
        count = i64(len(place))
        ends_early = flags & FIN and out.pieces.end() != space.place(end)
        for i in range(count):
            is_last = i == count - 1 and not ends_early
            out.add(row, base + place[i], ack, flags if is_last else flags & ~FIN, size[i])
        if count > 0 and not ends_early:
            return
    out.add(row, seq, ack, flags, 0)


def near(seq: i64, base: i64, offset: i64) -> i64:
    """The offset of a sequence number: the place nearest to this one."""
    return offset + ((seq - base - offset + HALF) & MASK) - HALF


def _moved(seq: i64, base: i64, space: PlainSpace) -> i64:
    """The sequence number of the same place, among plain bytes."""
    offset = near(seq, base, space.decided)
    return seq - offset + space.place(offset)
