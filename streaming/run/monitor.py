"""The query as a service: started, supervised, stopped.

However it ends, the next start continues from the checkpoint; metrics are restored from the tables.
"""

import datetime as dt
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from tempfile import TemporaryFile
from threading import Event
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from wirecheck import extension_modules
from wirecheck.capture.frames_file_name import whose
from wirecheck.decode.peer import Conversation
from wirecheck.judge.results import open_rows
from wirecheck.streaming import checkpoint
from wirecheck.streaming.checkpoint import CheckpointRefused
from wirecheck.streaming.run.arrivals import Arrivals
from wirecheck.streaming.run.batch_repeats import Repeats
from wirecheck.streaming.run.failure import batch_files, in_one_line
from wirecheck.streaming.run.feed import Feed, opened
from wirecheck.streaming.run.metrics_page import SHOWN, SLOW_S, Page, Query
from wirecheck.streaming.run.plan import MonitorError, Plan, Say
from wirecheck.streaming.run.resources import (
    metrics_place,
    served,
    stop_signals,
    table_maintenance,
    unlinked,
    workplace,
)
from wirecheck.streaming.run.web_server import NO_RUNBOOKS, Front
from wirecheck.streaming.spark.java import JavaMissing
from wirecheck.streaming.spark.left_over import drop_state_copies
from wirecheck.streaming.spark.pipeline import Job, start
from wirecheck.streaming.spark.session import (
    JAVA_ENDED,
    SparkDidNotStart,
    close_session,
    java_has_gone,
    open_session,
)
from wirecheck.streaming.spark.sinks import BatchTables
from wirecheck.streaming.spark.task_load import most_loaded
from wirecheck.streaming.spark.tuning import Session
from wirecheck.streaming.steps.frames_folder import FramesError, first_of, labelled, need_format
from wirecheck.streaming.steps.settings import AgentFiles, Settings
from wirecheck.streaming.store import result_folder
from wirecheck.streaming.store.lease import Lease, LeaseLost, LeaseRefused, leased
from wirecheck.streaming.store.result_damage import DamagedResultError
from wirecheck.streaming.store.run_result import LatestRows
from wirecheck.streaming.store.storage import at, is_local, spelled
from wirecheck.wording import reason_of

SLOW_START_S = 30
"""Only a busy machine takes so long to start Spark."""
FORCED_S = 25.0
"""So long an end that was asked for waits for the batch that runs: service managers kill after 30 s and more."""
LOOK_S = 0.2
ROUNDS = 25
"""So many looks are 5 s."""
ENDED = "stopped at once; the next start repeats the unfinished batch"
UNSTARTED = "stopped before the first batch"
STEPS = ("judge", "follow")
"""The stateful steps in the order in which Spark reports them: the last first."""
OF_SPARK = (PySparkException, SparkDidNotStart, Py4JError, ConnectionError)
"""How its failures come; the last two where its Java stops or has gone."""
MOST_SUGGESTED = 1000


def run(
    plan: Plan,
    settings: Settings,
    say: Say,
    front: Front | None = None,
    *,
    runbooks: Mapping[str, str] = NO_RUNBOOKS,
    cards: Callable[[], None] | None = None,
) -> None:
    """Until the end (`once`), SIGTERM or SIGINT; `front` makes the page for people, `runbooks` are served by name, and
    `cards` writes the table of cards.

    Raises MonitorError.
    """
    try:
        need_folder(plan.frames)
        with (
            checkpoint.locked(plan.checkpoint),
            leased(plan.checkpoint, say) as lease,
            stop_signals() as stopping,
            served(plan, front, runbooks) as page,
        ):
            begin(settings, Watch(plan, page, stopping, say, lease, cards))
    except (CheckpointRefused, JavaMissing, LeaseLost, LeaseRefused, DamagedResultError, SparkDidNotStart) as failure:
        raise MonitorError(str(failure)) from failure
    except ConnectionError as failure:  # py4j's, which talks to Java: no disk has any
        raise MonitorError(JAVA_ENDED) from failure
    except OSError as failure:  # a disk or a folder that goes meanwhile
        raise MonitorError(
            f"{failure.filename or plan.out}: {reason_of(failure)}; fix that and start again"
        ) from failure
    except KeyboardInterrupt as failure:
        raise MonitorError(ENDED) from failure


