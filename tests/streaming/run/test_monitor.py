"""The monitor's life: what it refuses before Spark starts, and that arriving bit by bit changes nothing."""

import errno
import json
import logging
import os
import signal
import socket
from collections import Counter
from dataclasses import replace
from threading import Event

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from wirecheck.streaming import checkpoint
from wirecheck.streaming.checkpoint import BatchFiles, Position
from wirecheck.streaming.run import batch_repeats, monitor, resources
from wirecheck.streaming.run.arrivals import OnDisk
from wirecheck.streaming.run.metrics_page import SHOWN, Page
from wirecheck.streaming.run.monitor import MonitorError, Plan, Watch, prepared, run, supervise
from wirecheck.streaming.run.resources import stop_signals
from wirecheck.streaming.spark.session import SparkDidNotStart
from wirecheck.streaming.steps.frames_folder import agents_of
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import AgentFiles, Settings
from wirecheck.streaming.store import batches, result_folder
from wirecheck.streaming.store.result_tables import from_ipc, to_ipc
from wirecheck.streaming.store.run_result import Result
from wirecheck.streaming.store.storage import local


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "a [b]").mkdir()
    return Plan(str(tmp_path / "a [b]"), str(tmp_path / "out"), str(tmp_path / "out" / "_checkpoint"), once=True)


def refusal(plan, settings=Settings()):
    with pytest.raises(MonitorError) as refused:
        run(plan, settings, print)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_missing_folder_is_one_line(tmp_path):
    assert "no such folder" in refusal(Plan(str(tmp_path / "none"), "out", "c"))
    assert "no such folder" in refusal(Plan(f"file://{tmp_path}/none", "out", "c"))


