"""What tasks had to do goes beside what is judged, and into no table."""

from wirecheck.streaming.spark import task_load
from wirecheck.streaming.spark.task_load import FOLLOW, JUDGE, ROUTE
from wirecheck.streaming.steps.tagged import Tagged


def load(step, task, cpu_s):
    return task_load.row(step, "L", cpu_s)._replace(bucket=task)


def test_the_most_loaded_task_is_told_beside_all_of_a_step():
    rows = [load(FOLLOW, 0, 0.5), load(FOLLOW, 1, 0.25), load(FOLLOW, 0, 0.25), load(JUDGE, 3, 2.0)]
    assert task_load.most_loaded(task_load.loads(rows)) == {
        ("follow", "most_loaded"): 0.75, ("follow", "all"): 1.0, ("judge", "most_loaded"): 2.0, ("judge", "all"): 2.0,
    }  # fmt: skip
    assert task_load.most_loaded({}) == {}


def test_loads_are_set_aside_and_every_other_row_passes():
    other, loads = Tagged("L", 1, "claims", b"x"), []
    assert list(task_load.set_aside([load(FOLLOW, 1, 1), other, load(JUDGE, 0, 1)], loads)) == [other]
    assert [row.route for row in loads] == [ROUTE, ROUTE]
