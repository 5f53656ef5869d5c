"""The systemd units: systemd has nothing to say about them but that wirecheck is not installed here."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from wirecheck import cli
from wirecheck.streaming.run import monitor, resources

FOLDER = Path(__file__).resolve().parents[1] / "deploy/systemd"
UNITS = sorted(FOLDER.glob("*.service"))
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")


def values(unit, key):
    return re.findall(rf"^{key}=(.*)$", unit.read_text(), re.MULTILINE)


def analyze(unit, *arguments):
    done = subprocess.run(["systemd-analyze", *arguments, str(unit)], capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_understands_the_unit(unit):
    said = [line for line in "".join(analyze(unit, "verify")).splitlines() if unit.name in line]
    assert [line for line in said if "is not executable" not in line] == []


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_the_unit_gives_away_little(unit):
    out, err = analyze(unit, "security", "--offline=true")
    found = re.search(r"exposure level for .*: ([0-9.]+)", out)
    if not found:
        pytest.skip(f"systemd-analyze cannot rate a unit here: {err.strip()}")
    assert float(found[1]) <= 2.0


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_the_command_takes_what_the_unit_gives_it_and_is_started_again(unit):
    (start,), (environment,) = values(unit, "ExecStart"), values(unit, "Environment")
    options = environment.strip('"').partition("=")[2]
    _, name, *words = shlex.split(start.replace("$WIRECHECK_OPTIONS", options).replace("%S", "/var/lib"))
    command = cli.main.get_command(click.Context(cli.main), name)
    command.make_context(name, words, parent=click.Context(cli.main)).close()
    assert (values(unit, "KillMode"), values(unit, "Restart")) == (["mixed"], ["always"])
    assert values(unit, "StartLimitIntervalSec") == ["0"]


def test_the_monitor_keeps_30_days_and_has_time_for_its_longest_stop():
    unit = FOLDER / "wirecheck-monitor.service"
    assert "--retain-results 30d --retain-results-size 8G" in values(unit, "ExecStart")[0]
    (stop_s,) = map(int, values(unit, "TimeoutStopSec"))
    assert stop_s >= 2 * (monitor.FORCED_S + resources.LAST_S)
    assert values(unit, "CapabilityBoundingSet") == [""]
    assert values(unit, "User") == values(FOLDER / "wirecheck-capture.service", "User")
