"""Records of v2: the table, the objects, every refusal, and holes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decode.log.batches import (
    Record,
    objects,
    record,
    sized,
    uvarint,
    varint,
    without,
)
from wirecheck.decode.errors import BadLength, BadVarint, LeftoverBytes, Truncated
from wirecheck.decode.holes import laid_out
from wirecheck.decode.log import record as r
from wirecheck.decode.log.record_table import BAD_VARINT, OK, VARINT_BYTES, VARLONG_BYTES, Reader


def walked(data, count=1, left_out=()):
    field = laid_out(data, left_out)
    return r.walk_records(field, 0, len(field), count)


def read(data, most):
    reader = Reader(data, 0, len(data))
    return reader.zigzag(most), reader.at, reader.status


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_64_bit_number_comes_back(number):
    assert read(varint(number), VARLONG_BYTES) == (number, len(varint(number)), OK)


@given(st.integers(-(2**31), 2**31 - 1))
def test_any_32_bit_number_comes_back(number):
    assert read(varint(number), VARINT_BYTES) == (number, len(varint(number)), OK)


@pytest.mark.parametrize(
    ("data", "most"), [(uvarint(2**32), 5), (b"\x80" * 5, 5), (uvarint(2**64), 10), (b"\x80" * 10, 10)]
)
def test_a_number_longer_than_its_type_is_refused(data, most):
    assert read(data + b"\x00", most) == (0, 0, BAD_VARINT)


def test_padding_within_the_type_is_read():
    assert read(b"\x82\x80\x00", VARINT_BYTES) == (1, 3, OK)


def test_records_come_as_they_were_written():
    data = record(b"v", key=b"k", offset=3, timestamp=-7, headers=[(b"a", b"1"), ("ö".encode(), None)])
    data += record(None, offset=4) + record(b"", key=b"")
    assert objects(walked(data, 3)) == [
        Record(3, -7, b"k", b"v", (("a", b"1"), ("ö", None))),
        Record(4, 0, None, None),
        Record(0, 0, b"", b""),
    ]


def inside(content):
    return varint(len(content)) + content


START = b"\x00" + varint(0) + varint(0)

REFUSED = {
    "no length": (b"", 1, BadLength),  # 0 bytes cannot hold a record
    "more records than bytes": (record(), 2, BadLength),
    "negative count": (record(), -1, BadLength),
    "negative length": (varint(-1) + bytes(9), 1, BadLength),
    "length cut off": (b"\x80" * 4 + b"\x80\x80\x80", 1, BadVarint),
    "longer than the batch": (varint(9) + bytes(7), 1, Truncated),
    "empty": (varint(0) + bytes(9), 1, Truncated),
    "timestamp too long": (inside(b"\x00" + b"\xff" * 10), 1, BadVarint),
    "offset cut off": (inside(b"\x00" + varint(0)) + bytes(7), 1, Truncated),
    "offset too long": (inside(b"\x00" + varint(0) + b"\xff" * 6), 1, BadVarint),
    "key below null": (inside(START + varint(-2) + bytes(5)), 1, BadLength),
    "key cut off": (inside(START + varint(9) + bytes(5)), 1, Truncated),
    "value below null": (inside(START + sized(None) + varint(-2) + bytes(5)), 1, BadLength),
    "value cut off": (inside(START + sized(None) + varint(9) + bytes(5)), 1, Truncated),
    "header count cut off": (inside(START + sized(None) + sized(b"abcdef")), 1, Truncated),
    "negative header count": (inside(START + sized(None) + sized(None) + varint(-1) + bytes(5)), 1, BadLength),
    "more headers than bytes": (inside(START + sized(None) + sized(None) + varint(3) + bytes(5)), 1, BadLength),
    "null header name": (inside(START + sized(None) * 2 + varint(1) + sized(None) + bytes(5)), 1, BadLength),
    "header value cut off": (inside(START + sized(None) * 2 + varint(1) + sized(b"a") + varint(9)), 1, Truncated),
    "bytes behind a record's fields": (record(tail=b"x"), 1, LeftoverBytes),
    "bytes behind the last record": (record() + b"x" * 9, 1, LeftoverBytes),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_for_what_it_is(case):
    data, count, error = REFUSED[case]
    with pytest.raises(error):
        walked(data, count)


def test_no_cut_of_a_record_is_a_record():
    data = record(b"value", key=b"key", headers=[(b"name", b"content")])
    for end in range(len(data)):
        with pytest.raises((Truncated, BadLength)):
            walked(data[:end])


DATA = record(b"first", offset=1) + record(b"second", key=b"key", offset=2) + record(b"third", offset=3)


def hidden_from(data, *spans, count=3):
    return objects(walked(without(data, *spans), count, spans))


@pytest.mark.parametrize(("content", "seen"), [(b"second", (b"key", None)), (b"key", (None, b"second"))])
def test_content_in_a_hole_is_unseen_and_nothing_else(content, seen):
    first, second, third = hidden_from(DATA, (DATA.index(content) + 1, 2))
    assert (first.value, third.value) == (b"first", b"third")
    assert (second.key, second.value) == seen
    assert (first.unseen, second.unseen, third.unseen) == (False, True, False)


def test_a_record_with_a_hole_in_its_structure_is_stepped_over():
    at = DATA.index(b"second")
    for offset in (at - 1, at - 5, at + 6):
        first, second, third = hidden_from(DATA, (offset, 1))
        assert (first.value, third.value) == (b"first", b"third")
        assert (second.key, second.value, second.unseen) == (None, None, True)


def test_where_a_length_lies_in_a_hole_the_rest_is_unseen():
    at = len(record(b"first", offset=1))
    records = walked(without(DATA, (at, 1)), 3, [(at, 1)])
    assert [x.value for x in objects(records)] == [b"first"]
    assert records.unseen == 2


def test_a_hole_that_only_touches_a_record_hides_nothing_of_it():
    data = record(b"a") + record(b"b")
    at = data.index(b"b")
    (first, second) = hidden_from(data, (at, 1), count=2)
    assert not first.unseen
    assert second.unseen


def test_every_hole_leaves_what_is_outside_of_it_alone():
    whole = objects(walked(DATA, 3))
    for begin in range(len(DATA)):
        for length in (1, 3):
            span = (begin, min(length, len(DATA) - begin))
            records = walked(without(DATA, span), 3, [span])
            seen = objects(records)
            assert len(seen) + records.unseen == 3
            assert [x for x in seen if not x.unseen] == [x for x, y in zip(whole, seen, strict=False) if not y.unseen]
