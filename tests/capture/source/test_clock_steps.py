"""An offset of a clock that was set, at the ends of the times that a row may have; and a step back near to the end of
a batch. The rest is a law.
"""

import numpy as np
import pytest

from tests import traffic as t
from tests.capture.reading import frames_of
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


@pytest.mark.parametrize("interfaces", [1, 2])
@pytest.mark.parametrize("behind", [1, 5])
def test_rows_behind_a_step_wait_for_the_next_batch_with_their_interfaces(interfaces, behind, written):
    segments = t.Talk(mss=40).open().request(b"q" * 300).response(b"r" * 300).close().segments
    back = len(segments) - behind
    packets = [
        t.Packet(s.ts_ns - (at >= back) * 10**10, t.ethernet(t.ip(s)), interface=at % interfaces)
        for at, s in enumerate(segments)
    ]
    path = written(t.pcapng(packets, [t.Interface()] * interfaces), "steps.pcapng")
    assert [row["tcp_seq"] for row in frames_of(path)] == [s.seq for s in segments]