def test_a_taken_port_is_one_line(plan):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = refusal(Plan(plan.frames, plan.out, plan.checkpoint, metrics_port=port))
    assert f"127.0.0.1:{port}: Address already in use" in words


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(buckets=9), "made with buckets 8, this is 9"),
        (Settings(ports=frozenset({9092})), "made with ports none, this is 9092"),
        (Settings(dialects=("kip4-draft",)), "made with dialect kafka, this is kip4-draft"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused(plan, settings, words):
    prepared(plan, Settings(), Page())
    assert words in refusal(plan, settings)
    assert "start with a new --checkpoint" in refusal(plan, settings)


@pytest.mark.parametrize("fact", ["format", "spark", "follow_state_version", "judge_state_version"])
def test_a_checkpoint_of_other_versions_is_refused(plan, fact):
    checkpoint.open_or_create(plan.checkpoint, checkpoint.meaning(Settings()) | {fact: "0"})
    words = refusal(plan)
    assert f"made with {fact.replace('_', ' ')} 0, this is" in words
    assert words.endswith("start with a new --checkpoint; frames that are still kept are checked again")
    assert ("use the same as before" in words, "written by another release" in words) == (
        (True, False) if fact == "spark" else (False, True)
    )


def test_paths_are_no_part_of_a_checkpoint(plan, tmp_path):
    """Frames, and results with them, may lie elsewhere at the next start."""
    prepared(plan, Settings(), Page())
    (tmp_path / "elsewhere").mkdir()
    prepared(replace(plan, frames=str(tmp_path / "elsewhere"), out=str(tmp_path / "out-2")), Settings(), Page())


def test_a_checkpoint_of_an_unreleased_version_is_refused(plan):
    """By hand, as one lay there before format 1."""
    folder = local(plan.checkpoint)
    for name in ("wirecheck.json", "checksums.json", "files/0.json", "query/metadata", "query/commits/0"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    assert refusal(plan) == (
        f"{plan.checkpoint}: holds checksums.json and no checkpoint.json: it is not a checkpoint of this release; "
        "start with a new --checkpoint; frames that are still kept are checked again"
    )


def test_frames_of_an_unreleased_version_are_refused_in_one_line(plan, frames_files):
    """By hand: the same rows without the metadata; beside files of this format such a file is set aside."""
    folder = local(plan.frames)
    for number in (1, 2):
        pq.write_table(pq.read_table(frames_files[0]).replace_schema_metadata(), folder / f"b-{number:010d}.parquet")
    assert refusal(plan) == (
        f"{folder}/b-0000000001.parquet: not a file of frames of format 1: "
        "its metadata has no wirecheck.frames.format; capture again, or name another --frames"
    )
    (folder / frames_files[0].name).write_bytes(frames_files[0].read_bytes())
    assert set(prepared(plan, Settings(), Page())[1].agents) == {"a", "b"}


def committed(plan, batch_id, run="x"):
    """A checkpoint whose batches up to this one are committed, of a run."""
    prepared(plan, Settings(), Page())
    folder = local(plan.checkpoint)
    kept = json.loads((folder / checkpoint.NAME).read_text())
    (folder / checkpoint.NAME).write_text(json.dumps(kept | {"run": run}))
    (folder / "query" / "commits").mkdir(parents=True)
    (folder / "query" / "commits" / str(batch_id)).write_text("v1\n")


@pytest.mark.parametrize("text", ["{", "", "[]", '{"format": 1}'])
def test_a_damaged_checkpoint_is_refused(plan, text):
    prepared(plan, Settings(), Page())
    (local(plan.checkpoint) / checkpoint.NAME).write_text(text)
    assert refusal(plan) == f"{plan.checkpoint}: checkpoint.json is damaged; {checkpoint.NEW}"


def test_batches_whose_files_are_not_known_are_refused(plan):
    committed(plan, 6)
    assert refusal(plan) == f"{plan.checkpoint}: files/6.json is missing; {checkpoint.NEW}"
    (local(plan.checkpoint) / "files").mkdir()
    (local(plan.checkpoint) / "files" / "6.json").write_text('{"files": [], "after": []}')
    assert refusal(plan) == f"{plan.checkpoint}: files/6.json is damaged; {checkpoint.NEW}"


def test_results_that_are_not_there_are_asked_for(plan, monkeypatch):
    """Later revisions would follow rows that no reader has."""
    committed(plan, 0)
    checkpoint.write_files(plan.checkpoint, 0, BatchFiles())
    monkeypatch.setattr(monitor, "workplace", lambda _: 1 / 0)  # as far as it goes here
    said = []
    with pytest.raises(ZeroDivisionError):
        monitor.begin(Settings(), Watch(plan, Page(), Event(), said.append))
    line = f"{plan.out}: holds no results of this checkpoint (run=x); if --out has changed, move its tables"
    assert said[-1:] == [line]


def test_a_file_is_no_checkpoint_and_no_folder_of_tables(plan, tmp_path):
    (tmp_path / "file").touch()
    assert "is a file, not a folder; name another --checkpoint" in refusal(
        replace(plan, checkpoint=str(tmp_path / "file"))
    )
    words = refusal(replace(plan, out=str(tmp_path / "file"), checkpoint=str(tmp_path / "c")))
    assert words.startswith(f"{tmp_path / 'file'}: ")
    assert words.endswith("name another --out")


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("checkpoint.json", "checkpoint.json"),
        ("files", "files"),
    ],
)
def test_what_the_system_does_not_let_read_is_not_called_damaged(plan, name, named):
    """Root may read everything, so what is asked for is of another kind."""
    prepared(plan, Settings(), Page())
    there = local(plan.checkpoint) / name
    if named == "files":
        there.touch()
    else:
        there.unlink(missing_ok=True)
        there.mkdir()
    words = refusal(plan)
    assert words.startswith(f"{plan.checkpoint}: {named}: ")
    assert "directory" in words
    assert "let this user read and write it" in words


def test_spark_has_a_place_to_work_or_does_not_start(plan):
    prepared(plan, Settings(), Page())
    (local(plan.checkpoint) / ".work").touch()  # rmtree leaves files alone
    assert "File exists; let this user write there, or name another --checkpoint" in refusal(plan)


