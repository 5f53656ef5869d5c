"""Who is refused all the time is hurt, whatever succeeds between; retries of a healthy client are not that."""

from random import Random

import pytest

from tests.judge.made import claim, outcomes
from wirecheck.judge.streaks import refused_in_part
from wirecheck.judge.thresholds import Settings


def answers(*counted):
    """(time, errors, successes): one answer after the other."""
    found = []
    for at, errors, good in counted:
        found += [(at + 0.001 * number, 6) for number in range(errors)]
        found += [(at + 0.5 + 0.001 * number, 0) for number in range(good)]
    return claim("named_answer", "orders", "Produce", "app", "10.0.0.7", "10.0.0.1:9092", outcomes=outcomes(*found))


def part(*counted):
    return refused_in_part(answers(*counted).outcomes, [6], Settings())


def test_a_client_that_is_refused_most_of_the_time():
    """21,740 of 22,172 in the report: one success in fifty cut every streak."""
    found = part(*((at, 49, 1) for at in range(0, 120, 2)))
    assert (found.count, round(found.seconds), found.ended) == (49 * 60, 118, True)


def test_a_tenth_is_enough_and_less_is_not():
    assert part(*((at, 1, 9) for at in range(60))) is not None
    assert part(*((at, 1, 10) for at in range(60))) is None


@pytest.mark.parametrize("seed", range(5))
def test_the_retries_of_a_rolling_restart_are_routine(seed):
    """Each of three restarts moves the leader: some errors within a second, then a minute without."""
    rng = Random(seed)
    moved = {at: rng.randrange(3, 30) for at in (20, 80, 140)}
    assert part(*((at, moved.get(at, 0), 10) for at in range(200))) is None


def test_a_burst_is_no_part_of_the_time():
    assert part((0, 0, 10), (5, 500, 10), (40, 0, 10)) is None


def test_it_ends_when_errors_become_few():
    found = part(*((at, 5, 5) for at in range(60)), *((at, 0, 10) for at in range(60, 200)))
    assert (found.ended, round(found.seconds)) == (True, 59)