def begin(settings: Settings, watch: "Watch") -> None:
    plan, say = watch.plan, watch.say
    job, settings, feed = prepared(plan, settings, watch.page)
    job = replace(job, confirmed=watch.lease.confirm if watch.lease else None)
    for line in filter(None, (extension_modules.slow(), unlinked(plan))):
        say(line)
    if checkpoint.committed(plan.checkpoint) >= 0 and not watch.page.totals:
        say(f"{plan.out}: holds no results of this checkpoint (run={job.run}); if --out has changed, move its tables")
    with workplace(plan.checkpoint) as work:
        try:
            session = Session(work, memory=f"{plan.heap_bytes >> 20}m", verbose=settings.verbose)
            began_s = time.monotonic()
            spark = None
            if not watch.stopping.is_set():
                say(beginning(plan, watch.page, settings))  # before Spark, which on a busy machine takes minutes
                spark = open_session(session)
            if spark is None or watch.stopping.is_set():  # a batch would only make the end later
                say(UNSTARTED)
                return
            if (took_s := time.monotonic() - began_s) >= SLOW_START_S:
                say(f"Spark is up after {took_s:.0f} s")
            with table_maintenance(plan, say, watch.lease, watch.cards):
                run_with_restarts(spark, job, settings, watch, feed)
        except OF_SPARK as failure:  # words in Java, which is there until it is closed
            if watch.stopping.is_set():  # the signal went to Java, too, as with timeout(1)
                raise MonitorError(ENDED) from failure
            if isinstance(failure, SparkDidNotStart):
                raise
            if watch.lease:
                watch.lease.look()  # where it was lost that is why
            if java_has_gone(failure):
                raise MonitorError(JAVA_ENDED) from failure
            raise MonitorError(in_one_line(str(failure), plan)) from failure
        finally:
            close_session()


def run_with_restarts(spark: SparkSession, job: Job, settings: Settings, watch: "Watch", feed: Feed) -> StreamingQuery:
    """Run the query. A batch that failed for a reason that passes is repeated (`batch_repeats.py`)."""
    repeats = Repeats(watch.plan, watch.stopping, watch.say, partial(waits, spark, feed, watch.page), watch.busy_tries)
    watch = replace(watch, committed=repeats.committed)
    while True:
        try:
            return supervise(spark, job, settings, watch, feed)
        except (PySparkException, Py4JJavaError) as failure:
            if not repeats.after(str(failure)):
                raise


def waits(spark: SparkSession, feed: Feed, page: Page) -> None:
    """No query runs: what waits is shown all the same, and nothing is kept for one."""
    drop_state_copies(spark)
    with suppress(OSError):  # which the next batch reports
        checkpoint.drop_unfinished(feed.plan.checkpoint)
        if not feed.plan.once:
            feed.arrivals.look()
    page.update(measured(None, feed.waiting()))
    page.alive()


def prepared(plan: Plan, settings: Settings, page: Page) -> tuple[Job, Settings, Feed]:
    """All that can be refused before Spark starts; the frames are listed once. Raises CheckpointRefused and
    MonitorError.
    """
    tables = writable(plan.out, plan.tables)
    run_id = checkpoint.open_or_create(plan.checkpoint, checkpoint.meaning(settings))
    with need_frames(plan.frames):
        feed = opened(plan, page.alive)
    agents = present(feed.arrivals, plan)
    restore(page, plan, run_id)
    page.update(measured(None, feed.waiting()))  # what waits is shown from the start, not once the query has begun
    job = Job(spelled(plan.frames), plan.out, plan.checkpoint, run_id, tables=tables)
    return job, replace(settings, agents=agents), feed


def writable(out: str, asked: str | None) -> str:
    """The kind of tables to write there. Raises MonitorError where that cannot be."""
    try:
        kind = result_folder.kind_for(out, asked)
        system, folder = at(out)
        system.create_dir(folder, recursive=True)
        if is_local(out):
            TemporaryFile(dir=folder).close()
        there = result_folder.kind_of(out)
    except (OSError, ValueError) as wrong:
        raise MonitorError(f"{out}: {reason_of(wrong)}; let this user write there, or name another --out") from wrong
    if there not in {None, kind}:
        raise MonitorError(f"{out}: holds {there} tables; continue with --tables {there}, or name another --out")
    result_folder.loaded(kind)
    return kind


