"""How much CPU time each task of a stateful step took, as rows that no table stores.

It depends on the machine, so it never reaches what is checked or written.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from wirecheck.streaming.steps.tagged import Tagged

ROUTE = "load"
FOLLOW, JUDGE = "follow", "judge"
Loads = Mapping[tuple[str, int], float]
"""CPU seconds by step and task."""


def row(step: str, label: str, cpu_s: float) -> Tagged:
    """What one key of this task took."""
    from pyspark import TaskContext

    task = TaskContext.get()
    return Tagged(label, task.partitionId() if task else 0, ROUTE, f"{step} {cpu_s:.6f}".encode())


def set_aside(rows: Iterable[Tagged], loads: list[Tagged]) -> Iterator[Tagged]:
    """The other rows; these are put into the list as they come."""
    for one in rows:
        if one.route == ROUTE:
            loads.append(one)
        else:
            yield one


def loads(rows: Iterable[Tagged]) -> Loads:
    found: dict[tuple[str, int], float] = defaultdict(float)
    for one in rows:
        step, cpu_s = one.cell.decode().split()
        found[step, one.bucket] += float(cpu_s)
    return found


def most_loaded(found: Loads) -> dict[tuple[str, ...], float]:
    """By step: of its most loaded task, and of all."""
    by_task: dict[tuple[str, ...], float] = {}
    for step in sorted({step for step, _ in found}):
        seconds = [cpu_s for (of, _), cpu_s in found.items() if of == step]
        by_task |= {(step, "most_loaded"): max(seconds), (step, "all"): sum(seconds)}
    return by_task
