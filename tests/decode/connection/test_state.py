"""Parked connections: made into objects again one by one, and equal to what they were."""

from hypothesis import given
from hypothesis import strategies as st

from tests.decode.connection.conversations import API_VERSIONS, FETCH, moved, produce, request, response, segments
from tests.traffic import Talk
from wirecheck.decode.connection.connection import Connection
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.state import ASKED, Numbers, Parked, restored, stored
from wirecheck.decode.connection.stream.chunks import DATA, Chunk
from wirecheck.decode.connection.stream.direction import Candidate
from wirecheck.decode.connection.stream.frame import NEVER, UNSET
from wirecheck.decode.connection.waiting import Message

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(INT64 | st.sampled_from([UNSET, NEVER, 0, -1, 63, 64, -64, -65])))
def test_numbers_are_read_as_they_were_written(numbers):
    row = Numbers(b"")
    for number in numbers:
        row.of(number)
        row.asked(number)
    again = Numbers(row.bytes())
    assert [(again.of(0), again.asked(0)) for _ in numbers] == [(number, number) for number in numbers]


def test_a_small_number_takes_a_byte_and_one_that_is_not_set_two():
    for number, size in ((0, 1), (-1, 1), (63, 1), (64, 2), (UNSET, 2), (NEVER, 9)):
        row = Numbers(b"")
        row.of(number)
        assert len(row.bytes()) == size


def followed(count=6):
    """Connections that wait in every way: out of order, in a message, unanswered, answered too early, searched."""
    follower = Follower()
    for number in range(count):
        talk = moved(Talk(mss=60), number).open().request(request(API_VERSIONS, 3, 0)).response(response(0))
        talk.request(produce(1, size=200)).response(response(9, b"early")).request(request(FETCH, 12, 2, bytes(90)))
        frames = talk.segments if number % 3 else talk.segments[6:]
        follower.receive(segments([frame for i, frame in enumerate(frames) if i != 8 + number]))
    return follower


def test_a_connection_comes_back_as_it_was():
    for connection in followed()._in_order():
        record = stored(connection)
        again = restored(connection.key, record)
        assert stored(again) == record
        assert again.count_pending() == again.pending == connection.pending


def numbers(thing):
    """Its attributes that are numbers."""
    found = {name: getattr(thing, name) for name in dir(thing) if name[0] != "_"}
    return {name: value for name, value in found.items() if isinstance(value, int)}


def things(connection):
    """All that a connection consists of, and which numbers there follow from others."""
    yield connection, {"touched"}
    for side in (connection.lower, connection.higher):
        yield from ((side, set()), (side.acknowledged_before, set()), (side.shown_by_both_before, set()))
        yield from ((side.ordered.first, {"start"}), (side.out_of_order.first, {"start"}), (side.candidates[0], set()))
    for queue in (connection.in_flight, connection.early_responses):
        yield queue, {"count", "size", "kept"}
        yield from ((queue.first, {"owned"}), (queue.first.chunks, {"start"}))


def test_every_attribute_is_stored():
    """One that is added to a connection or to what it consists of, and forgotten in state.py, is noticed here."""
    connection, data = Connection("key", 1), bytes(range(250))
    for side in (connection.lower, connection.higher):
        side.ordered.append(Chunk(0, 10, DATA, data, 7))
        side.out_of_order.add(Chunk(0, 10, DATA, data, 8))
        side.candidates.append(Candidate(0, 0, 0, 0))
    for queue in (connection.in_flight, connection.early_responses):
        queue.push(Message(0, 0, 0, 0))
        queue.first.chunks = Chunk(0, 10, DATA, data, 9)
    connection.proxied_host = b"\n\1\2\3"
    value = 1000
    for thing, not_stored in things(connection):
        for name, now in numbers(thing).items():
            kept = isinstance(thing, Chunk) and name in {"begin", "end", "kind"}
            if name not in {"side"} | not_stored and not kept:
                value += 1
                setattr(thing, name, True if isinstance(now, bool) else value)
    again = restored("key", stored(connection))
    for (before, not_stored), (after, _) in zip(things(connection), things(again), strict=True):
        found = [{k: v for k, v in numbers(thing).items() if k not in not_stored} for thing in (before, after)]
        assert found[0] == found[1], type(before)
    assert again.proxied_host == connection.proxied_host


def test_columns_that_are_asked_for_are_where_they_are_said_to_be():
    connection, parked = Connection("key", 1), Parked()
    connection.lower.next_offset, connection.higher.next_offset = 1008, 1009
    for value, name in enumerate(ASKED[:8], 1000):
        setattr(connection, name, value)
    parked.park([connection])
    assert {name: column.tolist() for name, column in parked.columns().items()} == {
        name: [value] for value, name in enumerate(ASKED, 1000)
    }


def test_only_what_is_touched_becomes_an_object():
    follower = Follower.restore(followed(20).snapshot())
    talk = moved(Talk(mss=60), 3).open()
    follower.receive(segments(talk.segments[2:]))
    assert (len(follower._connections), len(follower._parked)) == (1, 19)


def test_what_was_never_seen_of_a_connection_is_stored_with_it():
    talk = moved(Talk(mss=60), 1).open().request(request(API_VERSIONS, 3, 0)).response(response(0))
    talk.request(produce(1, size=200)).response(response(1)).request(request(FETCH, 12, 2)).response(response(2))
    follower = Follower()
    follower.receive(segments(talk.segments[:6] + talk.segments[7:]))
    follower.advance("a", talk.ts_ns + 10_000_000_000)
    again = Follower.restore(follower.snapshot())
    ((asked,), (stored,)) = ([c.gaps for c in each.drain().connections] for each in (follower, again))
    assert [(gap.side, gap.size) for gap in asked] == [(0, 60)]
    assert stored == asked


def test_what_was_taken_out_is_stored_as_it_is_now():
    follower = Follower.restore(followed(20).snapshot())
    talk = moved(Talk(mss=60), 3)
    follower.receive(segments(talk.open().segments[2:]))
    follower.advance("a", talk.ts_ns + 3000 * 10**9, ended=True)
    again = Follower.restore(follower.snapshot())
    assert again.drain().connections == follower.drain().connections


def test_what_is_not_parked_any_more_is_found_nowhere():
    connections = followed(20)._in_order()
    parked = Parked()
    parked.park(connections)
    keys = [connection.key for connection in connections]
    parked.take(keys[3:5])
    assert len(parked) == 18
    assert parked.keys() == [key for key in keys if key not in keys[3:5]]
    assert parked.take(keys[3:5]) == []
