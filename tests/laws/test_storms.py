"""A client asks without a pause if one connection has so many answers a second in three slots in a row, however they
are divided, and never because many clients share an address or a burst is large.
"""

from hypothesis import given
from hypothesis import strategies as st

from wirecheck.judge.checks.storms import fastest, without_work
from wirecheck.judge.claims.outcomes import OTHERS, SLOT_NS, Outcomes, Run
from wirecheck.judge.streaks import Streak
from wirecheck.judge.thresholds import Settings

PER_S, CODE = 100, 3
LEAST = PER_S * 10
COUNTS = st.lists(st.sampled_from([0, 1, LEAST - 1, LEAST, 50 * LEAST]), min_size=1, max_size=8)


def outcomes_of(counts, port):
    """So many answers in each slot, on one connection."""
    found = Outcomes()
    for slot, count in enumerate(counts):
        if count:
            found.add(CODE, slot, port, Run(count, slot * SLOT_NS, slot * SLOT_NS + SLOT_NS // 2))
    return found


def full(counts):
    return any(min(counts[at : at + 3]) >= LEAST for at in range(len(counts) - 2))


@given(st.lists(COUNTS, min_size=1, max_size=4))
def test_three_full_slots_of_one_connection_are_a_storm_and_nothing_else_is(connections):
    merged = Outcomes()
    for port, counts in enumerate(connections):
        merged.merge(outcomes_of(counts, port))
    found = fastest(merged, {CODE}, PER_S)
    assert (found is not None) == any(map(full, connections))
    assert found is None or found.count >= 3 * LEAST


@given(COUNTS)
def test_connections_that_are_not_kept_apart_are_no_storm(counts):
    assert fastest(outcomes_of(counts, OTHERS), {CODE}, PER_S) is None


SLOTS = st.lists(
    st.tuples(st.sampled_from([0, 999, 1000, 1999, 2000, 8000]), st.sampled_from([0, 99, 100, 900, 8000]),
              st.sampled_from([0, 499, 500, 8000])), min_size=1, max_size=8)  # fmt: skip
"""Of each slot of 10 s: connections opened, requests granted that are work, requests rejected."""


def is_storm(opened, worked, rejected):
    return 10 * worked < opened and (opened >= 2000 or (opened >= 1000 and 2 * rejected >= opened))


@given(SLOTS)
def test_connections_in_three_slots_without_work_are_a_storm_and_nothing_else_is(slots):
    opened = {at: Streak(one[0], at * SLOT_NS, at * SLOT_NS + 1) for at, one in enumerate(slots) if one[0]}
    worked, rejected = ({at: one[part] for at, one in enumerate(slots)} for part in (1, 2))
    storm = any(all(is_storm(*one) for one in slots[at : at + 3]) for at in range(len(slots) - 2))
    assert (without_work(opened, worked, rejected, Settings()) is not None) == storm
