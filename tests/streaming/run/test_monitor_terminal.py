"""Ctrl-C on `wirecheck monitor` in a terminal, which signals the whole process group: Java and its workers too."""

import os
import pty
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.awaited import await_that
from wirecheck.session.local_check import write_frames
from wirecheck.session.results import latest
from wirecheck.session.session import Session

ROOT = Path(__file__).resolve().parents[3]
CAPTURE = ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz"
PATIENCE_S = 120
CTRL_C = b"\x03"


def has_pty():
    try:
        for handle in os.openpty():
            os.close(handle)
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(not has_pty(), reason="needs a pseudo-terminal (/dev/ptmx)")


class Terminal:
    """A command in a session of its own with a terminal, as a shell starts it."""

    def __init__(self, *arguments):
        self.text = ""
        self.process, self.handle = pty.fork()
        if not self.process:
            os.chdir(ROOT)
            os.execv(sys.executable, [sys.executable, "-m", "wirecheck", *map(str, arguments)])

    def read(self, until, within_s=PATIENCE_S):
        """The text once it contains `until`, or all of it (None). An end of the process ends it too."""
        end_s = time.monotonic() + within_s
        while until is None or until not in self.text:
            left_s = end_s - time.monotonic()
            assert left_s > 0, f"nothing of {until!r} within {within_s} s: {self.text}"
            if select.select([self.handle], [], [], min(left_s, 1))[0]:
                try:
                    data = os.read(self.handle, 65536)
                except OSError:  # the other end is closed
                    data = b""
                if not data:
                    break
                self.text += data.decode(errors="replace")
        return self.text

    def press(self, keys):
        os.write(self.handle, keys)

    def ended(self):
        self.read(None)
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])

    def close(self):
        with suppress(ProcessLookupError, ChildProcessError):
            os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self.handle)


@pytest.fixture
def terminal(tmp_path):
    """A monitor whose first batch takes some seconds."""
    write_frames(Session(), [CAPTURE], tmp_path / "frames", "prod", keep_records=False)
    begun = Terminal("monitor", "--frames", tmp_path / "frames", "--out", tmp_path / "out")
    yield begun
    begun.close()


def lines(text):
    """Without the notes on plain source, and what the terminal echoes."""
    shown = [line.replace("^C", "") for line in text.splitlines()]
    return [line for line in shown if line.strip() and "plain source" not in line]


def test_ctrl_c_ends_it_in_order(terminal, tmp_path):
    """Java's Python workers get the signal too, in the middle of the batch, and finish it."""
    terminal.read("checking ")
    begun = tmp_path / "out/_checkpoint/files/0.json"  # of what is left of the batch no busy machine makes 25 s
    await_that(begun.is_file, None, "a batch begins")
    terminal.press(CTRL_C)
    code = terminal.ended()
    assert "wirecheck: stopping after the current batch" in terminal.text
    assert [
        finding["code"]
        for finding in latest(Session(), tmp_path / "out").json()["findings"]
        if finding["code"] == "TID002"
    ]
    said = lines(terminal.text)
    assert code == 0, terminal.text
    assert [line for line in said if not line.startswith("wirecheck: ")] == []
    assert len([line for line in said if "opened: " not in line]) <= 2, said


def test_a_second_ctrl_c_ends_it_at_once(terminal):
    time.sleep(3)  # Spark starts; on a fast machine the first batch runs already, and lines say so
    terminal.press(CTRL_C)
    time.sleep(1.5)
    terminal.press(CTRL_C)
    began_s = time.monotonic()
    code = terminal.ended()
    said = lines(terminal.text)
    assert code == 2, terminal.text
    assert time.monotonic() - began_s < 15
    assert said[-1] == "wirecheck: stopped at once; the next start repeats the unfinished batch"
    assert [line for line in said if not line.startswith("wirecheck: ")] == []
    assert len(said) <= 3, said  # besides: what it begins with, and that it ends after the batch
