"""Java that does not come up, and Java that is not wanted any more."""

import pytest

from wirecheck.streaming.spark import gateway


@pytest.fixture
def spark_submit(tmp_path, monkeypatch):
    """Stands in for Spark's launcher."""

    def install(script):
        home = tmp_path / "home"
        (home / "bin").mkdir(parents=True)
        path = home / "bin" / "spark-submit"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setattr(gateway, "_find_spark_home", lambda: str(home))
        return gateway.start_java({"a.b": "c d"}, tmp_path, verbose=False)

    return install


def test_java_that_ends_is_told_with_its_last_line(spark_submit, tmp_path):
    java = spark_submit(
        "echo 'Error: Could not create the Java Virtual Machine.' >&2; echo spark-class: line 97: x; exit 7"
    )
    with pytest.raises(gateway.JavaDiedError, match=r"Virtual Machine\.; try another Java by JAVA_HOME"):
        gateway.connected(java, tmp_path)
    gateway.end_java(java)


def test_it_is_given_its_settings_and_writes_to_the_log_only(spark_submit, tmp_path, capfd):
    java = spark_submit('printf "%s|" "$@"')
    java.wait(60)
    gateway.end_java(java)
    assert (tmp_path / "spark.log").read_text() == "--conf|a.b=c d|pyspark-shell|"
    assert capfd.readouterr() == ("", "")


def test_it_can_be_ended_with_all_it_started(spark_submit):
    java = spark_submit("sleep 1000 & sleep 1000")
    gateway.end_java(java)
    assert java.returncode == -9
