"""Lists of chunks: cut, looked at and kept without copying what need not be."""

from wirecheck.decode.connection.stream.chunks import DATA, GAP, LEFT, Chunk, Chunks, begins_packet, own

PAYLOAD = b"abcdefghijklmnopqrstuvwxyz"


def chunk(begin, end, kind=DATA, at=None):
    made = Chunk(begin, end, kind, PAYLOAD if kind == DATA else b"", begin if at is None else at)
    made.packet_begin, made.packet_end = begin, end
    return made


def listed(*chunks):
    made = Chunks()
    for one in chunks:
        made.append(one)
    return made


def spans(first):
    found = []
    while first is not None:
        found.append((first.begin, first.end, first.kind))
        first = first.next
    return found


def test_what_lies_before_an_offset_is_taken_off_and_a_chunk_across_it_is_split():
    chunks = listed(chunk(0, 4), chunk(4, 10), chunk(10, 12, LEFT))
    assert spans(chunks.detach(6)) == [(0, 4, DATA), (4, 6, DATA)]
    assert spans(chunks.first) == [(6, 10, DATA), (10, 12, LEFT)]
    assert (chunks.begin, chunks.count, chunks.kept) == (6, 2, 4)
    assert chunks.detach(6) is None


def test_bytes_are_looked_at_up_to_the_first_that_is_not_there():
    chunks = listed(chunk(0, 4), chunk(4, 10, at=14), chunk(10, 12, GAP))
    assert chunks.look(1, 3) == b"bcd"
    assert chunks.look(2, 100) == b"cdopqrst"
    assert (chunks.look(10, 5), chunks.look(40, 5)) == (b"", b"")


def test_a_list_keeps_its_bytes_and_those_of_a_message_become_one():
    chunks = listed(chunk(0, 2), chunk(2, 4), chunk(4, 6), chunk(6, 8, LEFT), chunk(8, 9, LEFT))
    last, merged = own(chunks.first, PAYLOAD, 2)
    assert spans(chunks.first) == [(0, 2, DATA), (2, 6, DATA), (6, 9, LEFT)]
    assert (merged, last.end, chunks.first.next.bytes()) == (2, 9, b"cdef")


def test_only_what_was_never_seen_is_counted_as_unseen():
    chunks = listed(chunk(0, 2), chunk(2, 6, GAP), chunk(6, 8, LEFT), chunk(8, 9, GAP))
    assert [chunks.unseen_before(at) for at in (2, 4, 8, 20)] == [0, 2, 4, 5]


def test_a_packet_begins_where_it_began_and_not_where_a_gap_ends():
    first = chunk(0, 4)
    first.split(2)
    assert [begins_packet(first, at) for at in (0, 2)] == [True, False]
    assert not begins_packet(chunk(5, 9, GAP), 5)
