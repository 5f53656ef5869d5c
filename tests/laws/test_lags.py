"""Law of lags: the table that metrics show has the numbers that `wirecheck groups` prints of the same capture."""

from pathlib import Path

import pytest

from tests.depth import some
from wirecheck import groups
from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.streaming.run.local_replay import LocalReplay
from wirecheck.streaming.steps.settings import Settings

ROOT = Path(__file__).resolve().parents[1] / "scenarios"
CAPTURES = [
    "work/poison",
    "captures/kraft-clients-zoo",
    "captures/kraft4-healthy",
    "work/sarama-reads-on-at-old-offset",
]


@pytest.mark.parametrize("name", ["work/batch-readers", *some(CAPTURES, each=3)])
def test_the_lag_of_each_group_is_that_of_the_command(name):
    (capture,) = (ROOT / name).glob("capture.pcap*")
    run = LocalReplay(Settings())
    for table in read_frames([capture], "default"):
        run.add(table)
    of_group = {}
    for row in run.result().rows["lags"]:
        if row["records"] is not None:
            of_group.setdefault(row["group_id"], []).append(row)
    printed = {row.group: row for row in groups(capture) if row.lag is not None}
    assert {reads: sum(row["records"] for row in rows) for reads, rows in of_group.items()} == {
        reads: printed[reads].lag for reads in of_group
    }
    assert of_group
