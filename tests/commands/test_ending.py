"""How commands end when somebody stops them, stops reading, or mistypes; and what no terminal may be told."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests import traffic
from tests.awaited import await_that
from tests.commands.conftest import EXAMPLE, ROOT
from tests.depth import some
from tests.judge.lab import written as message
from wirecheck import cli
from wirecheck.commands.screen import as_json, legible
from wirecheck.session.inputs import user_name

CLIENT = "owned\x9b31m\u202e"  # with C0 controls a connection is not taken for Kafka's to begin with
EVIL = "app\x1b]0;owned\x07\x9b31m\u202e"


@contextmanager
def started(*arguments, tmp):
    """A process that does not outlive its test."""
    command = [sys.executable, "-m", "wirecheck", *map(str, arguments)]
    environment = {**os.environ, "TMPDIR": str(tmp)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


INTERRUPTED = {130, -signal.SIGINT}
"""130 for a shell, both: CPython ends itself by the signal where Ctrl-C came while a text was run as code, as
dataclasses do when they are imported."""


def opened(fifo, reader):
    """The other end of a pipe with a name, once the process has its own; open() itself would wait for ever."""

    def handle():
        with suppress(OSError):  # ENXIO: nobody reads
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)

    return os.fdopen(await_that(handle, reader, f"a reader of {fifo}"), "wb")


@pytest.mark.parametrize("command", [["topics"], ["decode"], ["replay", "--engine", "local"]], ids=lambda c: c[0])
def test_ctrl_c_is_one_line_and_leaves_nothing_behind(command, tmp_path):
    (tmp_path / "tmp").mkdir()
    os.mkfifo(tmp_path / "endless.pcap")
    with (
        started(*command, tmp_path / "endless.pcap", tmp=tmp_path / "tmp") as process,
        opened(tmp_path / "endless.pcap", process),  # the command reads, and waits for more
    ):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode in INTERRUPTED, out, err) == (True, "", "wirecheck: interrupted\n")
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("before", [(), ("out", "report.html")], ids=["nothing", "earlier"])
def test_ctrl_c_leaves_out_and_report_as_they_were(before, tmp_path):
    """Nothing where there was nothing; an earlier replay's tables and page where there were some."""
    (tmp_path / "tmp").mkdir()
    os.mkfifo(tmp_path / "endless.pcap")
    if before:
        (tmp_path / "out/topics/run=1").mkdir(parents=True)
        (tmp_path / "report.html").write_text("earlier")
    place = ["--engine", "spark", "--out", tmp_path / "out", "--report", tmp_path / "report.html"]
    with (
        started("replay", tmp_path / "endless.pcap", *place, tmp=tmp_path / "tmp") as process,
        opened(tmp_path / "endless.pcap", process),
    ):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode in INTERRUPTED, out, err) == (True, "", "wirecheck: interrupted\n")
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == sorted(
        ["endless.pcap", "tmp", *(("out", "out/topics", "out/topics/run=1", "report.html") if before else ())]
    )


@pytest.mark.parametrize("command", [["decode", EXAMPLE], ["explain", "TID002"]], ids=lambda c: c[0])
def test_a_reader_that_goes_is_no_error_message_and_no_finding(command, tmp_path):
    with started(*command, tmp=tmp_path) as process:
        process.stdout.close()
        err = process.stderr.read()
        assert (process.wait(timeout=60), err) == (141, "")


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_wrong_use_says_how_to_go_on(run, command):
    result = run(command, "--no-such-option")
    assert result.exit_code == 2
    assert result.stderr.startswith("wirecheck: No such option")
    assert result.stderr.endswith(f"; see main {command} --help\n")
    assert result.stderr.count("\n") == 1


def test_a_mistyped_command_is_guessed(run):
    result = run("repaly", "x.pcap")
    assert (result.exit_code, "replay" in result.stderr) == (2, True)
    assert result.stderr.count("\n") == 1


