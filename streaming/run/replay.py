"""Frames that are there, judged to their end.

Knows: how to run the query over all of them once, and how to say in one line why it failed. Knows nothing of pcaps
(the door had them written as frames) or of how results look.
Rule: frames are read where they lie, by path; what a replay leaves behind is under `out` and `work`, nowhere else.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from wirecheck.streaming.spark.java import JavaMissing
from wirecheck.streaming.spark.pipeline import Job, start
from wirecheck.streaming.spark.session import RUNNING, Session, SparkDidNotStart, last_line, open_session
from wirecheck.streaming.steps.frames_folder import agents_of, frames_files, labelled
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store.run_result import Result

RAISED = re.compile(  # Java's last words, and those of our Python among them
    r"^\s*(?:Caused by: |: )?(?P<java>(?:org|java|scala)\.)?(?:\w+\.)*"
    r"(?!Py4J|Python)(?P<name>\w*(?:Error|Exception|Mismatch)): (?P<said>\S.*)$",
    re.MULTILINE,
)
PARTITIONS = "1"
"""Of the stateful steps: following, decoding and Java are three processes on two cores already, and each further
partition would take the memory of two Pythons.
"""
STREAM = re.compile(r"^\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ")
TOO_BUSY, RETRIES = ("Python worker failed to connect back", "CANNOT_OPEN_SOCKET"), 4
"""Spark gives each bare Python it starts ten seconds, and no setting says otherwise (until 4.3 at least)."""
Progress = Callable[[int, int], None]


class ReplayError(Exception):
    """Why there is no result, in one line for a person."""


def opened(work: Path, settings: Settings) -> SparkSession:
    """Spark, ready. `work` is for what it leaves behind. Raises ReplayError."""
    try:
        return open_session(Session(work / "spark", verbose=settings.verbose))
    except (JavaMissing, SparkDidNotStart) as failure:
        raise ReplayError(str(failure)) from failure


def gathered(files: list[Path], out: Path, work: Path) -> Job:
    """What judges these files of frames, wherever they lie."""
    gather(files, work / "frames")
    return Job(str(work / "frames"), out, work / "checkpoint")


def judge(spark: SparkSession, job: Job, settings: Settings, on_progress: Progress | None = None) -> Result:
    """One folder of frames, in a session that is there and stays."""
    query = ended(spark, job, settings, on_progress)
    batches = tuple(batch["durationMs"] for batch in query.recentProgress)
    return replace(Result.read(job.out, str(query.id)), batches=batches)


def ended(spark: SparkSession, job: Job, settings: Settings, on_progress: Progress | None) -> StreamingQuery:
    """The query over all files, at its end. Raises ReplayError."""
    files = frames_files([Path(job.frames)])
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    agents = labelled(agents_of(files), Path(job.frames))
    try:
        return retried(lambda: finish(start(spark, job, replace(settings, agents=agents)), len(files), on_progress))
    except PySparkException as failure:
        raise ReplayError(f"the query failed: {reason(str(failure))}") from failure
    except Py4JError as failure:
        said = last_line(RUNNING.work / "spark.log") if RUNNING.work is not None else ""
        raise ReplayError(f"the query failed: Java ended: {said or 'it said nothing'}") from failure


def gather(files: list[Path], folder: Path) -> None:
    """One folder for Spark to list, whatever characters the users' folders have in their names."""
    folder.mkdir(parents=True)
    for file in files:
        (folder / file.name).symlink_to(file.resolve())


def retried(run: Callable[[], StreamingQuery]) -> StreamingQuery:
    """A query that goes on from its checkpoint, again if the machine was too busy for Spark's patience."""
    for _ in range(RETRIES):
        try:
            return run()
        except PySparkException as failure:
            if not any(words in str(failure) for words in TOO_BUSY):
                raise
    return run()


def finish(query: StreamingQuery, files: int, on_progress: Progress | None) -> StreamingQuery:
    """Wait for the end; says how many files are judged."""
    told = JudgedFiles(files, on_progress)
    while not query.awaitTermination(0.3):
        told.of(query)
    told.end()
    return query


class JudgedFiles:
    """How many files are judged, as it is told while one waits."""

    def __init__(self, files: int, on_progress: Progress | None) -> None:
        self._files, self._on_progress = files, on_progress
        self._judged: dict[int, int] = {}  # Spark itself remembers the last hundred batches

    def of(self, query: StreamingQuery) -> None:
        if self._on_progress:
            self._judged.update({batch["batchId"]: batch["numInputRows"] for batch in query.recentProgress})
            self._on_progress(sum(self._judged.values()), self._files)

    def end(self) -> None:
        if self._on_progress:
            self._on_progress(self._files, self._files)


def reason(text: str) -> str:
    """The line of a long Spark failure that a person can use: what our Python raised, else Java's own last word."""
    told = [match.groupdict("") for match in RAISED.finditer(text)]
    ours = [f"{line['name']}: {line['said']}" for line in told if not line["java"] and "Spark" not in line["name"]]
    theirs = [line["said"] for line in told if line["java"]]
    return STREAM.sub("", (ours or theirs or [text.strip().splitlines()[0]])[-1])
