"""Which messages have records, and how they are read to find where.

Knows: the programs of all messages that can hold records.
Refuses to know: which bytes of a message are looked at (without_records.py).
Rule: what may be the metadata log, or holds another message, holds no records here.
"""

from __future__ import annotations

from librt.vecs import vec
from mypy_extensions import u8

from wirecheck.decode.connection.framing.without_records import WithoutRecords
from wirecheck.decode.interpret.interpreter import Interpreter
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.log.metadata_log import TOPIC_ID, TOPIC_NAME
from wirecheck.decode.wire import REQUEST, RESPONSE

FETCH_SNAPSHOT, ENVELOPE = 59, 58  # carry the log or another message in what looks like content


def without_records() -> WithoutRecords:
    compiled = programs()
    wanted = [0] * (len(compiled.slots) + len(compiled.runs.stride))
    for slot in compiled.slots:
        wanted[slot.number] = int(slot.kind == Kind.RECORDS)
    carrying = {
        (form.side, form.key)
        for form in compiled.names.values()
        if form.side in {REQUEST, RESPONSE}
        and form.key not in {FETCH_SNAPSHOT, ENVELOPE}
        and any(slot.kind == Kind.RECORDS for slot in form.root.walk())
    }
    found = {
        (side, key, version): compiled.instructions[entry]
        for side, key in carrying
        for version, entry in enumerate(compiled.entries[Dialect.KAFKA, side, key].tolist())
        if entry >= 0
    }
    return WithoutRecords(Interpreter(vec[u8](wanted), compiled.levels), found, [TOPIC_NAME.encode(), TOPIC_ID])