def test_no_words_at_all_are_answered_with_all_of_them(run):
    assert all(f"  {command} " in run().output for command in cli.COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_what_the_shell_can_read(run, shell):
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_WIRECHECK_COMPLETE" in result.stdout


def test_completion_knows_the_commands(tmp_path):
    environment = {
        **os.environ,
        "_WIRECHECK_COMPLETE": "bash_complete",
        "COMP_WORDS": "wirecheck ex",
        "COMP_CWORD": "1",
    }
    program = "from wirecheck.cli import main; main(prog_name='wirecheck')"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.stdout.split() == ["plain,explain"]


def test_what_terminals_obey_is_written_out():
    assert legible({EVIL: [EVIL, 1, None]}) == {
        "app\\x1b]0;owned\\x07\\x9b31m\\u202e": ["app\\x1b]0;owned\\x07\\x9b31m\\u202e", 1, None]
    }
    assert legible("lines\nand\ttabs, caf\u00e9") == "lines\nand\ttabs, caf\u00e9"
    assert json.loads(as_json({"client": EVIL})) == {"client": EVIL}
    assert as_json(EVIL).isprintable()


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A client whose id gives orders to terminals asks for a topic whose name does too."""
    head = {"correlationId": 1, "clientId": CLIENT}
    asked, _ = message("Metadata", "request", 12, {"topics": None}, head)
    topic = {"name": EVIL, "topicId": "1kItcVyISSW2qinBWMWing", "partitions": [{"leaderId": 1, "replicaNodes": [1]}]}
    body = {"clusterId": "lab-cluster-id-22-char", "topics": [topic]}
    answered, _ = message("Metadata", "response", 12, body, {"correlationId": 1})
    old, _ = message("Fetch", "request", 3, {}, {"correlationId": 2, "clientId": CLIENT})
    talk = traffic.Talk().open()
    for data, send in ((asked, talk.request), (answered, talk.response), (old, talk.request)):
        send(traffic.size_prefixed(data))
    path = tmp_path_factory.mktemp("evil") / "evil.pcap"
    path.write_bytes(traffic.pcap(traffic.packets(talk.close().segments)))
    return path


@pytest.mark.parametrize("form", ["text", "json", "csv"])
@pytest.mark.parametrize(
    "command",
    [
        ["topics"],
        ["topics", "--topic-id", "1kItcVyISSW2qinBWMWing"],
        ["clients"],
        ["clients", "--target", "4.0"],
        ["decode"],
    ],
    ids=" ".join,
)
def test_nothing_from_the_wire_gives_orders_to_a_terminal(run, evil, command, form):
    if command == ["decode"] and form == "csv":
        pytest.skip("decode has no CSV")
    result = run(*command, evil, "--format", form)
    assert "ow" in result.stdout
    assert all(line.isprintable() for line in result.stdout.splitlines())


def test_nor_does_an_error_line(run, tmp_path):
    result = run("topics", EXAMPLE, "--topic", EVIL)
    assert (result.exit_code, result.stderr.isprintable()) == (2, False)
    assert result.stderr.rstrip("\n").isprintable()


def test_no_color_and_no_pager(run, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert not re.search("\x1b\\[[349]", run("topics", EXAMPLE).stdout)  # bold is no colour


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ModuleNotFoundError(name="pyspark.sql"), "pyspark is not installed: install wirecheck's wheel with [monitor]"),
        (ModuleNotFoundError(name="scapy"), "scapy is not installed: install wirecheck's wheel with [capture]"),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", [["topics", EXAMPLE], ["decode", EXAMPLE]], ids=lambda c: c[0])
def test_what_is_not_there_is_one_line(run, monkeypatch, command, raised, said):
    def fail(*_, **__):
        raise raised

    monkeypatch.setattr("wirecheck.capture.agent.offline_agent.inputs_in_order", fail)
    result = run(*command)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith(f"wirecheck: {said}")


WRITES = {
    "replay --out": ["replay", "{capture}", "--out", "{link}"],
    "replay --report": ["replay", "{capture}", "--report", "{link}"],
    "evidence -o": ["evidence", "TID002", "{capture}", "-o", "{link}"],
    "capture --out": ["capture", "-r", "{capture}", "--out", "{link}/"],
    "monitor --out": ["monitor", "--frames", "frames", "--out", "{link}"],
    "monitor --checkpoint": ["monitor", "--frames", "frames", "--out", "out", "--checkpoint", "file://{link}"],
}


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("words", WRITES.values(), ids=WRITES)
def test_no_command_writes_through_a_symbolic_link(run, tmp_path, words, exists):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    if exists:
        (tmp_path / "target").mkdir()
    result = run(*(word.format(link=tmp_path / "link", capture=EXAMPLE) for word in words))
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{tmp_path}/link is a symbolic link to {tmp_path}/target: name that instead" in result.stderr
    assert result.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []
    assert not exists or list((tmp_path / "target").iterdir()) == []


def test_a_link_on_the_way_is_as_good_as_a_folder(run, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "var").symlink_to(tmp_path / "real")
    assert run("capture", "-r", EXAMPLE, "--out", tmp_path / "var" / "frames").exit_code == 0
    assert list((tmp_path / "real" / "frames").glob("*.parquet"))


@pytest.fixture
def closed(tmp_path, monkeypatch):
    """A folder that this user may not look into, whoever runs the test."""
    folder = tmp_path / "closed"
    folder.mkdir()
    look, may = os.stat, os.access

    def stat(path, *more, **options):
        if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(f"{folder}/"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
        return look(path, *more, **options)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os, "access", lambda path, mode: os.fspath(path) != str(folder) and may(path, mode))
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "{}/a.pcap"),
        ("replay", "{}"),
        ("replay", EXAMPLE, "{}"),
        ("replay", EXAMPLE, "--out", "{}/v"),
        ("replay", EXAMPLE, "--report", "{}/v.html"),
        ("decode", "{}/a.pcap"),
        ("decode", "{}"),
        ("topics", "{}"),
        ("findings", "{}/v"),
        ("evidence", "TID002", EXAMPLE, "-o", "{}/e.pcapng"),
        ("capture", "-r", "{}/a.pcap", "--out", "nowhere"),
        ("capture", "-r", EXAMPLE, "--out", "{}/frames"),
        ("monitor", "--frames", "nowhere", "--out", "{}/v"),
    ],
)
def test_what_this_user_may_not_look_into_is_said_in_a_line_and_is_no_finding(run, closed, words):
    result = run(*(str(word).replace("{}", str(closed)) for word in words))
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith(f"wirecheck: {closed}")
    assert result.stderr.endswith(f": permission denied to user {user_name()}\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "command", some([["replay", "--format", "json"], ["replay"], ["decode"], ["topics"], ["errors"]], each=2)
)
def test_a_full_disk_behind_the_output_is_one_line_and_no_finding(command):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "wirecheck", *command, str(EXAMPLE)],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "wirecheck: the output: No space left on device\n")


def test_a_fault_of_its_own_is_no_finding(monkeypatch, capsys):
    def fails(*_arguments, **_options):
        raise ZeroDivisionError

    monkeypatch.setattr("wirecheck.commands.explain.explain.callback", fails)
    with pytest.raises(SystemExit) as end:
        cli.main(["explain", "TID002"])
    assert end.value.code == 2
    assert "ZeroDivisionError" in capsys.readouterr().err
