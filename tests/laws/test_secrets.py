"""The law of secrets: whatever happens to packets, no record and no secret reaches the disk."""

import random
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests import traffic as t
from tests.capture import canaries
from wirecheck.capture.agent.offline_agent import write_frames

HARM = st.sets(st.sampled_from(["loss", "repeat", "reorder", "middle"]))


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(sorted(canaries.EXCHANGES)), min_size=1, max_size=16),
    st.sampled_from([7, 40, 200, 1448, 60_000]),
    HARM,
    st.integers(0, 2**32),
    st.sampled_from([1 << 12, 1 << 14, 1 << 20]),
)
def test_no_canary_reaches_a_file(names, mss, harm, seed, batch_bytes):
    segments = canaries.mutated(canaries.traffic(names, mss), random.Random(seed), harm)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "capture.pcap"
        path.write_bytes(t.pcap(t.packets(segments)))
        files = write_frames([path], Path(folder) / "out", "c", batch_bytes=batch_bytes).files
        assert canaries.leaks(files) == []
