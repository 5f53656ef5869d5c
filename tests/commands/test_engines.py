"""Which engine checks a replay: by size of the input and number of cores; the last line names it."""

import json
import os
import subprocess
import sys

import pytest

from tests.commands.conftest import EXAMPLE, ROOT
from wirecheck.commands import engines

TWO_CORES = 1 << 30


@pytest.fixture
def sized(tmp_path):
    """A sparse file of so many bytes."""

    def make(size, name="large.pcap"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.truncate(size)
        return str(path)

    return make


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """A machine of two cores on which Spark was measured to be faster from a GB on."""
    monkeypatch.setattr(engines, "SPARK_FROM_BYTES", {2: TWO_CORES})
    monkeypatch.setattr(engines, "cores", lambda: 2)


def test_auto_takes_spark_from_the_measured_size_of_all_inputs_together(sized):
    below, half = sized(TWO_CORES - 1), sized(TWO_CORES // 2, "half.pcap")
    assert engines.engine_for("auto", [below]) == "local"
    assert engines.engine_for("auto", [half]) == "local"
    assert engines.engine_for("auto", [half, below]) == "spark"


def test_frames_count_as_the_capture_they_were_made_of(sized, tmp_path):
    sized(TWO_CORES // engines.FRAMES_TO_CAPTURE + 1, "frames/agent-1/a-0000000001.parquet")
    assert engines.engine_for("auto", [str(tmp_path / "frames")]) == "spark"


def test_standard_input_is_checked_locally(sized):
    assert engines.engine_for("auto", [sized(TWO_CORES), "-"]) == "local"


def test_without_spark_auto_is_local(sized, monkeypatch):
    monkeypatch.setattr(engines, "find_spec", lambda _: None)
    assert engines.engine_for("auto", [sized(TWO_CORES)]) == "local"


def test_fewer_cores_than_measured_never_take_spark_and_more_count_as_the_most_measured(monkeypatch):
    monkeypatch.setattr(engines, "SPARK_FROM_BYTES", {2: 10, 8: 5})
    assert [engines.spark_from(cores) for cores in (1, 2, 4, 8, 64)] == [float("inf"), 10, 10, 5, 5]


def test_where_no_size_is_listed_auto_is_local(sized, monkeypatch):
    monkeypatch.setattr(engines, "SPARK_FROM_BYTES", {})
    assert engines.engine_for("auto", [sized(1 << 40)]) == "local"


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_what_is_asked_for_is_taken(engine, sized):
    assert engines.engine_for(engine, [sized(1)]) == engine


def test_the_last_line_names_the_engine(run):
    told = run("replay", EXAMPLE, "-v")
    assert (told.exit_code, told.stdout.splitlines()[-1]) == (1, "Engine    local, without Spark")
    assert " \u00b7 local engine \u00b7 " in run("replay", EXAMPLE).stdout.splitlines()[-1]
    assert json.loads(run("replay", EXAMPLE, "--format", "json").stdout)["engine"] == "local"


def test_a_piped_capture_is_checked_without_java():
    with EXAMPLE.open("rb") as capture:
        told = subprocess.run(
            [sys.executable, "-m", "wirecheck", "replay", "-", "-v"],
            cwd=ROOT,
            stdin=capture,
            env={**os.environ, "JAVA_HOME": "/nowhere", "PATH": ""},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert (told.returncode, told.stderr) == (1, "")
    assert told.stdout.endswith("\nEngine    local, without Spark\n")
