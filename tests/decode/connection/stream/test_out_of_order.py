"""What comes before its time: every byte once, the first value of it, and bytes before bytes left out."""

import random

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
    chunks = found.chunks
    rows = [(chunk.begin, chunk.bytes() if chunk.kind == DATA else chunk.end) for chunk in chunks]
    assert found.first is (chunks[0] if chunks else None)
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
    _, middle, _ = found.chunks
    assert [left_out_for_good(found.first), middle.left_by, left_out_for_good(middle)] == [False, BOTH_LEFT_OUT, True]


def test_what_became_part_of_the_stream_is_gone():
    found = stored(data(10, b"ab"), data(20, b"c"))
    found.discard(1)
    assert shown(found) == [(20, b"c")]
    found.discard(1)
    assert shown(found) == []


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_overlapping_pieces_gives_what_a_map_by_offset_gives(seed):
    """Pieces of 1 to 9 bytes in any order, some left out; now and then the first is taken."""
    rng = random.Random(seed)
    found, wanted, gone, conflicting = OutOfOrder(), {}, 0, 0
    for _ in range(400):
        begin = gone + rng.randrange(300)
        length = rng.randrange(1, 10)
        if rng.random() < 0.2:
            found.add(left(begin, begin + length))
            for at in range(begin, begin + length):
                wanted.setdefault(at, None)
        else:
            text = bytes(rng.randrange(3) for _ in range(length))
            found.add(data(begin, text))
            for at, byte in enumerate(text, begin):
                conflicting += wanted.get(at) not in {None, byte}
                wanted[at] = byte if wanted.get(at) is None else wanted[at]
        if rng.random() < 0.3 and found.first.begin == min(wanted):
            gone = found.first.end
            wanted = {at: byte for at, byte in wanted.items() if at >= gone}
            found.discard(1)
        assert found.first is None or found.first.begin == min(wanted)
    flat = {}
    for begin, text in shown(found):
        flat |= dict(enumerate(text, begin)) if isinstance(text, bytes) else dict.fromkeys(range(begin, text))
    assert (flat, found.conflicting) == (wanted, conflicting)


def test_bytes_leave_the_payload_of_their_call_wherever_they_stand():
    payload = b"abcdefgh"
    found = OutOfOrder()
    for begin in (16, 10, 13):
        found.add(Chunk(begin, begin + 2, DATA, payload, begin - 10))
    found.add(left(30, 40))
    found.add(Chunk(32, 34, DATA, payload, 4))
    found.discard(1)
    found.keep(payload)
    assert [chunk.data is payload for chunk in found.chunks] == [False] * 5
    assert shown(found) == [(13, b"de"), (16, b"gh"), (30, 32), (32, b"ef"), (34, 40)]
