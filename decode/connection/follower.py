"""Both directions of every connection: frames in, exchanges out.

Python runs once per call and touched connection, never per frame. Cutting the input into other calls, with or without
snapshot() and restore() between them, changes nothing.
"""

from __future__ import annotations

import json
from functools import lru_cache
from ipaddress import ip_address
from itertools import accumulate, compress, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from librt.vecs import vec
from mypy_extensions import u8

from wirecheck.decode.connection import handout
from wirecheck.decode.connection.connection import OTHER, ends_of, key_of
from wirecheck.decode.connection.exchanges import Connection, Exchanges
from wirecheck.decode.connection.framing.recognise import Known
from wirecheck.decode.connection.framing.without_records import WithoutRecords
from wirecheck.decode.connection.handout import Placed
from wirecheck.decode.connection.lifetime import decided, due, evict, expire, flush, to_evict, to_let_go
from wirecheck.decode.connection.limits import Limits
from wirecheck.decode.connection.output import PLACED
from wirecheck.decode.connection.segments import Segments, distinct, unique_pairs
from wirecheck.decode.connection.shared import MOST_AGENTS, Shared
from wirecheck.decode.connection.state import Parked
from wirecheck.decode.connection.stream.frame import NEVER, UNSET, WIDTH, Columns
from wirecheck.decode.connection.stream.modes import OPEN, RELEASED
from wirecheck.decode.connection.tracker import follow
from wirecheck.decode.interpret.interpreter import Interpreter
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.log.metadata_log import TOPIC_ID, TOPIC_NAME
from wirecheck.decode.peer import Conversation
from wirecheck.decode.wire import REQUEST, RESPONSE, known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from wirecheck.decode.connection import connection as followed
    from wirecheck.decode.connection.handout import InOrder

    Ints = NDArray[np.int64]


class Agents:
    """How far each has shown its traffic, and which are waited for; one silent for long is as good as ended."""

    def __init__(self, silent_ns: int) -> None:
        self._silent_ns = silent_ns
        self._now: dict[str, int] = {}
        self._ended: set[str] = set()

    def expect(self, agents: Iterable[str]) -> None:
        for agent in agents:
            self._now.setdefault(agent, UNSET)

    def advance(self, agent: str, now_ns: int, *, ended: bool) -> None:
        self._now[agent] = max(now_ns, self._now.get(agent, now_ns))
        (self._ended.add if ended else self._ended.discard)(agent)

    def gone(self) -> set[str]:
        newest = max(self._now.values(), default=0)
        return self._ended | {name for name, ts in self._now.items() if UNSET < ts < newest - self._silent_ns}

    def update(self, shared: Shared, names: dict[str, int]) -> None:
        """Write to `shared` which agents are not waited for, and how many are."""
        gone = self.gone()
        places = [names[name] for name in gone if name in names]
        shared.gone_agents = sum(1 << place for place in places if place < MOST_AGENTS)
        shared.agents = len(self._now.keys() - gone)

    def shown(self, names: dict[str, int]) -> NDArray[np.int64]:
        """By agent (index among the names), up to when all that is waited for has been shown; NEVER where nothing is.
        The last place stands for no agent.
        """
        gone = self.gone()
        shown = np.full(len(names) + 1, NEVER)
        for name, place in names.items():
            if name in self._now and name not in gone:
                shown[place] = self._now[name]
        return shown

    def stored(self) -> dict[str, Any]:
        return {"now": self._now, "ended": sorted(self._ended)}

    def restore(self, stored: dict[str, Any]) -> None:
        self._now, self._ended = dict(stored["now"]), set(stored["ended"])


STATE_VERSION = 8
"""Goes up with every change of an attribute (state.py), a text or a number."""
MAGIC = b"wirecheck connections %d\n" % STATE_VERSION
HEAD_BYTES = 8  # that hold the length of the head behind the magic


