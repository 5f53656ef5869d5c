"""Both directions of every connection: frames in, exchanges out.

Knows: which endpoints use which row of the follower's memory, what one call hands out, and how the memory grows.
Refuses to know: how a frame changes a connection (walk.py and the modules it names), what time it is, what is wrong.
Rule: Python runs once per call and connection touched, never per frame; cutting the input into other calls, with or
without snapshot() and restore() between them, changes nothing.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode.connection import eviction
from wirecheck.decode.connection.agents import Agents
from wirecheck.decode.connection.exchanges import Connection, Exchanges
from wirecheck.decode.connection.handout import Handout, nothing
from wirecheck.decode.connection.limits import Limits
from wirecheck.decode.connection.places import Placed
from wirecheck.decode.connection.segments import Segments, distinct, unique_pairs
from wirecheck.decode.connection.state import checkpoint, slots
from wirecheck.decode.connection.state.heap import give_connection
from wirecheck.decode.connection.state.kernels import follow, lapse, pack, relieve, settle, touched, unsettled
from wirecheck.decode.connection.state.retention import spare_words
from wirecheck.decode.connection.state.slots import Frames, Ints
from wirecheck.decode.wire import known

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["Connection", "Exchanges", "Follower", "Limits"]

End = tuple[str, int]
Pair = tuple[End, End, str]  # lower endpoint, higher endpoint, agent (only where addresses are not unique)
SLACK = 1 << 20  # words or bytes


class Follower:
    """Follows the connections of a whole capture or of one bucket of it."""

    def __init__(
        self,
        limits: Limits = Limits(),
        ports: frozenset[int] = frozenset(),
        *,
        early: bool = False,
    ) -> None:
        """`early`: hand out a request when it is complete, its response alone later, no facts about connections,
        and large messages without their records (decode/connection/without_records.py).

        That is what trimming asks for: it cannot wait for answers, and needs messages with their places only.
        """
        self.limits = limits
        self.ports = ports
        self.label = ""
        self._names: dict[str, int] = {}
        self._slots: dict[Pair, int] = {}
        self._pairs: dict[int, Pair] = {}
        self._gaps: dict[int, list[tuple[int, int, int]]] = {}
        self._agents = Agents(limits.silent_ns)
        self._heap = slots.empty_heap(limits.row(), known())
        self._new = slots.no_bytes()
        self._old = slots.empty_arena()
        self._heap[slots.G_EARLY] = early
        self.placed = Placed.none()

    def receive(self, segments: Segments) -> Exchanges:
        """Frames of one agent in their order, or of several agents."""
        if self.ports:
            segments = self._narrowed(segments)
        self.label = self.label or segments.label
        self.expect(segments.names[i] for i in np.flatnonzero(np.bincount(segments.agent)).tolist())
        pairs, frames = self._frames(segments)
        before = frames.slot.copy()
        self._begin(slots.fixed(segments.payload, np.uint8))
        self.placed = Placed(*frames.where.T)
        if eviction.too_many(self._heap):
            self._each(lapse, eviction.let_go(self._heap, self._rows()), slots.UNSET)
        start = 0
        while start < len(segments):
            start = follow(self._heap, self._new, self._old, frames, start)
            self._grow(start < len(segments))
            if eviction.too_much(self._heap):
                rows = np.union1d(self._rows(), touched(self._heap))
                self._each(relieve, eviction.giving_way(self._heap, rows))
        for i in np.flatnonzero(frames.slot != before).tolist():
            self._slots[pairs[i]] = int(frames.slot[i])
        return self._hand_out(pairs)

    def expect(self, agents: Iterable[str]) -> None:
        """These agents may show what others show; one that is not expected is known by its frames."""
        self._agents.expect(agents)
        self._agents.tell(self._heap, self._names)

    def advance(self, agent: str, now_ns: int, *, ended: bool = False) -> Exchanges:
        """The agent has shown everything up to now_ns, and nothing more will come of it if it has ended."""
        self._agents.advance(agent, now_ns, ended=ended)
        self._agents.tell(self._heap, self._names)
        rows = self._rows()
        upto = self._agents.upto(self._heap, rows, self._names, now_ns)
        due = self._heap[rows + slots.C_DEADLINE] <= upto
        return self._lapse(rows[due], upto[due])

    def drain(self) -> Exchanges:
        """The capture has ended: everything still open is closed and said."""
        rows = self._rows()
        return self._lapse(rows, np.full(len(rows), slots.UNSET))

    @property
    def refused(self) -> int:
        """Frames of connections that were not followed because too many were open, since the beginning."""
        return int(self._heap[slots.G_REFUSED])

    def decided(self) -> Ints:
        """Rows (connection, direction, offset) of all that is open: every byte before it is handed out or given up."""
        heap, rows = self._heap, self._rows()
        rows = rows[heap[rows + slots.C_STATE] == slots.LIVE]
        found = []
        for side in (0, 1):
            w = rows + slots.C_COUNT + side * slots.W_COUNT
            mode = heap[w + slots.W_MODE]
            at = np.where(heap[w + slots.W_HEAD] >= 0, heap[w + slots.W_FROM], heap[w + slots.W_NEXT])
            at = np.where(mode == slots.OFF, heap[w + slots.W_NEXT], at)
            first = heap[rows + slots.C_ANSWERS]  # answers whose requests may still come are handed out with them
            answers = (first >= 0) & (heap[rows + slots.C_CLIENT] == 1 - side)
            at = np.where(answers, np.minimum(at, heap[np.maximum(first, 0) + slots.Q_AT]), at)
            serial = heap[rows + slots.C_SERIAL]
            found.append(np.stack([serial, np.full(len(rows), side), at], axis=1))
        return np.concatenate(found)

    def snapshot(self) -> bytes:
        self._pack(0)
        pairs = [[row, pair[0], pair[1], pair[2]] for row, pair in self._pairs.items()]
        texts = {
            "label": self.label,
            "names": list(self._names),
            "pairs": pairs,
            "current": list(self._slots.values()),
            "gaps": list(self._gaps.items()),
            "agents": self._agents.stored(),
        }
        top, used = int(self._heap[slots.G_TOP]), int(self._heap[slots.G_ARENA])
        return checkpoint.pack(self._heap[:top], self._old[:used], texts)

    @classmethod
    def restore(cls, blob: bytes, limits: Limits = Limits(), ports: frozenset[int] = frozenset()) -> Follower:
        """A follower that goes on where snapshot() was taken; ValueError if another version took it."""
        self = cls(limits, ports)
        heap, self._old, texts = checkpoint.unpack(blob)
        for fixed in (slice(slots.LIMITS, slots.LIMITS_END), slice(slots.KNOWN_KEYS, slots.KNOWN + known().size)):
            heap[fixed] = self._heap[fixed]
        self._heap = heap
        self.label = texts["label"]
        self._names = {name: index for index, name in enumerate(texts["names"])}
        self._pairs = {row: (_end(low), _end(high), agent) for row, low, high, agent in texts["pairs"]}
        self._slots = {self._pairs[row]: row for row in texts["current"]}
        self._gaps = {row: [tuple(gap) for gap in gaps] for row, gaps in texts["gaps"]}
        self._agents.restore(texts["agents"])
        return self

    # --- one call

    def _narrowed(self, segments: Segments) -> Segments:
        wanted = np.array([port in self.ports for _, port in segments.endpoints], np.bool_)
        return segments.take(wanted[segments.src] | wanted[segments.dst])

    def _frames(self, segments: Segments) -> tuple[list[Pair], Frames]:
        """The call's pairs of endpoints, and its frames with their place among them."""
        names = np.array([self._names.setdefault(name, len(self._names)) for name in segments.names], np.int32)
        ends, count = segments.endpoints, max(len(segments.endpoints), 1)
        keys, index = unique_pairs(segments.src, segments.dst, count)
        agents = segments.agent if len(segments) else np.zeros(0, np.int32)
        of_agent = np.full(len(keys), agents[0] if len(agents) else 0)
        if len(agents) and agents.min() != agents.max():
            apart = np.array([_reused(min(ends[key // count], ends[key % count])[0]) for key in keys.tolist()])
            shared, index = distinct(index.astype(np.int64) * len(names) + np.where(apart[index], agents, 0))
            keys, of_agent = keys[shared // len(names)], shared % len(names)
        pairs: list[Pair] = []
        flipped = np.zeros(len(keys), np.bool_)
        for i, (key, agent) in enumerate(zip(keys.tolist(), of_agent.tolist(), strict=True)):
            low, high = ends[key // count], ends[key % count]
            flipped[i] = low > high
            name = segments.names[agent] if _reused(low[0]) else ""
            pairs.append((high, low, name) if low > high else (low, high, name))
        bit = (segments.src > segments.dst) ^ flipped[index]
        slot = np.array([self._slots.get(pair, -1) for pair in pairs], np.int64)
        numbers: tuple[NDArray[Any], ...] = (
            segments.ts_ns, segments.frame_no, names[segments.source], names[agents], segments.seq, segments.ack,
            segments.flags, segments.payload_len, segments.payload_at, segments.left_at,
            np.stack([segments.left_offset, segments.left_length], axis=1),
        )  # fmt: skip
        kinds = (np.int64, np.int64, np.int32, np.int32, np.int64, np.int64, np.int32, *[np.int64] * 4)
        columns = [slots.fixed(array, kind) for array, kind in zip(numbers, kinds, strict=True)]
        where = np.full((len(segments), 3), -1, np.int64)
        arrays = [slot, slots.fixed(index, np.int32), slots.fixed(bit, np.int8), *columns, where]
        return pairs, Frames(*arrays)

    def _rows(self) -> Ints:
        """Where the connections lie, in the order they began."""
        return np.fromiter(self._pairs, np.int64, len(self._pairs))

    def _begin(self, payload: slots.Bytes) -> None:
        self._new = payload
        self._heap[slots.G_MESSAGES : slots.G_TOUCHED_COUNT + 1] = 0
        self._heap[slots.G_TOUCHED] = -1
        self._heap[slots.G_CALL] += 1

    def _lapse(self, rows: Ints, upto: Ints) -> Exchanges:
        if not len(rows):
            return nothing(self.label, tuple(self._names), self.refused)
        self._begin(slots.no_bytes())
        for now_ns in np.unique(upto).tolist():
            self._each(lapse, rows[upto == now_ns], now_ns)
        return self._hand_out([])

    def _each(self, kernel: Any, rows: Ints, *more: int) -> None:
        start = 0
        while start < len(rows):
            start = kernel(self._heap, self._new, self._old, rows, start, *more)
            self._grow(start < len(rows))

    def _grow(self, wanted: bool) -> None:
        if wanted:
            top = int(self._heap[slots.G_TOP])
            self._heap = slots.grown(self._heap, top, top + int(self._heap[slots.G_NEED]))

    def _hand_out(self, pairs: list[Pair]) -> Exchanges:
        heap = self._heap
        rows = touched(heap)
        new = rows[heap[rows + slots.C_BORN] == heap[slots.G_CALL]]
        for row, pair in zip(new.tolist(), heap[new + slots.C_PAIR].tolist(), strict=True):
            self._pairs[row] = pairs[pair]
        exchanges = Handout(heap, rows, self._pairs, self._gaps).exchanges(
            self.label, tuple(self._names), self._new, self._old
        )
        released = rows[heap[rows + slots.C_STATE] == slots.RELEASED]
        self._keep(rows)
        self._give_back(released.tolist())
        self._pack(SLACK)
        return exchanges

    def _keep(self, rows: Ints) -> None:
        """What waits for a later call leaves this call's payload."""
        if len(self._new):
            wanted = unsettled(self._heap, rows)
            used = int(self._heap[slots.G_ARENA])
            self._old = slots.grown(self._old, used, used + wanted)
            settle(self._heap, self._new, self._old, rows)
        self._new = slots.no_bytes()

    def _give_back(self, released: list[int]) -> None:
        heap = self._heap
        for row in released:
            pair = self._pairs.pop(row)
            self._gaps.pop(row, None)
            if self._slots.get(pair) == row:
                del self._slots[pair]
            give_connection(heap, row)

    def _pack(self, slack: int) -> None:
        """Pack heap and arena if more than half of one is empty, and more than `slack`."""
        heap = self._heap
        top, spare = int(heap[slots.G_TOP]), spare_words(heap)
        used, live = int(heap[slots.G_ARENA]), int(heap[slots.G_ARENA_LIVE])
        if 2 * spare <= top + 2 * slack and used <= 2 * live + slots.SCRATCH_BYTES + slack:
            return
        rows = self._rows()
        other = np.zeros(2 * (top - spare) + 1024, np.int64)
        arena = np.zeros(slots.SCRATCH_BYTES + 2 * live + 1024, np.uint8)
        moved = pack(heap, self._old, rows, other, arena).tolist()
        to = dict(zip(rows.tolist(), moved, strict=True))
        self._heap, self._old = other, arena
        self._pairs = {to[row]: pair for row, pair in self._pairs.items()}
        self._slots = {pair: to[row] for pair, row in self._slots.items()}
        self._gaps = {to[row]: gaps for row, gaps in self._gaps.items()}


def _end(end: list[Any]) -> End:
    return str(end[0]), int(end[1])


@lru_cache(1 << 16)
def _reused(address: str) -> bool:
    """Every host has this address: two agents never mean the same connection by it."""
    return address.startswith(("127.", "::1")) or (address.startswith("fe80:") and ip_address(address).is_link_local)
