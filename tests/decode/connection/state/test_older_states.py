"""A follower's memory of an earlier version goes on as if this version had written it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.decode.connection.conversations import (
    API_VERSIONS,
    FETCH,
    facts,
    request,
    response,
    segments,
    told,
)
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Follower

STATES = Path(__file__).parent / "followers"
VERSIONS = sorted(int(path.stem) for path in STATES.glob("*.bin"))


def conversation(number, mss=60):
    """Requests and responses over many packets, the last ones of which come later."""
    talk = Talk(client=(f"10.0.0.{number}", 40000 + number), mss=mss, ts_ns=1_000_000_000 * number).open()
    talk.request(request(API_VERSIONS, 3, 0)).response(response(0, bytes(20)))
    for k in range(1, 6):
        talk.request(request(FETCH, 12, k, bytes([k]) * 150)).response(response(k, bytes([64 + k]) * 170))
    return talk


def frames():
    """(those before the state was written, those behind it).

    Of connections within a message, with a hole, seen from their middle on, over, and not Kafka's.
    """
    whole, hole, late, over = (conversation(n).segments for n in (1, 2, 3, 4))
    over = conversation(4).close().segments
    alien = Talk(client=("10.0.0.5", 40005)).open().request(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 9).segments
    before = [*whole[:17], *hole[:9], *hole[10:19], *late[6:20], *over, *alien]
    behind = [*whole[17:], hole[9], *hole[19:], *late[20:], *conversation(1).close().segments[len(whole) :]]
    last_ns = max(frame.ts_ns for frame in before)
    return before, [replace(frame, ts_ns=last_ns + 1000 * n) for n, frame in enumerate(behind, 1)]


def written():
    """The state that is kept, as this version writes it."""
    follower = Follower()
    follower.receive(segments(frames()[0]))
    return follower.snapshot()


def told_after(state):
    """What is said of the frames behind it."""
    before, behind = frames()
    follower = Follower.restore(state)
    results = [follower.receive(segments(behind, numbers=range(len(before) + 1, len(before) + len(behind) + 1)))]
    results.append(follower.drain())
    return told(results), facts(results)


def test_there_are_states_of_earlier_versions():
    assert VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_the_state_of_an_earlier_version_goes_on_as_today_s_does(version):
    rows, connections = told_after((STATES / f"{version}.bin").read_bytes())
    expected_rows, expected = told_after(written())
    assert len(expected_rows) > 8
    assert rows == expected_rows
    assert connections == expected


def test_a_state_of_nobody_is_refused():
    newer = written().replace(b"wirecheck follower 6", b"wirecheck follower 9", 1)
    with pytest.raises(ValueError, match="state of version 9"):
        Follower.restore(newer)
