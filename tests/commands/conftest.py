"""The example's tables as a replay leaves them, and the command line in this process."""

from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from tests import frame_files
from wirecheck import cli
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.streaming.spark.sinks import by_table
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store import result_folder
from wirecheck.streaming.store.batches import Tables

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz"


@pytest.fixture(scope="session")
def frames_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    write_frames([EXAMPLE], folder, "default")
    return folder


@pytest.fixture(scope="session")
def tables(frames_folder):
    loop = Loop(Settings())
    loop.batch(sorted(frames_folder.glob("*.parquet")))
    return by_table(loop.emitted)


@pytest.fixture(scope="session")
def verdict(tables, tmp_path_factory):
    """The --out folder of a replay of the example."""
    out = tmp_path_factory.mktemp("verdict")
    Tables(out, "run-1").write(tables, 0)
    return out


@pytest.fixture(scope="session")
def delta_verdict(tables, tmp_path_factory):
    """The --out folder of a monitor with --tables delta, of the same."""
    out = tmp_path_factory.mktemp("delta-verdict")
    result_folder.writer(out, "run-1", result_folder.DELTA).write(tables, 0)
    return out


@pytest.fixture(scope="session")
def run():
    return lambda *arguments: CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


@pytest.fixture(scope="session")
def lying_folder(frames_folder, tmp_path_factory):
    """The example's frames, and a file beside them that says its payloads were longer than they are."""
    folder = tmp_path_factory.mktemp("lying")
    for file in frames_folder.glob("*.parquet"):
        (folder / file.name).symlink_to(file)
    table = frames_file.read(file).cast(frames.FRAMES)
    longer = pa.array([200 << 10] * len(table), pa.int32())
    table = table.set_column(table.schema.get_field_index("payload_len"), "payload_len", longer)
    agent = pa.array(["liar"] * len(table), pa.string())
    table = table.set_column(table.schema.get_field_index("agent"), "agent", agent)
    frame_files.write(table, folder / "liar-0000000001.parquet")
    return folder
