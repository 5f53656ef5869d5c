"""Claims about clients that waited, from packets: what the capture proves, and what it does not."""

from dataclasses import replace

import pytest

from tests.decode.connection.conversations import METADATA, USUAL, opened, request, response, segments
from tests.traffic import ACK, FIN, RST
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.message import decode
from wirecheck.judge.claims.extract.extraction import claims
from wirecheck.judge.claims.outcomes import WAITED

S = 1_000_000_000


def waits(frames):
    """The claims about waiting that all frames in one call make, and the end of the capture."""
    follower = Follower(USUAL)
    results = [follower.receive(segments(frames)), follower.drain()]
    every = [claim for one in results for claim in claims(one, decode(one.messages))]
    return [claim for claim in every if claim.kind == "overdue"]


def waiting(seconds):
    """Something was answered; then the client asks, and so much time passes."""
    talk = opened().request(request(METADATA, 1, 9, b"\0\0\0\0"))
    talk.ts_ns += int(seconds * S)
    return talk


def test_a_client_that_gives_up_waited():
    (claim,) = waits(waiting(31).close().segments)
    assert claim["api"] == "Metadata"
    (run,) = claim.outcomes.runs({WAITED})
    assert run.count == 1
    assert run.last_ns - run.first_ns == pytest.approx(31 * S, abs=S)


def test_a_close_after_a_short_wait_is_none():
    assert waits(waiting(3).close().segments) == []


def test_a_response_that_was_acknowledged_and_not_captured_is_no_wait():
    """As in a capture of one direction, or one that loses packets."""
    talk = waiting(0).response(response(9))
    talk.ts_ns += 31 * S
    frames = talk.close().segments
    lost = len(frames) - 4
    assert waits(frames[:lost] + frames[lost + 1 :]) == []
    assert waits([frame for frame in frames if frame.src == talk.client]) == []
    assert waits([frame for frame in frames if frame.src == talk.server]) == []


def blocked(seconds, window=0, opens=None):
    """A client that asks, and takes no more data from then on: each 4 s it answers the server's probe. It announces a
    window again after so many seconds, and closes at the end.
    """
    talk = opened().request(request(METADATA, 1, 9, b"\0\0\0\0"))
    begun = talk.ts_ns
    for at in range(0, seconds, 4):
        talk.ts_ns = begun + at * S
        talk._say(True, ACK)
        last = talk.segments[-1]
        talk.segments[-1] = replace(last, window=window if opens is None or at < opens else 65535)
        talk._say(False, ACK)
    talk.ts_ns = begun + seconds * S
    return talk.close().segments


def test_a_client_whose_window_is_closed_waits_for_itself():
    assert waits(blocked(40)) == []
    assert waits([replace(frame, window=0) if not frame.flags & 2 else frame for frame in blocked(40)]) == []


def test_a_wait_begins_when_the_window_opens_again():
    (claim,) = waits(blocked(80, opens=40))
    (run,) = claim.outcomes.runs({WAITED})
    assert run.last_ns - run.first_ns == pytest.approx(40 * S, abs=S)


def test_a_small_window_is_none_that_is_closed():
    """The server sends what fits, after a time-out."""
    assert len(waits(blocked(40, window=1))) == 1


def test_a_window_that_is_not_known_is_not_closed():
    assert len(waits([replace(frame, window=-1) for frame in blocked(40)])) == 1


def test_an_older_segment_that_comes_late_opens_no_window():
    """It acknowledges less than the client has acknowledged since."""
    frames = blocked(40)
    (place,) = (i for i, frame in enumerate(frames) if frame.payload and frame.src == frames[0].src and i > 4)
    stale = replace(frames[2], ts_ns=frames[-4].ts_ns - S)
    assert stale.ack < frames[place].ack
    assert waits(sorted([*frames, stale], key=lambda frame: frame.ts_ns)) == []


@pytest.mark.parametrize("flags", [FIN | ACK, RST | ACK])
def test_what_ends_a_connection_announces_no_window(flags):
    frames = blocked(40, window=65535)[:-3]
    last = next(frame for frame in reversed(frames) if frame.src == frames[0].src)
    over = replace(last, flags=flags, window=0, ts_ns=last.ts_ns + 4 * S)
    assert len(waits([*frames, over])) == 1


def test_a_response_after_the_client_closed_is_none_captured_or_not():
    """The client gave up after 30 s, and the server answered 3 ms later: to a closed port."""
    talk = waiting(31).close()
    lost = waits(talk.segments)
    talk.ts_ns += S // 300
    captured = waits(talk.response(response(9)).segments)
    assert [claim.outcomes for claim in captured] == [claim.outcomes for claim in lost] != []


def test_the_end_of_the_capture_is_no_wait_unless_a_later_packet_shows_it():
    """The client's keep-alive acknowledges what it got: nothing."""
    talk = waiting(31)
    assert waits(talk.segments) == []
    probe = replace(talk.segments[-1], payload=b"", ts_ns=talk.ts_ns, seq=talk.client_seq - 1)
    assert len(waits([*talk.segments, probe])) == 1
