"""A monitor whose disk is full again and again while frames arrive goes on, and its results are those of a replay."""

import os
import random
import sys
import time

import pytest

from bench.chaos import Monitor, feed, twice
from tests.awaited import await_that
from tests.scenarios.engines import Scenario, frames, plain
from wirecheck.streaming.store.run_result import Result

CYCLES, PAGE_BYTES = 6, 4096
SOON = (
    sys.executable,
    "-c",
    "from wirecheck.streaming.run import batch_repeats as b; b.PAUSES_S = 1, 2; from wirecheck.cli import main; main()",
)
"""The command, but that a batch is repeated after one and two seconds."""


def fill(disk, free_bytes):
    """But for so many bytes."""
    with (disk / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(PAGE_BYTES))
        except OSError:
            filler.truncate(max(0, filler.tell() - free_bytes))


def lines(monitor, words):
    return (monitor.folder / "words").read_text().count(words)


@pytest.mark.parametrize("full", ["results", "checkpoint", "both"])
def test_a_monitor_goes_on_once_there_is_space_and_has_what_a_replay_has(full, disk_of, tmp_path):
    disk = disk_of("160M")
    dice, port = random.Random(full), 19_300 + os.getpid() % 100
    out = tmp_path / "out" if full == "checkpoint" else disk / "out"
    state = tmp_path / "state" if full == "results" else disk / "state"
    (tmp_path / "frames").mkdir()
    files = frames([Scenario("zk28-recreate").pcap], tmp_path / "source", roll_bytes=60_000)
    share = len(files) // (CYCLES + 1)
    feed(files[:2], tmp_path / "frames")
    monitor = Monitor(tmp_path, port, "--out", str(out), "--checkpoint", str(state), command=SOON)
    monitor.judging()
    for cycle in range(CYCLES):
        fill(disk, dice.choice((0, 1, 2, 8, 20, 60)) * PAGE_BYTES)
        feed(files[2:][cycle * share : (cycle + 1) * share], tmp_path / "frames")
        await_that(
            lambda cycle=cycle: lines(monitor, ": no space left; free some") > cycle, None, "a full disk is said"
        )
        time.sleep(dice.uniform(0, 4))
        monitor.need_life()
        (disk / "filler").unlink()
        await_that(lambda cycle=cycle: lines(monitor, ": there is space again") > cycle, None, "it is written")
    feed(files[2:][CYCLES * share :], tmp_path / "frames")
    expected = plain([files])
    every = expected["coverage"]["frames"]
    await_that(lambda: Result.latest(out).json()["coverage"]["frames"] == every, None, "all is judged", pause_s=0.2)
    assert monitor.stop() == 0
    said = (tmp_path / "words").read_text().splitlines()
    named = {"results": f"{out}", "checkpoint": f"{state}", "both": f"{out} and {state}"}[full]
    assert {line.split(": ")[1] for line in said if "no space left" in line} == {named}
    assert not [line for line in said if "Traceback" in line]
    assert twice(out) == 0
    assert Result.latest(out).json() == expected