def test_it_begins_by_saying_what_it_reads_and_how_far_it_is(plan, frames_files):
    folder, page = local(plan.frames), Page()
    plan = replace(plan, metrics_port=9108)
    for file in frames_files:
        (folder / file.name).write_bytes(file.read_bytes())
    _, settings, _ = prepared(plan, Settings(), page)
    waiting = sum(file.stat().st_size for file in frames_files) / 1e6
    assert monitor.beginning(plan, page, settings).split("; ") == [
        f"checking {plan.frames} into {plan.out}",
        "agents a",
        f"{len(frames_files)} files ({waiting:.1f} MB) wait",
        "from the beginning",
        "metrics at http://127.0.0.1:9108/metrics",
    ]
    page.query = replace(page.query, backlog_files=1, backlog_bytes=200_000)
    assert "; 1 file (0.2 MB) waits; " in monitor.beginning(plan, page, settings)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.5", "monitor"])
def test_an_address_that_others_ask_is_in_no_link_without_an_external_url(plan, address):
    plan = replace(plan, metrics_port=9108, metrics_address=address)
    assert resources.link(plan) == ""
    assert resources.unlinked(plan).endswith("set --external-url, as http://HOST:9108")
    assert monitor.beginning(plan, Page(), Settings()).endswith(f"; metrics on port 9108 of {address}")
    named = replace(plan, external_url="https://wirecheck.example/")
    assert (resources.link(named), resources.unlinked(named)) == ("https://wirecheck.example", "")


