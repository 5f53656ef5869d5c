"""`wirecheck explain` on a real terminal: its page wraps between words."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from tests.commands.conftest import ROOT

PAINT = re.compile(r"\x1b\[[0-9;]*m")


def on_a_terminal(columns, *words):
    """What a terminal so wide is sent, without its colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    command = [sys.executable, "-c", "from wirecheck.door import main; main()", *words]
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    with subprocess.Popen(command, cwd=ROOT, env=environment | {"TERM": "xterm"}, stdout=theirs, stdin=theirs):
        os.close(theirs)
        told = b""
        while chunk := read(ours):
            told += chunk
    os.close(ours)
    return PAINT.sub("", told.decode()).replace("\r\n", "\n")


def read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # EIO: nobody writes to it any more
        return b""


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_page_wraps_between_words(run, columns):
    lines = on_a_terminal(columns, "explain", "LOG003").splitlines()
    assert max(map(len, lines)) <= columns
    whole = run("explain", "LOG003").stdout.replace("*", "").replace("`", "")
    assert {word for line in lines for word in line.split()} <= set(whole.split())
