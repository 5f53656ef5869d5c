"""Which processes a failed try of Spark left behind, and that they alone are ended."""

import subprocess
import sys

import pytest

from wirecheck.streaming.spark import left_over

SLEEPS = "import sys, time; print(flush=True); time.sleep(60)"
SHELL = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1], *sys.argv[2:]])"
WORKER = "pyspark.sql.streaming.transform_with_state_driver_worker"


@pytest.fixture
def started():
    """Starts a process, perhaps through another, and waits until it runs."""
    found = []

    def start(*words):
        process = subprocess.Popen([sys.executable, "-c", *words], stdout=subprocess.PIPE, process_group=0)
        found.append(process)
        process.stdout.readline()
        return process

    yield start
    for process in found:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.skipif(not left_over.PROC.is_dir(), reason="no /proc")
def test_bare_pythons_of_this_process_are_ended_and_nothing_else(started):
    other, below = started(SLEEPS, "daemon"), started(SHELL, SLEEPS, WORKER)
    assert left_over.end_left_over() == 2  # the one below, and what has its name among its words
    assert below.wait(10) != 0
    assert other.poll() is None
    assert left_over.left_over(other.pid) == []
