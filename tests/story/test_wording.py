"""Words and numbers that all texts have in common."""

import pytest

from wirecheck.wording import number_list


@pytest.mark.parametrize(
    ("numbers", "parts"),
    [
        ([], []),
        ([3, 1, 2, 4], ["1", "2", "3", "4"]),
        ([*range(2, 50), 1, 60], ["1 to 49", "60"]),
        ([10, 9, 8, 7, 6, 1, 1], ["1", "6 to 10"]),
        ([-1, 0, 1, 2, 3], ["-1 to 3"]),
    ],
)
def test_five_numbers_in_a_row_are_named_by_the_first_and_the_last(numbers, parts):
    assert number_list(numbers) == parts
