"""The query as Spark runs it: its plan, and that cuts, orders, buckets and restarts change nothing.

The reference is the plain loop over all files at once; every test compares with it.
"""

import os
from dataclasses import replace
from threading import Event

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.depth import some
from wirecheck.judge.results.result_table import rows_of
from wirecheck.streaming.checkpoint import read_files, written_down
from wirecheck.streaming.run.failure import in_one_line
from wirecheck.streaming.run.metrics_page import Page
from wirecheck.streaming.run.monitor import Watch, prepared, supervise
from wirecheck.streaming.run.plan import Plan
from wirecheck.streaming.run.replay import BATCH_BYTES, judge
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
def run(spark, tmp_path, settings):
    """Runs the query over these files, added in this order, and gives the verdict."""
    (tmp_path / "added").mkdir()
    added = []

    def judged(files, *, batch_bytes=BATCH_BYTES, **changes):
        for age, file in enumerate(files):
            added.append(tmp_path / "added" / file.name)
            added[-1].write_bytes(file.read_bytes())
            os.utime(added[-1], (1_700_000_000 + age, 1_700_000_000 + age))  # the order in which they came
        asked = replace(settings, **changes)
        found = judge(spark, added, asked, work=tmp_path, out=tmp_path / "out", batch_bytes=batch_bytes)
        return Result.read(tmp_path / "out", found.run).json(), found

    return judged


def sizes(tmp_path):
    """How many files each batch had."""
    checkpoint = str(tmp_path / "checkpoint")
    return [len(read_files(checkpoint, number).files) for number in written_down(checkpoint)]


def test_all_at_once_is_what_the_plain_loop_says_exchanges_on_request_included_by_two_stateful_steps(
    run, tmp_path, frames_files, loop, expected
):
    verdict, found = run(frames_files, exchanges=True)
    assert sizes(tmp_path) == [len(frames_files)]
    assert verdict == expected
    (written,) = batches.read(batches.Folders(f"{tmp_path}/out/exchanges/run={found.run}"))
    assert sorted(map(str, rows_of(written))) == sorted(map(str, loop.rows("exchanges")))
    assert written.num_rows == expected["coverage"]["exchanges"]
    # a streaming DataFrame that is used twice plans its stateful steps twice, with a state of their own
    assert [operator["operatorName"] for operator in found.query.lastProgress["stateOperators"]] == [STATEFUL] * 2


def test_one_file_per_batch_in_any_order_and_32_buckets_change_nothing(run, tmp_path, frames_files, expected):
    order = [frames_files[i] for i in (2, 0, 1, *range(len(frames_files) - 1, 2, -1))]
    verdict, _ = run(order, buckets=32, batch_bytes=1)
    assert sizes(tmp_path) == [1] * len(frames_files)
    assert verdict == expected


def test_a_batch_that_spark_repeats_is_written_once(run, tmp_path, frames_files, expected):
    run(frames_files)
    commits = tmp_path / "checkpoint" / "query" / "commits"
    written = sorted((tmp_path / "out").rglob("*.parquet"))
    before = [path.stat().st_mtime_ns for path in written]
    for name in ("0", ".0.crc"):
        (commits / name).unlink(missing_ok=True)
    for name in ("1", ".1.crc"):  # the next one had begun, and waited for files
        (commits.parent / "offsets" / name).unlink(missing_ok=True)
    verdict, _ = run([])
    assert sizes(tmp_path) == [len(frames_files)]
    assert [path.stat().st_mtime_ns for path in sorted((tmp_path / "out").rglob("*.parquet"))] == before
    assert verdict == expected


DAMAGES = {
    "an offset cut off": ("offsets/*", lambda path: path.write_bytes(path.read_bytes()[:20])),
    "an empty commit": ("commits/*", lambda path: path.write_bytes(b"")),
    "no description of the state": ("state/0/_metadata/v2/*", lambda path: path.unlink()),
    "no metadata": ("metadata", lambda path: path.write_text("{")),
}


@pytest.mark.parametrize("damage", some([*DAMAGES], each=4))
def test_a_damaged_checkpoint_ends_in_one_line(spark, tmp_path, frames_files, damage):
    """Spark verifies its own files: what it reports, and how to continue. (A state that is loaded it does not read
    again: the words for damaged state are in `test_failure.py`.)
    """
    (tmp_path / "frames").mkdir()
    plan = Plan(str(tmp_path / "frames"), str(tmp_path / "out"), str(tmp_path / "checkpoint"), once=True)
    for file in frames_files[:2]:
        (tmp_path / "frames" / file.name).write_bytes(file.read_bytes())
        job, settings, feed = prepared(plan, Settings(), Page())
        if file == frames_files[1]:
            names, damaged = DAMAGES[damage]
            for path in (tmp_path / "checkpoint" / "query").glob(names):
                damaged(path)
                (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
        try:
            supervise(spark, job, settings, Watch(plan, Page(), Event(), lambda _: None), feed)
        except (PySparkException, Py4JJavaError) as failure:
            line = in_one_line(str(failure), plan)
    assert line.startswith(f"{plan.checkpoint}: Spark cannot use it (")
    assert line.endswith("; start with a new --checkpoint; frames that are still kept are checked again")
    assert "\n" not in line
