"""Damaged frames: some sequences are followed, decoded and trimmed here, so that the fuzzer itself is known to run."""

import numpy as np
import pytest

from fuzz import following


@pytest.mark.parametrize("bend", [False, True])
def test_a_short_run_finds_nothing(bend):
    smallest = min(following.CAPTURES.glob("*/capture.pcap*"), key=lambda path: path.stat().st_size)
    bases, rng, seen = [following.base(smallest)], np.random.default_rng(7), following.Seen()
    for number in range(20):
        if rows := following.sequence(rng, bases, bend=bend):
            following.tried(rng, rows, seen, early=bool(number & 1))
    assert seen.counts["messages"]
