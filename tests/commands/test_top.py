"""`wirecheck top`: once without a terminal, and in one of its own."""

import gzip
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from wirecheck import cli
from wirecheck.commands.top import Results, names_of

ROOT = Path(__file__).resolve().parents[2]
HURT = ROOT / "examples/kraft4-stale-broker/capture.pcap.gz"
EXAMPLE = ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz"


def run(*words):
    return CliRunner().invoke(cli.main, ["top", *map(str, words)])


def test_without_a_terminal_it_prints_once_and_ends():
    result = run(EXAMPLE)
    assert result.exit_code == 0
    assert "Open findings: 1" in result.stdout
    assert "TID002" in result.stdout
    assert "broker-3-fetcher-0" in result.stdout
    assert "FENCED_LEADER_EPOCH" in result.stdout


def test_a_folder_of_frames_and_the_results_of_a_replay(tmp_path):
    frames, out = tmp_path / "frames", tmp_path / "out"
    CliRunner().invoke(cli.main, ["capture", "-r", str(EXAMPLE), "--out", str(frames), "-q"])
    assert "TID002" in run(frames).stdout
    CliRunner().invoke(cli.main, ["replay", str(EXAMPLE), "--engine", "local", "--out", str(out), "-q"])
    result = run(out)
    assert (result.exit_code, "TID002" in result.stdout, "dock" in result.stdout) == (0, True, True)


def test_results_are_read_again_only_when_a_batch_was_written(tmp_path):
    CliRunner().invoke(cli.main, ["replay", str(HURT), "--engine", "local", "--out", str(tmp_path / "out"), "-q"])
    view = Results(tmp_path / "out")
    first = view.sample()
    assert first.findings[0].sentence.startswith("p-lost (127.0.0.1) has some writes to tickets rejected")
    assert (first.errors[0].client, first.errors[0].error) == ("p-lost", "UNKNOWN_TOPIC_ID")
    assert view.sample() is first
    os.utime(next((tmp_path / "out").glob("findings/run=*")), ns=(0, time.time_ns()))
    assert view.sample() is not first


@pytest.mark.parametrize(
    ("words", "said"),
    [([], "give inputs"), (["missing.pcap"], "no such file"), ([EXAMPLE, "-i", "lo"], "give inputs")],
)
def test_wrong_use_is_one_line(words, said):
    result = run(*words)
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_keys_are_told_apart():
    assert names_of("a\x1b[A\x1b[Bq\r\x7f\x1b") == ["a", "up", "down", "q", "enter", "backspace", "escape"]
    assert names_of("") == ["q"], "a terminal that is gone"


def until(terminal, text, seconds=60):
    """What the terminal shows, up to this text."""
    seen, end = "", time.monotonic() + seconds
    while text not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                seen += os.read(terminal, 65536).decode(errors="replace")
            except OSError:
                break
    assert text in seen, seen[-2000:]
    return seen


def test_in_a_terminal_it_follows_a_capture_that_grows_until_q(tmp_path):
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo terminal: {error}")
    capture, whole = tmp_path / "a.pcap", gzip.decompress(EXAMPLE.read_bytes())
    capture.write_bytes(whole[:1000])
    words = [sys.executable, "-m", "wirecheck", "top", str(capture)]
    stderr_file = tmp_path / "stderr"
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120", "LINES": "30"}
    with (
        stderr_file.open("w") as stderr,
        subprocess.Popen(words, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=stderr, env=environment) as process,
    ):
        try:
            until(ours, "Open findings: 0")
            with capture.open("ab") as growing:
                growing.write(whole[1000:])
            until(ours, "TID002")
            os.write(ours, b"\r")
            until(ours, "look  wirecheck decode")
            os.write(ours, b"q")
            assert process.wait(30) == 0
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            os.close(ours)
            os.close(theirs)
    assert stderr_file.read_text() == ""
