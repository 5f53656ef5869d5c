"""Both directions of every connection: frames in, exchanges out.

Knows: which endpoints use which row of the follower's memory, what one call hands out, and how the memory grows.
Refuses to know: how a frame changes a connection (walk.py and the modules it names), what time it is, what is wrong.
Rule: Python runs once per call and connection touched, never per frame; cutting the input into other calls, with or
without snapshot() and restore() between them, changes nothing.
"""

from __future__ import annotations

from ipaddress import ip_address

import numpy as np

from decode import checkpoint, slots
from decode.exchanges import Connection, Exchanges
from decode.handout import Handout
from decode.limits import Limits
from decode.segments import Segments, distinct, unique_pairs
from decode.slots import Frames, Ints, grown
from decode.walk import compact, follow, lapse, settle_touched
from decode.wire import known

__all__ = ["Connection", "Exchanges", "Follower", "Limits"]

End = tuple[str, int]
Pair = tuple[End, End, str]  # lower endpoint, higher endpoint, agent (only where addresses are not unique)
ARENA_SLACK = 1 << 20


class Follower:
    """Follows the connections of a whole capture or of one bucket of it."""

    def __init__(self, limits: Limits = Limits(), ports: frozenset[int] = frozenset()) -> None:  # noqa: B008 -- frozen
        self.limits = limits
        self.ports = ports
        self.label = ""
        self._names: dict[str, int] = {}
        self._slots: dict[Pair, int] = {}
        self._pairs: dict[int, Pair] = {}
        self._gaps: dict[int, list[tuple[int, int, int]]] = {}
        self._now: dict[str, int] = {}
        self._memory = slots.empty(limits.row(), known())

    def receive(self, segments: Segments) -> Exchanges:
        """Frames of one agent in their order, or of several agents."""
        if self.ports:
            segments = self._narrowed(segments)
        self.label = self.label or segments.label
        pairs, frames = self._frames(segments)
        self._begin(segments.payload)
        start, stop = 0, len(segments)
        while start < stop:
            start = follow(self._memory, frames, start, stop)
            if start < stop:
                self._grow()
        for pair, slot in zip(pairs, frames.slot.tolist(), strict=True):
            if slot >= 0 and self._slots.get(pair) != slot:
                self._slots[pair] = slot
        return self._hand_out(pairs)

    def advance(self, agent: str, now_ns: int) -> Exchanges:
        """The agent has shown everything up to now_ns."""
        self._now[agent] = max(now_ns, self._now.get(agent, now_ns))
        connection = self._memory.connection[: self._memory.whole[slots.G_CONN_TOP]]
        rows = np.flatnonzero(
            (connection[:, slots.C_DEADLINE] <= now_ns) & (connection[:, slots.C_STATE] != slots.FREE)
        )
        shown_by = connection[rows, slots.C_AGENT]
        return self._lapse(rows[shown_by == self._names.get(agent, -1)], now_ns, everything=False)

    def drain(self) -> Exchanges:
        """The capture has ended: everything still open is closed and said."""
        state = self._memory.connection[: self._memory.whole[slots.G_CONN_TOP], slots.C_STATE]
        return self._lapse(np.flatnonzero(state != slots.FREE), slots.UNSET, everything=True)

    def snapshot(self) -> bytes:
        pairs = [[slot, pair[0], pair[1], pair[2]] for slot, pair in self._pairs.items()]
        texts = {
            "label": self.label,
            "names": list(self._names),
            "pairs": pairs,
            "current": list(self._slots.values()),
            "gaps": list(self._gaps.items()),
            "now": self._now,
            "ports": sorted(self.ports),
        }
        return checkpoint.pack(self._memory, texts)

    @classmethod
    def restore(cls, blob: bytes, limits: Limits = Limits(), ports: frozenset[int] = frozenset()) -> Follower:  # noqa: B008
        """A follower that goes on where snapshot() was taken; ValueError if another version took it."""
        self = cls(limits, ports)
        self._memory, texts = checkpoint.unpack(blob, self._memory)
        self.label = texts["label"]
        self._names = {name: index for index, name in enumerate(texts["names"])}
        self._pairs = {slot: (tuple(low), tuple(high), agent) for slot, low, high, agent in texts["pairs"]}
        self._slots = {self._pairs[slot]: slot for slot in texts["current"]}
        self._gaps = {slot: [tuple(gap) for gap in gaps] for slot, gaps in texts["gaps"]}
        self._now = dict(texts["now"])
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
        if any(_reused(address) for address, _ in ends) and len(agents) and agents.min() != agents.max():
            shared, index = distinct(index.astype(np.int64) * len(names) + agents)
            keys, of_agent = keys[shared // len(names)], shared % len(names)
        else:
            of_agent = np.full(len(keys), agents[0] if len(agents) else 0)
        pairs: list[Pair] = []
        flipped = np.zeros(len(keys), np.bool_)
        for i, (key, agent) in enumerate(zip(keys.tolist(), of_agent.tolist(), strict=True)):
            low, high = ends[key // count], ends[key % count]
            flipped[i] = low > high
            name = segments.names[agent] if _reused(low[0]) else ""
            pairs.append((high, low, name) if low > high else (low, high, name))
        bit = (segments.src > segments.dst) ^ flipped[index]
        slot = np.array([self._slots.get(pair, -1) for pair in pairs], np.int64)
        return pairs, Frames(
            index, bit.astype(np.int8), slot, segments.ts_ns, segments.frame_no, names[segments.source], names[agents],
            segments.seq, segments.ack, segments.flags, segments.payload_len, segments.payload_at, segments.left_at,
            segments.left_offset, segments.left_length,
        )  # fmt: skip

    def _begin(self, payload: slots.Bytes) -> None:
        self._memory = self._memory._replace(payload=payload)
        self._memory.whole[slots.G_MESSAGES : slots.G_TOUCHED + 1] = 0
        self._memory.whole[slots.G_CALL] += 1

    def _lapse(self, rows: Ints, now_ns: int, *, everything: bool) -> Exchanges:
        self._begin(np.zeros(0, np.uint8))
        start = 0
        while start < len(rows):
            start = lapse(self._memory, rows, start, now_ns, everything)
            if start < len(rows):
                self._grow()
        return self._hand_out([])

    def _grow(self) -> None:
        m, whole = self._memory, self._memory.whole
        need = int(whole[slots.G_NEED])
        listed = int(whole[slots.G_PIECE_USED]) + need
        connection = grown(m.connection, int(whole[slots.G_CONN_TOP]), 1)
        # rows given back are below the highest ever used, so what is in use plus the need is enough room
        self._memory = m._replace(
            connection=connection,
            way=grown(m.way, len(m.connection) * 2, 2 * (len(connection) - len(m.connection))),
            touched=grown(m.touched, len(m.touched), len(connection) - len(m.touched)),
            piece=grown(m.piece, len(m.piece), listed - len(m.piece)),
            wait=grown(m.wait, len(m.wait), int(whole[slots.G_WAIT_USED]) + need - len(m.wait)),
            message=grown(m.message, int(whole[slots.G_MESSAGES]), need),
            exchange=grown(m.exchange, int(whole[slots.G_EXCHANGES]), need),
            gap=grown(m.gap, int(whole[slots.G_GAPS]), need),
            part=grown(m.part, int(whole[slots.G_PARTS]), listed),
            span=grown(m.span, int(whole[slots.G_SPANS]), listed),
        )

    def _hand_out(self, pairs: list[Pair]) -> Exchanges:
        m, whole = self._memory, self._memory.whole
        touched = m.touched[: whole[slots.G_TOUCHED]]
        rows = m.connection[touched]
        for slot, born, pair in zip(
            touched.tolist(), rows[:, slots.C_BORN].tolist(), rows[:, slots.C_PAIR].tolist(), strict=True
        ):
            if born == whole[slots.G_CALL]:
                self._pairs[slot] = pairs[pair]
        handout = Handout(m, touched, self._pairs, self._gaps)
        exchanges = handout.exchanges(self.label, tuple(self._names))
        self._settle(touched)
        self._give_back(touched[rows[:, slots.C_STATE] == slots.RELEASED].tolist())
        return exchanges

    def _settle(self, touched: Ints) -> None:
        """What waits for a later call leaves this call's payload."""
        m, whole = self._memory, self._memory.whole
        if len(m.payload):
            wanted = settle_touched(m, touched, False)
            if wanted:
                self._memory = m = m._replace(arena=grown(m.arena, int(whole[slots.G_ARENA]), wanted))
                settle_touched(m, touched, True)
        live, used = int(whole[slots.G_ARENA_LIVE]), int(whole[slots.G_ARENA])
        if used > 2 * live + ARENA_SLACK:
            arena = np.zeros(live + ARENA_SLACK, np.uint8)
            compact(m, int(whole[slots.G_CONN_TOP]), arena)
            self._memory = m._replace(arena=arena)
        self._memory = self._memory._replace(payload=np.zeros(0, np.uint8))

    def _give_back(self, released: list[int]) -> None:
        m, whole = self._memory, self._memory.whole
        for slot in released:
            pair = self._pairs.pop(slot)
            self._gaps.pop(slot, None)
            if self._slots.get(pair) == slot:
                del self._slots[pair]
            m.connection[slot, slots.C_STATE] = slots.FREE
            m.connection[slot, slots.C_NEXT] = whole[slots.G_CONN_FREE]
            whole[slots.G_CONN_FREE] = slot
            whole[slots.G_CONN_USED] -= 1


def _reused(address: str) -> bool:
    """Every host has this address: two agents never mean the same connection by it."""
    return address.startswith(("127.", "::1")) or (address.startswith("fe80:") and ip_address(address).is_link_local)
