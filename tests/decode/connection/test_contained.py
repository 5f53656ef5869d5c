"""What raises about one connection ends that one, and a tapped follower hands out bytes in order, whatever they are."""

from tests.decode.connection.conversations import API_VERSIONS, moved, request, response, segments
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Follower


def break_(follower, number):
    """What is out of order in one of its connections is no chunk: the next frame, or the end, raises."""
    connection = sorted(follower._connections.values(), key=lambda one: one.serial)[number]
    connection.lower.out_of_order.chunks.append(object())


def test_a_connection_that_raises_is_set_aside_and_the_others_go_on():
    talks = [moved(Talk(), number).open().request(request(API_VERSIONS, 3, 0)) for number in (1, 2, 3)]
    follower = Follower(contained=True)
    follower.receive(segments([frame for talk in talks for frame in talk.segments]))
    break_(follower, 0)
    break_(follower, 1)
    begun = [len(talk.segments) for talk in talks]
    rest = [talk.response(response(0)).segments[count:] for talk, count in zip(talks, begun, strict=True)]
    found = follower.receive(segments([*rest[0], *rest[2]]))
    assert [type(error) for _, _, error in follower.failed] in ([AttributeError], [TypeError])
    assert found.outcome.tolist() == [0]
    follower.drain()
    assert len(follower.failed) == 1
    assert follower.open == 0


def test_a_tapped_follower_frames_nothing():
    talk = Talk().open().request(b"no message").response(b"nor is this")
    follower = Follower(tapped=True)
    follower.receive(segments(talk.segments))
    assert b"".join(run.data for run in follower.taken) == b"".join(frame.payload for frame in talk.segments)
    assert follower.over == []
