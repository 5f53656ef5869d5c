"""Who is forked is, to whoever started it, what a bare Python would have been, and ends with it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wirecheck.streaming.spark import forks
from wirecheck.streaming.spark.session import RUNNING

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
ENVIRONMENT = {"WORD": "said\u00e9", "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
SERVER = """
import json, os, socket, sys, time
from wirecheck.streaming.spark.forks import serve

def work():
    print(json.dumps([sys.argv, dict(os.environ), os.getcwd(), sys.stdin.readline()]), flush=True)
    time.sleep(60 if "wait" in sys.argv else 0)

serve(socket.socket(fileno=int(sys.argv[1])), "some.module", work)
"""


@pytest.fixture
def server(tmp_path):
    (tmp_path / "forks").mkdir()
    listening = forks.listen(tmp_path / "forks", "some.module")
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(listening.fileno())],
        stdin=subprocess.PIPE,
        pass_fds=[listening.fileno()],
        cwd=forks.PACKAGES,
    )
    listening.close()
    yield process
    process.stdin.close()
    process.wait(timeout=60)


def started(tmp_path, *words):
    """As Spark starts it, by the script that stands for Python."""
    command = [sys.executable, "-I", "-S", str(forks.PACKAGES / "streaming/spark/launch.py"), str(tmp_path / "forks")]
    (tmp_path / "here").mkdir()
    return subprocess.Popen(
        [*command, sys.executable, *words],
        cwd=tmp_path / "here",
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.usefixtures("server")
def test_it_has_the_words_environment_folder_and_streams_of_who_was_started(tmp_path):
    out, _ = started(tmp_path, "-m", "some.module", "a", "b").communicate("asked\n", timeout=60)
    assert json.loads(out) == [["some.module", "a", "b"], ENVIRONMENT, str(tmp_path / "here"), "asked\n"]


@pytest.mark.usefixtures("server")
def test_it_ends_when_who_was_started_is_to_end(tmp_path):
    with started(tmp_path, "-m", "some.module", "wait") as process:
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == ""  # and so has its own end of the stream


def test_where_nobody_answers_a_bare_python_starts(tmp_path):
    (tmp_path / "forks").mkdir()
    out, _ = started(tmp_path, "-m", "json.tool", "--compact").communicate('{"a":\n1}', timeout=60)
    assert out == '{"a":1}\n'


@pytest.mark.spark
def test_spark_gets_its_pythons_from_here(spark):
    """The daemon of its workers is a grandchild of the process that forks."""
    assert spark.range(1).mapInArrow(lambda batches: batches, "id long").count() == 1
    assert Path(spark.sparkContext.pythonExec).parent.name == "forks"
    warm = children(RUNNING.forks.pid)
    assert [len(children(pid)) for pid in warm] == [1]


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
