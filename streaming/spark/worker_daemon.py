"""Forks Spark's Python workers, warm.

Knows: what every worker of ours needs; imports it and loads the compiled kernels once, before the first fork. Without
this each worker spends seconds on the same imports. Spark starts it by `spark.python.daemon.module`.
Rule: nothing here may start a thread that must survive a fork, and nothing here changes a result.
"""

import gc

import pyarrow as pa
import pyspark.worker  # noqa: F401 - imported to be there after the fork, as those below
from pyspark.daemon import manager

import wirecheck.streaming.spark.operators  # noqa: F401
from wirecheck.streaming.steps.warm import warm

__all__ = ["get_ready", "manager"]


def get_ready() -> None:
    pa.set_cpu_count(1)  # Spark's tasks are the parallelism; threads of a parent do not survive a fork
    pa.set_io_thread_count(1)
    warm()
    gc.collect()
    gc.freeze()  # what all workers share stays shared: the collector would write into every page of it


if __name__ == "__main__":
    get_ready()
    manager()
