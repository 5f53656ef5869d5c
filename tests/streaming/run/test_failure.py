"""What Spark says at length, as one line with the way out; the long texts are cut from real failures of 4.3."""

import pytest

from wirecheck.streaming.run.failure import in_one_line, worker_died
from wirecheck.streaming.run.plan import Plan

PLAN = Plan("frames", "out", "out/_checkpoint")
HEAD = "[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: "
GO_ON = "fix that and restart: it continues where it stopped"
ANEW = "start with a new --checkpoint; frames that are still kept are checked again"
OF_ROCKSDB = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in foreach batch sink.
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
    raise PySparkRuntimeError(f"Error checking value state exists: {response_message[1]}")
pyspark.errors.base.PySparkRuntimeError: Error checking value state exists: block checksum mismatch  in /w/8.sst
 SQLSTATE: 39000 SQLSTATE: XXKST
"""
OF_A_STORE = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in foreach batch sink.
py4j.protocol.Py4JJavaError: An error occurred while calling o608.collectToPython.
: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.
\tat org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider.loadStateStore
Caused by: java.io.IOException: Stream is corrupted
"""
OF_A_DISK = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in foreach batch sink.
: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.
Caused by: java.io.IOException: No space left on device
"""


LINES = [
    (OF_A_STORE, f"out/_checkpoint: Spark cannot use it (Stream is corrupted); {ANEW}"),
    (OF_ROCKSDB, f"out/_checkpoint: Spark cannot use it (block checksum mismatch); {ANEW}"),
    (" SQLSTATE: XXKST\n", f"out/_checkpoint: Spark cannot use it (no reason given); {ANEW}"),
    (OF_A_DISK, "the query failed: No space left on device; free space for out and out/_checkpoint, and start again"),
    ("PermissionError: [Errno 13] No: '/o'", f"the query failed: PermissionError: [Errno 13] No: '/o'; {GO_ON}"),
    (
        "\n: org.apache.spark.SparkException: [MALFORMED_LOG_FILE] Log file was malformed. SQLSTATE: KD002",
        f"out/_checkpoint: Spark cannot use it (Log file was malformed); {ANEW}",
    ),
    (
        "\n: org.apache.hadoop.fs.ChecksumException: Checksum error: file:/c/offsets/1 at 0 exp: 1 got: 2",
        f"out/_checkpoint: Spark cannot use it (Checksum error: file:/c/offsets/1 at 0 exp: 1 got: 2); {ANEW}",
    ),
    ("Input length = 1", f"out/_checkpoint: Spark cannot use it (Input length = 1); {ANEW}"),
]


@pytest.mark.parametrize(("text", "line"), LINES)
def test_a_failure_is_one_line_with_the_way_out(text, line):
    assert in_one_line(HEAD + text, PLAN) == line


def test_the_python_of_the_states_driver_is_a_worker_too():
    assert worker_died("TransformWithStateInPySpark driver worker exited unexpectedly (crashed)")


@pytest.mark.parametrize(
    ("code", "died"),
    [(" and terminated with code: 137.", True), (".", True), (" and terminated with code: 1.", False)],
)
def test_the_python_that_starts_workers_is_a_worker_too_unless_it_ended_by_itself(code, died):
    said = "EOFException occurred while reading the port number from wirecheck.streaming.spark.worker_daemon's stdout"
    assert worker_died(said + code) is died
