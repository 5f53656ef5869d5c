"""Messages of v0 and v1: alone, wrapped, refused, and with holes."""

import pytest

from tests.decode.log.batches import gzipped, message
from wirecheck.decode.errors import BadCompression, BadLength, BadMagic, LeftoverBytes, Truncated, UnexpectedNull
from wirecheck.decode.holes import laid_out
from wirecheck.decode.log import compression
from wirecheck.decode.log.legacy_records import Message, legacy_records
from wirecheck.decode.log.record import Record

LOG_APPEND_TIME, GZIP = 0x08, 1


def of(data, left_out=()):
    field = laid_out(data, left_out)
    return Message(field, 0, len(field) - 12)


def read(data, left_out=(), limit=compression.LARGEST_OUTPUT_BYTES):
    return legacy_records(of(data, left_out), limit)


def wrapper(*inner, magic=1, offset=0, attributes=GZIP, timestamp=1_000):
    block = gzipped(b"".join(inner))
    return message(block, magic=magic, offset=offset, attributes=attributes, timestamp=timestamp)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_is_one_record(magic):
    data = message(b"v", key=b"k", magic=magic, offset=7, timestamp=99)
    assert list(read(data)) == [Record(7, 99 if magic else -1, b"k", b"v")]
    assert of(data).crc_valid()
    assert not of(data[:-1] + b"x").crc_valid()


def test_offsets_in_a_v1_wrapper_are_relative_to_the_last():
    data = wrapper(message(b"a", offset=0), message(b"b", offset=2), offset=12)
    assert [(x.offset, x.value) for x in read(data)] == [(10, b"a"), (12, b"b")]


def test_offsets_in_a_v0_wrapper_are_absolute():
    data = wrapper(message(b"a", magic=0, offset=5), message(b"b", magic=0, offset=9), magic=0, offset=9)
    assert [(x.offset, x.timestamp_ms) for x in read(data)] == [(5, -1), (9, -1)]


def test_offsets_that_overflow_wrap_like_javas():
    data = wrapper(message(offset=2**63 - 1), message(offset=-1), offset=2**63 - 1)
    assert [x.offset for x in read(data)] == [-1, 2**63 - 1]


def test_log_append_time_is_lent_to_all():
    inner = message(timestamp=1), message(timestamp=2)
    assert [x.timestamp_ms for x in read(wrapper(*inner, timestamp=50))] == [1, 2]
    assert [x.timestamp_ms for x in read(wrapper(*inner, timestamp=50, attributes=GZIP | LOG_APPEND_TIME))] == [50, 50]


HEADER = 26  # of a v1 message, up to the key's length

REFUSED = {
    "key's length cut off": (message(None)[:HEADER], Truncated),
    "value's length cut off": (message(None)[: HEADER + 6], Truncated),
    "key cut off": (message(key=b"k" * 9)[:-8], Truncated),
    "key below null": (message(b"")[:HEADER] + b"\xff\xff\xff\xfe" + bytes(4), BadLength),
    "bytes behind the value": (message(tail=b"x"), LeftoverBytes),
    "null in a wrapper": (message(None, attributes=GZIP), UnexpectedNull),
    "nothing in a wrapper": (wrapper(), BadLength),
    "a wrapper in a wrapper": (wrapper(message(attributes=GZIP)), BadCompression),
    "another magic inside": (wrapper(message(magic=0) + bytes(20)), BadMagic),
    "a message cut off inside": (wrapper(message(b"long enough to be cut")[:-4]), Truncated),
    "a header cut off inside": (wrapper(message()[:20]), Truncated),
    "a size too small inside": (wrapper(bytes(11) + b"\x0d" + bytes(4) + b"\x01" + bytes(30)), BadLength),
    "no block": (message(b"not gzip", attributes=GZIP), BadCompression),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_for_what_it_is(case):
    data, error = REFUSED[case]
    with pytest.raises(error):
        read(data)


def test_a_bomb_is_refused():
    with pytest.raises(BadLength):
        read(wrapper(message(bytes(1 << 20))), limit=1 << 16)


def hidden(data, offset, length):
    return read(data[:offset] + data[offset + length :], [(offset, length)])


def test_content_in_a_hole_is_unseen():
    data = message(b"value", key=b"key", offset=7)
    (seen,) = hidden(data, data.index(b"value") + 1, 3)
    assert seen == Record(7, 1_000, b"key", None, unseen=True)


@pytest.mark.parametrize("field", [HEADER, HEADER + 4 + 3])
def test_a_length_in_a_hole_hides_the_message(field):
    (seen,) = hidden(message(b"value", key=b"key", offset=7), field, 2)
    assert (seen.key, seen.value, seen.unseen) == (None, None, True)


def test_a_wrapper_with_a_hole_is_unseen():
    data = wrapper(message(b"a"), message(b"b"))
    records = hidden(data, len(data) - 9, 3)
    assert (len(records), records.unseen) == (0, 1)
