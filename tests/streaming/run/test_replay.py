"""What a replay makes of folders and of failures, before and after Spark."""

import pytest

from wirecheck.streaming.run.failure import reason
from wirecheck.streaming.run.replay import gather


def test_files_are_gathered_whatever_their_folder_is_called(tmp_path):
    (strange := tmp_path / "a [b] {c,d} *").mkdir()
    (strange / "a-0000000001.parquet").write_bytes(b"PAR1")
    gather([strange / "a-0000000001.parquet"], tmp_path / "gathered")
    assert (tmp_path / "gathered" / "a-0000000001.parquet").resolve().parent == strange.resolve()


def test_what_is_no_file_is_gathered_as_one_that_cannot_be_read(tmp_path):
    """The query would wait for it, and count nothing of the others."""
    files = [tmp_path / f"{agent}-0000000001.parquet" for agent in ("empty", "loop", "nowhere", "folder", "\udcff")]
    empty, loop, nowhere, folder, other = files
    empty.touch()
    loop.symlink_to(loop)
    nowhere.symlink_to(tmp_path / "gone")
    folder.mkdir()
    other.write_bytes(b"PAR1")
    gather(files, tmp_path / "gathered")
    there = sorted((tmp_path / "gathered").iterdir())
    assert [file.name[:-19] for file in there] == ["\\xff", "empty", "folder", "loop", "nowhere"]
    assert all(file.is_file() and file.stat().st_size for file in there)


def test_nothing_is_written_through_a_link_that_is_there_already(tmp_path):
    (tmp_path / "here").mkdir()
    kept, empty = tmp_path / "a-0000000001.parquet", tmp_path / "here" / "a-0000000001.parquet"
    kept.write_bytes(b"PAR1")
    empty.touch()
    gather([kept, empty], tmp_path / "gathered")
    assert kept.read_bytes() == b"PAR1"


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
    File "streaming/steps/follow_step.py", line 1, in restore
  streaming.steps.follow_step.StateVersionMismatch: version 3, this is 1
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
