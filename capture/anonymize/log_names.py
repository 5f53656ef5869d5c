"""Names in the metadata log: its batches mapped record by record, in place, with their checksum made again.

A batch that cannot be read keeps its header, and its records become zeros; so does a compressed one, because what it
would be compressed into has another length. Behind bytes that were not seen everything is zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.errors import DecodeError
from wirecheck.decode.log.checksum import crc32c
from wirecheck.decode.log.metadata_log import bodies
from wirecheck.decode.log.record_table import HEADERS, KEY_AT, KEY_BYTES, VALUE_AT, VALUE_BYTES
from wirecheck.decode.log.records import HEADER_BYTES, Batch, alone, read_batches

if TYPE_CHECKING:
    from wirecheck.capture.anonymize.fields import Fields
    from wirecheck.decode.holes import Field

CRC_AT, SUMMED_FROM = 17, 21
BLANKED = "records of the metadata log"


def renamed(field: Field, fields: Fields) -> bytes:
    """The bytes of a records field, or of a snapshot from its beginning, under other names."""
    found = read_batches(field)
    out = bytearray(len(field))
    end = 0
    for batch in found.batches:
        own = alone(batch)
        out[batch.position : batch.end] = _batch(own, fields)
        end = batch.end
    header_end = min(end + HEADER_BYTES, len(field))
    out[end:header_end] = field.bytes(end, header_end)
    if any(field.bytes(header_end, len(field))):
        fields.zeroed[BLANKED] += len(field) - header_end
    return bytes(out)


def _batch(batch: Batch, fields: Fields) -> bytes:
    data = bytearray(batch.field.bytes(0, batch.size))
    whole = _map_records(batch, data, fields) if batch.magic == 2 and not batch.codec else False
    if not whole:
        kept = min(HEADER_BYTES if batch.magic == 2 else SUMMED_FROM, len(data))
        fields.zeroed[BLANKED] += len(data) - kept
        data[kept:] = bytes(len(data) - kept)
    if batch.magic == 2:
        wrong = batch.crc_valid is False
        data[CRC_AT:SUMMED_FROM] = (crc32c(bytes(data[SUMMED_FROM:])) ^ int(wrong)).to_bytes(4)
    return bytes(data)


def _map_records(batch: Batch, data: bytearray, fields: Fields) -> bool:
    """Whether its records could be read to the last."""
    try:
        messages, at, records, unread = bodies(batch)
    except DecodeError:
        return False
    if records.unseen or (records.table[:, VALUE_AT] < 0).any():
        return False
    inner = fields.bodies(messages, np.full(len(messages), -1, np.int64))
    for begin, body in zip(at.tolist(), inner, strict=True):
        data[begin : begin + len(body)] = body
    for row in records.table[unread].tolist():
        _blank(data, row[VALUE_AT], row[VALUE_BYTES])
    for row in records.table.tolist():
        if not batch.control:
            _blank(data, row[KEY_AT], row[KEY_BYTES])
        if row[HEADERS]:
            return False
    return True


def _blank(data: bytearray, at: int, length: int) -> None:
    if length > 0:
        data[at : at + length] = bytes(length)
