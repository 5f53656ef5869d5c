"""Answers over time: whatever is merged in what order, also beyond the bounds, and stored and read."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from wirecheck.judge.claims.outcomes import (
    MOST_PARTS,
    MOST_SLOTS,
    OTHERS,
    SLOT_NS,
    SUCCESS,
    WAITED,
    Outcomes,
    Run,
    from_flat,
    single,
)

S = 1_000_000_000
ANSWERS = st.tuples(
    st.sampled_from([SUCCESS, 3, 100, WAITED]),
    st.one_of(st.integers(0, 30), st.integers(MOST_SLOTS - 3, MOST_SLOTS + 30)),
    st.sampled_from([*range(2 * MOST_PARTS), OTHERS]),
    st.integers(0, SLOT_NS - 1),
    st.integers(0, 3 * SLOT_NS),
)


def made(answers):
    outcomes = Outcomes()
    for outcome, slot, part, after_ns, for_ns in answers:
        first_ns = slot * SLOT_NS + after_ns
        outcomes.merge(single(outcome, slot, part, Run(1, first_ns, first_ns + for_ns)))
    return outcomes


FULL = made((SUCCESS, slot, 0, 0, 0) for slot in range(0, MOST_SLOTS, 2)).flat()
"""Half of the slots that are kept."""


@given(st.lists(st.lists(ANSWERS, max_size=20), max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_merging_does_not_matter_at_the_bounds_either(several, random):
    def merged(parts):
        outcomes = Outcomes()
        for part in parts:
            outcomes.merge(part)
        return outcomes

    parts = [*map(made, several), from_flat(FULL), made((SUCCESS, slot, 0, 0, 0) for slot in range(1, MOST_SLOTS, 2))]
    shuffled = random.sample(parts, len(parts))
    cut = random.randint(0, len(parts))
    assert merged(parts) == merged(shuffled) == merged([merged(shuffled[:cut]), merged(shuffled[cut:])])


@given(st.lists(ANSWERS, max_size=30))
def test_what_is_stored_is_what_is_read(answers):
    outcomes = made(answers)
    assert from_flat(orjson.loads(orjson.dumps(outcomes.flat()))) == outcomes


@given(st.lists(ANSWERS, max_size=30), st.integers(0, (MOST_SLOTS + 40) * SLOT_NS))
def test_each_answer_that_is_known_is_before_a_time_or_after_it(answers, at_ns):
    outcomes = made(answers)
    early, late = outcomes.split(at_ns, early=True), outcomes.split(at_ns, early=False)
    assert all(run.last_ns < at_ns for run in early.runs())
    assert all(run.first_ns >= at_ns for run in late.runs())
    assert early.codes() | late.codes() == outcomes.codes()


def test_a_copy_does_not_change_with_what_it_was_copied_from():
    outcomes = made([(3, 1, 4000, 0, 0)])
    copied = outcomes.copy()
    outcomes.merge(made([(3, 1, 4000, 5, 0)]))
    assert [run.count for run in copied.runs()] == [1]


def test_another_outcome_is_news_and_more_of_one_is_none():
    outcomes = made([(SUCCESS, 1, 4000, 0, 0)])
    assert not outcomes.merge(made([(SUCCESS, 2, 4001, 0, 0)]))
    assert outcomes.merge(made([(3, 2, 4000, 0, 0)]))


def test_what_is_dropped_leaves_no_outcome_without_answers():
    outcomes = made([(3, 1, 4000, 0, 0), (SUCCESS, 5, 4000, 0, 0)])
    assert outcomes.drop_before(5)
    assert outcomes.codes() == {SUCCESS}
    assert not outcomes.drop_before(5)
