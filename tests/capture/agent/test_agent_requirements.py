"""`wirecheck doctor`: every line has a state and, where it is bad, a fix; a failure is exit code 1."""

import sys
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from wirecheck import cli, extension_modules
from wirecheck.capture.agent import agent_requirements


def lines(**asked):
    return {name: (state, said, fix) for name, state, said, fix in agent_requirements.checks(**asked)}


def test_what_is_not_ok_says_how_to_mend_it_and_nothing_raises(tmp_path):
    found = agent_requirements.checks(tmp_path, ("lo", "nosuch0"))
    assert {state for _, state, _, _ in found} <= {"ok", "warn", "fail"}
    assert all(fix for _, state, _, fix in found if state == "fail")
    assert ("interface", "fail", "nosuch0 does not exist") in [line[:3] for line in found]


@pytest.mark.parametrize(
    ("name", "change", "state"),
    [
        ("libpcap", ("wirecheck.capture.agent.agent_requirements.ctypes.util.find_library", lambda _: None), "warn"),
        (
            "disk",
            ("wirecheck.capture.agent.agent_requirements.shutil.disk_usage", lambda _: SimpleNamespace(free=1 << 20)),
            "warn",
        ),
        ("disk", ("wirecheck.capture.agent.agent_requirements.os.access", lambda *_: False), "fail"),
        ("capability", ("wirecheck.capture.agent.agent_requirements._NET_RAW", 63), "fail"),
        ("interfaces", ("wirecheck.capture.agent.agent_requirements._is_up", lambda _: False), "fail"),
        ("offload", ("wirecheck.capture.agent.agent_requirements._PACKET_BYTES", -1), "warn"),
        ("packet ring", ("wirecheck.capture.source.ring.V3", 99), "fail"),
    ],
)
def test_what_is_bad_is_seen(name, change, state, monkeypatch):
    monkeypatch.setattr(*change)
    found = lines()[name]
    assert (found[0], bool(found[2])) == (state, True)


def test_the_exit_code_says_whether_something_fails(monkeypatch):
    room = SimpleNamespace(checks=lambda: [("java", "fail", "not found", "install Java 17")])
    monkeypatch.setitem(sys.modules, "wirecheck.streaming.run.query_requirements", room)
    monkeypatch.setattr(agent_requirements, "checks", lambda *_: [("python", "ok", "3.11", "")])
    monkeypatch.setattr(extension_modules, "PLAIN", "")
    result = CliRunner().invoke(cli.main, ["doctor"])
    assert result.exit_code == 1
    fails = "fail  java           not found; fix: install Java 17"
    assert result.stdout.splitlines() == [fails, "ok    code, python; details: -v"]
    every = CliRunner().invoke(cli.main, ["doctor", "-v"]).stdout.splitlines()
    assert every == [fails, "ok    code           compiled", "ok    python         3.11"]


def test_without_the_monitor_extra_the_agent_is_looked_at_alone(monkeypatch):
    monkeypatch.setattr("wirecheck.commands.doctor.find_spec", lambda _: None)
    monkeypatch.setattr(agent_requirements, "checks", lambda *_: [])
    result = CliRunner().invoke(cli.main, ["doctor", "-v"])
    assert (result.exit_code, result.stdout.count("\n")) == (0, 2)
