"""Where time steps in a capture file: packets in the wrong order, or a clock that was set.

TCP tells which. Over a clock that was set back (NTP, a virtual machine that was resumed) the sequence numbers of a
connection go on; where parts of a capture are in the wrong order, they step back as time does. Over a clock that was
set ahead, data that a host acknowledges at once is acknowledged late, and never sent again; or several clients would
have waited for minutes, without a word, for a response that came.
Rule: time never goes back within a file. A clock that was set becomes an offset of all later rows, and is counted.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from wirecheck.capture import frames
from wirecheck.capture.source.pcap import STEP_NS, Batch, CaptureFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from wirecheck.capture.source.pcap import Stretch, Unread

Sender = tuple[str, int, str, int]
"""Its address and port, and those of the receiver."""
SENDER = ("src_ip", "src_port", "dst_ip", "dst_port")
Sequences = dict[Sender, tuple[int, int]]
"""A sequence number of each, and its time."""
ROWS = 2_000
"""So many before a step, and behind it, are looked at."""
STAY = 64
"""Where time returns within so many rows behind a step back, those were only late."""
AHEAD_NS = 2_000_000_000
"""A clock that was set ahead by less is a pause."""
LONG_NS = 120_000_000_000
"""No client waits so long for a response while nothing else is sent."""
ANSWERS = 2
"""So many connections go on with a response behind such a step."""
AT_ONCE_NS = 500_000_000
"""Hosts acknowledge what they receive by then."""
PROMPT = 3
"""So often a host has done so, and never later, before its silence says anything."""
MOST_LOOKS = 16
"""Of one batch so many steps are looked at."""
READ_BYTES = 1 << 20
MASK = (1 << 32) - 1
ACK = 16


def newest(rows: pa.RecordBatch) -> Sequences:
    """The last of each sender."""
    return dict(_of_frames(rows.slice(max(rows.num_rows - ROWS, 0))))


def oldest(rows: pa.RecordBatch) -> Sequences:
    """The first of each sender."""
    found: Sequences = {}
    for sender, place in _of_frames(rows.slice(0, ROWS)):
        found.setdefault(sender, place)
    return found


def go_on(before: Sequences, rows: pa.RecordBatch) -> int:
    """How many more senders go on with these rows than step back, of those whose time steps back; 0 where nothing
    shows it.
    """
    both = ((*before[sender], *place) for sender, place in oldest(rows).items() if sender in before)
    steps = ((now - then) % (1 << 32) for then, then_ns, now, now_ns in both if now_ns < then_ns)
    return sum(1 if step < 1 << 31 else -1 for step in steps if step)


def _of_frames(rows: pa.RecordBatch) -> Iterator[tuple[Sender, tuple[int, int]]]:
    columns = (rows.column(name).to_pylist() for name in ("kind", *SENDER, "tcp_seq", "ts_ns"))
    for kind, src_ip, src_port, dst_ip, dst_port, seq, ts_ns in zip(*columns, strict=True):
        if kind == frames.FRAME:
            yield (src_ip, src_port, dst_ip, dst_port), (seq, ts_ns)


def is_set_ahead(before: pa.RecordBatch, rows: pa.RecordBatch, step_ns: int) -> bool:
    """Whether data that was on its way before is acknowledged exactly behind the step, by hosts that acknowledge at
    once, and is never sent again; or what waited for long is answered exactly, on several connections.
    """
    waiting, behind = _Waiting(), [*_segments(rows.slice(0, ROWS))]
    for row in _segments(before.slice(max(before.num_rows - ROWS, 0))):
        waiting.take(row)
    return waiting.is_acknowledged(behind) or (step_ns > LONG_NS and waiting.answered(behind) >= ANSWERS)


def answered_behind(before: pa.RecordBatch, rows: pa.RecordBatch) -> int:
    """On how many connections what waited before is answered exactly behind it; 0 if any goes on elsewhere."""
    waiting = _Waiting()
    for row in _segments(before.slice(max(before.num_rows - ROWS, 0))):
        waiting.take(row)
    return waiting.answered(_segments(rows.slice(0, ROWS)))


class _Segment(NamedTuple):
    sender: Sender
    seq: int
    ack: int
    flags: int
    size: int
    ts_ns: int


class _Waiting:
    """Which data the receivers have not acknowledged."""

    def __init__(self) -> None:
        self.sent: dict[Sender, tuple[int, int]] = {}
        """By sender the end of its data, and when it was sent."""
        self.ends: dict[Sender, int] = {}
        """By sender the end of all that it sent."""
        self.last: dict[frozenset[tuple[str, int]], Sender] = {}
        """By connection who sent data last."""
        self.prompt = Counter[Sender]()
        """By sender how often its data was acknowledged at once, by a segment for that alone."""
        self.slow = set[Sender]()
        self.now_ns = 0

    def take(self, segment: _Segment) -> None:
        sender, seq, ack, flags, size, ts_ns = segment
        self.now_ns = ts_ns
        other = sender[2:] + sender[:2]
        if flags & ACK and other in self.sent and (ack - self.sent[other][0]) & MASK < 1 << 31:
            at_once = ts_ns - self.sent.pop(other)[1] < AT_ONCE_NS
            self.prompt[other] += at_once and not size  # a capture without such segments does not show it
            self.slow |= set() if at_once else {other}
        if size:
            self.ends[sender] = (seq + size) & MASK
            self.sent[sender] = self.ends[sender], ts_ns
            self.last[connection(sender)] = sender

    def answered(self, rows: Iterable[_Segment]) -> int:
        """On how many connections the other side is the next to send data, exactly where it had ended; 0 if any goes on
        elsewhere.
        """
        found, seen = 0, set[frozenset[tuple[str, int]]]()
        for sender, seq, _, _, size, _ in rows:
            here = connection(sender)
            if size and here in self.last and here not in seen:
                seen.add(here)
                if seq != self.ends.get(sender, seq):
                    return 0
                found += sender in self.ends and self.last[here] != sender
        return found

    def is_acknowledged(self, rows: Iterable[_Segment]) -> bool:
        """Whether later rows acknowledge what waits, and nothing else of it was on the wire."""
        recent = {
            sender: end
            for sender, (end, ts_ns) in self.sent.items()
            if self.now_ns - ts_ns < AT_ONCE_NS and self.prompt[sender] >= PROMPT and sender not in self.slow
        }
        found = 0
        for sender, seq, ack, flags, size, _ in rows:
            other = sender[2:] + sender[:2]
            if size and sender in recent and (seq - recent[sender]) & MASK >= 1 << 31:
                return False  # sent again: it was lost, or its sender waited
            if flags & ACK and other in recent:
                if ack != recent.pop(other):
                    return False
                found += 1
        return found > 0


def _segments(rows: pa.RecordBatch) -> Iterator[_Segment]:
    names = ("kind", *SENDER, "tcp_seq", "tcp_ack", "tcp_flags", "payload_len", "ts_ns")
    columns = (rows.column(name).to_pylist() for name in names)
    for kind, src_ip, src_port, dst_ip, dst_port, *row in zip(*columns, strict=True):
        if kind == frames.FRAME:
            yield _Segment((src_ip, src_port, dst_ip, dst_port), *row)


def moved(ts_ns: NDArray[np.int64], by_ns: int) -> NDArray[np.int64]:
    """Times with an offset; those that no row may have saturate."""
    if by_ns > 0:
        return np.minimum(ts_ns, frames.LATEST_NS - by_ns) + by_ns
    return np.maximum(ts_ns, frames.EARLIEST_NS - by_ns) + by_ns


def connection(sender: Sender) -> frozenset[tuple[str, int]]:
    return frozenset((sender[:2], sender[2:]))


class Clock:
    """The clock of one file: dates its rows so that a step of it becomes an offset."""

    def __init__(self) -> None:
        self.offset_ns = 0
        self.newest_ns: int | None = None
        """Of the rows so far, as they are dated."""
        self.steps: list[str] = []
        """What happened to it, in words."""
        self.before: pa.RecordBatch | None = None
        """Rows of which the newest are the file's last ones so far."""

    def behind(self, first_ns: int, offset_ns: int, *, counted: bool) -> Clock:
        """That of a file that goes on where the file of this one ended: its first packet has this time."""
        found = Clock()
        found.offset_ns = offset_ns
        if counted:
            found.offset_ns = 0
            found._count(offset_ns, first_ns + offset_ns)
        return found

    def copy(self) -> Clock:
        """One that begins as this one does."""
        found = Clock()
        found.offset_ns = self.offset_ns
        return found

    def dated(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The rows of a file, as they are read. What is too near to the end of a batch waits for the next."""
        rest: pa.RecordBatch | None = None
        for batch in batches:
            rows = batch.rows if rest is None else _joined([rest, batch.rows])
            dated, rest = self._date(rows, last=False)
            if dated.rows.num_rows:
                yield dated
        if rest is not None:
            yield self._date(rest, last=True)[0]

    def _date(self, rows: pa.RecordBatch, *, last: bool) -> tuple[Batch, pa.RecordBatch | None]:
        """Rows with their times; and those behind a step of which too little is known by now."""
        raw = rows.column("ts_ns").to_numpy()
        ts_ns = moved(raw, self.offset_ns)
        newest_ns = self.newest_ns if self.newest_ns is not None or not len(raw) else int(ts_ns[0])
        clock = np.maximum.accumulate(np.concatenate([[newest_ns or 0], ts_ns]))
        at, end = 0, len(raw)
        for _ in range(MOST_LOOKS):
            at = self._next_step(ts_ns, clock, at)
            if at == end:
                break
            if not last and end - at < STAY:
                end = at
                break
            if self._is_set(rows, ts_ns, clock, at):
                step_ns = int(clock[at] - ts_ns[at])
                self._count(step_ns, int(clock[at]))
                ts_ns[at:] = moved(ts_ns[at:], step_ns)
                clock[at + 1 :] = np.maximum.accumulate(np.concatenate([clock[at : at + 1], ts_ns[at:]]))[1:]
            at += 1
        rest = rows.slice(end) if end < len(raw) else None
        self._keep(rows.slice(0, end), int(clock[end]))
        if self.offset_ns or self.steps:
            place = rows.schema.get_field_index("ts_ns")
            rows = rows.set_column(place, rows.schema.field(place), pa.array(ts_ns))
        return Batch(rows.slice(0, end), clock[1 : end + 1]), rest

    def _keep(self, rows: pa.RecordBatch, newest_ns: int) -> None:
        if rows.num_rows:
            self.newest_ns = newest_ns
            few = self.before is not None and rows.num_rows < ROWS
            self.before = _joined([self.before, rows]) if few else rows
            self.before = self.before.slice(max(self.before.num_rows - ROWS, 0))

    def _next_step(self, ts_ns: NDArray[np.int64], clock: NDArray[np.int64], begin: int) -> int:
        step = ts_ns[begin:] - clock[begin:-1]
        found = np.flatnonzero((step < -STEP_NS) | (step > AHEAD_NS))
        return begin + int(found[0]) if len(found) else len(ts_ns)

    def _is_set(self, rows: pa.RecordBatch, ts_ns: NDArray[np.int64], clock: NDArray[np.int64], at: int) -> bool:
        """Whether the clock was set at this row."""
        before, behind = rows.slice(0, at), rows.slice(at)
        if at < ROWS and self.before is not None:
            before = _joined([self.before, before]) if at else self.before
        if ts_ns[at] > clock[at]:
            return is_set_ahead(before, behind, int(ts_ns[at] - clock[at]))
        returns = np.diff(ts_ns[at : at + STAY]).max(initial=0) * 2 > clock[at] - ts_ns[at]
        return not returns and go_on(newest(before), behind) > 0

    def _count(self, step_ns: int, at_ns: int) -> None:
        self.offset_ns += step_ns
        way = "back" if step_ns > 0 else "ahead"
        when = datetime.fromtimestamp(at_ns // 1_000_000_000, UTC).strftime("%H:%M:%S UTC")
        self.steps.append(f"by {abs(step_ns) / 1e9:,.1f} s {way} at {when}")

    def add_unread(self, unread: Unread) -> None:
        """How often it was set, once the file was read."""
        unread.clock_steps += self.steps
        if self.steps or self.offset_ns:
            unread.newest_ns = self.newest_ns or 0


def _joined(parts: Sequence[pa.RecordBatch | None]) -> pa.RecordBatch:
    table = pa.Table.from_batches([one for one in parts if one is not None]).unify_dictionaries()
    (rows,) = table.combine_chunks().to_batches()
    return rows


def was_set_back(path: Path, stretches: Sequence[Stretch]) -> bool:
    """Whether time steps back between the stretches of a file because its clock was set back."""
    stamp, going_on, newest_ns = frames.Stamp("", ""), 0, 0
    before: Sequences = {}
    for stretch in stretches:
        file = CaptureFile(path, READ_BYTES, stretch=stretch)
        first, steps_back = True, stretch.first_ns < newest_ns
        try:
            for batch in file.batches(stamp):
                if first and steps_back:
                    going_on += go_on(before, batch.rows)
                first, last = False, batch
                newest_ns = int(batch.clock[-1])
        finally:
            file.close()
        before = before if first else newest(last.rows)
    return going_on > 0
