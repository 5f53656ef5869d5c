"""Which bytes of a metadata log are secret: credentials, configuration values and unknown tags inside its records.

Works on pieces cut anywhere (FetchSnapshot chunks); at most MOST_CARRIED_BYTES of structure are carried over. Whatever
is not known to be harmless is secret: unknown record types and versions, records with a key or headers, which raft
writes none of, broken or old batches, compressed blocks that hold one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

import numpy as np

from wirecheck.decode.errors import BadMagic, DecodeError
from wirecheck.decode.holes import laid_out
from wirecheck.decode.layouts.layout import Field, layouts
from wirecheck.decode.layouts.program import form
from wirecheck.decode.log import compression
from wirecheck.decode.log.frame_table import CUT_OFF, NO_FRAME, NO_HEADERS_BYTES, WHOLE, RecordHead
from wirecheck.decode.log.records import HEADER_BYTES, TO_MAGIC_BYTES, Batch, header, size_and_magic
from wirecheck.decode.message import Status, decode
from wirecheck.decode.principals import principal_slots
from wirecheck.decode.secrecy import marked, projection, spans_of
from wirecheck.decode.wire import RECORD, pack

Spans: TypeAlias = list[tuple[int, int]]  # (offset, length), ascending, disjoint

# A record's own structure and frame take some 40 bytes.
MOST_CARRIED_BYTES = 4096
MOST_RECORDS = 250_000
"""Of a piece that are looked at: eight megabytes of a log, as much as brokers send at once, have fewer."""

_UNKNOWN = 0x7FFF  # a version that no layout has


@cache
def secret_types() -> frozenset[int]:
    """Record types with a field marked secret, in any of their layouts."""
    return frozenset(
        layout.key
        for layout in layouts("metadata_records")
        if _any_secret((*layout.fields, *(f for changed in layout.changed for f in changed.fields)))
    )


@cache
def _types() -> frozenset[int]:
    return frozenset(layout.key for layout in layouts("metadata_records"))


@cache
def _harmless_types() -> frozenset[int]:
    return _types() - secret_types()


def _any_secret(fields: tuple[Field, ...]) -> bool:
    return any(f.secret or _any_secret(f.fields) for f in fields)


@dataclass(frozen=True, slots=True)
class _Body:
    """What stands behind the frame of a record that may hold secrets."""

    at: int
    end: int
    type: int
    version: int


@dataclass(slots=True)
class LogSecrets:
    """The walk over one stream of batches: the pieces of a snapshot in order, or a single records field."""

    carried: bytes = b""  # the end of the last piece, too short to be recognized; never secret
    in_batch: int = 0  # bytes of the current batch that were not walked yet
    control: bool = False  # whether that is a control batch
    passing: int = 0  # bytes to come that need no look
    hiding: bool = False  # whether those are secret
    behind: int = 0  # bytes to come behind those, which are not secret
    lost: bool = False  # what came was no batch: everything behind it is hidden
    spans: Spans = field(default_factory=list)  # of this piece, in its coordinates with what was carried
    bodies: list[_Body] = field(default_factory=list)  # of this piece, whole
    budget: int = compression.LARGEST_OUTPUT_BYTES  # of this piece: a bomb in every batch is a bomb too
    principals: bool = True  # whether they are kept
    most: int = MOST_RECORDS  # records of a piece that are looked at; what is behind them is secret
    records: int = MOST_RECORDS  # how many are left of them

    def feed(self, piece: bytes, budget: int = compression.LARGEST_OUTPUT_BYTES) -> Spans:
        """The spans to leave out of this piece, in its own coordinates. `budget`: what its blocks may cost."""
        data = self.carried + piece
        before, at = len(self.carried), 0
        self.carried, self.spans, self.bodies, self.budget = b"", [], [], budget
        self.records = self.most
        while at < len(data):
            place = self._step(data, at)
            if place is None:
                self.carried = data[at:]
                break
            at = place
        spans = sorted(self.spans + _within(data, self.bodies, self.principals)) if self.bodies else self.spans
        clipped = ((max(offset - before, 0), offset + length - before) for offset, length in spans)
        return [(begin, end - begin) for begin, end in clipped if end > begin]

    def _step(self, data: bytes, at: int) -> int | None:
        """The position after the next step of the walk; None if more bytes are needed."""
        if self.lost or self.passing:
            count = len(data) - at if self.lost else min(self.passing, len(data) - at)
            self.passing = max(self.passing - count, 0)
            if self.lost or self.hiding:
                self.spans.append((at, count))
            if not self.passing:
                self.passing, self.behind, self.hiding = self.behind, 0, False
            return at + count
        return self._record(data, at) if self.in_batch else self._batch(data, at)

    def _batch(self, data: bytes, at: int) -> int | None:
        if len(data) - at < TO_MAGIC_BYTES:
            return None
        seen = laid_out(data[at : at + HEADER_BYTES])
        try:
            if size_and_magic(seen, 0)[1] < 2:
                raise BadMagic(at)  # raft began with v2
        except DecodeError:
            self.lost = True
            return at
        if len(seen) < HEADER_BYTES:
            return None
        batch = header(seen, 0)
        if batch.codec:
            self._compressed(data[at + HEADER_BYTES : at + batch.size], batch)
        else:
            self.in_batch, self.control = batch.size - HEADER_BYTES, batch.control
        return at + HEADER_BYTES

    def _compressed(self, block: bytes, batch: Batch) -> None:
        """A block is kept if all of it is here and all in it is harmless."""
        self.passing, self.hiding = batch.size - HEADER_BYTES, True
        records_bytes = batch.count * compression.RECORD_BYTES
        if len(block) == self.passing and records_bytes <= self.budget:
            try:
                inner = compression.decompressed(batch.codec, block, self.budget)
            except DecodeError:
                self.budget = max(self.budget - compression.REFUSED_BYTES, 0)
                return
            self.budget -= max(len(inner), records_bytes)
            within = LogSecrets(
                in_batch=len(inner), control=batch.control, most=batch.count, principals=self.principals
            )
            self.hiding = bool(within.feed(inner)) or within.in_batch > 0

    def _record(self, data: bytes, at: int) -> int | None:
        if self.records <= 0:
            self.passing, self.hiding, self.in_batch = self.in_batch, True, 0
            return at
        here = min(len(data), at + self.in_batch)
        head = RecordHead(data, at, here)
        status = head.status(self.control)
        if status == CUT_OFF and here - at < min(self.in_batch, MOST_CARRIED_BYTES):
            return None
        if status != WHOLE or head.end > at + self.in_batch:
            self.passing, self.hiding, self.in_batch = self.in_batch, True, 0
            return at
        harmless = head.type in _harmless_types() and (self.principals or head.type not in principal_types())
        if harmless and head.body_end > len(data) and head.end - at <= MOST_CARRIED_BYTES:
            return None  # whether it can be read, and has unknown tags, is known with its rest
        self.in_batch -= head.end - at
        self.records -= 1
        if head.type == NO_FRAME or (harmless and is_blank(data[head.body_at : head.body_end])):
            self.passing, self.hiding = head.end - at, False
            return at
        if head.body_end <= len(data):
            self.bodies.append(_Body(head.body_at, head.body_end, head.type, head.version))
            self.passing, self.hiding = head.end - head.body_end, False
            return head.body_end
        self.passing, self.hiding, self.behind = head.body_end - head.body_at, True, NO_HEADERS_BYTES
        return head.body_at


def is_blank(body: bytes) -> bool:
    """Whether it has nothing, no tag either, as the records that an idle quorum writes twice a second."""
    return not body.strip(b"\0")


@cache
def principal_types() -> frozenset[int]:
    """Record types with a principal."""
    found = principal_slots()
    return frozenset(key for key in _types() if any(found[slot.number] for slot in form(key, "record").root.walk()))


def _within(data: bytes, bodies: list[_Body], principals: bool = True) -> Spans:
    """The secret fields and unknown tags of whole bodies; all of a body that cannot be read."""
    messages = pack(
        [data[body.at : body.end] for body in bodies],
        [RECORD] * len(bodies),
        [body.type if body.type in _types() else -1 for body in bodies],
        [min(body.version, _UNKNOWN) for body in bodies],
    )
    decoded = decode(messages, projection())
    unread = (bodies[i] for i in np.flatnonzero(decoded.status != Status.OK))
    found = spans_of(decoded, marked(principals=principals))
    read = decoded.status[found.message] == Status.OK
    begin = np.array([body.at for body in bodies], np.int64)[found.message] + found.offset
    inside = zip(begin[read].tolist(), found.length[read].tolist(), strict=True)
    return [*((body.at, body.end - body.at) for body in unread), *inside]