def test_a_loopback_address_is_a_link_and_without_a_port_there_is_nothing_to_link_to(plan):
    for address, host in (("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("localhost", "localhost")):
        here = replace(plan, metrics_port=9108, metrics_address=address)
        assert (resources.link(here), resources.unlinked(here)) == (f"http://{host}:9108", "")
    assert resources.unlinked(replace(plan, metrics_address="0.0.0.0")) == ""


def test_the_missing_link_is_said_once_and_a_stop_before_spark_is_up_starts_no_query(plan, monkeypatch):
    said, stopping = [], Event()
    monkeypatch.setattr(monitor, "open_session", lambda _: stopping.set())
    plan = replace(plan, metrics_port=9108, metrics_address="0.0.0.0")
    for _ in range(2):  # signalled while Java starts, and before
        monitor.begin(Settings(), Watch(plan, Page(), stopping, said.append))
        lines = [line for line in said if "plain source" not in line and not line.startswith("checking ")]
        assert lines == [resources.unlinked(plan), "stopped before the first batch"]
        assert "http://0.0.0.0" not in "".join(said)
        said.clear()


def gone_on_with(plan, frames_files, kept, parts):
    """What a start asks for where agent `a` keeps so many files that were read, and so many batches told of clients."""
    folder = local(plan.frames)
    folder.mkdir(exist_ok=True)
    for number in range(1, kept + 3):
        (folder / f"a-{number:010d}.parquet").write_bytes(frames_files[0].read_bytes())
    committed(plan, 0)
    files = BatchFiles((f"a-{kept:010d}.parquet",), {"a": Position(1, kept + 1)})
    checkpoint.write_files(plan.checkpoint, 0, files)
    totals = from_ipc(to_ipc("totals", [{"id": "t", "revision": 1, "label": "L", "measure": "frames", "count": 1}]))
    batches.Tables(plan.out, "x").write({"totals": totals}, 0)
    for number in range(parts):
        rows = {"label": "L", "apis": [], "withdrawn": False, "revision": 1}
        part = from_ipc(to_ipc("clients", [{**rows, "id": f"{number}-{n}"} for n in range(3)]))
        batches.Tables(plan.out, "x").write({"clients": part}, number + 1)
    page, found = Page(), Counter()
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in (
            (OnDisk, "listed"), (OnDisk, "file"), (batches.Folders, "numbers"), (batches.Folders, "rows"),
            (monitor.fs, "FileSelector"),
        ):  # fmt: skip
            called = getattr(owner, name)
            patch.setattr(owner, name, lambda *a, n=name, c=called, **k: found.update([n]) or c(*a, **k))
        _, settings, feed = prepared(plan, Settings(), page)
    assert feed.waiting()[0] == 2
    assert settings.agents["a"].first == 1
    assert Counter(page.open["clients"].values()) == {("L", "kept"): 3 * parts}
    return found


def test_a_start_costs_what_is_new_and_what_stands_not_what_was(plan, tmp_path, frames_files):
    """Of files that were read it learns the names, by one listing; of its tables it opens each file once."""
    small = gone_on_with(plan, frames_files, 5, 2)
    other = replace(plan, frames=f"{tmp_path}/b", out=f"{tmp_path}/out-b", checkpoint=f"{tmp_path}/out-b/_checkpoint")
    assert gone_on_with(other, frames_files, 300, 2) == small
    assert small["listed"] == 1
    assert small["file"] == 3  # the two that wait, and the first of the agent's
    assert small["rows"] == 3  # two of clients, one of totals
    assert small["numbers"] == len(SHOWN)


@pytest.mark.parametrize("which", ["out", "checkpoint"])
def test_a_file_system_nobody_knows_is_one_line(plan, which):
    words = refusal(replace(plan, **{which: "xyz://bucket/folder"}))
    assert words.startswith("xyz://bucket/folder: Unrecognized filesystem type")


def test_a_folder_of_something_else_is_no_checkpoint(plan, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    assert "holds cat.jpg" in refusal(Plan(plan.frames, plan.out, str(tmp_path / "photos")))


@pytest.mark.parametrize(("asked", "there"), [("delta", "parquet"), ("parquet", "delta")])
def test_a_folder_of_the_other_kind_of_tables_is_refused(plan, asked, there):
    topics = {"topics": from_ipc(to_ipc("topics", [{"id": "a", "revision": 1}]))}
    result_folder.writer(plan.out, "r", there).write(topics, 0)
    way_out = f"continue with --tables {there}, or name another --out"
    assert refusal(replace(plan, tables=asked)) == f"{plan.out}: holds {there} tables; {way_out}"


def test_one_monitor_at_a_time_has_a_checkpoint(plan):
    with checkpoint.locked(plan.checkpoint):
        assert "another monitor is using it" in refusal(plan)


def test_what_waits_is_shown_before_the_query_has_begun(plan, frames_files):
    folder, page = local(plan.frames), Page()
    for file in frames_files:
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "b-0000000001.parquet").touch()  # Spark reads no file without a byte: it waits for nothing
    prepared(plan, Settings(), page)
    samples = {sample.name: sample.value for family in page.collect() for sample in family.samples}
    assert samples["wirecheck_backlog_files"] == len(frames_files)
    assert samples["wirecheck_backlog_bytes"] == sum(file.stat().st_size for file in frames_files)


class Busy:
    """A query that always runs a batch, as where many files wait; each look finds the batch after the last."""

    def __init__(self):
        self.looks, self.stopped = 0, False
        self.status = {"isTriggerActive": True}

    def awaitTermination(self, _):  # noqa: N802 - Spark's name
        self.looks += 1
        assert self.looks < 10
        return False

    @property
    def lastProgress(self):  # noqa: N802 - Spark's name
        if self.looks < 3:
            return None
        return {"batchId": 0, "numInputRows": 1, "durationMs": {"triggerExecution": 1}, "stateOperators": ()}

    def stop(self):
        self.stopped = True


def test_an_end_waits_for_one_batch_and_not_for_all_that_wait(plan, monkeypatch):
    query, page, stopping, said = Busy(), Page(), Event(), []
    monkeypatch.setattr(monitor, "start", lambda *_: query)
    job, settings, feed = prepared(plan, Settings(), page)
    stopping.set()
    supervise(None, job, settings, Watch(plan, page, stopping, said.append), feed)
    assert (query.looks, query.stopped) == (3, True)
    assert said == ["stopping after the current batch; a second signal stops at once"]


class Hanging(Busy):
    """A query whose batch never ends."""

    lastProgress = None  # noqa: N815 - Spark's name


def test_a_batch_that_does_not_end_is_said_with_its_files_and_ends_by_force(plan, monkeypatch):
    query, page, stopping, said = Hanging(), Page(), Event(), []
    monkeypatch.setattr(monitor, "start", lambda *_: query)
    monkeypatch.setattr(monitor, "FORCED_S", 0.0)
    job, settings, feed = prepared(plan, Settings(), page)
    checkpoint.write_files(plan.checkpoint, 0, BatchFiles(("a-0000000001.parquet", "a-0000000002.parquet")))
    page.alive_s -= monitor.SLOW_S + 1
    stopping.set()
    with pytest.raises(KeyboardInterrupt):
        supervise(None, job, settings, Watch(plan, page, stopping, said.append), feed)
    assert "a batch has run for 61 s: a-0000000001.parquet to a-0000000002.parquet" in said
    assert sum(line.startswith("a batch has run") for line in said) == 1


def test_a_draft_that_would_read_messages_is_suggested_once_per_endpoint(plan):
    class Judged:
        def judged(self):
            pass

    said = []
    watch = Watch(plan, Page(), Event(), said.append)
    rows = [("10.0.0.1:1>10.0.0.9:9092", 12), ("10.0.0.2:2>10.0.0.9:9092", 1), ("10.0.0.2:3>[fd00::9]:9092", 1)]
    facts = {"measure": "draft_messages", "detail": "kip516-draft", "withdrawn": False}
    table = pa.Table.from_pylist([facts | {"connection": connection, "count": count} for connection, count in rows])
    for _ in range(2):
        watch.batch_written(Judged(), {"coverage": table}, replaced=False, loads=None)
    assert said == [
        "10.0.0.9:9092: 12 messages decode as kip516-draft: use `--dialect kip516-draft`",
        "[fd00::9]:9092: 1 message decodes as kip516-draft: use `--dialect kip516-draft`",
    ]


def test_java_that_was_told_to_end_as_well_is_no_fault_of_sparks(plan, monkeypatch):
    """As timeout(1) and a service's manager do it: the process and its group are told."""

    def end_by_signal(_):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)  # one telling, not two
        raise SparkDidNotStart("Spark did not start: WARN SparkConf")

    monkeypatch.setattr(monitor, "open_session", end_by_signal)
    with pytest.raises(MonitorError, match=monitor.ENDED):
        run(plan, Settings(), lambda _: None)


def test_a_second_signal_is_obeyed_at_once(monkeypatch):
    monkeypatch.setattr(resources, "ONE_SIGNAL_S", 0.0)
    with stop_signals() as stopping:
        signal.raise_signal(signal.SIGTERM)
        assert stopping.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    logging.disable(logging.NOTSET)


@pytest.mark.spark
def test_frames_that_come_bit_by_bit_with_a_restart_and_poison_between_are_judged_like_a_replay(
    spark, plan, frames_files
):
    """The second start sees the rest, a file per batch: a half written one, all others but one, and that one."""
    loop = Loop(Settings(agents=agents_of(frames_files)))
    loop.batch(frames_files)
    expected = loop.result().json()
    said, folder = [], local(plan.frames)
    plan = replace(plan, max_batch_bytes=1)
    poison = frames_files[0].with_name("b-0000000001.parquet")
    for arrived in (frames_files[:1], [poison, *frames_files[2:], frames_files[1]]):
        for age, file in enumerate(arrived):
            source = frames_files[0] if file == poison else file
            (folder / file.name).write_bytes(source.read_bytes()[: 1000 if file == poison else None])
            os.utime(folder / file.name, (1_700_000_000 + age,) * 2)
        page, _ = once(spark, plan, said)
    verdict = Result.read(plan.out, checkpoint.run_of(plan.checkpoint)).json()
    (input_error,) = verdict["coverage"].pop("input_errors")
    assert input_error.startswith("b-0000000001.parquet: ")
    assert [line for line in said if line.startswith("set aside")] == [f"set aside: {input_error}"]
    assert verdict["coverage"].pop("quarantined_files") == 1
    assert verdict["coverage"]["details"].pop("quarantined_files") == {input_error: 1}
    assert expected["coverage"].pop("input_errors") == []
    assert verdict == expected
    assert shown(page) == totals_of(verdict)
    for step in ("follow", "judge"):
        assert 0 < page.loads[step, "most_loaded"] <= page.loads[step, "all"]
    assert page.loads["follow", "most_loaded"] < page.loads["follow", "all"]  # eight buckets, two tasks
    again = Page()
    prepared(plan, Settings(), again)
    assert shown(again) == shown(page)


def shown(page):
    """What the page says of the label, in the words of a verdict."""
    samples = {
        (sample.name.removeprefix("wirecheck_"), *sample.labels.values()): sample.value
        for family in page.collect()
        for sample in family.samples
    }
    summed = {name: sum(v for k, v in samples.items() if k[0] == name) for name in {k[0] for k in samples}}
    return {
        "frames": samples["frames_total", "L"],
        "exchanges": summed["exchanges_total"],
        "decoded_messages": samples["messages_total", "L", "decoded"],
        "findings": summed["findings"],
        "topics": summed["topics"],
        "clients": samples["clients", "L"],
        "connections": summed["connections_total"],
    }


def totals_of(verdict):
    counted = {name: verdict["coverage"][name] for name in ("frames", "exchanges", "decoded_messages", "connections")}
    return counted | {name: len(verdict[name]) for name in ("findings", "topics", "clients")}


@pytest.mark.spark
def test_a_repeated_batch_may_say_something_else_and_then_only_that_holds(spark, plan, frames_files):
    """The batch was written, not committed; then its middle file went, its agent's number one among those still to
    come, and another agent came."""
    folder, said = local(plan.frames), []
    for file in frames_files:
        (folder / file.name).write_bytes(file.read_bytes())
    page, _ = once(spark, plan, said)
    assert page.totals["L", "frames", ""] == 12775
    commits = local(plan.checkpoint) / "query" / "commits"
    assert checkpoint.committed(plan.checkpoint) == 0
    (commits / "0").unlink()
    (commits.parent / "offsets" / "1").unlink()  # the next one had begun, and waited for files
    assert checkpoint.committed(plan.checkpoint) == -1
    (folder / frames_files[1].name).unlink()
    (folder / "b-0000000001.parquet").write_bytes(b"not frames")
    page, _ = once(spark, plan, said)
    loop = Loop(Settings(agents={"a": AgentFiles(1, (range(2, 3),), 0, "L"), "b": AgentFiles(1, (), 0, "L")}))
    loop.batch([frames_files[0], *frames_files[2:]])
    loop.batch([folder / "b-0000000001.parquet"])
    expected = loop.result().json()
    assert expected["coverage"]["missing_files"] == 1
    assert Result.read(plan.out, checkpoint.run_of(plan.checkpoint)).json() == expected
    assert shown(page) == totals_of(expected)
    assert len([line for line in said if line.startswith("a repeated batch gave a different result")]) == 1
    again = Page()
    prepared(plan, Settings(), again)
    assert shown(again) == shown(page)


def once(spark, plan, said, settings=Settings()):
    page = Page()
    job, settings, feed = prepared(plan, settings, page)
    return page, supervise(spark, job, settings, Watch(plan, page, Event(), said.append), feed)


DIED = "Job aborted: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"


BUSY = "[STREAM_FAILED] Python worker failed to connect back. SQLSTATE: XXKST"


def dying(monkeypatch, plan, deaths, failure=DIED):
    """A query that fails so many times over one batch; the starts of it."""
    prepared(plan, Settings(), Page())
    names = [f"a-{number:010d}.parquet" for number in (1, 2, 3)]
    checkpoint.write_files(plan.checkpoint, 0, BatchFiles(tuple(names)))
    starts = []

    def supervise(*_):
        starts.append(1)
        if len(starts) <= deaths:
            raise PySparkException(failure)

    monkeypatch.setattr(monitor, "supervise", supervise)
    return starts


class Unasked(Event):
    """The end is not asked for; how long it was waited for."""

    def __init__(self, pauses):
        super().__init__()
        self.pauses = pauses

    def wait(self, timeout=None):
        self.pauses.append(timeout)
        return False


def restarted(plan, said, pauses=None, busy_tries=None):
    job, settings, feed = prepared(plan, Settings(), Page())
    watch = Watch(plan, Page(), Unasked([] if pauses is None else pauses), said.append, busy_tries=busy_tries)
    with pytest.MonkeyPatch.context() as without_spark:
        without_spark.setattr(monitor, "drop_state_copies", lambda _: None)
        monitor.run_with_restarts(None, job, settings, watch, feed)


def test_a_batch_over_which_a_worker_dies_is_repeated_once(plan, monkeypatch):
    starts, said = dying(monkeypatch, plan, 1), []
    restarted(plan, said)
    assert len(starts) == 2
    assert said == ["a worker died: the batch is repeated"]


def test_a_batch_is_repeated_as_long_as_the_machine_is_too_busy_for_sparks_timeout(plan, monkeypatch):
    starts, said = dying(monkeypatch, plan, 50, BUSY), []
    ended, pauses = [], []
    monkeypatch.setattr(batch_repeats, "end_left_over", lambda: ended.append(1))
    restarted(plan, said, pauses)
    assert (len(starts), len(ended)) == (51, 50)
    assert pauses == [2, 4, 8, 16, *[32] * 46]
    assert said == ["this machine is too busy for Spark to start Python: the batch is repeated"]


def test_a_replay_tries_twice_on_a_machine_that_is_too_busy(plan, monkeypatch):
    starts = dying(monkeypatch, plan, 50, BUSY)
    with pytest.raises(PySparkException):
        restarted(plan, [], busy_tries=2)
    assert len(starts) == 2


def test_a_machine_that_stays_too_busy_ends_the_monitor_in_one_line(plan, monkeypatch):
    dying(monkeypatch, plan, 50, BUSY)
    monkeypatch.setattr(batch_repeats, "BUSY_S", 0)
    with pytest.raises(PySparkException) as failed:
        restarted(plan, [])
    assert monitor.in_one_line(str(failed.value), plan) == (
        "the query failed: this machine was too busy to start Python for 10 min; free CPU, and start again"
    )


def test_a_second_death_names_the_files_of_the_batch(plan, monkeypatch):
    dying(monkeypatch, plan, 2)
    with pytest.raises(PySparkException) as failed:
        restarted(plan, [])
    assert monitor.in_one_line(str(failed.value), plan) == (
        "the query failed: a worker died twice over one batch; give it more memory, or move the files of that batch "
        "(a-0000000001.parquet to a-0000000003.parquet) away, and start again"
    )


FULL = "[STREAM_FAILED] Query terminated with exception: java.io.IOException: No space left on device SQLSTATE: XXKST"


def test_a_batch_is_repeated_until_the_disk_takes_it(plan, monkeypatch):
    plan = replace(plan, once=False)
    starts, said, pauses = dying(monkeypatch, plan, 50, FULL), [], []
    restarted(plan, said, pauses)
    assert len(starts) == 51
    assert pauses == [2, 4, 8, 16, *[32] * 46]
    full = f"{plan.out} and {plan.checkpoint}: no space left; free some: the batch is repeated until it can be written"
    assert said == [full]


def test_what_a_full_disk_held_up_is_said_to_be_written_once_it_is(plan):
    said = []
    repeats = batch_repeats.Repeats(replace(plan, once=False), Unasked([]), said.append)
    prepared(plan, Settings(), Page())
    repeats.committed()
    assert (repeats.after(FULL), repeats.after(FULL)) == (True, True)
    repeats.committed()
    repeats.committed()
    assert [line.partition(": ")[2].partition(";")[0] for line in said] == [
        "no space left", "there is space again: the batch is written, nothing is missing",
    ]  # fmt: skip


def test_of_two_disks_the_full_one_is_named(plan, monkeypatch):
    prepared(plan, Settings(), Page())
    free = {local(plan.out): 1 << 40, local(plan.checkpoint): 0}
    monkeypatch.setattr(batch_repeats, "disk_usage", lambda path: Disk(free[path]))
    assert batch_repeats.full_places(plan) == plan.checkpoint


def test_what_a_failed_try_did_not_finish_is_gone_before_the_next(plan, monkeypatch):
    plan = replace(plan, once=False)
    dying(monkeypatch, plan, 2, FULL)
    left = local(plan.checkpoint) / "query" / "state" / ".8.changelog.1f.TID5.tmp"
    left.parent.mkdir(parents=True)
    left.touch()
    restarted(plan, [])
    assert not left.exists()


def test_a_start_removes_what_a_killed_monitor_did_not_finish(plan):
    prepared(plan, Settings(), Page())
    state = local(plan.checkpoint) / "query" / "state" / "0" / "3"
    state.mkdir(parents=True)
    for name in ("7.changelog", ".7.changelog.crc", ".8.changelog.1f.TID5.tmp", "..8.changelog.1f.TID5.tmp.crc"):
        (state / name).touch()
    with resources.workplace(plan.checkpoint):
        assert {file.name for file in state.iterdir()} == {"7.changelog", ".7.changelog.crc"}


class Disk:
    def __init__(self, free):
        self.free = free


def test_a_full_disk_ends_a_monitor_that_is_to_end(plan, monkeypatch):
    """One that judges what is there once, and one that a signal asked to."""
    dying(monkeypatch, plan, 1, FULL)
    with pytest.raises(PySparkException) as failed:
        restarted(plan, [])
    assert "No space left on device; free space for" in monitor.in_one_line(str(failed.value), plan)
    asked = Event()
    asked.set()
    assert not batch_repeats.Repeats(replace(plan, once=False), asked, print).after(FULL)


@pytest.mark.spark
@pytest.mark.parametrize("where", ["files of a batch", "tables", "last table", "directory of a table"])
def test_wherever_a_disk_is_full_the_results_are_those_of_a_replay(spark, plan, frames_files, monkeypatch, where):
    """The second write that fails comes after one that succeeded."""
    loop = Loop(Settings(agents=agents_of(frames_files)))
    loop.batch(frames_files)
    for file in frames_files:
        (local(plan.frames) / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(batch_repeats, "PAUSES_S", (0,))
    module, name = {
        "files of a batch": (checkpoint, "_write"),
        "tables": (batches, "sync"),
        "last table": (batches.Folders, "put"),
        "directory of a table": (batches.Path, "rename"),
    }[where]
    job, settings, feed = prepared(plan, Settings(), page := Page())
    calls, whole = [], getattr(module, name)

    def failing(*args, **options):
        calls.append(1)
        if len(calls) in {1, 4, 5}:
            raise OSError(errno.ENOSPC, "No space left on device", "part.parquet")
        return whole(*args, **options)

    said, ending = [], Event()
    plan = replace(plan, once=False, max_batch_bytes=1)
    feed.plan = plan
    watch = Watch(plan, page, ending, said.append, on_waiting=lambda files: files or ending.set())
    monkeypatch.setattr(module, name, failing)
    monitor.run_with_restarts(spark, job, settings, watch, feed)
    assert (
        len([line for line in said if "no space left" in line]) == len([line for line in said if "again" in line]) > 0
    )
    verdict = Result.read(plan.out, checkpoint.run_of(plan.checkpoint)).json()
    assert verdict == loop.result().json()
    assert shown(page) == totals_of(verdict)