def pack(texts: dict[str, Any], numbers: Sequence[int], parked: Parked) -> bytes:
    """A follower's memory: texts, some numbers, and its connections."""
    lengths = [*map(len, parked.records.values())]
    head = json.dumps({"texts": texts, "numbers": numbers, "keys": parked.keys(), "lengths": lengths}).encode()
    return b"".join([MAGIC, len(head).to_bytes(HEAD_BYTES, "little"), head, *parked.records.values()])


def unpack(blob: bytes) -> tuple[dict[str, Any], list[int], Parked]:
    """Texts, numbers and connections. Raises ValueError where another version wrote the blob."""
    if not blob.startswith(MAGIC):
        raise ValueError(f"the checkpoint holds no connections of state version {STATE_VERSION}")
    at = len(MAGIC) + HEAD_BYTES
    length = int.from_bytes(blob[len(MAGIC) : at], "little")
    head = json.loads(blob[at : at + length])
    places = pairwise(accumulate(head["lengths"], initial=at + length))
    records = (blob[begin:end] for begin, end in places)
    return head["texts"], head["numbers"], Parked(zip(head["keys"], records, strict=True))


FETCH_SNAPSHOT, ENVELOPE = 59, 58  # carry the log or another message in what looks like content


def records_left_out() -> WithoutRecords:
    compiled = programs()
    records = [slot.number for slot in compiled.slots if slot.kind == Kind.RECORDS]
    kept = np.zeros(len(compiled.slots) + len(compiled.runs.stride), np.uint8)
    kept[records] = 1
    carrying = {
        (form.side, form.key)
        for form in compiled.names.values()
        if form.side in {REQUEST, RESPONSE}
        and form.key not in {FETCH_SNAPSHOT, ENVELOPE}
        and any(number in form.slots for number in records)
    }
    found = {
        (side, key, version): compiled.instructions[entry]
        for side, key in carrying
        for version, entry in enumerate(compiled.entries[Dialect.KAFKA, side, key].tolist())
        if entry >= 0
    }
    return WithoutRecords(Interpreter(vec[u8](kept.tobytes()), compiled.levels), found, [TOPIC_NAME.encode(), TOPIC_ID])


__all__ = ["Connection", "Exchanges", "Follower", "Limits"]


MOST_OBJECTS = 10_000
"""Connections that are kept as objects between two calls; they take some 5 kB each, parked ones some 300 bytes."""


