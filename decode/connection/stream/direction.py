"""One direction of a connection: packets in any order become bytes in order (RFC 9293 3.4).

An offset counts from the first byte behind SYN, or from MIDDLE where no SYN was seen, and never wraps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from wirecheck.decode.connection.stream import modes
from wirecheck.decode.connection.stream.chunks import DATA, GAP, LEFT, Chunk, Chunks
from wirecheck.decode.connection.stream.frame import NEVER, UNSET
from wirecheck.decode.connection.stream.out_of_order import OutOfOrder, left_out_for_good

if TYPE_CHECKING:
    from wirecheck.decode.connection.stream.frame import Frame
    from wirecheck.decode.connection.stream.last_gap import LastGap

# what can be read of the message that a direction stands in
READABLE: Final = 0
HEADER_UNSEEN: Final = 1
GIVEN_UP: Final = 2  # it could wait no longer (eviction.py): only its end is still of interest
DOUBTED: Final = 3  # an opening that the server's answer or the next request has to confirm


@final
class Aging:
    """How far a direction had come half a slack ago and a whole one, by time and by frames."""

    def __init__(self) -> None:
        self.time_middle: i64 = UNSET
        self.time_old: i64 = UNSET
        self.frames_middle: i64 = UNSET
        self.frames_old: i64 = UNSET

    def time_passed(self, now: i64, half_slacks: i64) -> None:
        self.time_old = self.time_middle if half_slacks == 1 else now
        self.time_middle = now

    def frames_passed(self, now: i64) -> None:
        self.frames_old = self.frames_middle
        self.frames_middle = now

    def old(self) -> i64:
        """What it was for certain at least half a slack ago."""
        return max(self.time_old, self.frames_old)

    def limit(self, at: i64) -> None:
        self.time_middle = min(self.time_middle, at)
        self.time_old = min(self.time_old, at)
        self.frames_middle = min(self.frames_middle, at)
        self.frames_old = min(self.frames_old, at)


@final
class Candidate:
    """Where a message may begin in a stream without known boundaries, with the values of its header."""

    def __init__(self, begin: i64, end: i64, correlation: i64, client: i64) -> None:
        self.begin: i64 = begin
        self.end: i64 = end
        self.correlation: i64 = correlation
        self.client: i64 = client
        """Hash of its client id; 0 of a response."""


BELIEVABLE: Final = 1 << 30  # the largest window TCP can offer (RFC 7323 2.3): nothing further away belongs here
NEAR: Final = BELIEVABLE >> 6
REORDERED_NS: Final = 3_000_000  # a hole that is filled so soon: its segment was overtaken (as Wireshark has it)
MOVED: Final = -1
PROBE_BYTES: Final = 1  # of a keep-alive or a window probe, which send a byte again (RFC 9293 3.8.4, 3.8.6.1)
JOINED: Final = 1 << 16  # bytes before the first one seen within which its SYN is looked for
MIDDLE: Final = 1 << 32  # offset of the first byte seen if no SYN was: earlier bytes get smaller offsets, still > 0


@final
class Direction:
    def __init__(self, side: i64) -> None:
        self.side: i64 = side  # 0 from the lower endpoint, 1 from the higher
        # --- its numbers
        self.stream: modes.Mode = modes.UNSEEN
        self.base: i64 = 0  # the sequence number of offset 0
        self.next_offset: i64 = 0  # of the next byte in order
        self.newest: i64 = 0  # end of the newest byte seen
        self.acknowledged: i64 = UNSET  # what the peer has, by its acknowledgements
        self.alleged_ns: i64 = UNSET  # when it last acknowledged what its sender had not shown
        self.less_ns: i64 = UNSET  # when it last acknowledged less, or its sender went on before that
        self.acknowledged_before: Aging = Aging()
        self.shown: i64 = UNSET  # how far each of two agents has shown this direction, data or acknowledgements
        self.shown_by_second: i64 = UNSET
        self.shown_by_both_before: Aging = Aging()
        self.fin: i64 = UNSET  # offset of FIN
        self.fin_ns: i64 = UNSET  # when it was sent first
        self.reset: i64 = UNSET  # of a RST
        self.reset_exact: bool = False  # it was where the stream ended, as far as was known
        # --- the stream
        self.start_seen: bool = False
        self.gaps_have_length: bool = True  # as sequence numbers state it; not where an agent made them
        self.unsure: bool = False  # whether `ordered` has a gap whose length is unknown
        self.out_of_order: OutOfOrder = OutOfOrder()
        self.last_gap: LastGap | None = None
        self.lacking_ns: i64 = UNSET  # when the peer last acknowledged less than what came out of order
        self.ordered: Chunks = Chunks()
        self.frames: i64 = 0
        self.shown_by: i64 = 0  # bits of the connection's agents that have shown it
        self.payload_bytes: i64 = 0
        self.unseen_bytes: i64 = 0
        self.shown_ns: i64 = UNSET  # when its side last showed that it had sent nothing behind `next_offset`
        self.acknowledged_ns: i64 = UNSET  # when its peer acknowledged that much
        self.gap_end: i64 = UNSET  # of the last gap behind which nothing is read yet
        self.gap_sent_ns: i64 = UNSET  # when its bytes had been sent
        self.skipped_bytes: i64 = 0
        self.cut_bytes: i64 = 0
        self.cut_segments: i64 = 0
        self.retransmitted: i64 = 0  # segments
        self.window_closed_ns: i64 = UNSET  # when its side last announced that it can take no more data
        self.silent_at: i64 = UNSET  # the number at which a side is that was never seen to send; MOVED: it went on
        self.window_opened_ns: i64 = UNSET  # when it first announced a window after that; NEVER: not yet
        # --- its framing
        self.mode: modes.Mode = modes.OPENING
        self.need: i64 = 0  # offset below which there is nothing to frame
        self.message_begin: i64 = 0
        self.message_end: i64 = -1  # -1: not known yet
        self.message_state: i64 = READABLE
        self.key: i64 = 0
        self.version: i64 = 0
        self.correlation: i64 = 0
        self.last_correlation: i64 = 0
        self.client_hash: i64 = -1  # of the client id that requests name; -1 unknown
        self.scanned: i64 = 0  # searched for a boundary up to here
        self.rescans: i64 = 0
        self.candidates: list[Candidate] = []
        self.messages: i64 = 0
        self.raw_frames: i64 = 0

    # --- its numbers

    def offset_of(self, seq: i64) -> i64:
        """Where a sequence number lies: the place nearest to the newest byte."""
        ahead: i64 = (seq - self.base - self.newest) & 0xFFFFFFFF
        if ahead >= 0x80000000:
            ahead -= 0x100000000
        return self.newest + ahead

    def began_at(self, seq: i64) -> bool:
        """Whether offset 0 is at this number."""
        return (self.base - seq) & 0xFFFFFFFF == 0

    def joined_behind(self, seq: i64) -> bool:
        """Whether a SYN with this number is that of a stream which was joined in its middle, at most so far behind it.
        A later connection of the same ports has higher numbers (RFC 6528).
        """
        return self.stream != modes.UNSEEN and 0 <= MIDDLE - self.offset_of(seq) < JOINED

    # --- how far it is

    def acknowledge(self, seq: i64, by_second: bool, now: i64) -> None:
        """The peer has everything below this number."""
        if self.stream == modes.UNSEEN:
            self._stays(seq)
            return
        at = self.offset_of(seq)
        if self.fin != UNSET:
            at = min(at, self.fin)
        if at < self.acknowledged:
            self.less_ns = max(self.less_ns, now)
        if at - self.newest < BELIEVABLE:
            if at > self.newest:
                self.alleged_ns = max(self.alleged_ns, now)
            if at > self.acknowledged:
                self.acknowledged, self.acknowledged_ns = at, now
            self.show(at, by_second)

    def take_back(self, seq: i64, before_ns: i64) -> None:
        """The peer acknowledges this number. It never acknowledged more before that time, unless its sender shows it:
        acknowledgements do not go back.
        """
        at = self.offset_of(seq)
        if self.newest < self.acknowledged > at and self.alleged_ns < before_ns:
            self.acknowledged = max(at, self.next_offset)
            self.acknowledged_before.limit(self.acknowledged)

    def announce(self, window: i64, ts_ns: i64) -> None:
        """Its side can take so much. A window of 0 is 0 whatever its scale (RFC 7323 2.3). A small one is not counted
        as 0: the other side sends what fits after a time-out (RFC 9293 3.8.6.2.1).
        """
        if window == 0 and ts_ns >= self.window_closed_ns:
            self.window_closed_ns = ts_ns
            if self.window_opened_ns <= ts_ns:
                self.window_opened_ns = NEVER
        elif window > 0 and ts_ns >= self.window_closed_ns > UNSET:
            self.window_opened_ns = min(self.window_opened_ns, ts_ns)

    def show(self, at: i64, by_second: bool) -> None:
        """The agent of the frame that is looked at has shown it up to this offset."""
        if by_second:
            self.shown_by_second = max(self.shown_by_second, at)
        else:
            self.shown = max(self.shown, at)

    def time_passed(self, half_slacks: i64) -> None:
        self.acknowledged_before.time_passed(self.acknowledged, half_slacks)
        self.shown_by_both_before.time_passed(min(self.shown, self.shown_by_second), half_slacks)

    def frames_passed(self) -> None:
        self.acknowledged_before.frames_passed(self.acknowledged)
        self.shown_by_both_before.frames_passed(min(self.shown, self.shown_by_second))

    def reach(self) -> i64:
        """How far its sender has shown to have sent. A FIN that its peer does not take shows nothing: what it lacks
        before that, it would not acknowledge on and on.
        """
        if self.fin == UNSET or (self.acknowledged < self.fin and self.acknowledged_ns > self.fin_ns + REORDERED_NS):
            return self.newest
        return max(self.newest, self.fin)

    def is_open_at(self, at: i64, ts_ns: i64) -> bool:
        """Whether what its sender is to send next is before its FIN, later than segments overtake each other: then that
        FIN was none of its own (RFC 9293 3.3.1: SND.NXT).
        """
        return at < self.fin and ts_ns > self.fin_ns + REORDERED_NS

    def finish_at(self, at: i64, ts_ns: i64) -> None:
        """FIN stands here; what acknowledged it came first in a shuffled capture."""
        self.fin, self.fin_ns = at, ts_ns
        self.acknowledged = min(self.acknowledged, at)
        self.acknowledged_before.limit(at)

    # --- where it begins

    def begin(self, seq: i64) -> None:
        """The stream is known to begin at this sequence number."""
        self.base, self.newest = seq & 0xFFFFFFFF, 0
        self._begin_at(0)

    def begin_late(self, seq: i64, most: i64) -> bool:
        """SYN after first data, which is held, by a shuffled capture: True if it fits; the stream then begins there."""
        at = self.offset_of(seq)
        first = self.out_of_order.first
        if first is None or at > first.begin or first.begin - at > most:
            return False
        self._begin_at(at)
        return True

    def _begin_at(self, at: i64) -> None:
        if self.mode != modes.TAPPED:
            self.mode = modes.OPENING  # also of one that is searched: SYN came late, behind the bytes that follow it
        self.start_at(at)
        self.start_seen = True
        self.expect_message(at)

    def begin_at_fin(self, seq: i64) -> None:
        self._begin_in_middle(seq)
        self.start_at(MIDDLE)

    def _begin_in_middle(self, seq: i64) -> None:
        """The first byte seen has this number; where messages begin is not known."""
        self.base, self.newest = seq, MIDDLE
        if self.mode == modes.OPENING:
            self.mode = modes.SEARCHING

    def start_at(self, at: i64) -> None:
        """Nothing before this offset is waited for."""
        self.stream = modes.RUNNING
        self.next_offset = at
        self.ordered.begin = at
        self.scanned = at

    def is_near(self, seq: i64) -> bool:
        """Whether this number is close to the next byte."""
        return -NEAR < self.offset_of(seq) - self.next_offset < NEAR

    # --- how far it is

    def went_on(self, seq: i64, ts_ns: i64) -> None:
        """A frame without payload goes on at this number: whatever comes before it was sent, seen or not."""
        if self.stream == modes.RUNNING:
            at = self.offset_of(seq)
            if at == self.next_offset and self.out_of_order.first is None:
                self.shown_ns = max(self.shown_ns, ts_ns)
            if at < self.acknowledged:
                self.less_ns = max(self.less_ns, ts_ns)
            if at - self.newest < NEAR:
                self.newest = max(self.newest, at)
        elif self.stream == modes.UNSEEN:
            self._stays(seq)

    def _stays(self, seq: i64) -> None:
        """A side of which nothing was seen is at this number, as it shows, or its peer."""
        if self.silent_at == UNSET:
            self.silent_at = seq
        elif self.silent_at != seq:
            self.silent_at = MOVED

    def is_silent(self) -> bool:
        """Whether it sent nothing since its connection is captured: its number is known, and is what it was."""
        return self.stream == modes.UNSEEN and self.silent_at >= 0

    def has_hole(self) -> bool:
        """Something is still missing and may still come."""
        if self.stream == modes.RUNNING:
            return self.out_of_order.first is not None or self.acknowledged > self.next_offset
        return self.stream != modes.UNSEEN

    # --- bytes

    def comes_again(self, frame: Frame, seq: i64) -> bool:
        """Whether a segment of the first agent was sent before: it shows its bytes again, or fills a hole long after
        what follows there.
        """
        end = self.offset_of(seq) + frame.length
        if self.stream != modes.RUNNING or frame.length <= PROBE_BYTES or end > self.shown:
            return False
        first = self.out_of_order.first
        return end <= self.next_offset or (first is not None and frame.ts_ns - first.ts_ns >= REORDERED_NS)

    def receive(self, frame: Frame, seq: i64, agent_bit: i64, patient: bool) -> None:
        """The frame's payload begins at this sequence number. `patient`: what one of two agents left out may still be
        shown by the other.
        """
        if self.stream == modes.UNSEEN:
            self.stream = modes.HELD
            self._begin_in_middle(seq)
        begin = self.offset_of(seq)
        end = begin + frame.length
        frame.offset = begin
        if self.stream == modes.RUNNING and not -BELIEVABLE <= begin - self.next_offset <= BELIEVABLE:
            return
        if frame.cut > 0 and end > self.newest:  # one that comes again counts once
            self.cut_bytes += frame.cut
            self.cut_segments += 1
        if self.newest == begin < self.acknowledged:
            self.less_ns = max(self.less_ns, frame.ts_ns)
        self.newest = max(self.newest, end)
        self.show(end, agent_bit == 2)
        whole = frame.first_left == frame.end_left
        if self.last_gap is not None and begin < self.last_gap.end:
            self._store_late(self.last_gap, frame, begin, end, agent_bit)
        in_order = self.stream == modes.RUNNING and begin == self.next_offset and self.out_of_order.first is None
        if in_order and (whole or self.mode == modes.OFF):
            self.next_offset = end
            within = end <= self.message_end  # chunks of one message can be joined
            if self.mode != modes.OFF and not (within and self.ordered.grow(frame, begin, end)):
                chunk = Chunk(begin, end, DATA, frame.payload, frame.start)
                chunk.stamp(frame)
                self.ordered.append(chunk)
        else:
            self._store(self.out_of_order, frame, begin, end, agent_bit)
            self.catch_up(patient)
        if self.next_offset == end and self.out_of_order.first is None:
            self.shown_ns = max(self.shown_ns, frame.ts_ns)

    def _store_late(self, gap: LastGap, frame: Frame, begin: i64, end: i64, agent_bit: i64) -> None:
        """The payload lies in the last gap, or before it: what comes from its beginning on is held for a while."""
        gap.forget_old(frame.ts_ns)
        upto: i64 = gap.late.end if gap.late.count > 0 else gap.begin
        if begin <= upto < end:
            self._store(gap.late, frame, begin, end, agent_bit)

    def _store(self, into: OutOfOrder, frame: Frame, begin: i64, end: i64, agent_bit: i64) -> None:
        """Put the payload among what is out of order: what is kept of it, and what was left out."""
        at, start = begin, frame.start
        for k in range(frame.first_left, frame.end_left):
            left = min(max(begin + frame.left_offset(k), at), end)
            behind = min(max(left, begin + frame.left_offset(k) + frame.left_length(k)), end)
            self._add(into, frame, Chunk(at, left, DATA, frame.payload, start))
            missing = Chunk(left, behind, LEFT, b"", 0)
            missing.left_by = agent_bit
            self._add(into, frame, missing)
            start += left - at
            at = behind
        self._add(into, frame, Chunk(at, end, DATA, frame.payload, start))

    def _add(self, into: OutOfOrder, frame: Frame, chunk: Chunk) -> None:
        """What of a chunk of this frame is not part of the stream yet; of the last gap, what lies in it."""
        upto = self.next_offset
        if self.last_gap is not None and into is self.last_gap.late:
            upto = self.last_gap.begin
            chunk.end = min(chunk.end, self.last_gap.end)
        if self.stream == modes.RUNNING and chunk.begin < upto:
            chunk.start += upto - chunk.begin
            chunk.begin = upto
        if chunk.begin < chunk.end:
            chunk.stamp(frame)
            into.add(chunk)

    def catch_up(self, patient: bool) -> None:
        """Chunks that now continue the stream become part of it; not, if we are patient, what one of two agents left
        out.
        """
        if self.stream != modes.RUNNING:
            return
        taken: i64 = 0
        for chunk in self.out_of_order.chunks:
            if chunk.begin > self.next_offset or (patient and not left_out_for_good(chunk)):
                break
            taken += 1
            self.next_offset = chunk.end  # nothing is out of order that begins before it
            if self.mode != modes.OFF:
                self.put_in_order(chunk)
        self.out_of_order.discard(taken)

    def note_lacking(self, ts_ns: i64) -> None:
        """The peer acknowledged something at this time."""
        behind = self.out_of_order.first
        if behind is not None and self.stream == modes.RUNNING and self.acknowledged < behind.begin:
            self.lacking_ns = ts_ns

    def discard_first(self) -> None:
        """The first of what came out of order was never part of the stream: nothing between is missing for its sake."""
        self.out_of_order.discard(1)
        self.newest = max(self.next_offset, self.out_of_order.end)

    def kept_from(self) -> i64:
        """Where what is in order and not handed out yet begins."""
        return self.ordered.begin if self.ordered.first is not None else self.next_offset

    def go_back(self, gap: LastGap, acknowledged: i64, now: i64) -> None:
        """The last gap was none: the stream goes on where it begins. What was handed out is not read again."""
        handed_out, at = self.kept_from(), gap.begin
        before = self.ordered.detach(at)
        behind = self.ordered.detach(self.next_offset)
        waiting = self.out_of_order.chunks
        self.out_of_order.clear()
        for chunk in gap.late.chunks:
            self.out_of_order.add(chunk)
        for begin, end in gap.read_behind(self.next_offset):
            read = Chunk(begin, min(end, handed_out), GAP, b"", 0)
            read.ts_ns = read.ts_last_ns = now - 1  # before what its receiver says now
            if read.begin < read.end:
                self.out_of_order.add(read)
        while behind is not None:
            following = behind.next
            if behind.kind != GAP:
                self.out_of_order.add(behind)
            behind = following
        for chunk in waiting:
            self.out_of_order.add(chunk)
        self.ordered.begin = at
        while before is not None:
            following = before.next
            self.ordered.append(before)
            before = following
        self.next_offset = self.scanned = self.need = at
        self.newest = max(gap.late.end, acknowledged)
        self.acknowledged = acknowledged
        self.acknowledged_before.limit(acknowledged)
        self.shown = min(self.shown, self.newest)
        self.lacking_ns = now if acknowledged < gap.end else UNSET  # its receiver has not taken what lies behind

    def put_in_order(self, chunk: Chunk) -> None:
        """A chunk that was received, left out or never seen is next in order."""
        self.ordered.append(chunk)
        if chunk.kind == GAP and not self.gaps_have_length:
            self.unsure = True
            self.need = min(self.need, self.next_offset)

    def drop_unsure(self) -> bool:
        """Whether a gap of unknown length comes before the message's end: what there is of the message is given up."""
        self.unsure = gap_before(self.ordered.first, NEVER) >= 0
        end = gap_before(self.ordered.first, self.message_end)
        if end >= 0:
            self.drop(end)
        return end >= 0

    def begun_ns(self) -> i64:
        """When what is missing from here on may have been sent at the earliest; of a message that was begun, when it
        was. UNSET: that is not known.
        """
        first = self.ordered.first
        if self.mode != modes.IN_SYNC or self.message_begin >= self.next_offset or self.gap_end != UNSET:
            return self.shown_ns
        return first.ts_ns if first is not None and first.begin == self.message_begin else UNSET

    # --- message boundaries

    def expect_message(self, at: i64) -> None:
        """A message begins at this offset."""
        self.message_begin = at
        self.message_end = -1
        self.need = at + 4
        self.candidates = []

    def find_boundary(self, at: i64) -> None:
        self.mode = modes.IN_SYNC
        self.drop(at)
        self.expect_message(at)

    def lose_boundary(self) -> None:
        self.mode = modes.SEARCHING
        self.scanned = self.ordered.begin if self.ordered.first is not None else self.next_offset
        self.message_end = -1
        self.candidates = []
        self.rescans = 0

    def is_kafka(self) -> None:
        self.mode = modes.IN_SYNC

    def tap(self) -> None:
        """The caller takes the bytes in order; nothing is framed."""
        self.mode = modes.TAPPED

    def turn_off(self) -> None:
        """Not Kafka, or not readable: count its bytes, keep none."""
        self.mode = modes.OFF
        self.drop(self.next_offset)
        self.ordered.clear()

    def drop(self, upto: i64) -> None:
        """Give up the bytes before this offset: seen, and not understood."""
        unseen, begin = self.ordered.unseen_before(upto), self.ordered.begin
        if self.ordered.detach(upto) is not None:
            self.skipped_bytes += upto - begin - unseen

    def losses(self) -> i64:
        """Bytes of which we do not know what they were: whatever needed them is not to blame."""
        return self.unseen_bytes + self.skipped_bytes


def gap_before(chunk: Chunk | None, upto: i64) -> i64:
    """Where a gap ends that begins before this offset; -1 if there is none."""
    while chunk is not None and chunk.begin < upto:
        if chunk.kind == GAP:
            return chunk.end
        chunk = chunk.next
    return -1
