"""Waiting for what another process does: while that process lives, and no longer than `PATIENCE_S`.

Knows: a condition, and whose work it is. Rule: a process that ended cannot do it any more, and what it wrote to stderr
says why; a test that waits for one says that instead of waiting on.
"""

import os
import select
import time

PATIENCE_S = 120
"""Only a failure takes so long, or a very busy machine: starting an agent is seconds of processor time."""


def await_that(condition, process, what, *, patience_s=PATIENCE_S, pause_s=0.05):
    """What the condition gives once it is true; `process` is a Popen whose stderr is a pipe, or None."""
    until_s = time.monotonic() + patience_s
    while not (found := condition()):
        if process is not None and process.poll() is not None and not (found := condition()):
            raise AssertionError(f"{what}: the process ended with {process.returncode}: {last_words(process)}")
        if found:
            break
        if time.monotonic() > until_s:
            raise AssertionError(f"{what}: not within {patience_s} s, and the process lives")
        time.sleep(pause_s)
    return found


def await_line(stream, process, begin):
    """The first line that begins like that, of a process's pipe; lines before it are passed over."""
    for line in iter(stream.readline, ""):
        if line.startswith(begin):
            return line
    process.wait(PATIENCE_S)
    raise AssertionError(f"no line {begin!r}: the process ended with {process.returncode}: {last_words(process)}")


def read_until(terminal, expected):
    """What a terminal shows until it shows that."""
    shown, end_s = "", time.monotonic() + PATIENCE_S
    while expected not in shown:
        assert select.select([terminal], [], [], max(end_s - time.monotonic(), 0))[0], shown
        shown += os.read(terminal, 4096).decode()
    return shown


def last_words(process):
    return (process.stderr.read() or "").strip() if process.stderr and not process.stderr.closed else ""
