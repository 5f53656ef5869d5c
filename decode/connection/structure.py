"""Where messages have records: the interpreter's walk over a message of which only windows are there.

Knows: which messages can hold records, and what a walk over some of a message's bytes says.
Refuses to know: which windows are looked at (without_records.py).
Rule: what may be the metadata log, or holds another message, holds no records here.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from wirecheck.decode import machine
from wirecheck.decode.connection.without_records import WithoutRecords
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.log.metadata_log import TOPIC_ID, TOPIC_NAME
from wirecheck.decode.wire import REQUEST, RESPONSE

MOST_TOKENS = 1024
FETCH_SNAPSHOT, ENVELOPE = 59, 58  # carry the log or another message in what looks like content


@cache
def without_records() -> WithoutRecords:
    compiled = programs()
    entries = compiled.entries[Dialect.KAFKA]
    carrying = frozenset(
        (form.side, form.key, int(version))
        for form in compiled.names.values()
        if form.side in {REQUEST, RESPONSE}
        and form.key not in {FETCH_SNAPSHOT, ENVELOPE}
        and any(slot.kind == Kind.RECORDS for slot in form.root.walk())
        for version in np.flatnonzero(entries[form.side, form.key] >= 0)
    )
    return WithoutRecords(Walker().walk, carrying, (TOPIC_NAME.encode(), TOPIC_ID))


class Walker:
    def __init__(self) -> None:
        compiled = programs()
        self._table = compiled.table
        self._entries = np.ascontiguousarray(compiled.entries[Dialect.KAFKA, : RESPONSE + 1])
        self._wanted = np.zeros(len(compiled.slots) + len(compiled.runs.stride), np.uint8)
        self._wanted[[slot.number for slot in compiled.slots if slot.kind == Kind.RECORDS]] = 1
        self._counters = np.zeros(compiled.levels, np.int64)
        self._frames = np.zeros((machine.DEEPEST, 5), np.int64)
        self._tokens = (
            np.empty(MOST_TOKENS, np.int32), np.empty(MOST_TOKENS, np.int32), np.empty(MOST_TOKENS, np.int64),
            np.empty(MOST_TOKENS, np.int32),
        )  # fmt: skip

    def walk(
        self, kept: bytes, spans: list[tuple[int, int]], side: int, key: int, version: int
    ) -> tuple[bool, int, int]:
        data, span = np.frombuffer(bytearray(kept), np.uint8), np.array(spans, np.int64)
        problem, used, where, _ = machine.walk(
            data, 0, len(data), span[:, 0], span[:, 1], 0, len(span), self._table, self._entries[side, key, version], 0,
            0, self._wanted, self._counters, self._frames, *self._tokens, 0,
        )  # fmt: skip
        _, _, value, length = self._tokens
        within = int(np.count_nonzero((value[:used] < 0) & (length[:used] > 0)))
        return problem == machine.OK, int(where) if problem == machine.LEFT_OUT else -1, within
