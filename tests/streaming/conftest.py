"""A real capture as several frames files."""

from pathlib import Path

import pytest

from wirecheck.capture.agent.offline_agent import write_frames

CAPTURES = Path(__file__).parent.parent / "scenarios" / "captures"


@pytest.fixture(scope="session")
def frames_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    capture = CAPTURES / "zk28-recreate" / "capture.pcap.gz"
    return write_frames([capture], folder, "L", agent="a", roll_bytes=400_000).files
