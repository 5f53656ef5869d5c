"""Who is refused all the time is hurt, whatever succeeds between; retries of a healthy client are not that."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judge.made import claim, outcomes
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.streaks import Streak, refused_in_part, windows
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


def in_slots(counts):
    return {slot: Streak(count, slot * SLOT_NS, slot * SLOT_NS) for slot, count in counts.items()}


COUNTS = st.dictionaries(st.integers(0, 40), st.integers(1, 9), max_size=12)


@given(COUNTS, COUNTS, st.integers(1, 30))
def test_between_the_slots_of_a_window_nothing_changes(failed, granted, slots):
    """Held against each slot by itself."""
    found = {}
    for number, *counts in windows({at: [one] for at, one in in_slots(failed).items()}, in_slots(granted), slots):
        found[number] = counts
    counts = [0, 0]
    for number in range(min(failed, default=0), max(failed, default=-1) + 1):
        window = range(number - slots + 1, number + 1)
        now = [sum(of.get(at, 0) for at in window) for of in (failed, granted)]
        assert found.get(number, now) == now
        assert number in found or now == counts or number == min(failed)
        counts = now
    assert {*failed} <= {*found}


@pytest.mark.timeout(20)
def test_years_between_two_answers_take_no_time():
    """A writer that is rejected once a year, as in captures that were read together: with all slots between it takes
    minutes.
    """
    year_s = 365 * 86_400
    found = answers(*((number * year_s, number % 2, 1) for number in range(9))).outcomes
    refused_in_part(found, [6], Settings(), "writes")
