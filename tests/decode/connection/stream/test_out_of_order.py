"""What comes before its time: every byte once, the first value of it, and bytes before bytes left out."""

import pytest

from wirecheck.decode.connection.stream.chunks import BOTH_LEFT_OUT, DATA, LEFT, Chunk
from wirecheck.decode.connection.stream.out_of_order import OutOfOrder, left_out_for_good


def data(begin, text):
    return Chunk(begin, begin + len(text), DATA, text, 0)


def left(begin, end, by=1):
    chunk = Chunk(begin, end, LEFT, b"", 0)
    chunk.left_by = by
    return chunk


def stored(*chunks):
    found = OutOfOrder()
    for chunk in chunks:
        found.add(chunk)
    return found


def shown(found):
    rows, chunk = [], found.first
    while chunk is not None:
        rows.append((chunk.begin, chunk.bytes() if chunk.kind == DATA else chunk.end))
        assert chunk.next is not None or chunk is found.last
        chunk = chunk.next
    assert found.count == len(rows)
    assert found.kept == sum(len(text) for _, text in rows if isinstance(text, bytes))
    return rows


@pytest.mark.parametrize(
    ("chunks", "wanted"),
    [
        ([data(10, b"abc"), data(13, b"d")], [(10, b"abc"), (13, b"d")]),
        ([data(13, b"d"), data(10, b"abc")], [(10, b"abc"), (13, b"d")]),
        ([data(10, b"abc"), data(10, b"abc")], [(10, b"abc")]),
        ([data(10, b"ab"), data(14, b"ef"), data(10, b"abcdefg")], [(10, b"ab"), (12, b"cd"), (14, b"ef"), (16, b"g")]),
        ([data(12, b"c"), data(10, b"abc")], [(10, b"ab"), (12, b"c")]),
        ([left(10, 14), data(11, b"bc")], [(10, 11), (11, b"bc"), (13, 14)]),
        ([data(11, b"bc"), left(10, 14)], [(10, 11), (11, b"bc"), (13, 14)]),
        ([left(10, 14), data(10, b"abcd")], [(10, b"abcd")]),
    ],
)
def test_each_byte_is_there_once(chunks, wanted):
    found = stored(*chunks)
    assert (shown(found), found.conflicting) == (wanted, 0)


def test_the_first_value_of_a_byte_stays_and_others_are_counted():
    found = stored(data(10, b"abcd"), data(11, b"xcy"))
    assert (shown(found), found.conflicting) == ([(10, b"abcd")], 2)


def test_what_both_agents_left_out_is_left_out_for_good():
    found = stored(left(10, 20, 1), left(12, 15, 2))
    assert shown(found) == [(10, 12), (12, 15), (15, 20)]
    middle = found.first.next
    assert [left_out_for_good(found.first), middle.left_by, left_out_for_good(middle)] == [False, BOTH_LEFT_OUT, True]


def test_what_became_part_of_the_stream_is_gone():
    found = stored(data(10, b"ab"), data(20, b"c"))
    found.pop()
    assert shown(found) == [(20, b"c")]
    found.pop()
    assert (shown(found), found.last) == ([], None)
    found.pop()
    assert (shown(found), found.last) == ([], None)
