"""Frames and control keys: what opens an entry, what is refused, what a hole hides."""

import struct

import pytest

from tests.decode.log.batches import entry, record, uvarint
from wirecheck.decode.errors import BadVarint, Truncated, UnexpectedNull, UnknownApi, UnknownVersion
from wirecheck.decode.holes import laid_out
from wirecheck.decode.log import frame_table as t
from wirecheck.decode.log import metadata_log as f
from wirecheck.decode.log.record import walk_records


def frame(value, *, key=None, control=False, left_out=None):
    data = record(value, key=key)
    if left_out is not None:
        offset, length = left_out
        data, left_out = data[:offset] + data[offset + length :], [left_out]
    field = laid_out(data, left_out or ())
    records = walk_records(field, 0, len(field), 1)
    (row,) = f.frames(records, control=control)
    return row, field


def test_the_frame_is_version_type_and_version():
    row, field = frame(entry(300, b"body", version=2))
    assert row[t.STATUS] == t.OK
    assert (row[t.TYPE], row[t.VERSION]) == (300, 2)
    assert field.bytes(row[t.BODY_AT], row[t.BODY_END]) == b"body"


def test_a_control_records_type_is_in_its_key_and_its_version_in_its_value():
    row, field = frame(struct.pack(">h", 1) + b"body", key=struct.pack(">hh", 0, 2), control=True)
    assert (row[t.STATUS], row[t.TYPE], row[t.VERSION]) == (t.OK, 2, 1)
    assert field.bytes(row[t.BODY_AT], row[t.BODY_END]) == b"\x00\x01body"


REFUSED = {
    "null": (None, UnexpectedNull),
    "empty": (b"", Truncated),
    "no type": (uvarint(1), Truncated),
    "no version": (uvarint(1) + uvarint(2), Truncated),
    "frame version cut off": (b"\x81", Truncated),
    "frame version too long": (b"\x81\x80\x80\x80\x80\x01", BadVarint),
    "frame version beyond 32 bits": (b"\xff\xff\xff\xff\x1f", BadVarint),
    "type too long": (b"\x01" + b"\xff" * 5, BadVarint),
    "version too long": (b"\x01\x02" + b"\xff" * 5, BadVarint),
    "the preview's frame": (entry(2, b"", frame=0), UnknownVersion),
    "type beyond int16": (entry(0x8000, b""), UnknownApi),
    "version beyond int16": (entry(2, b"", version=0x8000), UnknownVersion),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_opens_no_entry_is_refused_for_what_it_is(case):
    value, reason = REFUSED[case]
    row, _ = frame(value)
    assert f.REASONS[row[t.STATUS]] is reason


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"\x00\x00", Truncated),
        (b"\x00\x00\x00", b"\x00\x00", Truncated),
        (bytes(4), b"\x00", Truncated),
        (bytes(4), b"\x00\x00", UnknownApi),  # ABORT
        (b"\x00\x00\x00\x07", b"\x00\x00", UnknownApi),
    ],
)
def test_what_is_no_control_record_of_a_metadata_log_is_refused(key, value, reason):
    row, _ = frame(value, key=key, control=True)
    assert f.REASONS[row[t.STATUS]] is reason


def test_a_hole_in_the_frame_hides_the_entry_and_one_in_the_body_does_not():
    value = entry(2, b"some body")
    at = record(value).index(value)
    for offset in range(3):
        assert frame(value, left_out=(at + offset, 1))[0][t.STATUS] == t.IN_HOLE
    assert frame(value, left_out=(at + 3, 4))[0][t.STATUS] == t.OK
    assert frame(b"\xff" * 9, left_out=(at, 9))[0][t.STATUS] == t.IN_HOLE


def test_a_hole_in_a_control_key_or_version_hides_the_entry():
    key, value = struct.pack(">hh", 0, 2), struct.pack(">h", 0) + b"body"
    data = record(value, key=key)
    for offset in (data.index(key), data.index(key) + 3, data.index(value), data.index(value) + 1):
        assert frame(value, key=key, control=True, left_out=(offset, 1))[0][t.STATUS] == t.IN_HOLE
    assert frame(value, key=key, control=True, left_out=(data.index(value) + 2, 2))[0][t.STATUS] == t.OK


def test_a_hidden_structure_hides_the_entry():
    assert frame(entry(2, b""), left_out=(1, 1))[0][t.STATUS] == t.IN_HOLE
