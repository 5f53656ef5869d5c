"""The example's tables as a replay leaves them, and the door in this process."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import wirecheck
from capture.agent import write_frames
from streaming.loop import Loop
from streaming.settings import Settings
from streaming.sinks import write_batch

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz"


@pytest.fixture(scope="session")
def frames_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    write_frames([EXAMPLE], folder, "default")
    return folder


@pytest.fixture(scope="session")
def verdict(frames_folder, tmp_path_factory):
    """The --out folder of a replay of the example."""
    loop = Loop(Settings())
    loop.batch(sorted(frames_folder.glob("*.parquet")))
    out = tmp_path_factory.mktemp("verdict")
    write_batch(loop.told, out, "run-1", 0)
    return out


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(wirecheck.main, [str(argument) for argument in arguments])
