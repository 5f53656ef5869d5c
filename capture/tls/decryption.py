"""Rows in, the same rows out, with plain payloads where the keys are at hand: TLS is undone here.

Knows: which rows are of which TLS connection and wait for what; the follower puts their bytes in order and says what
is missing, as it does for Kafka's.
Refuses to know: what the plain bytes are, and what of them may be kept (trim does, which comes next).
Rule: rows leave in the order they came, and wait no longer than their records; a row of a connection that nobody opens
is untouched. Every row of one that is opened changes: its numbers count plain bytes until plain_rows.py puts them back.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.capture import frames
from wirecheck.capture.tls.joining import Budget
from wirecheck.capture.tls.plain_rows import UNKNOWN, Columns, Known, Payloads, first_waiting, needs, plain_rows
from wirecheck.capture.tls.tls_connection import Sessions, TlsConnection
from wirecheck.capture.trim.pending_rows import array, vector
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.segments import segments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirecheck.capture.tls.key_log import Secrets
    from wirecheck.capture.tls.plain_rows import PlainRows
    from wirecheck.decode.connection.handout import Placed
    from wirecheck.decode.connection.segments import Segments


class Batch:
    """Rows that came together; `taken` of them have left. Marks have no segments, and wait for nothing."""

    def __init__(self, rows: pa.RecordBatch, segs: Segments | None, placed: Placed | None) -> None:
        self.rows, self.taken = rows, 0
        self.bytes = int(rows.column("payload_len").to_numpy().sum())
        self.columns: Columns | None = None
        self.oldest: dict[int, int] = {}
        """Of each direction (twice the connection's number, and its side) the least offset of a payload."""
        self.connections: set[int] = set()
        """Numbers of those that rows are of."""
        if segs is not None and placed is not None:
            self.columns = _columns(segs, placed)
            first, data = segs.kept_bytes()
            self._payloads = Payloads(data, vector(segs.payload_at - first), vector(segs.left_at))
            self.oldest, self.connections = _oldest(placed), set(np.unique(placed.serial).tolist())

    @property
    def oldest_ns(self) -> int:
        return int(self.rows.column("ts_ns").to_numpy()[self.taken :].min(initial=frames.LATEST_NS))

    def ready(self, known: dict[int, Known]) -> int:
        """The first row that waits."""
        if self.columns is None or not known:
            return len(self.rows)
        return first_waiting(self.columns, self.taken, known)

    def take(self, upto: int, known: dict[int, Known]) -> pa.RecordBatch:
        """The rows up to this one that have not left."""
        first, self.taken = self.taken, upto
        rows = self.rows.slice(first, upto - first)
        if self.columns is None or not known:
            return rows
        made = plain_rows(self.columns, self._payloads, first, upto, known)
        return _replaced(rows, made) if array(made.is_plain).any() else rows


def _replaced(rows: pa.RecordBatch, made: PlainRows) -> pa.RecordBatch:
    """The rows with the plain bytes in place of the encrypted ones."""
    number, is_plain = array(made.row), array(made.is_plain).astype(np.bool_)
    if len(number) != len(rows):  # some have a hole in their middle
        rows = rows.take(pa.array(number))
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    for name, values in (
        ("tcp_seq", made.seq), ("tcp_ack", made.ack), ("tcp_flags", made.flags), ("payload_len", made.size),
    ):  # fmt: skip
        column = columns[name]
        columns[name] = pa.array(np.where(is_plain, array(values), column.to_numpy()), column.type)
    mask = pa.array(is_plain)
    columns["payload"] = pc.replace_with_mask(columns["payload"], mask, _payloads(made))
    columns["left_out"] = pc.if_else(mask, pa.scalar([], columns["left_out"].type), columns["left_out"])
    columns["decrypted"] = pc.or_(columns["decrypted"], mask)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=rows.schema)


def _payloads(made: PlainRows) -> pa.BinaryArray:
    size = array(made.size)[array(made.is_plain) != 0]
    at = np.zeros(len(size) + 1, np.int32)
    np.cumsum(size, out=at[1:])
    buffers = [None, pa.py_buffer(at), pa.py_buffer(b"".join(made.pieces.data))]
    return pa.BinaryArray.from_buffers(pa.binary(), len(size), buffers)


def oldest_offsets(batches: Iterable[Batch]) -> dict[int, int]:
    """Of each direction that any of their rows carries bytes of, the least offset of these."""
    waiting: dict[int, int] = {}
    for batch in batches:
        for name, offset in batch.oldest.items():
            waiting[name] = min(offset, waiting.get(name, offset))
    return waiting


def _columns(segs: Segments, placed: Placed) -> Columns:
    where = vector(placed.serial), vector(placed.direction), vector(placed.offset)
    columns = Columns(where, (vector(segs.seq), vector(segs.ack), vector(segs.flags)))
    columns.carry(vector(segs.payload_len))
    return columns


def _oldest(placed: Placed) -> dict[int, int]:
    there = np.flatnonzero((placed.serial >= 0) & (placed.offset >= 0))
    if not len(there):
        return {}
    stream = 2 * placed.serial[there] + placed.direction[there]
    order = np.lexsort((placed.offset[there], stream))
    names, first = np.unique(stream[order], return_index=True)
    return dict(zip(names.tolist(), placed.offset[there][order][first].tolist(), strict=True))


