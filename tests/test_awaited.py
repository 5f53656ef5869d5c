"""Who waits for a process that has died says so at once, with its last words; who waits for ever is ended and shown."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.awaited import await_line, await_that

ROOT = Path(__file__).resolve().parents[1]


def process(code):
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_dead_process_is_not_waited_for():
    with process("raise SystemExit('no libpcap')") as dead:
        with pytest.raises(AssertionError, match="files: the process ended with 1: no libpcap"):
            await_that(lambda: False, dead, "files")
        with pytest.raises(AssertionError, match="no line 'capturing': the process ended with 1"):
            await_line(dead.stdout, dead, "capturing")


def test_what_it_did_before_it_ended_counts():
    with process("print('first'); print('capturing lo')") as ended:
        assert await_line(ended.stdout, ended, "capturing") == "capturing lo\n"
        ended.wait()
        assert await_that(lambda: "found", ended, "files") == "found"


def test_one_that_lives_is_waited_for_a_while_only():
    with process("import time; time.sleep(60)") as alive:
        with pytest.raises(AssertionError, match=r"files: not within 0\.1 s, and the process lives"):
            await_that(lambda: False, alive, "files", patience_s=0.1)
        alive.kill()


@pytest.mark.parametrize(
    "deaf",
    ["", "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})"],
    ids=["python", "no-signal-comes-through"],
)
def test_a_test_that_hangs_ends_and_shows_where(deaf, tmp_path):
    (tmp_path / "test_hang.py").write_text(
        f"import signal, threading\n\ndef test_hang():\n    {deaf}\n    nobody_comes()\n"
        "\ndef nobody_comes():\n    threading.Event().wait()\n"
    )
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, "-p", "no:xdist"]
    limits = ["-o", "timeout=1", "-o", "faulthandler_timeout=3"]
    done = subprocess.run([*command, *limits, tmp_path], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, "nobody_comes" in done.stdout + done.stderr) == (1, True)


def test_no_test_is_without_a_limit(pytestconfig):
    limits = [float(pytestconfig.getini(name)) for name in ("timeout", "faulthandler_timeout")]
    assert 0 < limits[0] < limits[1]
    assert pytestconfig.getini("faulthandler_exit_on_timeout")