def present(arrivals: Arrivals, plan: Plan) -> dict[str, AgentFiles]:
    """The agents that are there now, where their files begin, and which of them make the last batch and have gone. More
    of each may come, and more agents. Raises MonitorError where another release wrote the frames.
    """
    lost = defaultdict(list)
    for agent, number in filter(None, map(whose, checkpoint.newest_files(plan.checkpoint))):
        if number not in arrivals.there.get(agent, ()):
            lost[agent].append(number)
    gone = {agent: tuple(range(number, number + 1) for number in sorted(numbers)) for agent, numbers in lost.items()}
    begun = {agent: AgentFiles(first, gone.get(agent, ())) for agent, first in sorted(arrivals.lowest().items())}
    folder = spelled(plan.frames)
    try:
        need_format(f"{folder}/{first_of(agent, files)}" for agent, files in begun.items())
    except FramesError as other:
        raise MonitorError(f"{other}, or name another --frames") from other
    return labelled(begun, lambda name: f"{folder}/{name}")


def need_folder(frames: str) -> None:
    """Raises MonitorError where there is none."""
    with need_frames(frames):
        system, folder = at(frames)
        if system.get_file_info(folder).type != fs.FileType.Directory:
            raise MonitorError(f"{frames}: no such folder; make it, or name the one the agents write to with --frames")


@contextmanager
def need_frames(frames: str) -> Iterator[None]:
    """Whatever is wrong with the folder, as MonitorError."""
    try:
        yield
    except (OSError, ValueError) as wrong:
        raise MonitorError(f"{frames}: {reason_of(wrong)}; let this user read it, or name another --frames") from wrong


def restore(page: Page, plan: Plan, run: str) -> None:
    """What earlier starts have written: from the tables, as a reader finds them."""
    if checkpoint.committed(plan.checkpoint) >= 0:
        read_back(page, plan.out, run)


def read_back(page: Page, out: str, run: str) -> None:
    for table in SHOWN:
        held = LatestRows()
        for part in result_folder.read(out, table, run, open_rows.COLUMNS.get(table)):
            held.add(table, part)
        page.take(held.tables())


@dataclass(frozen=True)
class Watch:
    """What goes on beside the query."""

    plan: Plan
    page: Page
    stopping: Event
    say: Say
    lease: Lease | None = None
    cards: Callable[[], None] | None = None
    """Writes the table of cards."""
    suggested: set[str] = field(default_factory=set)
    """Endpoints of which it was printed that a draft reads their messages."""
    busy_tries: int | None = None
    """So often a batch is tried on a machine that is too busy; None: until BUSY_S are over."""
    committed: Callable[[], None] = lambda: None
    """Called once a batch is written and committed."""
    on_waiting: Callable[[int], None] = lambda _: None
    """Called about every LOOK_S with the number of files that are not judged yet."""

    def batch_written(self, feed: Feed, tables: BatchTables, replaced: bool, loads: pa.Table | None) -> None:
        """A batch is written, and has `replaced` other rows that the page may show."""
        feed.judged()
        if replaced:
            self.page.forget()
            restore(self.page, self.plan, checkpoint.run_of(self.plan.checkpoint) or "")
            self.say("a repeated batch gave a different result: a frames file was removed or an agent added in between")
        self.page.take(tables, time.time_ns())
        self.report()
        self.page.loads = most_loaded(loads)
        for row in tables["coverage"].to_pylist() if "coverage" in tables else ():
            if row["measure"] == "quarantined_files" and not row["withdrawn"]:
                self.say(f"set aside: {row['detail']}")
            elif row["measure"] == "draft_messages" and not row["withdrawn"]:
                self.suggest(str(Conversation.of(row["connection"]).server), row["count"], row["detail"])

    def report(self, *, last: bool = False) -> None:
        """What is new about findings."""
        for line in self.page.news(last=last):
            self.say(line)

    def suggest(self, endpoint: str, count: int, draft: str) -> None:
        """Once per endpoint."""
        if endpoint not in self.suggested and len(self.suggested) < MOST_SUGGESTED:
            self.suggested.add(endpoint)
            messages = f"{count:,} message{'s decode' if count != 1 else ' decodes'}"
            self.say(f"{endpoint}: {messages} as {draft}: use `--dialect {draft}`")


