"""Each thing that can be wrong has one line and a way out."""

import pytest

from wirecheck.streaming.run import query_requirements


def test_here_nothing_fails_but_what_this_machine_lacks():
    found = {name: (state, text, fix) for name, state, text, fix in query_requirements.checks()}
    assert {"pyspark", "pandas", "java", "memory", "disk", "worker"} <= found.keys()
    assert found["pandas"][0] == found["worker"][0] == "ok"
    assert all(fix for state, _, fix in found.values() if state != "ok")


@pytest.mark.parametrize(
    ("found", "asked", "good"),
    [("2.3.3", ">=2.2,<3", True), ("3.0.0", "<3,>=2.2", False), ("2.1", ">=2.2,<3", False), ("1", "", True)],
)
def test_versions_are_compared_as_numbers(found, asked, good):
    assert query_requirements.fits(found, asked) == good


def test_another_pandas_is_named_with_the_fix(monkeypatch):
    monkeypatch.setattr(query_requirements, "version", lambda _: "3.0.1")
    monkeypatch.setattr(query_requirements, "bounds_of", lambda: {"pandas": "<3,>=2.2"})
    (line,) = [seen for seen in query_requirements.packages() if seen.name == "pandas"]
    assert line == ("pandas", "fail", "3.0.1 is installed, <3,>=2.2 is needed", "pip install 'pandas<3,>=2.2'")


def test_no_java_is_a_line(monkeypatch):
    monkeypatch.setattr("wirecheck.streaming.spark.java.candidates", list)
    monkeypatch.setattr("wirecheck.streaming.spark.java.find_spec", lambda _: None)
    (line,) = query_requirements.java()
    assert (line.state, line.text) == ("fail", "Java 17 or newer is needed, found no Java")
    assert "apt install" in line.fix


@pytest.mark.parametrize(("free_mb", "state"), [(9000, "ok"), (2000, "warn"), (900, "fail")])
def test_little_memory_is_told_with_what_judging_may_take(monkeypatch, free_mb, state):
    monkeypatch.setattr(query_requirements.Path, "read_text", lambda *_, **__: f"MemAvailable: {free_mb * 1000} kB\n")
    (line,) = query_requirements.memory()
    assert (line.state, line.text) == (state, f"{free_mb:,} MB free")
    assert (f"checking may take {query_requirements.HELD_MB:,}" in line.fix) == (state != "ok")
