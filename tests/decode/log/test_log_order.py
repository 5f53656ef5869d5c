"""Which entries stand: high watermarks, branches, transactions, in any order of learning."""

import itertools
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decode.log.batches import batch, entries, marker, topic
from wirecheck.decode.log import log_order as o

T = topic()


def seen(*values, base=0, epoch=1):
    return entries(batch(*values, base_offset=base, epoch=epoch))


def order(*parts, high_watermark=100):
    made = o.LogOrder()
    for part in parts:
        made.absorb(part)
    made.below(high_watermark)
    return made


def fates(made, *offsets, epoch=1):
    names = {o.PENDING: "pending", o.COMMITTED: "committed", o.VOID: "void"}
    result = made.fates(np.array(offsets, np.int64), np.full(len(offsets), epoch, np.int64))
    return [names[fate] for fate in result.tolist()]


def test_an_entry_is_committed_once_a_high_watermark_passed_it():
    made = order(seen(T, T, T), high_watermark=2)
    assert fates(made, 0, 1, 2) == ["committed", "committed", "pending"]
    made.below(1)
    assert fates(made, 1) == ["committed"]
    made.below(3)
    assert fates(made, 2) == ["committed"]


def test_a_later_leaders_branch_replaces_what_lies_at_or_above_its_start():
    made = order(seen(T, T, T, T), seen(T, T, base=2, epoch=3))
    assert fates(made, 0, 1, 2, 3) == ["committed", "committed", "void", "void"]
    assert fates(made, 2, 3, epoch=3) == ["committed", "committed"]


def test_diverging_epoch_ends_an_epoch():
    made = order(seen(T, T, T, T, epoch=2))
    made.diverged(2, 3)
    made.diverged(2, 2)
    made.diverged(-1, 0)  # the default: nothing diverges
    assert fates(made, 1, 2, 3, epoch=2) == ["committed", "void", "void"]
    assert fates(made, 2, epoch=3) == ["committed"]


def test_a_snapshot_covers_what_lies_below_it():
    made = o.LogOrder()
    made.covered(5, 2)
    assert fates(made, 3, 4, 5, epoch=2) == ["committed", "committed", "pending"]
    assert fates(made, 4) == ["void"]


BEGIN, END, ABORT = marker(23), marker(24), marker(25)

TRANSACTIONS = {
    "ended": ([T, BEGIN, T, END, T], ["committed"] * 5),
    "aborted": ([T, BEGIN, T, ABORT, T], ["committed", "committed", "void", "committed", "committed"]),
    "open": ([T, BEGIN, T, T], ["committed", "committed", "pending", "pending"]),
    "begun twice": ([BEGIN, T, BEGIN, T, END], ["committed", "pending", "committed", "committed", "committed"]),
    "aborted without a begin": ([T, ABORT, T], ["pending", "committed", "committed"]),
    "ended without a begin": ([T, END, T], ["committed"] * 3),
    "aborted after an end": ([BEGIN, T, END, T, ABORT], ["committed"] * 3 + ["pending", "committed"]),
    "aborted twice": ([BEGIN, T, ABORT, T, ABORT], ["committed", "void", "committed", "pending", "committed"]),
}


@pytest.mark.parametrize("case", TRANSACTIONS)
def test_a_transaction_decides_over_what_is_in_it(case):
    values, expected = TRANSACTIONS[case]
    assert fates(order(seen(*values)), *range(len(values))) == expected


def test_a_marker_counts_once_it_is_committed():
    made = order(seen(BEGIN, T, ABORT), high_watermark=2)
    assert fates(made, 1) == ["pending"]
    made.below(3)
    assert fates(made, 1) == ["void"]


def test_a_marker_on_a_replaced_branch_does_not_count():
    made = order(seen(BEGIN, T, ABORT), seen(END, base=2, epoch=2))
    assert fates(made, 1) == ["committed"]
    assert fates(order(seen(END, base=2, epoch=2), seen(BEGIN, T, ABORT)), 1) == ["committed"]


PARTS = [
    seen(T, BEGIN, T, T),
    seen(T, ABORT, base=2, epoch=2),
    seen(T, base=4, epoch=2),
    seen(BEGIN, T, base=5, epoch=4),
    seen(END, base=7, epoch=4),
]


def test_any_order_and_repetition_teaches_the_same():
    expected = order(*PARTS)
    for shuffled in itertools.permutations(PARTS):
        assert order(*shuffled, shuffled[0]) == expected


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=8))
def test_merging_is_learning_together(picks):
    apart, together = [o.LogOrder() for _ in range(3)], o.LogOrder()
    for part, one in picks:
        for made in (apart[one], together):
            made.absorb(PARTS[part])
            made.below(part)
            made.diverged(part % 3, 5 + part)
    for first, second, third in itertools.permutations(apart):
        merged = deepcopy(first)
        for other in (second, third, second):
            merged.merge(other)
        assert merged == together


def test_of_markers_of_two_logs_those_of_aborted_transactions_stay():
    """A second log begins at offset 0 again, with a transaction that overlaps one of the first log."""
    made = order(seen(BEGIN, base=46), seen(END, base=63), seen(BEGIN, base=38), seen(END, base=58))
    assert fates(made, 40, 50) == ["pending", "committed"]
    made.absorb(seen(BEGIN, T, ABORT, base=70))
    made.markers = made.aborted_alone()
    assert fates(made, 40, 50, 60, 71, 80) == ["committed", "committed", "committed", "void", "committed"]


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(o, "MOST_REMEMBERED", 3)
    made = o.LogOrder()
    for i in range(10):
        made.absorb(seen(BEGIN, base=10 * i, epoch=i))
        made.diverged(i, 10 * i + 10)
    assert (sorted(made.markers), sorted(made.starts), sorted(made.ends)) == ([70, 80, 90], [7, 8, 9], [7, 8, 9])


def test_epochs_that_decide_nothing_are_forgotten():
    made = order(seen(T, base=5, epoch=1), seen(T, base=4, epoch=2))
    assert made.starts == {2: 4}
