"""`wirecheck run`: the command's status wins, signals reach it, and what was captured is checked as a replay would."""

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.awaited import await_that, read_until
from tests.judge import cases_unserved as cases
from tests.judge.lab import Lab
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.commands import run as command
from wirecheck.commands.ending import Stop

FAILS = [sys.executable, "-c", "raise SystemExit(7)"]
SUCCEEDS = [sys.executable, "-c", ""]


@pytest.fixture
def denied(tmp_path, monkeypatch):
    """In place of an agent: what it would have captured."""
    lab = Lab()
    cases.cli006_fires(lab)
    capture = tmp_path / "denied.pcap"
    capture.write_bytes(lab.pcap())

    @contextmanager
    def captured(_interfaces, _ports, out):
        yield
        write_frames([capture], out, "default", keep_records=False)

    monkeypatch.setattr(command, "capturing", captured)
    monkeypatch.setattr(command, "DRAIN_S", 0)
    return capture


@pytest.mark.parametrize(("line", "code"), [(SUCCEEDS, 1), (FAILS, 7)])
def test_the_status_of_the_command_wins(run, denied, line, code):
    ended = run("run", "--", *line)
    assert ended.exit_code == code
    assert "writer (10.0.0.7) cannot write to songs: 80 writes rejected" in ended.stdout


@pytest.mark.parametrize("name", ["./no-such-command", "no-such-command"])
def test_a_command_that_does_not_exist_is_one_line_and_nothing_is_captured(run, monkeypatch, name):
    monkeypatch.setattr(command, "capturing", None)
    ended = run("run", "--", name)
    assert (ended.exit_code, ended.stdout) == (127, "")
    assert ended.stderr == f"wirecheck: {name}: no such command\n"


def test_of_a_command_that_cannot_start_nothing_is_judged(run, denied, tmp_path):
    """A folder, and a script without its interpreter."""
    (tmp_path / "script").write_text("#!/no/such/interpreter\n")
    (tmp_path / "script").chmod(0o755)
    for name, code in (("/", 126), (str(tmp_path / "script"), 127)):
        ended = run("run", "--", name)
        assert (ended.exit_code, ended.stdout, ended.stderr.count("\n")) == (code, "", 1)


@pytest.mark.parametrize(("line", "code"), [(SUCCEEDS, 2), (FAILS, 7)])
@pytest.mark.parametrize("keeps", [False, True])
def test_the_status_of_the_command_wins_over_a_capture_without_traffic(run, monkeypatch, tmp_path, line, code, keeps):
    @contextmanager
    def nothing(_interfaces, _ports, out):
        yield
        out.mkdir()

    monkeypatch.setattr(command, "capturing", nothing)
    monkeypatch.setattr(command, "DRAIN_S", 0)
    kept = tmp_path / "kept.pcapng"
    ended = run("run", *(("--keep", kept) if keeps else ()), "--", *line)
    assert (ended.exit_code, ended.stdout, ended.stderr.count("\n")) == (code, "", 1)
    assert kept.exists() == keeps


@pytest.mark.parametrize("wrong", [Stop("the capture ended with status 1"), RuntimeError("a fault of our own")])
def test_the_status_of_the_command_wins_over_a_capture_that_fails(run, monkeypatch, wrong):
    @contextmanager
    def fails(*_):
        yield
        raise wrong

    monkeypatch.setattr(command, "capturing", fails)
    monkeypatch.setattr(command, "DRAIN_S", 0)
    ended = run("run", "--", *FAILS)
    assert (ended.exit_code, ended.stdout) == (7, "")
    assert str(wrong) in ended.stderr


def test_its_cards_name_the_file_that_is_kept(run, denied, tmp_path):
    assert "wirecheck decode FILE --client writer --error" in run("run", "--", *SUCCEEDS).stdout
    kept = tmp_path / "kept.pcapng"
    assert f"wirecheck decode {kept} --client writer" in run("run", "--keep", kept, "--", *SUCCEEDS).stdout
    ids = [
        [finding["id"] for finding in json.loads(run(*line, "--format", "json").stdout)["findings"]]
        for line in (("replay", kept), ("replay", denied))
    ]
    assert ids[0] == ids[1] != []


def test_it_is_an_expectation_or_a_grace_as_in_a_replay(run, denied, tmp_path):
    (tmp_path / "expected").write_text("CLI006 * * - known")
    assert run("run", "--expect", tmp_path / "expected", "--", *SUCCEEDS).exit_code == 0
    found = json.loads(run("run", "--grace", "5s,20s", "--format", "json", "--", *SUCCEEDS).stdout)
    assert found["grace_s"] == {"brokers": 5, "clients": 20}
    assert run("run", "--grace", "5s", "--", *SUCCEEDS).exit_code == 2


def test_a_signal_reaches_the_command_and_what_it_ends_with_is_the_status(tmp_path):
    """A shell calls a death by SIGTERM 143."""
    ready = tmp_path / "ready"
    waits = f"import pathlib, signal; pathlib.Path({str(ready)!r}).touch(); signal.pause()"
    script = f"from wirecheck.commands.run import status_of; print(status_of(({sys.executable!r}, '-c', {waits!r})))"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        await_that(ready.exists, process, "the command does not run")
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=30)[0] == "143\n"


def test_ctrl_c_reaches_the_command_once(tmp_path):
    """The terminal sends it to the command too. A program may take the second for "do not clean up"."""
    counts = "import signal, time; got = []; signal.signal(signal.SIGINT, lambda *_: got.append(1)); "
    counts += "print('ready', flush=True); exec('while not got: time.sleep(0.01)'); "
    counts += "time.sleep(0.5); print(len(got), 'received')"
    script = f"from wirecheck.commands.run import status_of; status_of(({sys.executable!r}, '-c', {counts!r}))"
    process, terminal = pty.fork()
    if not process:
        os.execv(sys.executable, [sys.executable, "-c", script])
    shown = read_until(terminal, "ready")
    os.write(terminal, b"\x03")
    shown += read_until(terminal, "received")
    os.waitpid(process, 0)
    os.close(terminal)
    assert "1 received" in shown


def test_under_sudo_the_command_is_its_callers(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", "65534")
    monkeypatch.setenv("SUDO_GID", "65533")
    monkeypatch.setenv("SUDO_USER", "nobody")
    found = command.caller()
    assert (found["user"], found["group"], found["env"]["USER"]) == (65534, 65533, "nobody")
    for uid in ("0", "", "root"):
        monkeypatch.setenv("SUDO_UID", uid)
        assert command.caller() == {}


def test_where_nothing_can_be_captured_the_command_is_not_started(run, tmp_path):
    """One clear line, of the capture itself."""
    started = tmp_path / "started"
    ended = run("run", "-i", "nope0", "--", sys.executable, "-c", f"open({str(started)!r}, 'w')")
    assert (ended.exit_code, ended.stdout, started.exists()) == (2, "", False)
    assert ended.stderr.startswith("wirecheck: ")
    assert ended.stderr.count("\n") == 1


def test_a_capture_that_fails_meanwhile_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "await_begin", lambda *_: None)
    monkeypatch.setattr(command.sys, "executable", "/bin/false")
    with pytest.raises(Stop, match="the capture ended with status 1"), command.capturing(("lo",), (), tmp_path):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
