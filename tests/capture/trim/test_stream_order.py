"""Rows by place: the order of a sort, whatever came in."""

import numpy as np
import pytest

from wirecheck.capture.trim.placed_rows import by_place, by_row
from wirecheck.capture.waiting_rows import vector


@pytest.mark.parametrize("disorder", [0, 3, 10_000])
def test_the_order_is_that_of_a_sort(disorder):
    rng = np.random.default_rng(disorder)
    stream = rng.integers(-1, 40, 5000)
    place = np.arange(5000) // 2 + rng.integers(0, disorder + 1, 5000)
    expected = np.lexsort((place, stream))
    expected = expected[stream[expected] >= 0]
    assert list(by_place(vector(stream), vector(place))) == expected.tolist()


def test_no_rows_have_no_order():
    nothing = np.zeros(0, np.int64)
    assert list(by_place(vector(nothing), vector(nothing))) == []
    one = np.zeros(1, np.int64)
    assert list(by_place(vector(one - 1), vector(one))) == []


def test_entries_go_to_their_rows_in_order():
    rows, place = np.array([7, 3, 5, 3, 9, 5]), np.array([0, 8, 1, 2, 0, 1])
    at, order = by_row(vector(rows), vector(place), 3, 9)
    assert list(at) == [0, 2, 2, 4, 4, 5, 5]
    assert list(order) == [3, 1, 2, 5, 0]
