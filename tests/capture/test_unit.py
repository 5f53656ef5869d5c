"""The agent's systemd unit: systemd has nothing to say about it but that the agent is not installed here."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).resolve().parents[2] / "packaging/systemd/wirecheck-capture.service"

pytestmark = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")


def analyse(*arguments):
    done = subprocess.run(["systemd-analyze", *arguments, str(UNIT)], capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def test_systemd_understands_the_unit():
    said = [line for line in "".join(analyse("verify")).splitlines() if UNIT.name in line]
    assert [line for line in said if "is not executable" not in line] == []


def test_the_unit_gives_away_one_right_and_little_else():
    out, err = analyse("security", "--offline=true")
    found = re.search(r"exposure level for .*: ([0-9.]+)", out)
    if not found:
        pytest.skip(f"systemd-analyze cannot rate a unit here: {err.strip()}")
    assert float(found[1]) <= 2.0
