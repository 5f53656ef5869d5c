"""Where time steps in a capture file: packets in the wrong order, or a clock that was set.

TCP tells which. Over a clock that was set back (NTP, a virtual machine that was resumed) the sequence numbers of a
connection go on; where parts of a capture are in the wrong order, they step back as time does. Over a clock that was
set ahead, data that a host acknowledges at once is acknowledged late, and never sent again; or several clients would
have waited for minutes, without a word, for a response that came. Where hosts write timestamps, these show how far.
Rule: time never goes back within a file. A clock that was set becomes an offset of all later rows, and is counted.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from wirecheck.capture import frames
from wirecheck.capture.link.packet import NO_STAMP
from wirecheck.capture.source import tcp_stamps, wrong_times
from wirecheck.capture.source.pcap import STEP_NS, Batch, CaptureFile
from wirecheck.capture.source.wrong_times import FAR_NS, MASK, ROWS, Sender

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from wirecheck.capture.source.pcap import Stretch, Unread

SENDER = ("src_ip", "src_port", "dst_ip", "dst_port")
Sequences = dict[Sender, tuple[int, int]]
"""A sequence number of each, and its time."""
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
STAMPED = 8_000
"""So many rows before a step show the rate of timestamps."""
MOST_LOOKS = 16
"""Of one batch so many steps are looked at."""
READ_BYTES = 1 << 20
FIN, SYN, RST, ACK = 1, 2, 4, 16


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


def starts_over(before: pa.RecordBatch, rows: pa.RecordBatch) -> bool:
    """Whether all connections before are over, and all behind are new ones: a server was started again."""
    ended: dict[frozenset[tuple[str, int]], bool] = {}
    for one in _segments(before.slice(max(before.num_rows - ROWS, 0))):
        here = connection(one.sender)
        ended[here] = ended.get(here, False) or bool(one.flags & (FIN | RST))
    begins: dict[frozenset[tuple[str, int]], int | None] = {}
    opened = 0
    for one in _segments(rows.slice(0, ROWS)):
        begin = begins.setdefault(connection(one.sender), one.seq + 1 & MASK if one.flags & SYN else None)
        opened += one.flags & (SYN | ACK) == SYN | ACK and one.ack == begin
    return opened > 0 and bool(ended) and all(ended.values()) and None not in begins.values()


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

    def __init__(self, *, restarts: bool = False, is_set: bool = True) -> None:
        """`restarts`: it may be set while a server is started again. Not `is_set`: it is known not to be set."""
        self.offset_ns = 0
        self.newest_ns: int | None = None
        """Of the rows so far, as they are dated."""
        self.steps: list[str] = []
        """What happened to it, in words."""
        self.redated = 0
        """Rows that alone had another time."""
        self.before: pa.RecordBatch | None = None
        """Rows of which the newest are the file's last ones so far, as they are dated."""
        self._restarts = restarts
        self._may_be_set = is_set
        self._interface_ns = Counter[int]()
        """Offsets of interfaces besides."""
        self._before_interfaces: NDArray[np.int64] | None = None
        self._before_stamps: NDArray[np.int64] | None = None

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
        found = Clock(restarts=self._restarts, is_set=self._may_be_set)
        found.offset_ns = self.offset_ns
        return found

    def moved(self, by_ns: int) -> Clock:
        """One that dates all rows so much later."""
        found = self.copy()
        found.offset_ns += by_ns
        found.steps += self.steps
        return found

    @property
    def interfaces_were_set(self) -> bool:
        """Whether that of one interface was, and not those of others."""
        return bool(self._interface_ns)

    def dated(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The rows of a file, as they are read. What is too near to the end of a batch waits for the next."""
        rest: Batch | None = None
        for batch in batches:
            dated, rest = self._date(batch if rest is None else _one_batch(rest, batch), last=False)
            if dated.rows.num_rows:
                yield dated
        if rest is not None:
            yield self._date(rest, last=True)[0]

    def _date(self, batch: Batch, *, last: bool) -> tuple[Batch, Batch | None]:
        """Rows with their times; and those behind a step of which too little is known by now."""
        raw = batch.rows.column("ts_ns").to_numpy()
        ts_ns, runs = self._in_file_order(batch, moved(raw, self.offset_ns))
        rows = batch.rows if ts_ns is raw else _with_times(batch.rows, ts_ns)
        ts_ns = ts_ns.copy()
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
            if step_ns := self._step(Batch(rows, clock, stamps=batch.stamps), ts_ns, at):
                self._count(step_ns, int(clock[at]))
                ts_ns[at:] = moved(ts_ns[at:], step_ns)
                clock[at + 1 :] = np.maximum.accumulate(np.concatenate([clock[at : at + 1], ts_ns[at:]]))[1:]
            at += 1
        rest = batch.slice(end) if end < len(raw) else None
        self.redated += sum(max(min(run.end, end) - run.begin, 0) for run in runs)
        if (ts_ns != raw).any():
            rows = _with_times(rows, ts_ns)
        numbers = None if batch.interfaces is None else batch.interfaces[:end]
        stamps = None if batch.stamps is None else batch.stamps[:end]
        done = Batch(rows.slice(0, end), clock[1 : end + 1], numbers, stamps)
        self._keep(done, int(clock[end]))
        return Batch(done.rows, done.clock), rest

    def _in_file_order(self, batch: Batch, ts_ns: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[wrong_times.Run]]:
        """Times of rows whose place in the file shows that they have another, and the runs of such rows."""
        for number, by_ns in self._interface_ns.items():
            own = number == (0 if batch.interfaces is None else batch.interfaces)
            ts_ns = np.where(own, moved(ts_ns, by_ns), ts_ns)
        before = None if self.before is None else self.before.column("ts_ns").to_numpy()
        known = 0 if before is None else len(before)
        times = ts_ns if before is None else np.concatenate([before, ts_ns])
        if not len(wrong_times.steps_back(times)):
            return ts_ns, []
        every = _both(self._before_interfaces, known, batch.interfaces, len(ts_ns))
        times = times if every is None else self._of_interfaces(times, every)
        rows = batch.rows if self.before is None else _joined([self.before, batch.rows])
        runs = [run for run in wrong_times.lone_rows(rows, times) if run.begin >= known]
        return wrong_times.redated(times, runs)[known:], [
            wrong_times.Run(begin - known, end - known) for begin, end in runs
        ]

    def _of_interfaces(self, times: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times where the clock of one interface is that of the others."""
        for _ in range(MOST_LOOKS if self._may_be_set else 0):
            step = wrong_times.interface_step(times, numbers)
            if step is None:
                break
            later = (numbers == step.interface) & (np.arange(len(times)) >= step.at)
            times = np.where(later, moved(times, step.by_ns), times)
            self._interface_ns[step.interface] += step.by_ns
            self.steps.append(_words(step.by_ns, int(times[step.at])) + f" (interface {step.interface})")
        return times

    def _keep(self, done: Batch, newest_ns: int) -> None:
        if not done.rows.num_rows:
            return
        self.newest_ns = newest_ns
        rows, numbers, stamps = done.rows, done.interfaces, done.stamps
        several = numbers is not None or self._before_interfaces is not None
        if self.before is not None and (several or rows.num_rows < ROWS):
            numbers = _both(self._before_interfaces, self.before.num_rows, numbers, rows.num_rows)
            stamps = _both(self._before_stamps, self.before.num_rows, stamps, rows.num_rows, NO_STAMP)
            rows = _joined([self.before, rows])
        kept = np.arange(max(rows.num_rows - ROWS, 0), rows.num_rows)
        if several and numbers is not None:
            kept = wrong_times.last_rows(numbers)
            self._before_interfaces = numbers[kept]
        self.before = rows.take(pa.array(kept)) if several else rows.slice(int(kept[0]))
        self._before_stamps = None if stamps is None else stamps[kept]

    def _next_step(self, ts_ns: NDArray[np.int64], clock: NDArray[np.int64], begin: int) -> int:
        step = ts_ns[begin:] - clock[begin:-1]
        found = np.flatnonzero((step < -STEP_NS) | (step > AHEAD_NS))
        return begin + int(found[0]) if len(found) else len(ts_ns)

    def _step(self, batch: Batch, ts_ns: NDArray[np.int64], at: int) -> int:
        """By how much the rows from this one on are to be moved because the clock was set; 0 where it was not."""
        if not self._may_be_set:
            return 0
        before, behind = batch.rows.slice(0, at), batch.rows.slice(at)
        clock, step_ns = batch.clock, int(batch.clock[at] - ts_ns[at])
        if at < ROWS and self.before is not None:
            before = _joined([self.before, before]) if at else self.before
        by_stamps = self._step_by_stamps(batch, ts_ns, at) if batch.stamps is not None else None
        if ts_ns[at] > clock[at]:
            is_ahead = by_stamps is None and is_set_ahead(before, behind, -step_ns)
            return step_ns if is_ahead else max(-(by_stamps or 0), step_ns)
        returns = np.diff(ts_ns[at : at + STAY]).max(initial=0) > (clock[at] - ts_ns[at]) // 2
        if returns:
            return 0
        going_on = go_on(newest(before), behind)
        is_set = going_on > 0 or (going_on == 0 and self._restarts and starts_over(before, behind))
        return (max(-by_stamps, step_ns) if by_stamps else step_ns) if is_set else 0

    def _step_by_stamps(self, batch: Batch, ts_ns: NDArray[np.int64], at: int) -> int | None:
        """How far the clock was set ahead; negative: back."""
        assert batch.stamps is not None
        begin = max(at - STAMPED, 0)
        rows, times, stamps = batch.rows.slice(begin, at - begin), ts_ns[begin:at], batch.stamps[begin:at]
        if at < ROWS and self.before is not None:
            known = self.before.num_rows
            stamps_so_far = _both(self._before_stamps, known, stamps, at, NO_STAMP)
            assert stamps_so_far is not None
            times, stamps = np.concatenate([self.before.column("ts_ns").to_numpy(), times]), stamps_so_far
            rows = _joined([self.before, rows]) if at else self.before
        further = np.diff(ts_ns[at : at + ROWS])  # up to the next step: what comes behind that has another clock
        others = np.flatnonzero((further < -STEP_NS) | (further > AHEAD_NS))
        end = at + 1 + (int(others[0]) if len(others) else len(further))
        behind = tcp_stamps.Stamped(batch.rows.slice(at, end - at), ts_ns[at:end], batch.stamps[at:end])
        return tcp_stamps.step_ns(tcp_stamps.Stamped(rows, times, stamps), behind)

    def _count(self, step_ns: int, at_ns: int) -> None:
        self.offset_ns += step_ns
        self.steps.append(_words(step_ns, at_ns))

    def add_unread(self, unread: Unread) -> None:
        """How often it was set, once the file was read."""
        unread.clock_steps += self.steps
        unread.redated += self.redated
        if self.steps or self.offset_ns or self.redated:
            unread.newest_ns = self.newest_ns or 0


def _words(step_ns: int, at_ns: int) -> str:
    way = "back" if step_ns > 0 else "ahead"
    when = datetime.fromtimestamp(at_ns // 1_000_000_000, UTC).strftime("%H:%M:%S UTC")
    return f"by {abs(step_ns) / 1e9:,.1f} s {way} at {when}"


def _with_times(rows: pa.RecordBatch, ts_ns: NDArray[np.int64]) -> pa.RecordBatch:
    place = rows.schema.get_field_index("ts_ns")
    return rows.set_column(place, rows.schema.field(place), pa.array(ts_ns))


def _one_batch(first: Batch, second: Batch) -> Batch:
    clock = np.concatenate([first.clock, second.clock])
    counts = first.rows.num_rows, second.rows.num_rows
    numbers = _both(first.interfaces, counts[0], second.interfaces, counts[1])
    stamps = _both(first.stamps, counts[0], second.stamps, counts[1], NO_STAMP)
    return Batch(_joined([first.rows, second.rows]), clock, numbers, stamps)


def _both(
    first: NDArray[np.int64] | None,
    first_rows: int,
    second: NDArray[np.int64] | None,
    second_rows: int,
    absent: int = 0,
) -> NDArray[np.int64] | None:
    """What is known of each row of two batches of so many rows."""
    if first is None and second is None:
        return None
    parts = ((first, first_rows), (second, second_rows))
    return np.concatenate([np.full(rows, absent, np.int64) if one is None else one[:rows] for one, rows in parts])


def _joined(parts: Sequence[pa.RecordBatch | None]) -> pa.RecordBatch:
    table = pa.Table.from_batches([one for one in parts if one is not None]).unify_dictionaries()
    (rows,) = table.combine_chunks().to_batches()
    return rows


def has_wrong_times(path: Path) -> bool:
    """Whether single packets have another time than those around them, and are not late."""
    clock = Clock(is_set=False)
    return any(clock.redated for _ in _dated(path, clock))


def interfaces_were_set(path: Path) -> bool:
    """Whether the clock of one interface was set, and not those of others."""
    clock = Clock()
    return any(clock.interfaces_were_set for _ in _dated(path, clock))


def _dated(path: Path, clock: Clock) -> Iterator[Batch]:
    file = CaptureFile(path, READ_BYTES)
    try:
        yield from clock.dated(file.batches(frames.Stamp("", "")))
    finally:
        file.close()


def was_set_back(path: Path, stretches: Sequence[Stretch], others: Sequence[tuple[int, int]]) -> bool:
    """Whether time steps back between the stretches of a file because its clock was set back.

    `others`: first and newest times of other files of the replay. They, and stretches that overlap, tell a clock that
    was set while a server was started again from complete captures in the wrong order.
    """
    stamp, going_on, newest_ns = frames.Stamp("", ""), 0, 0
    times = list[tuple[int, int]]()
    before: Sequences = {}
    last: pa.RecordBatch | None = None
    restarts = False
    for stretch in stretches:
        file = CaptureFile(path, READ_BYTES, stretch=stretch)
        first, steps_back, over = True, stretch.first_ns < newest_ns, False
        try:
            for batch in file.batches(stamp):
                if first and steps_back:
                    going_on += go_on(before, batch.rows)
                    over = last is not None and starts_over(last, batch.rows)
                few = last is not None and not first and batch.rows.num_rows < ROWS
                first, last = False, _joined([last, batch.rows]) if few else batch.rows
                newest_ns = int(batch.clock[-1])
        finally:
            file.close()
        before = before if first or last is None else newest(last)
        own = stretch.first_ns, newest_ns
        restarts |= over and (_overlap(times, own) or _belongs(own, times[-1][1], others))
        times.append(own)
    return going_on > 0 or (going_on == 0 and restarts)


def _overlap(times: Sequence[tuple[int, int]], own: tuple[int, int]) -> bool:
    """Whether a stretch has times of those before it, and yet not the same, as two queues of a network card have."""
    begin, end = min(one[0] for one in times), max(one[1] for one in times)
    both = min(end, own[1]) - max(begin, own[0])
    return 0 < both < 0.9 * max(end - begin, own[1] - own[0])


def _belongs(own: tuple[int, int], ended_ns: int, others: Sequence[tuple[int, int]]) -> bool:
    """Whether no other file has such times, and one has those that go on where the stretch before ended."""
    behind_ns = ended_ns + own[1] - own[0]
    is_far = all(own[1] < begin or end < own[0] for begin, end in others)
    return is_far and any(begin <= ended_ns and behind_ns <= end + FAR_NS for begin, end in others)
