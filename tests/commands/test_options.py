"""Options that several commands share: values that shells complete, and variables in place of them."""

import json
import os
import subprocess
import sys

import pytest

from tests.commands.conftest import EXAMPLE, ROOT


def completed(line):
    """What bash is offered for the last word of a line."""
    words = line.split(" ")
    variables = {"_WIRECHECK_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-c", "from wirecheck.door import main; main(prog_name='wirecheck')"]
    told = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    return [item.partition(",")[2] for item in told.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("wirecheck explain TID00", "TID002"),
        ("wirecheck explain topic-rec", "topic-recreated"),
        ("wirecheck replay --code CTL", "CTL001"),
        ("wirecheck decode --api leader", "LeaderAndIsr"),
        ("wirecheck replay --fail-on an", "anomaly"),
        ("wirecheck find", "findings"),
    ],
)
def test_values_are_completed(line, offered):
    found = completed(line)
    begun = line.rpartition(" ")[2].lower()
    assert offered in found
    assert all(item.lower().startswith(begun) for item in found)


def test_topics_are_completed_from_the_tables_that_the_line_names(verdict):
    assert completed(f"wirecheck topics {verdict} --topic pa") == ["pallets", "parcels"]
    assert completed(f"wirecheck findings {verdict} --topic ship") == ["shipments"]
    assert not any(completed("wirecheck topics nowhere/ --topic pa"))


def test_variables_stand_for_options_and_options_go_first(run, monkeypatch):
    monkeypatch.setenv("WIRECHECK_FORMAT", "json")
    monkeypatch.setenv("WIRECHECK_ENGINE", "local")
    monkeypatch.setenv("WIRECHECK_FAIL_ON", "never")
    told = run("replay", EXAMPLE)
    assert (told.exit_code, json.loads(told.stdout)["engine"]) == (0, "local")
    assert run("replay", EXAMPLE, "--format", "text", "--fail-on", "violation").exit_code == 1
    monkeypatch.setenv("WIRECHECK_FORMAT", "yaml")
    assert run("replay", EXAMPLE).exit_code == 2


def test_quiet_is_an_option_of_what_takes_long(run):
    assert run("topics", EXAMPLE, "-q").stderr == ""
    assert run("decode", EXAMPLE, "-q", "--limit", 1).exit_code == 0
