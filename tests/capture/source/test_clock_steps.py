"""An offset of a clock that was set, at the ends of the times that a row may have; the rest is a law."""

import numpy as np
import pytest

from wirecheck.capture.frames import EARLIEST_NS, LATEST_NS
from wirecheck.capture.source.clock_steps import moved


@pytest.mark.parametrize(
    ("by_ns", "times"),
    [
        (0, [0, 7, LATEST_NS]),
        (10, [10, 17, LATEST_NS]),
        (-5, [EARLIEST_NS, 2, LATEST_NS - 5]),
        (LATEST_NS + 1, [LATEST_NS] * 3),
        (-LATEST_NS - 1, [EARLIEST_NS] * 3),
    ],
)
def test_a_time_with_an_offset_is_one_that_a_row_may_have(by_ns, times):
    assert moved(np.array([0, 7, LATEST_NS]), by_ns).tolist() == times
