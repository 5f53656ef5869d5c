"""What a replay makes of folders and of failures, before and after Spark."""

import pytest
from pyspark.errors import PySparkException

from streaming.replay import ReplayError, agents_of, frames_files, gather, reason, retried
from streaming.settings import AgentFiles


def folder_of(path, *names):
    path.mkdir()
    for name in names:
        (path / name).touch()
    return path


def test_agents_and_their_missing_files_are_known_beforehand(tmp_path):
    names = ["b-1-0000000003.parquet", "b-1-0000000004.parquet", "b-1-0000000006.parquet", "a-0000000001.parquet"]
    files = frames_files([folder_of(tmp_path / "x", *names, ".b-1-0000000007.parquet.tmp")])
    assert agents_of(files) == {"a": AgentFiles(1, (), 1), "b-1": AgentFiles(3, (5,), 6)}


@pytest.mark.parametrize(
    ("names", "words"),
    [([], "holds no frames"), (["x.parquet"], "x.parquet is not a file of frames"), ([".hidden"], "holds no frames")],
)
def test_a_folder_without_frames_gets_one_line(tmp_path, names, words):
    with pytest.raises(ReplayError, match=words):
        frames_files([folder_of(tmp_path / "x", *names)])


def test_a_strange_file_beside_frames_is_used_so_that_it_is_named(tmp_path):
    files = frames_files([folder_of(tmp_path / "x", "a-0000000001.parquet", "x.parquet")])
    assert [file.name for file in files] == ["a-0000000001.parquet", "x.parquet"]


def test_two_folders_of_one_agent_are_refused(tmp_path):
    folders = [folder_of(tmp_path / name, "a-0000000001.parquet") for name in "xy"]
    with pytest.raises(ReplayError, match=r"a-0000000001\.parquet is in more than one folder"):
        frames_files(folders)


def test_files_are_gathered_whatever_their_folder_is_called(tmp_path):
    strange = folder_of(tmp_path / "a [b] {c,d} *", "a-0000000001.parquet")
    gather(frames_files([strange]), tmp_path / "gathered")
    assert (tmp_path / "gathered" / "a-0000000001.parquet").resolve().parent == strange.resolve()


CRASHED = """[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback (most recent call last):
  File "x.py", line 1, in call
py4j.protocol.Py4JJavaError: An error occurred while calling o1.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed
\tat org.apache.spark.Something(Something.scala:1)
Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)
"""
RAISED = (
    CRASHED
    + """  Traceback (most recent call last):
    File "streaming/follow.py", line 1, in restore
  streaming.follow.StateVersionMismatch: version 3, this is 1
org.apache.spark.SparkException: EOFException occurred
"""
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (RAISED, "StateVersionMismatch: version 3, this is 1"),
        (CRASHED, "Python worker exited unexpectedly (crashed)"),
        ("[STREAM_FAILED] Query failed\nat org.apache...", "[STREAM_FAILED] Query failed"),
        ("[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: no space\nat x", "no space"),
    ],
)
def test_a_failure_is_told_in_one_line(text, line):
    assert reason(text) == line


@pytest.mark.parametrize(("failures", "calls"), [(["failed to connect back"] * 4, 5), (["out of disk"], 1)])
def test_a_query_is_tried_again_where_spark_had_no_patience_with_a_busy_machine(failures, calls):
    said = []

    def run():
        said.append("called")
        if len(said) <= len(failures):
            raise PySparkException(f"[STREAM_FAILED] Python worker {failures[len(said) - 1]}. SQLSTATE: XXKST")
        return "query"

    if calls > 1:
        assert retried(run) == "query"
    else:
        with pytest.raises(PySparkException):
            retried(run)
    assert len(said) == calls
