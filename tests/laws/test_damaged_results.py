"""The law of our own files: results that are not as they were written end in one line, or are what they were."""

import random
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner

from tests.depth import DEEP
from wirecheck.capture.evidence import minimal_subset
from wirecheck.cli import main

EXAMPLE = Path(__file__).parents[2] / "examples/zk39-inconsistent-id/capture.pcap.gz"
SEEDS = range(200 if DEEP else 12)
COMMANDS = (
    lambda bad, good: ["findings", bad, "--format", "json"],
    lambda bad, good: ["diff", bad, good, "--format", "json"],
    lambda bad, good: ["evidence", "TID002", "--from", bad, "-o", bad.with_name("e.pcapng")],
    lambda bad, good: ["changes", bad, "--format", "json"],
)


def run(*arguments):
    with patch.object(minimal_subset, "TRIES", 0):  # evidence that is enough, not the least there is
        return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "good"
    assert run("replay", EXAMPLE, "--out", out, "-q").exit_code == 1
    return out


@pytest.fixture(scope="module")
def well(good):
    """What each command prints of results that are as they were written."""
    return [run(*command(good, good)).stdout for command in COMMANDS]


def damage(path, others, dice):
    """Cut, emptied, a bit or some bytes changed, or in the place of another table's."""
    data = bytearray(path.read_bytes())
    way = dice.choice(["cut", "empty", "bit", "bit", "bit", "bytes", "other", "gone"])
    place = dice.randrange(len(data))
    if way == "bit":
        data[place] ^= 1 << dice.randrange(8)
    elif way == "bytes":
        data[place : place + 60] = dice.randbytes(len(data[place : place + 60]))
    if way == "other":
        shutil.copy(dice.choice(others), path)
    elif way == "gone":
        path.unlink()
    else:
        path.write_bytes(bytes(data[: {"cut": place, "empty": 0}.get(way, len(data))]))
    return way


@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_result_ends_in_one_line_or_changes_nothing(good, well, tmp_path, seed):
    dice = random.Random(seed)
    bad = tmp_path / "bad"
    shutil.copytree(good, bad)
    files = sorted(bad.rglob("*.parquet"))
    path = dice.choice(files)
    way = damage(path, [one for one in files if one != path], dice)
    for command, expected in zip(COMMANDS, well, strict=True):
        found = run(*command(bad, good))
        assert found.exception is None or isinstance(found.exception, SystemExit), (way, path.parts[-4:], command)
        if found.exit_code == 2:
            assert found.stderr.count("\n") == 1, found.stderr
        elif way != "gone":
            assert found.stdout.replace(str(bad), str(good)) == expected
