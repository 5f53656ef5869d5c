"""The table of transitions: every mode can be left or is an end, and nothing happens that it does not list."""

import pytest

from wirecheck.decode.connection.stream import modes


def test_every_mode_and_every_event_stands_in_the_table():
    reached = {mode for mode, _ in modes.TRANSITIONS} | set(modes.TRANSITIONS.values())
    assert reached == set(range(modes.UNSEEN, modes.RELEASED + 1))
    assert {event for _, event in modes.TRANSITIONS} == set(range(modes.START_SEEN, modes.FORGOTTEN + 1))


def test_a_stream_stays_a_stream_and_a_framing_a_framing():
    kinds = [
        range(modes.UNSEEN, modes.OPENING),
        range(modes.OPENING, modes.OPEN),
        range(modes.OPEN, modes.RELEASED + 1),
    ]
    for (mode, _), into in modes.TRANSITIONS.items():
        assert [mode in kind for kind in kinds] == [into in kind for kind in kinds]


def test_what_is_not_listed_cannot_happen():
    assert modes.after(modes.HELD, modes.START_SEEN) == modes.RUNNING
    with pytest.raises(KeyError):
        modes.after(modes.RELEASED, modes.OVER)
