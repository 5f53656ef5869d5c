"""Frames that are all there, checked by the monitor's query: `replay --engine spark`.

Frames are read where they are; everything a replay leaves is under `out` and `work`.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from wirecheck.capture.frames_file_name import base_name
from wirecheck.streaming.checkpoint import CheckpointRefused
from wirecheck.streaming.run.failure import reason, too_busy
from wirecheck.streaming.run.metrics_page import Page
from wirecheck.streaming.run.monitor import Watch, prepared, run_with_restarts
from wirecheck.streaming.run.plan import MonitorError, Plan
from wirecheck.streaming.spark.session import RUNNING, last_line
from wirecheck.streaming.steps.frames_folder import agents_of, labelled_in
from wirecheck.streaming.steps.settings import Settings

BUSY_TRIES = 2
"""On a machine that is too busy for Spark; the local engine has the same verdict."""
BATCH_BYTES = 16 << 20
"""Frames files of one batch: bounds memory; each batch costs a second of its own. Redacted, it is a GB of capture."""
Progress = Callable[[int, int], None]


class ReplayError(Exception):
    """Why there is no result, in one line for a person."""


class Judged(NamedTuple):
    """A replay at its end."""

    run: str
    """The ID under which its result tables are."""
    query: StreamingQuery


def judge(
    spark: SparkSession,
    files: list[Path],
    settings: Settings,
    *,
    work: Path,
    out: Path,
    on_progress: Progress | None = None,
    batch_bytes: int = BATCH_BYTES,
) -> Judged:
    """All these files of frames, wherever they are, to their end. Raises ReplayError."""
    gather(files, work / "frames")
    plan = Plan(str(work / "frames"), str(out), str(work / "checkpoint"), once=True, max_batch_bytes=batch_bytes)
    agents = settings.agents or labelled_in(agents_of(files), files)

    def judged(waiting: int) -> None:
        if on_progress:
            on_progress(len(files) - waiting, len(files))

    watch = Watch(plan, Page(), Event(), say=lambda _: None, busy_tries=BUSY_TRIES, on_waiting=judged)
    try:
        job, settings, feed = prepared(plan, settings, watch.page)
        query = run_with_restarts(spark, job, replace(settings, agents=agents), watch, feed)
    except PySparkException as failure:
        if too_busy(str(failure)):
            raise ReplayError(f"this machine was too busy for Spark to start Python, {BUSY_TRIES} times") from failure
        raise ReplayError(f"the query failed: {reason(str(failure))}") from failure
    except Py4JError as failure:
        last = last_line(RUNNING.work / "spark.log") if RUNNING.work is not None else ""
        raise ReplayError(f"the query failed: Java ended: {last or 'without a message'}") from failure
    except (CheckpointRefused, MonitorError) as failure:
        raise ReplayError(str(failure)) from failure
    judged(0)
    return Judged(job.run, query)


def gather(files: list[Path], folder: Path) -> None:
    """One folder to list, whatever characters the users' folders have in their names. In place of an empty file, or of
    what is no file, there is one that cannot be read: the query would wait for it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        entry = folder / base_name(file.name)
        with suppress(FileExistsError):
            if has_bytes(file):
                entry.symlink_to(file.resolve())
            else:
                with entry.open("x") as placeholder:  # never through a link that is there already
                    placeholder.write("empty")


def has_bytes(file: Path) -> bool:
    try:
        return file.is_file() and file.stat().st_size > 0
    except OSError:
        return False
