"""What a monitor remembers: settings, run ID and the files of its batches."""

import json
from pathlib import Path

import pytest

from wirecheck.streaming import checkpoint
from wirecheck.streaming.checkpoint import BatchFiles, CheckpointDamaged, CheckpointRefused, Position
from wirecheck.streaming.steps.settings import AgentFiles, Settings

FILES = ("a-0000000001.parquet", "a-0000000002.parquet")


@pytest.fixture
def place(tmp_path):
    checkpoint.open_or_create(str(tmp_path / "c"), checkpoint.meaning(Settings()))
    return str(tmp_path / "c")


def test_a_run_keeps_its_id(place):
    run = checkpoint.run_of(place)
    assert checkpoint.open_or_create(place, checkpoint.meaning(Settings())) == run
    assert checkpoint.run_of(f"{place}-other") is None
    other = checkpoint.open_or_create(f"{place}-other", checkpoint.meaning(Settings()))
    assert other != run


@pytest.mark.parametrize(("spark", "fits"), [("4.1.9", True), ("4.2.0", False), ("5.1.0", False)])
def test_a_patch_version_of_spark_is_no_reason_to_refuse(tmp_path, monkeypatch, spark, fits):
    monkeypatch.setattr(checkpoint, "version", lambda _: "4.1.0")
    checkpoint.open_or_create(str(tmp_path), checkpoint.meaning(Settings()))
    monkeypatch.setattr(checkpoint, "version", lambda _: spark)
    if fits:
        checkpoint.open_or_create(str(tmp_path), checkpoint.meaning(Settings()))
    else:
        with pytest.raises(
            CheckpointRefused, match=f"made with spark 4.1, this is {spark[:3]}; use the same as before"
        ):
            checkpoint.open_or_create(str(tmp_path), checkpoint.meaning(Settings()))


def test_the_files_of_a_batch_come_back_and_old_ones_go(place):
    batch = BatchFiles(FILES, {"a": Position(1, 3, (2,))})
    for number in range(checkpoint.KEPT + 3):
        checkpoint.write_files(place, number, batch)
    assert checkpoint.written_down(place) == list(range(3, checkpoint.KEPT + 3))
    assert checkpoint.read_files(place, 3) == batch
    assert checkpoint.read_files(place, 2) is None
    assert checkpoint.newest_files(place) == [*FILES]
    gone = Settings(agents={"a": AgentFiles(1, (range(2, 3),))})
    assert checkpoint.present_files(place, 3, gone) == [FILES[0]]
    with pytest.raises(CheckpointDamaged, match=r"^files/2\.json is missing$"):
        checkpoint.present_files(place, 2, gone)


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"files": []}), json.dumps({"files": 1, "after": {}})])
def test_files_of_which_half_was_written_are_damaged(place, text):
    assert checkpoint.newest_files(place) == []
    checkpoint.write_files(place, 0, BatchFiles(FILES))
    (Path(place) / "files/0.json").write_text(text)
    with pytest.raises(CheckpointDamaged, match=r"^files/0\.json is damaged$"):
        checkpoint.read_files(place, 0)
    assert checkpoint.newest_files(place) == []


def test_one_monitor_at_a_time(place):
    refused = pytest.raises(CheckpointRefused, match="another monitor is using it")
    with checkpoint.locked(place), refused, checkpoint.locked(place):
        pass
    with checkpoint.locked(place):
        pass
