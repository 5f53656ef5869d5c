"""Rows in, the same rows out; those of connections with known keys carry plaintext.

Rows wait no longer than their records. Rows of a connection that no key opens are unchanged; every row of one that is
opened changes, because its numbers count plaintext.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.capture import frames
from wirecheck.capture.tls.joining import Budget
from wirecheck.capture.tls.plain_rows import UNKNOWN, Columns, Known, Payloads, first_waiting, needs, plain_rows
from wirecheck.capture.tls.tls_connection import Sessions, TlsConnection
from wirecheck.capture.waiting_rows import LATENESS_NS, SECOND, Batch, WaitingRows, array, vector
from wirecheck.decode.connection.follower import Follower

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirecheck.capture.tls.key_log import Secrets
    from wirecheck.capture.tls.plain_rows import PlainRows
    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.connection.handout import Placed
    from wirecheck.decode.connection.segments import Segments


class Encrypted(Batch):
    """Frames, some of them of connections that are or may be TLS."""

    def __init__(self, rows: pa.RecordBatch, segs: Segments, placed: Placed, known: dict[int, Known]) -> None:
        super().__init__(rows)
        self._known = known
        self.bytes = int(segs.payload_len.sum())
        self.columns = _columns(segs, placed)
        first, data = segs.kept_bytes()
        self._payloads = Payloads(data, vector(segs.payload_at - first), vector(segs.left_at))
        self.oldest = _oldest(placed)
        """Of each direction (twice the connection's number, and its side) the least offset of a payload."""
        self.connections = set(np.unique(placed.serial).tolist())
        """Numbers of those that rows are of."""

    def first_waiting(self) -> int:
        return first_waiting(self.columns, self.taken, self._known) if self._known else len(self)

    def made_of(self, rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
        if not self._known:
            return rows
        made = plain_rows(self.columns, self._payloads, first, first + rows.num_rows, self._known)
        return _replaced(rows, made) if array(made.run).any() else rows


def _replaced(rows: pa.RecordBatch, made: PlainRows) -> pa.RecordBatch:
    """The rows with the plain bytes in place of the encrypted ones."""
    number, run = array(made.row), array(made.run)
    is_plain = run != 0
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
    columns["decrypted"] = pa.array(run)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=rows.schema)


def _payloads(made: PlainRows) -> pa.BinaryArray:
    size = array(made.size)[array(made.run) != 0]
    at = np.zeros(len(size) + 1, np.int32)
    np.cumsum(size, out=at[1:])
    buffers = [None, pa.py_buffer(at), pa.py_buffer(b"".join(made.pieces.data))]
    return pa.BinaryArray.from_buffers(pa.binary(), len(size), buffers)


def oldest_offsets(batches: Iterable[Encrypted]) -> dict[int, int]:
    """Of each direction that any of their rows carries bytes of, the least offset of these."""
    waiting: dict[int, int] = {}
    for batch in batches:
        for name, offset in batch.oldest.items():
            waiting[name] = min(offset, waiting.get(name, offset))
    return waiting


def behind(updates: int) -> str:
    """`behind 1 KeyUpdate`"""
    return f"behind {updates} KeyUpdate{'s' * (updates != 1)}"


def _columns(segs: Segments, placed: Placed) -> Columns:
    where = vector(placed.serial), vector(placed.direction), vector(placed.offset)
    return Columns(where, (vector(segs.seq), vector(segs.ack), vector(segs.flags)), vector(segs.payload_len))


def _oldest(placed: Placed) -> dict[int, int]:
    there = np.flatnonzero((placed.serial >= 0) & (placed.offset >= 0))
    if not len(there):
        return {}
    stream = 2 * placed.serial[there] + placed.direction[there]
    order = np.lexsort((placed.offset[there], stream))
    names, first = np.unique(stream[order], return_index=True)
    return dict(zip(names.tolist(), placed.offset[there][order][first].tolist(), strict=True))


WAIT_NS = 10 * SECOND  # of a record that is being put together: slow links, and holes that are still to be filled
KEY_NS = 5 * SECOND  # of a key that is still to be written
JOIN_NS = 2 * SECOND  # of what opens a connection that is older than the capture
WHOLE = 1 << 32
MOST_BYTES = 64 << 20  # of all rows that wait


class Decryption(WaitingRows):
    """One agent's rows."""

    def __init__(self, secrets: Secrets, budget: Budget | None = None) -> None:
        super().__init__(Follower(tapped=True))
        self._secrets, self._sessions, self._budget = secrets, Sessions(), budget or Budget()
        self._joining: set[int] = set()  # connections that may be older than the capture
        self._connections: dict[int, Known] = {}
        self._settled: set[int] = set()  # connections that stay as they are
        self._over: set[int] = set()
        self._drains = False  # nothing waits any more
        self._stamp = frames.Stamp("", "")
        self._reported: Counter[tuple[int, str]] = Counter()
        self._lines = 0  # of the key logs, when keys were last looked for
        self.decrypted = 0
        """Connections of which a record was opened."""
        self.failures: Counter[str] = Counter()
        """TLS connections that stay encrypted, by the reason."""
        self.joined: Counter[str] = Counter()
        """Connections that were opened behind KeyUpdates, by how many."""

    def add(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._use_new_keys()
        yield from super().add(rows)

    def advance(self, agent: str, now_ns: int) -> Iterator[pa.RecordBatch]:
        self._newest_ns = max(self._newest_ns, now_ns)
        self._use_new_keys()
        self._on_progress(self._follower.advance(agent, self._newest_ns - LATENESS_NS))
        self._report()
        yield from self._decided()

    def drain(self) -> Iterator[pa.RecordBatch]:
        self._end_all()
        self._drains = True
        yield from self._decided()

    def _on_marks(self, rows: pa.RecordBatch) -> None:
        self._stamp = frames.Stamp(rows.column("cluster")[0].as_py(), rows.column("agent")[0].as_py())
        ended = np.flatnonzero(rows.column("kind").to_numpy() == frames.ENDED)
        if len(ended):  # nothing comes behind it
            self._end_all()
            super()._on_marks(rows.slice(0, ended[0]))
            self._report()
            rows = rows.slice(ended[0])
        super()._on_marks(rows)

    def _report(self) -> None:
        """As marks among the rows, for the job that judges them."""
        counts = ((frames.UNDECRYPTED, self.failures), (frames.JOINED, self.joined))
        now = Counter({(kind, reason): n for kind, found in counts for reason, n in found.items()})
        news, self._reported = now - self._reported, now
        marks = [frames.Mark(kind, self._newest_ns, None, n, reason) for (kind, reason), n in sorted(news.items())]
        if marks:
            super()._on_marks(frames.mark_rows(marks, self._stamp))

    def _end_all(self) -> None:
        self._on_progress(self._follower.drain())
        for serial, known in list(self._connections.items()):
            known.tls.stop_waiting_for_key()
            self._end(serial)

    # --- bytes

    def _on_rows(self, rows: pa.RecordBatch, table: Segments) -> None:
        placed = self._follower.placed
        self._begin_new(placed, table)
        self._batches.append(Encrypted(rows, table, placed, self._connections))
        self._learn_bases(table, placed)

    def _on_progress(self, exchanges: Exchanges) -> None:  # noqa: ARG002 -- of a tapped follower there are none
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
            if known.tls.key_updates:
                self.joined[behind(known.tls.key_updates)] += 1
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

    def _begin_new(self, placed: Placed, table: Segments) -> None:
        """Rows of connections that carry bytes wait until it is known what these are."""
        there = np.flatnonzero(placed.offset >= 0)
        serials, first = np.unique(placed.serial[there], return_index=True)
        for serial, began_ns in zip(serials.tolist(), table.ts_ns[there[first]].tolist(), strict=True):
            if serial not in self._connections and serial not in self._settled:
                tls = TlsConnection(self._secrets, self._sessions, self._budget)
                self._connections[serial] = Known(tls, tls.streams, max(began_ns, 1))

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
        yield from self._leave(self._first_waiting)
        self._forget()

    def _first_waiting(self, batch: Batch) -> int:
        if not isinstance(batch, Encrypted):
            return len(batch)
        while (row := batch.first_waiting()) < len(batch) and self._is_tired(batch, row):
            self._give_up(batch, row)
        return row

    def _rows_waiting(self) -> list[Encrypted]:
        return [batch for batch in self._batches if isinstance(batch, Encrypted)]

    def _is_tired(self, batch: Encrypted, row: int) -> bool:
        age = self._newest_ns - int(batch.rows.column("ts_ns")[row].as_py())
        tls = self._connections[batch.columns.serial[row]].tls
        patience = KEY_NS if tls.waits_for_key else JOIN_NS if tls.is_joining else WAIT_NS
        return age > patience or self._drains or sum(each.bytes for each in self._rows_waiting()) > MOST_BYTES

    def _give_up(self, batch: Encrypted, row: int) -> None:
        """The row waits no longer."""
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
        batches = self._rows_waiting()
        waiting = oldest_offsets(batches)
        for serial, known in list(self._connections.items()):
            if serial in self._over and not any(serial in batch.connections for batch in batches):
                del self._connections[serial]
                self._over.discard(serial)
                self._joining.discard(serial)
                continue
            for side, stream in enumerate(known.streams):
                if stream is not None:
                    stream.space.forget(waiting.get(2 * serial + side, stream.space.decided))