SECOND = 1_000_000_000
LATENESS_NS = 1 * SECOND  # as trim has it
WAIT_NS = 10 * SECOND  # of a record that is being put together: slow links, and holes that are still to be filled
KEY_NS = 5 * SECOND  # of a key that is still to be written
JOIN_NS = 2 * SECOND  # of what opens a connection that is older than the capture
WHOLE = 1 << 32
MOST_BYTES = 64 << 20  # of all rows that wait


class Decryption:
    """One agent's rows. `add` gives back what is decided; `drain` the rest, when nothing more comes."""

    def __init__(self, secrets: Secrets, budget: Budget | None = None) -> None:
        self._secrets, self._sessions, self._budget = secrets, Sessions(), budget or Budget()
        self._joining: set[int] = set()  # connections that may be older than the capture
        self._follower = Follower(tapped=True)
        self._connections: dict[int, Known] = {}
        self._settled: set[int] = set()  # connections that stay as they are
        self._over: set[int] = set()
        self._batches: deque[Batch] = deque()
        self._waiting_bytes = 0
        self._drains = False  # nothing waits any more
        self._newest_ns = 0
        self._stamp = frames.Stamp("", "")
        self._told: Counter[str] = Counter()
        self._lines = 0  # of the key logs, when keys were last looked for
        self.decrypted = 0
        """Connections of which a record was opened."""
        self.failures: Counter[str] = Counter()
        """TLS connections that stay encrypted, by the reason."""

    @property
    def oldest_ns(self) -> int | None:
        """Time of the oldest row that waits; None if none does."""
        return min((batch.oldest_ns for batch in self._batches), default=None)

    def add(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._use_new_keys()
        if (rows.column("kind").to_numpy() != frames.FRAME).any():
            for part, is_mark in _split(rows):
                if is_mark:
                    self._keep_marks(part)
                else:
                    self._follow(part)
        else:
            self._follow(rows)
        yield from self._decided()

    def advance(self, agent: str, now_ns: int) -> Iterator[pa.RecordBatch]:
        """The agent has shown everything up to now_ns."""
        self._newest_ns = max(self._newest_ns, now_ns)
        self._use_new_keys()
        self._follower.advance(agent, self._newest_ns - LATENESS_NS)
        self._read()
        self._tell_failures()
        yield from self._decided()

    def drain(self) -> Iterator[pa.RecordBatch]:
        self._end_all()
        self._drains = True
        yield from self._decided()

    def _keep_marks(self, rows: pa.RecordBatch) -> None:
        self._stamp = frames.Stamp(rows.column("cluster")[0].as_py(), rows.column("agent")[0].as_py())
        ended = np.flatnonzero(rows.column("kind").to_numpy() == frames.ENDED)
        if len(ended):  # nothing comes behind it
            self._end_all()
            self._wait(Batch(rows.slice(0, ended[0]), None, None))
            self._tell_failures()
            rows = rows.slice(ended[0])
        self._wait(Batch(rows, None, None))

    def _tell_failures(self) -> None:
        """As marks among the rows, for the job that judges them."""
        news = self.failures - self._told
        self._told = self.failures.copy()
        marks = [frames.Mark(frames.UNDECRYPTED, self._newest_ns, None, n, why) for why, n in sorted(news.items())]
        if marks:
            self._wait(Batch(frames.mark_rows(marks, self._stamp), None, None))

    def _end_all(self) -> None:
        self._follower.drain()
        self._read()
        for serial, known in list(self._connections.items()):
            known.tls.stop_waiting_for_key()
            self._end(serial)

    # --- bytes

    def _follow(self, rows: pa.RecordBatch) -> None:
        table = segments(pa.Table.from_batches([rows]))
        self._follower.receive(table)
        placed = self._follower.placed
        self._begin_new(placed)
        self._wait(Batch(rows, table, placed))
        self._newest_ns = max(self._newest_ns, int(table.ts_ns.max(initial=0)))
        self._read()
        self._learn_bases(table, placed)
        for agent in {table.names[i] for i in np.flatnonzero(np.bincount(table.agent)).tolist()}:
            self._follower.advance(agent, self._newest_ns - LATENESS_NS)
            self._read()

    def _read(self) -> None:
        """What the follower has put in order goes to its connection."""
        touched: dict[int, Known] = {}
        for run in self._follower.taken:
            if (known := self._connections.get(run.serial)) is None:
                continue
            known.key = run.key
            known.tls.feed(run.side, run.begin, run.end, run.data)
            touched[run.serial] = known
        for serial, known in touched.items():
            self._run(serial, known)
        for serial in self._follower.over:
            self._end(serial)

    def _run(self, serial: int, known: Known) -> None:
        was_open = known.is_open
        known.tls.run()
        self._note(serial, known, was_open=was_open)

    def _note(self, serial: int, known: Known, *, was_open: bool) -> None:
        if known.tls.is_joining:
            self._joining.add(serial)
        else:
            self._joining.discard(serial)
        if known.is_open and not was_open:
            self.decrypted += 1
        self._let_go_if_failed(serial)

    def _use_new_keys(self) -> None:
        """Of connections whose handshake came before their key, or before the capture."""
        self._budget.earn(self._newest_ns)
        for serial in list(self._joining):
            self._run(serial, self._connections[serial])
        if self._lines != self._secrets.lines:
            self._lines = self._secrets.lines
            for serial, known in list(self._connections.items()):
                if known.tls.waits_for_key:
                    self._run(serial, known)
                    if serial in self._over:
                        self._end(serial)

    def _begin_new(self, placed: Placed) -> None:
        """Rows of connections that carry bytes wait until it is known what these are."""
        for serial in np.unique(placed.serial[placed.offset >= 0]).tolist():
            if serial not in self._connections and serial not in self._settled:
                tls = TlsConnection(self._secrets, self._sessions, self._budget)
                self._connections[serial] = Known(tls, tls.streams)

    def _end(self, serial: int) -> None:
        """Nothing more comes of it: what is not decided will not be."""
        known = self._connections.get(serial)
        if known is not None:
            self._over.add(serial)
            if known.tls.waits_for_key:  # a short one: its rows wait on
                return
            was_open = known.is_open
            known.tls.end()
            self._note(serial, known, was_open=was_open)
        self._settled.discard(serial)

    def _let_go_if_failed(self, serial: int) -> None:
        known = self._connections[serial]
        if known.is_open or not (known.tls.failure or known.tls.foreign):
            return
        if known.tls.failure:
            self.failures[known.tls.failure] += 1
        del self._connections[serial]
        self._joining.discard(serial)
        if serial in self._over:
            self._over.discard(serial)  # its ends may be another connection's by now
        else:
            self._settled.add(serial)
            self._follower.turn_off(known.key)

    def _learn_bases(self, table: Segments, placed: Placed) -> None:
        """Of each direction what its sequence numbers count from."""
        there = np.flatnonzero(placed.offset >= 0)
        stream = 2 * placed.serial[there] + placed.direction[there]
        names, first = np.unique(stream, return_index=True)
        for name, row in zip(names.tolist(), there[first].tolist(), strict=True):
            known = self._connections.get(name >> 1)
            if known is not None and known.base[name & 1] == UNKNOWN:
                known.base[name & 1] = (int(table.seq[row]) - int(placed.offset[row])) % WHOLE

    # --- rows

    def _decided(self) -> Iterator[pa.RecordBatch]:
        while self._batches:
            batch = self._batches[0]
            upto = batch.ready(self._connections)
            if upto < len(batch.rows) and self._is_tired(batch, upto):
                self._give_up(batch, upto)
                continue
            if upto > batch.taken:
                yield batch.take(upto, self._connections)
            if upto < len(batch.rows):
                break
            self._waiting_bytes -= self._batches.popleft().bytes
        self._forget()

    def _wait(self, batch: Batch) -> None:
        self._batches.append(batch)
        self._waiting_bytes += batch.bytes

    def _is_tired(self, batch: Batch, row: int) -> bool:
        assert batch.columns is not None
        age = self._newest_ns - int(batch.rows.column("ts_ns")[row].as_py())
        tls = self._connections[batch.columns.serial[row]].tls
        patience = KEY_NS if tls.waits_for_key else JOIN_NS if tls.is_joining else WAIT_NS
        return age > patience or self._waiting_bytes > MOST_BYTES or self._drains

    def _give_up(self, batch: Batch, row: int) -> None:
        """The row waits no longer."""
        assert batch.columns is not None
        serial = batch.columns.serial[row]
        known = self._connections[serial]
        if known.tls.waits_for_key:
            known.tls.stop_waiting_for_key()
            self._note(serial, known, was_open=False)
            return
        if not known.is_open:
            if known.tls.do_without_hello():
                self._note(serial, known, was_open=False)
                return
            known.tls.end()
            self._let_go_if_failed(serial)
            return
        for side, stream in enumerate(known.streams):
            if stream is not None and (end := needs(batch.columns, row, known, side)) != UNKNOWN:
                stream.give_up(end)

    def _forget(self) -> None:
        """What no row waits for."""
        waiting = oldest_offsets(self._batches)
        for serial, known in list(self._connections.items()):
            mine = [2 * serial + side for side in (0, 1)]
            if serial in self._over and not any(serial in batch.connections for batch in self._batches):
                del self._connections[serial]
                self._over.discard(serial)
                self._joining.discard(serial)
                continue
            for side in (0, 1):
                if (direction := known.streams[side]) is not None:
                    oldest = waiting.get(mine[side], -1)
                    direction.space.forget(direction.space.decided if oldest < 0 else oldest)


def _split(rows: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Runs of frames and of marks."""
    marks = rows.column("kind").to_numpy() != frames.FRAME
    edges = [0, *(np.flatnonzero(marks[1:] != marks[:-1]) + 1).tolist(), len(marks)]
    for begin, end in pairwise(edges):
        if end > begin:
            yield rows.slice(begin, end - begin), bool(marks[begin])
