"""PySpark's daemon, which forks a worker for each task at a time, with what the steps import already in it.

Each worker would import it on its own: 0.7 CPU s, four times at a start, and again for each that was idle for a minute
(Spark ends these). Forked, they share its memory.

Knows: what the steps of all tasks import. Refuses to know how workers are forked and spoken to (`pyspark.daemon`).
"""

import gc
import runpy

import pandas as pd  # noqa: F401 - for those that are forked
import pyarrow as pa  # noqa: F401

from wirecheck.streaming import checkpoint  # noqa: F401
from wirecheck.streaming.steps import decode_step, follow_step, judge_step, pack_step  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # or the first collection of a fork writes to each object, and its page is shared no more
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