class Follower:
    """Follows the connections of a whole capture or of one bucket of it."""

    def __init__(
        self,
        limits: Limits = Limits(),
        ports: frozenset[int] = frozenset(),
        *,
        early: bool = False,
        tapped: bool = False,
        contained: bool = False,
        without_records: bool = False,
    ) -> None:
        """`contained`: where following a connection raises, it is set aside and `failed` names it; all others go on.
        `early`: hand out a request when it is complete, its response alone later, no facts about connections,
        and large messages without their records (decode/connection/framing/without_records.py).
        That is what trimming asks for: it cannot wait for answers, and needs messages with their places only.
        `without_records`: only the last of these.
        `tapped`: frame nothing; after a call `taken` has what came in order, `over` which connections are over.
        """
        self.limits = limits
        self.ports = ports
        self.label = ""
        self.placed = Placed.none()
        self.taken: list[InOrder] = []
        self.over: list[int] = []
        self._names: dict[str, int] = {}
        self._agents = Agents(limits.silent_ns)
        lean = records_left_out() if early or without_records else None
        self._shared = Shared(limits, Known(*known().T.tolist()), lean)
        self._shared.early, self._shared.tapped, self._shared.contains = early, tapped, contained
        self.failed: list[tuple[str, str, Exception]] = []
        """Of the last call: agent, connection, and what was raised."""
        self._connections: dict[str, followed.Connection] = {}
        self._soonest = NEVER
        """No connection falls due before."""
        self._parked = Parked()

    def receive(self, segments: Segments) -> Exchanges:
        """Frames of one agent in their order, or of several agents."""
        if self.ports:
            segments = self._narrowed(segments)
        self.label = self.label or segments.label
        self.expect(segments.names[i] for i in np.flatnonzero(np.bincount(segments.agent)).tolist())
        keys, columns = self._columns(segments)
        shared = self._shared
        shared.output.begin(columns.payload)
        shared.frame.begin(columns)
        if 2 * shared.open > self.limits.connections:
            self._let_go()
        self._touch(keys)
        connections = [self._connections.get(key) for key in keys]
        start, count = 0, len(segments)
        while start < count:
            start = follow(shared, keys, connections, start, count)
            if self.pending > self.limits.pending_bytes:
                self._evict()
        self.placed = Placed(**handout.columns_of(shared.output.placed, PLACED))
        for connection in connections:
            if connection is not None:
                self._connections[connection.key] = connection
        found = self._hand_out()
        if len(self._connections) > MOST_OBJECTS and not self._shared.tapped:
            self._park()
        return found

    def expect(self, agents: Iterable[str]) -> None:
        """These agents may show what others show; one that is not expected is known by its frames."""
        self._agents.expect(agents)
        self._agents.update(self._shared, self._names)

    def advance(self, agent: str, now_ns: int, *, ended: bool = False) -> Exchanges:
        """The agent has shown everything up to now_ns, and nothing more will come of it if it has ended."""
        self._agents.advance(agent, now_ns, ended=ended)
        self._agents.update(self._shared, self._names)
        self._shared.output.begin(b"")
        shown = self._agents.shown(self._names)
        if self._soonest <= max(now_ns, int(shown[shown < NEVER].max(initial=now_ns))):
            soonest = self._touch_due(shown, now_ns)
            found, self._soonest = due(list(self._connections.values()), shown.tolist(), now_ns)
            self._soonest = min(self._soonest, soonest)
            for upto_ns, _, connection in sorted(found, key=lambda entry: entry[:2]):
                self._attempt(expire, connection, upto_ns)
                self._shared.recount(connection)
        return self._hand_out()

    def drain(self, most: int | None = None) -> Exchanges:
        """The capture has ended: everything still open, or so many of those that began first, is closed and handed
        out.
        """
        self._shared.output.begin(b"")
        where = self._parked_serials()
        first = sorted([*where, *(connection.serial for connection in self._connections.values())])[:most]
        self._touch([where[serial] for serial in first if serial in where])
        for connection in self._in_order()[: len(first)]:
            self._flush(connection)
        return self._hand_out()

    @property
    def open(self) -> int:
        """Connections that are followed."""
        return self._shared.open

    @property
    def refused(self) -> int:
        """Frames of connections that were not followed because too many were open, since the beginning."""
        return self._shared.refused

    @property
    def pending(self) -> int:
        """Memory of all that waits, as limits.pending_bytes bounds it."""
        return self._shared.pending

    def decided(self) -> Ints:
        """Rows (connection, direction, offset) of all that is open: every byte before it is handed out or given up."""
        objects = np.array(decided(list(self._connections.values())), np.int64).reshape(-1, 3)
        return np.concatenate((objects, self._parked.decided()))

    def snapshot(self) -> bytes:
        self._park()
        shared = self._shared
        texts = {"label": self.label, "names": list(self._names), "agents": self._agents.stored()}
        numbers = (shared.serial, shared.refused, shared.open, shared.pending, shared.frame.ts_ns, shared.early)
        return pack(texts, numbers, self._parked)

    @classmethod
    def restore(
        cls, blob: bytes, limits: Limits = Limits(), ports: frozenset[int] = frozenset(), *, contained: bool = False
    ) -> Follower:
        """A follower that goes on where snapshot() was taken; ValueError if another version took it."""
        texts, numbers, connections = unpack(blob)
        serial, refused, open_, pending, ts_ns, early = numbers
        self = cls(limits, ports, early=bool(early), contained=contained)
        shared = self._shared
        shared.serial, shared.refused, shared.open, shared.pending = serial, refused, open_, pending
        shared.frame.ts_ns = ts_ns
        self.label = texts["label"]
        self._names = {name: index for index, name in enumerate(texts["names"])}
        self._agents.restore(texts["agents"])
        self._agents.update(shared, self._names)
        self._parked = connections
        self._soonest = connections.columns()["deadline_ns"].min(initial=NEVER)
        return self

    # --- one call

    def _narrowed(self, segments: Segments) -> Segments:
        chosen = np.array([port in self.ports for _, port in segments.endpoints], np.bool_)
        return segments.take(chosen[segments.src] | chosen[segments.dst])

    def _columns(self, segments: Segments) -> tuple[list[str], Columns]:
        """Keys of the call's pairs of endpoints, and its frames with their place among them."""
        names = np.array([self._names.setdefault(name, len(self._names)) for name in segments.names], np.int64)
        ends, count = segments.endpoints, max(len(segments.endpoints), 1)
        pairs, index = unique_pairs(segments.src, segments.dst, count)
        agents = segments.agent
        of_agent = np.full(len(pairs), agents[0] if len(agents) else 0)
        if len(agents) and agents.min() != agents.max():
            apart = np.array([_reused(min(ends[pair // count], ends[pair % count])[0]) for pair in pairs.tolist()])
            shared, index = distinct(index.astype(np.int64) * len(names) + np.where(apart[index], agents, 0))
            pairs, of_agent = pairs[shared // len(names)], shared % len(names)
        keys: list[str] = []
        flipped = np.zeros(len(pairs), np.bool_)
        for i, (pair, agent) in enumerate(zip(pairs.tolist(), of_agent.tolist(), strict=True)):
            low, high = ends[pair // count], ends[pair % count]
            flipped[i] = low > high
            name = segments.names[agent] if _reused(low[0]) else ""
            keys.append(key_of(high, low, name) if low > high else key_of(low, high, name))
        begin, payload = segments.kept_bytes()
        rows = np.empty((WIDTH, len(segments)), np.int64)
        columns: tuple[NDArray[Any], ...] = (
            index, (segments.src > segments.dst) ^ flipped[index], segments.ts_ns, segments.frame_no,
            names[segments.source], names[agents], segments.seq, segments.ack, segments.flags, segments.payload_len,
            segments.payload_at[:-1], segments.payload_at[1:], segments.left_at[:-1], segments.left_at[1:],
            segments.cut, segments.run, segments.window,
        )  # fmt: skip
        for row, column in zip(rows, columns, strict=True):
            row[:] = column
        rows[10:12] -= begin
        left = np.stack((segments.left_offset, segments.left_length), axis=1).astype(np.int64, copy=False)
        return keys, Columns(len(segments), rows.tobytes(), payload, left.tobytes())

    def _attempt(self, step: Callable[..., None], connection: followed.Connection, *more: int) -> bool:
        """Whether a step of one connection did not raise."""
        self._shared.output.mark()
        try:
            step(self._shared, connection, *more)
        except Exception as error:  # noqa: BLE001 -- whatever foreign bytes can bring about
            self._shared.set_aside(connection, error)
            return False
        return True

    def _flush(self, connection: followed.Connection) -> None:
        if not self._attempt(flush, connection):  # nothing is left of it that could raise
            flush(self._shared, connection)

    def _hand_out(self) -> Exchanges:
        shared = self._shared
        names = tuple(self._names)
        self.failed = [
            (names[one.agent], str(Conversation(*ends_of(one.key))), error) if one is not None else ("", "", error)
            for one, error in shared.failed
        ]
        shared.failed = []
        found = handout.exchanges(shared.output, self.label, names, shared.refused, facts=not shared.early)
        payload = shared.frame.payload
        if shared.tapped:
            self.taken, self.over = handout.in_order(shared.output.touched)
        for connection in shared.output.touched:
            connection.touched = -1
            if connection.life == RELEASED:
                shared.open -= 1
                if self._connections.get(connection.key) is connection:
                    del self._connections[connection.key]
            else:
                connection.keep(payload)
                self._soonest = min(self._soonest, connection.deadline_ns)
        shared.output.begin(b"")
        shared.frame.forget()
        return found

    def turn_off(self, key: str) -> None:
        """Count the bytes of a tapped connection from now on, without keeping them."""
        connection = self._connections.get(key)  # one that is tapped is never parked
        if connection is not None and connection.life == OPEN:
            connection.turn_off(OTHER)

    def _in_order(self) -> list[followed.Connection]:
        """All that are objects, in the order they began."""
        return sorted(self._connections.values(), key=lambda connection: connection.serial)

    # --- what is an object, and what is parked

    def _touch(self, keys: Iterable[str]) -> None:
        """Those of these connections that are parked become objects."""
        for connection in self._parked.take(keys):
            self._connections[connection.key] = connection

    def _touch_due(self, shown: Ints, now_ns: int) -> int:
        """Those that fall due become objects; the soonest deadline of the others that are parked."""
        asked = self._parked.columns()
        upto = np.minimum(shown[asked["agent"]], shown[asked["second_agent"]])
        falls_due = asked["deadline_ns"] <= np.where(upto == NEVER, now_ns, upto)
        self._touch(compress(self._parked.keys(), falls_due.tolist()))
        return int(asked["deadline_ns"][~falls_due].min(initial=NEVER))

    def _park(self) -> None:
        self._parked.park(self._in_order())
        self._connections = {}

    # --- too much

    def _evict(self) -> None:
        """Have connections give up what waits on them until a quarter of `pending_bytes` is free."""
        rows = self._attributes("serial", "pending", "protocol", "life")
        kept = [(serial, held, protocol) for serial, held, protocol, life in rows if life == OPEN]
        for connection in self._by_serial(to_evict(kept, self.pending, self.limits.pending_bytes)):
            self._attempt(evict, connection)

    def _let_go(self) -> None:
        """Close connections that never showed Kafka, as far as there are any, down to a quarter of the bound."""
        rows = self._attributes("serial", "life", "protocol", "last_ns")
        found = [(serial, life != OPEN, protocol, last_ns) for serial, life, protocol, last_ns in rows]
        for connection in self._by_serial(to_let_go(found, self._shared.open - self.limits.connections // 4)):
            self._flush(connection)

    def _objects(self) -> dict[int, followed.Connection]:
        """All connections that are objects, by serial; those that this call opened or closed among them."""
        return {c.serial: c for c in (*self._connections.values(), *self._shared.output.touched)}

    def _attributes(self, *names: str) -> list[tuple[int, ...]]:
        """These attributes of every connection, object or parked, sorted by the first of them (`serial`)."""
        parked = self._parked.columns()
        rows = [tuple(getattr(connection, name) for name in names) for connection in self._objects().values()]
        return sorted([*rows, *zip(*(parked[name].tolist() for name in names), strict=True)])

    def _by_serial(self, serials: list[int]) -> list[followed.Connection]:
        """The connections with these serials, as objects, in this order."""
        parked = self._parked_serials()
        self._touch([parked[serial] for serial in serials if serial in parked])
        objects = self._objects()
        return [objects[serial] for serial in serials]

    def _parked_serials(self) -> dict[int, str]:
        return dict(zip(self._parked.columns()["serial"].tolist(), self._parked.keys(), strict=True))


@lru_cache(1 << 16)
def _reused(address: str) -> bool:
    """Whether every host has this address (loopback, link-local): two agents never mean the same connection by it."""
    return address.startswith(("127.", "::1")) or (address.startswith("fe80:") and ip_address(address).is_link_local)
