"""The query as Spark runs it: its plan, and that cuts, orders, buckets and restarts change nothing.

The other road is the plain loop over all files at once; every test compares with it.
"""

import os
from dataclasses import replace

import pytest

from wirecheck.streaming.run.replay import finish, retried
from wirecheck.streaming.spark.pipeline import Job, start
from wirecheck.streaming.steps.frames_folder import agents_of
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store import batches
from wirecheck.streaming.store.run_result import Result

pytestmark = pytest.mark.spark
STATEFUL = "transformWithStateInPandasExec"


@pytest.fixture(scope="module")
def settings(frames_files):
    return Settings(agents=agents_of(frames_files))


@pytest.fixture(scope="module")
def loop(frames_files, settings):
    loop = Loop(replace(settings, exchanges=True))
    loop.batch(frames_files)
    return loop


@pytest.fixture(scope="module")
def expected(loop):
    verdict = loop.result().json()
    assert verdict["findings"]
    assert verdict["topics"]
    return verdict


@pytest.fixture
def job(tmp_path):
    (tmp_path / "frames").mkdir()
    return Job(str(tmp_path / "frames"), tmp_path / "out", tmp_path / "checkpoint")


@pytest.fixture
def run(spark, job, settings):
    """Runs the job over these files, added in this order, and gives the verdict."""

    def judged(files, **changes):
        for age, file in enumerate(files):
            link = type(file)(job.frames) / file.name
            link.write_bytes(file.read_bytes())
            os.utime(link, (1_700_000_000 + age, 1_700_000_000 + age))  # the file source goes by this
        asked = replace(job, **changes.pop("job", {})), replace(settings, **changes)
        query = retried(lambda: finish(start(spark, *asked), len(files), None))
        return Result.read(job.out, str(query.id)).json(), query

    return judged


def test_all_at_once_is_what_the_plain_loop_says_exchanges_on_request_included(run, job, frames_files, loop, expected):
    verdict, query = run(frames_files, exchanges=True)
    assert [batch["numInputRows"] for batch in query.recentProgress] == [len(frames_files)]
    assert verdict == expected
    (written,) = batches.read(f"{job.out}/exchanges/run={query.id}")
    assert sorted(map(str, written.to_pylist())) == sorted(map(str, loop.rows("exchanges")))
    assert written.num_rows == expected["coverage"]["exchanges"]


def test_the_plan_has_two_stateful_nodes(run, frames_files):
    """A streaming DataFrame that is used twice plans its stateful steps twice, with a state of their own."""
    _, query = run(frames_files[:1])
    assert [operator["operatorName"] for operator in query.lastProgress["stateOperators"]] == [STATEFUL] * 2


def test_one_file_per_batch_in_any_order_and_32_buckets_change_nothing(run, frames_files, expected):
    order = [frames_files[i] for i in (2, 0, 1, *range(len(frames_files) - 1, 2, -1))]
    verdict, query = run(order, buckets=32, job={"batch_bytes": 1})
    assert len(query.recentProgress) == len(frames_files)
    assert verdict == expected


def test_a_restart_goes_on_where_it_stopped(run, frames_files, expected):
    run(frames_files[1:3], buckets=2)
    run(frames_files[:1], buckets=2)
    verdict, query = run(frames_files[3:], buckets=2)
    assert query.lastProgress["batchId"] == 2
    assert verdict == expected


def test_a_batch_that_spark_repeats_is_written_once(run, job, frames_files, expected):
    run(frames_files)
    committed = job.checkpoint / "commits" / "0"
    written = sorted(job.out.rglob("*.parquet"))
    before = [path.stat().st_mtime_ns for path in written]
    committed.unlink()
    (committed.parent / ".0.crc").unlink(missing_ok=True)
    verdict, query = run([])
    assert query.lastProgress["batchId"] == 0
    assert [path.stat().st_mtime_ns for path in sorted(job.out.rglob("*.parquet"))] == before
    assert verdict == expected
