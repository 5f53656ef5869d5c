"""Which messages have records, and how they are read to find where.

Knows: the programs of all messages that can hold records.
Refuses to know: which bytes of a message are looked at (without_records.py).
Rule: what may be the metadata log, or holds another message, holds no records here.
"""

from __future__ import annotations

import numpy as np
from librt.vecs import vec
from mypy_extensions import u8

from wirecheck.decode.connection.framing.without_records import WithoutRecords
from wirecheck.decode.interpret.interpreter import Interpreter
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.program import programs
from wirecheck.decode.layouts.readings import Dialect
from wirecheck.decode.log.metadata_log import TOPIC_ID, TOPIC_NAME
from wirecheck.decode.wire import REQUEST, RESPONSE

FETCH_SNAPSHOT, ENVELOPE = 59, 58  # carry the log or another message in what looks like content


def without_records() -> WithoutRecords:
    compiled = programs()
    records = [slot.number for slot in compiled.slots if slot.kind == Kind.RECORDS]
    wanted = np.zeros(len(compiled.slots) + len(compiled.runs.stride), np.uint8)
    wanted[records] = 1
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
    return WithoutRecords(
        Interpreter(vec[u8](wanted.tobytes()), compiled.levels), found, [TOPIC_NAME.encode(), TOPIC_ID]
    )
