"""What tasks had to do goes beside what is judged, and into no table."""

from wirecheck.streaming.spark import task_load
from wirecheck.streaming.spark.sinks import by_table
from wirecheck.streaming.spark.task_load import FOLLOW, JUDGE, ROUTE
from wirecheck.streaming.steps.judge_step import judge_rows
from wirecheck.streaming.steps.settings import Settings


def load(monkeypatch, step, task, cpu_s):
    monkeypatch.setattr("pyspark.TaskContext.get", type("Task", (), {"partitionId": lambda _: task}))
    return task_load.row(step, "L", cpu_s)


def test_the_most_loaded_task_is_told_beside_all_of_a_step(monkeypatch):
    reports = (FOLLOW, 0, 0.5), (FOLLOW, 1, 0.25), (FOLLOW, 0, 0.25), (JUDGE, 3, 2.0)
    loads = by_table([load(monkeypatch, *one) for one in reports])[ROUTE]
    assert task_load.most_loaded(loads) == {
        ("follow", "most_loaded"): 0.75, ("follow", "all"): 1.0, ("judge", "most_loaded"): 2.0, ("judge", "all"): 2.0,
    }  # fmt: skip
    assert task_load.most_loaded(None) == {}


def test_the_judge_passes_what_following_took(monkeypatch):
    one = load(monkeypatch, FOLLOW, 1, 1)
    emitted, _ = judge_rows("L", [one], {}.get, Settings())
    assert one in emitted
