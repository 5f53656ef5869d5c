"""Which engine checks a replay: the line below the cards names it."""

import json
import os
import subprocess
import sys

from tests.commands.conftest import EXAMPLE, ROOT
from wirecheck.commands import replay
from wirecheck.streaming.run.query_process import QueryError


def test_the_line_below_the_cards_names_the_engine(run):
    assert " \u00b7 local engine \u00b7 " in run("replay", EXAMPLE).stdout.splitlines()[-1]
    assert json.loads(run("replay", EXAMPLE, "--format", "json").stdout)["engine"] == "local"


class Failing:
    """Spark on a machine that is too busy for it."""

    archiving = False

    def judge(self, *_, **__):
        raise QueryError("this machine was too busy for Spark to start Python, 2 times")


def test_where_spark_fails_the_local_engine_answers_and_says_so(run, monkeypatch):
    monkeypatch.setattr(replay, "spark_query", lambda *_: Failing())
    monkeypatch.delenv("WIRECHECK_ENGINE_STRICT", raising=False)
    result = run("replay", EXAMPLE, "--engine", "spark", "--format", "json")
    line = "wirecheck: Spark: this machine was too busy for Spark to start Python, 2 times; the local engine answers"
    assert line in result.stderr.splitlines()
    assert (result.exit_code, json.loads(result.stdout)["engine"]) == (1, "local")
    monkeypatch.setenv("WIRECHECK_ENGINE_STRICT", "1")
    assert run("replay", EXAMPLE, "--engine", "spark").exit_code == 2


def test_a_piped_capture_is_checked_without_java():
    with EXAMPLE.open("rb") as capture:
        result = subprocess.run(
            [sys.executable, "-m", "wirecheck", "replay", "-", "-v"],
            cwd=ROOT,
            stdin=capture,
            env={**os.environ, "JAVA_HOME": "/nowhere", "PATH": ""},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert (result.returncode, result.stderr) == (1, "")
    assert " \u00b7 local engine \u00b7 " in result.stdout
