"""A query begun before all frames are there gives what one over all of them gives, or leaves it to that one."""

import time
from threading import Event

import pytest

from wirecheck.streaming.run import early as module
from wirecheck.streaming.run import replay
from wirecheck.streaming.run.early import Early
from wirecheck.streaming.spark import session
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings

SETTINGS = Settings(buckets=2)
PATIENCE_S = 300


@pytest.fixture
def begun(tmp_path, spark):
    job = replay.job_of(tmp_path / "frames", tmp_path / "out", tmp_path)
    found = Early(job, SETTINGS, "1")
    yield found
    found.whole()
    assert found.ends(PATIENCE_S)
    if found.query is not None:
        found.query.stop()


def put(files, folder):
    for file in files:
        (folder / f".{file.name}.tmp").write_bytes(file.read_bytes())
        (folder / f".{file.name}.tmp").rename(folder / file.name)


def awaited(there):
    began = time.monotonic()
    while not (found := there()) and time.monotonic() - began < PATIENCE_S:
        time.sleep(0.05)
    assert found


@pytest.mark.spark
def test_frames_are_judged_while_more_come(tmp_path, begun, frames_files):
    put(frames_files[:1], tmp_path / "frames")
    awaited(lambda: begun.query and (begun.query.recentProgress or not begun.query.isActive))
    if any(words in str(begun.query.exception()) for words in replay.TOO_BUSY):
        pytest.skip("the machine is too busy for Spark's ten seconds: nothing is judged early")
    put(frames_files[1:], tmp_path / "frames")
    told = []
    query = replay.await_early(begun, len(frames_files), lambda judged, files: told.append((judged, files)))
    assert (begun.judged, told[-1], len(query.recentProgress) > 1) == (True, (len(frames_files),) * 2, True)
    plain = Loop(SETTINGS)
    plain.batch(frames_files)
    assert replay.result_of(query, tmp_path / "out").json() == plain.result().json()


@pytest.mark.spark
def test_what_fails_early_is_left_to_the_whole(tmp_path, monkeypatch, spark, frames_files):
    monkeypatch.setattr(module, "start", lambda *_: 1 / 0)
    job = replay.job_of(tmp_path / "frames", tmp_path / "out", tmp_path)
    begun = Early(job, SETTINGS, "1")
    assert begun.ends(PATIENCE_S)
    assert (replay.await_early(begun, 1, None), begun.query) == (None, None)


def test_frames_that_are_there_first_leave_nothing_to_begin(tmp_path, monkeypatch):
    is_there = Event()
    monkeypatch.setattr(module, "await_session", is_there.wait)
    begun = Early(replay.job_of(tmp_path / "frames", tmp_path, tmp_path), SETTINGS, "1")
    begun.whole()
    is_there.set()
    assert (replay.await_early(begun, 1, None), begun.query) == (None, None)


def test_who_waits_longer_than_spark_is_wanted_starts_none(tmp_path, monkeypatch):
    """A capture that cannot be read ends Spark at once, however late the thread that waits for it comes to run."""
    is_over = Event()
    monkeypatch.setattr(session, "RUNNING", session.Running())
    monkeypatch.setattr(module, "await_session", lambda: is_over.wait() and session.await_session())
    begun = Early(replay.job_of(tmp_path / "frames", tmp_path, tmp_path), SETTINGS, "1")
    begun.give_up()
    is_over.set()
    assert (begun.ends(PATIENCE_S), begun.judged, session.RUNNING.java) == (True, False, None)
