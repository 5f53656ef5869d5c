"""Java with Spark in it, as a process of ours: started, connected to, and ended at any moment.

Knows: how Spark's launcher is called, where it says on which port it listens, and how py4j connects to that. Knows no
setting's meaning.
Rule: whoever starts it can end it at once, half started or in the middle of a query, and nothing is left running or
lying about: neither a process, nor a file outside `work`, nor a word on the terminal.
"""

import logging
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

LISTENS = "gateway"  # file in `work`: port and secret


class JavaDiedError(Exception):
    """Java ended before Spark was there; the message is one line."""


def start_java(settings: Mapping[str, str], work: Path, verbose: bool) -> "Popen[bytes]":
    """Returns at once. It ends itself when its stdin is closed, as it is when this process ends."""
    home = _find_spark_home()
    command = [str(Path(home) / "bin" / "spark-submit")]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    environment = {
        **os.environ,
        "SPARK_HOME": home,  # or the script starts a Python to look for it
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(work / LISTENS),
    }
    with (work / "spark.log").open("ab") as log:
        streams = {} if verbose else {"stdout": log, "stderr": log}  # of Java and of all it starts
        return Popen([*command, "pyspark-shell"], stdin=PIPE, env=environment, process_group=0, **streams)  # type: ignore[call-overload,no-any-return]  # noqa: S603 - Spark's own launcher


def connected(process: "Popen[bytes]", work: Path) -> Any:
    """The py4j gateway, once Java listens."""
    listens = work / LISTENS
    while not listens.exists():
        if process.poll() is not None:
            said = f"Java ended with code {process.returncode}: {last_line(work / 'spark.log')}"
            raise JavaDiedError(f"{said}; try another Java by JAVA_HOME, and see what wirecheck doctor says")
        time.sleep(0.02)
    with listens.open("rb") as file:
        port, secret = read_int(file), UTF8Deserializer().loads(file)
    listens.unlink()
    os.environ |= {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    try:
        return launch_gateway()
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


def last_line(log: Path) -> str:
    """What Java said last; Spark's script is confused behind it."""
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    told = (line.strip() for line in reversed(lines) if line.strip() and "spark-class: line" not in line)
    return next(told, "it said nothing")


def end_java(process: "Popen[bytes]") -> None:
    """At once: what a query has promised is on the disk already, and an orderly end takes a second."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


class Silence:
    """While Java is ended under threads that talk to it, py4j logs each of their interrupted sentences."""

    def __enter__(self) -> None:
        logging.disable(logging.CRITICAL)

    def __exit__(self, *_: object) -> None:
        logging.disable(logging.NOTSET)
