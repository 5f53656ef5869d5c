"""By which Python Spark's workers run, and what is in it before they are forked."""

import subprocess
import sys
from pathlib import Path

import pytest

from wirecheck.streaming.spark import worker_python as module
from wirecheck.streaming.spark.worker_python import worker_python


def test_it_is_this_python_and_nothing_is_put_in_front_of_what_it_imports(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "a user's folder"))
    command = worker_python(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "pyspark.zip"))  # as Spark starts it
    shown = "import sys; print(sys.executable, *sys.path, sep='\\n')"
    python, *path = subprocess.run([command, "-c", shown], check=True, capture_output=True, text=True).stdout.split(
        "\n"
    )
    assert python == sys.executable
    assert str(tmp_path / "a user's folder") in path
    assert not any("pyspark.zip" in place for place in path)


def test_where_it_would_not_find_pyspark_spark_starts_it_as_it_does(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "pyspark", type("Elsewhere", (), {"__file__": str(tmp_path / "pyspark/__init__.py")}))
    assert worker_python(tmp_path) == sys.executable


@pytest.mark.spark
def test_a_worker_has_pyspark_as_installed_and_the_steps_before_it_is_forked(spark):
    def seen(batches):
        import sys

        import pyarrow as pa
        import pyspark

        for _ in batches:
            steps = [name for name in sys.modules if name.startswith("wirecheck.streaming.steps.")]
            yield pa.RecordBatch.from_pylist([{"text": text} for text in (pyspark.__file__, *steps)])

    texts = [row.text for row in spark.range(1).repartition(1).mapInArrow(seen, "text string").collect()]
    assert ".zip" not in texts[0]
    assert Path(texts[0]).is_file()
    assert {f"wirecheck.streaming.steps.{step}_step" for step in ("pack", "follow", "decode", "judge")} <= {*texts}
