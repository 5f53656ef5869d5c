"""Flags over the file over the defaults; what cannot be is one line."""

import io
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from wirecheck import cli
from wirecheck.commands.monitor import LOGS
from wirecheck.judge.thresholds import Settings as JudgeSettings
from wirecheck.streaming.run import monitor
from wirecheck.streaming.run.monitor import Plan
from wirecheck.streaming.steps.settings import Settings

FILE = """
frames = "f"
out = "o"
interval = "500ms"
max_batch_bytes = "1G"
port = [9092, 9093]
allowed_host = "wirecheck.example.org"
metrics_port = 9000
once = true
[judge]
broker_grace_s = 60
"""


@pytest.fixture
def plans(monkeypatch):
    found = []
    monkeypatch.setattr(monitor, "run", lambda plan, settings, *_, **__: found.append((plan, settings)))
    return found


def ran(*arguments):
    return CliRunner().invoke(cli.main, ["monitor", *map(str, arguments)])


def written(tmp_path, text):
    (tmp_path / "m.toml").write_text(text)
    return tmp_path / "m.toml"


def test_the_defaults(plans):
    assert ran("--frames", "f", "--out", "o/").exit_code == 0
    assert plans == [(Plan("f", "o/", "o/_checkpoint"), Settings(live=True, by_minute=True))]


def test_a_flag_goes_before_the_file_and_the_file_before_the_default(plans, tmp_path):
    result = ran("--config", written(tmp_path, FILE), "--metrics-port", 9001, "--judge", "client_grace_s=5")
    assert result.exit_code == 0, result.output
    plan = Plan(
        "f", "o", "o/_checkpoint", once=True, interval_s=0.5, max_batch_bytes=1 << 30, metrics_port=9001,
        allowed_hosts=("wirecheck.example.org",),
    )  # fmt: skip
    judge = JudgeSettings(broker_grace_s=60, client_grace_s=5)
    assert plans == [(plan, Settings(ports=frozenset({9092, 9093}), judge=judge, live=True, by_minute=True))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("framse = 'f'", "framse is not a setting, did you mean frames?; there are allowed_host, buckets, checkpoint"),
        ("xyz = 1", "xyz is not a setting; there are allowed_host, buckets, checkpoint"),
        ("frames = ", "Invalid value"),
        ("judge = 3", "[judge] is a table"),
        ("[judge]\ngrace = 3", "judge: grace is not a setting"),
        ("[judge]\nbroker_grace = 3", "not a setting, did you mean broker_grace_s?; there are broker_grace_s"),
        ("[judge]\nbroker_grace_s = -3", "must be a number of at least 0, not -3"),
    ],
)
def test_a_file_that_is_wrong_is_one_line(plans, tmp_path, text, words):
    result = ran("--config", written(tmp_path, text), "--frames", "f", "--out", "o")
    assert (result.exit_code, plans, result.output.count("\n")) == (2, [], 1)
    assert words in result.output


def test_a_file_that_is_not_there_is_one_line(plans, tmp_path):
    result = ran("--config", tmp_path / "none.toml")
    assert (result.exit_code, result.output) == (2, f"wirecheck: {tmp_path}/none.toml: No such file or directory\n")


@pytest.mark.parametrize(
    ("flag", "value", "right"),
    [
        ("--interval", "soon", "30s"),
        ("--max-batch-bytes", "0", "64M"),
        ("--retain", "-1", "24h"),
        ("--retain-results", "month", "24h"),
        ("--retain-results-size", "much", "10G"),
        ("--heap", "none", "64M"),
        ("--judge", "x", "NAME=N"),
    ],
)
def test_a_flag_that_is_wrong_names_what_is_right_in_one_line(plans, flag, value, right):
    result = ran("--frames", "f", "--out", "o", f"{flag}={value}")
    assert (result.exit_code, plans, result.output.count("\n")) == (2, [], 1)
    assert all(word in result.output for word in (flag, value, right))


def test_a_package_of_another_version_is_one_line_before_it_is_imported(plans, monkeypatch):
    monkeypatch.setattr(
        "wirecheck.streaming.run.query_requirements.version", lambda name: "3.0.1" if name == "pandas" else "2.9"
    )
    monkeypatch.setattr("wirecheck.streaming.run.query_requirements.bounds_of", lambda: {"pandas": "<3,>=2.2"})
    result = ran("--frames", "f", "--out", "o")
    fix = "pip install 'pandas<3,>=2.2'"
    assert (result.exit_code, plans) == (2, [])
    assert result.output == f"wirecheck: pandas 3.0.1 is installed, <3,>=2.2 is needed: {fix}\n"


def test_a_name_with_a_newline_begins_no_log_line(monkeypatch):
    monkeypatch.setattr(
        monitor, "run", lambda plan, settings, say, *_, **__: say("opened: x\nwirecheck: closed: all\x1b[2J")
    )
    result = ran("--frames", "f", "--out", "o")
    assert result.stderr == "wirecheck: opened: x\\nwirecheck: closed: all\\x1b[2J\n"


@pytest.mark.parametrize("log", LOGS)
def test_a_log_whose_disk_is_full_ends_no_monitor(log, monkeypatch):
    with Path("/dev/full").open("wb", buffering=0) as full:
        monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(full, write_through=True))
        LOGS[log]("no space left")
        monkeypatch.undo()


def test_a_log_that_no_one_reads_ends_it(monkeypatch):
    class Closed(io.StringIO):
        def write(self, _):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    with pytest.raises(BrokenPipeError):
        LOGS["text"]("a line")
