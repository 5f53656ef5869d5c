"""How much CPU time each task of a stateful step took, as a table that is not stored.

It depends on the machine, so it never reaches what is checked or written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirecheck.streaming.steps.tagged import Tagged

if TYPE_CHECKING:
    import pyarrow as pa

ROUTE = "load"
FOLLOW, JUDGE = "follow", "judge"


def row(step: str, label: str, cpu_s: float) -> Tagged:
    """What one key of this task took."""
    import pyarrow as pa
    from pyspark import TaskContext

    from wirecheck.streaming.store.result_tables import as_ipc

    task = TaskContext.get()
    cell = pa.table({"step": [step], "task": [task.partitionId() if task else 0], "cpu_s": [cpu_s]})
    return Tagged(label, -1, ROUTE, as_ipc(cell))


def most_loaded(loads: pa.Table | None) -> dict[tuple[str, ...], float]:
    """By step: of its most loaded task, and of all."""
    if loads is None:
        return {}
    tasks = loads.group_by(["step", "task"]).aggregate([("cpu_s", "sum")])
    steps = tasks.group_by("step").aggregate([("cpu_s_sum", "max"), ("cpu_s_sum", "sum")]).to_pylist()
    most = {(step["step"], "most_loaded"): step["cpu_s_sum_max"] for step in steps}
    return most | {(step["step"], "all"): step["cpu_s_sum_sum"] for step in steps}