def supervise(spark: SparkSession, job: Job, settings: Settings, watch: Watch, feed: Feed) -> StreamingQuery:
    """Run the query, watch until it ends or is to end; a batch that runs is finished first."""
    feed.ending.clear()  # of an earlier run
    query = start(spark, job, settings, partial(watch.batch_written, feed), feed)
    watch.page.ready = True
    try:
        watched(query, feed, watch)
    finally:
        feed.ending.set()
        watch.report(last=True)
    return query


def watched(query: StreamingQuery, feed: Feed, watch: Watch) -> None:
    """Until it ends, or is to end and a batch has."""
    shown, rounds, asked_s, slow_s = -1, 0, 0.0, SLOW_S
    while not query.awaitTermination(LOOK_S):
        if watch.lease:
            watch.lease.check()
        watch.on_waiting(feed.waiting()[0])
        progress, busy = query.lastProgress, query.status["isTriggerActive"]
        ended = bool(progress and progress["batchId"] != shown and progress["numInputRows"])
        if ended:
            shown = progress["batchId"]
            watch.committed()
            batch_s = progress["durationMs"]["triggerExecution"] / 1000 - feed.waited_s.get(shown, 0)
            watch.page.update(measured(progress, feed.waiting()), batch_s)
        elif rounds % ROUNDS == 0:
            watch.page.update(measured(progress, feed.waiting()))
            for line in feed.warnings():
                watch.say(line)
        if not busy:
            watch.page.alive()
        slow_s = SLOW_S if ended or not busy else next_report_s(watch, slow_s)
        stopping = watch.stopping.is_set()
        if (feed.waits and (stopping or watch.plan.once)) or (stopping and (ended or not busy)):
            feed.ending.set()
            query.stop()  # where files wait the next batch has begun already: it is repeated by the next start
            return
        if stopping and not asked_s:
            asked_s = time.monotonic()
            watch.say("stopping after the current batch; a second signal stops at once")
        if asked_s and time.monotonic() - asked_s > FORCED_S:
            raise KeyboardInterrupt  # as the second signal
        rounds += 1


def next_report_s(watch: Watch, slow_s: float) -> float:
    """When a batch that goes on is said again."""
    running_s = watch.page.runs_s()
    if running_s < slow_s:
        return slow_s
    watch.say(f"a batch has run for {running_s:.0f} s: {batch_files(watch.plan) or 'no file'}")
    return 2 * slow_s


def beginning(plan: Plan, page: Page, settings: Settings) -> str:
    """What is read, how far an earlier start has come, and where to look."""
    done = checkpoint.committed(plan.checkpoint)
    newest_s = max(page.times()["agent_judged_timestamp_seconds"].values(), default=None)
    judged = f", judged up to {dt.datetime.fromtimestamp(newest_s, dt.UTC):%Y-%m-%d %H:%M:%S} UTC" if newest_s else ""
    file, wait = ("file", "waits") if page.query.backlog_files == 1 else ("files", "wait")
    parts = [
        f"checking {plan.frames} into {plan.out}",
        f"agents {', '.join(sorted(settings.agents)) or 'none yet'}",
        f"{page.query.backlog_files:,} {file} ({page.query.backlog_bytes / 1e6:,.1f} MB) {wait}",
        "from the beginning" if done < 0 else f"after batch {done}{judged}",
        *([metrics_place(plan)] if plan.metrics_port else ()),
    ]
    return "; ".join(parts)


def measured(progress: Any, waiting: tuple[int, int]) -> Query:
    steps = zip(STEPS, progress["stateOperators"] if progress else (), strict=False)
    state_bytes = dict.fromkeys(STEPS, 0) | {step: operator["memoryUsedBytes"] for step, operator in steps}
    return Query(state_bytes, *waiting)
