"""What Spark is told and where it speaks."""

import os
import subprocess
import sys

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from wirecheck.streaming.spark import session
from wirecheck.streaming.spark.session import (
    JAVA_ENDED,
    SparkDidNotStart,
    in_english,
    inherited_by_java,
    java_has_gone,
    last_line,
    last_raised,
    not_started,
    open_session,
)
from wirecheck.streaming.spark.tuning import Session, settings

RAISED = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: java.net.BindException: Cannot assign requested address: Service 'sparkDriver' failed after 16 retries
\tat java.base/sun.nio.ch.Net.bind0(Native Method)
"""


def test_what_is_started_meanwhile_writes_to_the_log_and_nobody_else(tmp_path, capfd):
    command = [sys.executable, "-c", "import sys; print('out', flush=True); print('err', file=sys.stderr)"]
    with inherited_by_java(tmp_path / "log"):
        subprocess.run(command, check=True)
    os.write(2, b"mine\n")
    with inherited_by_java(None):
        subprocess.run(command, check=True)
    assert (tmp_path / "log").read_text() == "out\nerr\n"
    assert capfd.readouterr() == ("out\n", "mine\nerr\n")


@pytest.mark.parametrize(
    ("environment", "changed"),
    [
        ({}, {"LC_MESSAGES": "C"}),
        ({"LANG": "de_DE.UTF-8"}, {"LC_MESSAGES": "C"}),
        ({"LC_ALL": "de_DE.UTF-8"}, {"LC_MESSAGES": "C", "LC_ALL": "", "LC_CTYPE": "de_DE.UTF-8"}),
    ],
)
def test_java_reports_failures_in_english_and_reads_file_names_as_before(environment, changed):
    assert in_english(environment) == changed


GONE_IN_A_CALL = """
import logging, pathlib, socket, sys, threading
from py4j.java_gateway import GatewayClient
from pyspark.accumulators import _start_update_server
from wirecheck.streaming.spark.session import quiet_libraries

def one_that_hangs_up(server):
    while True:
        server.accept()[0].close()

if sys.argv[1] == "quiet":
    quiet_libraries()
java = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=one_that_hangs_up, args=(java,), daemon=True).start()
print(GatewayClient(port=java.getsockname()[1]).send_command("x\\n", retry=False))
updates = _start_update_server("token", False)
with socket.create_connection(updates.server_address) as java:
    java.shutdown(socket.SHUT_WR)
    assert not java.recv(1)
logging.error("ours")
"""


@pytest.mark.parametrize(("how", "tracebacks"), [("loud", True), ("quiet", False)])
def test_a_java_that_ends_in_a_call_leaves_no_traceback_of_a_library(how, tracebacks):
    ran = subprocess.run([sys.executable, "-c", GONE_IN_A_CALL, how], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "x", "py4j's word for an error"
    assert "ours" in ran.stderr
    said = {name: name in ran.stderr for name in ("Traceback", "Exception while sending command", "AccumulatorServer")}
    assert said == dict.fromkeys(said, tracebacks)


def test_javas_last_line_is_not_what_its_script_makes_of_it(tmp_path):
    (tmp_path / "log").write_text("Error: no memory\n/x/spark-class: line 97: CMD: bad array subscript\n\n")
    assert (last_line(tmp_path / "log"), last_line(tmp_path / "none")) == ("Error: no memory", "")


def test_a_java_that_only_warned_has_no_last_words(tmp_path):
    log = "WARNING: Using incubator modules: jdk.incubator.vector\n26/11/28 08:00:00 WARN Utils: Your hostname\n"
    (tmp_path / "log").write_text(log)
    assert last_line(tmp_path / "log") == ""


@pytest.mark.parametrize(
    ("logged", "raised", "line"),
    [
        ("", RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port"), JAVA_ENDED),
        ("", ConnectionRefusedError(111, "Connection refused"), JAVA_ENDED),
        ("", Py4JNetworkError("Error while sending or receiving"), JAVA_ENDED),
        ("", Py4JError("An error occurred while calling o1.x. Trace:\njava.lang.E: no"), "Spark did not start: java."),
        (
            "Error: no memory",
            RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited"),
            "Spark did not start: Error: no memory; ",
        ),
    ],
)
def test_java_that_was_killed_is_named_as_that(logged, raised, line):
    assert not_started(logged, raised).startswith(line)


@pytest.mark.parametrize(("text", "line"), [(RAISED, "java.net.BindException: Cannot"), ("", "without a word")])
def test_why_spark_did_not_begin_is_one_line(text, line):
    assert last_raised(text).startswith(line)
    assert "\n" not in last_raised(text)


def test_its_heap_and_its_folders_are_as_asked(tmp_path):
    chosen = settings(Session(tmp_path, cores=3, memory="700m"))
    assert (chosen["spark.master"], chosen["spark.driver.memory"]) == ("local[3]", "700m")
    assert chosen["spark.local.dir"].startswith(str(tmp_path))
    assert "UseSerialGC" in chosen["spark.driver.extraJavaOptions"]


@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("SPARK_REMOTE", "sc://host:15002", True),
        ("SPARK_CONNECT_MODE_ENABLED", "1", True),
        ("SPARK_API_MODE", "connect", True),
        ("SPARK_API_MODE", "classic", False),
        ("SPARK_CONNECT_MODE_ENABLED", "0", False),
    ],
)
def test_spark_connect_is_refused_in_one_line_before_anything_starts(tmp_path, monkeypatch, name, value, refused):
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr(session, "SparkSession", None)  # what would begin
    with pytest.raises(SparkDidNotStart if refused else AttributeError) as said:
        open_session(Session(tmp_path))
    if refused:
        assert str(said.value).startswith(f"Spark Connect ({name}): the monitor cannot be a Spark Connect client")
        assert "\n" not in str(said.value)


@pytest.mark.parametrize(
    ("failure", "gone"),
    [
        (ConnectionRefusedError(111, "Connection refused"), True),
        (Py4JNetworkError("Error while sending or receiving"), True),
        (Py4JError("An error occurred while calling o51.awaitTermination"), True),
        (
            Py4JError("An error occurred while calling o51.a. Trace:\npy4j.Py4JException: Method a does not exist"),
            False,
        ),
        (RuntimeError("Error while sending or receiving"), False),
    ],
)
def test_a_java_that_answers_no_more_has_gone_whatever_is_raised_for_it(failure, gone):
    assert java_has_gone(failure) is gone
