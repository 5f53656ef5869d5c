"""A checkpoint in which Spark listed the frames goes on: nothing is read twice, and nothing left out."""

import json
import shutil
from urllib.parse import quote

import pytest

from wirecheck.streaming.run import manifest, older_checkpoints
from wirecheck.streaming.run.manifest import CheckpointRefused
from wirecheck.streaming.store import batch_files, checksums, storage
from wirecheck.streaming.store.batch_files import Position
from wirecheck.streaming.store.storage import at


def listed(index, *names):
    lines = [{"path": f"file:/frames/{quote('a b')}/{name}", "timestamp": 1, "batchId": index} for name in names]
    return [json.dumps(line) for line in lines]


def file(agent, number):
    return f"{agent}-{number:010d}.parquet"


@pytest.fixture
def checkpoint(tmp_path):
    """Batch 6 is committed, 7 has begun; behind it Spark has listed one file more, which is in no batch."""
    said = {
        "offsets/5": ["v1", '{"conf":{}}', '{"logOffset":10}'],
        "offsets/6": ["v1", '{"conf":{}}', '{"logOffset":11}'],
        "offsets/7": ["v1", '{"conf":{}}', '{"logOffset":13}'],
        "offsets/.7.crc": ["sum"],
        "commits/6": ["v1", "{}"],
        "sources/0/9": ["v1", *listed(9, "forgotten")],
        "sources/0/10.compact": ["v1", *listed(9, file("a", 3)), *listed(10, file("b", 1), "notes.parquet")],
        "sources/0/11": ["v1", *listed(11, file("a", 4))],
        "sources/0/12": ["v1", *listed(12, file("a", 7))],
        "sources/0/13": ["v1", *listed(13, file("b", 2))],
        "sources/0/14": ["v1", *listed(14, file("b", 3))],
    }
    for name, lines in said.items():
        (tmp_path / "query" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "query" / name).write_text("\n".join(lines))
    checksums.keep(*at(str(tmp_path)), ["query/offsets/6", "query/commits/6"])
    return tmp_path


def brought_up(checkpoint):
    older_checkpoints.bring_up(str(checkpoint))
    manifest.unaltered(str(checkpoint))
    last = [json.loads((checkpoint / f"query/offsets/{n}").read_text().splitlines()[-1]) for n in (5, 6, 7)]
    assert last == [{"logOffset": 10}, {"offset": 14, "timestamp": 7000}, {"offset": 16, "timestamp": 8000}]
    assert not (checkpoint / "query/offsets/.7.crc").exists()
    six, seven = (batch_files.read(str(checkpoint), number) for number in (6, 7))
    stranger = {"notes.parquet": Position(1, 2)}
    assert six.files == (file("a", 4),)
    assert six.after == {"a": Position(3, 5), "b": Position(1, 2)} | stranger
    assert seven.files == (file("a", 7), file("b", 2))
    assert seven.after == {"a": Position(3, 8, (5, 6)), "b": Position(1, 3)} | stranger


def test_what_spark_had_listed_is_how_far_each_agent_was_read(checkpoint):
    brought_up(checkpoint)
    before = {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    older_checkpoints.bring_up(str(checkpoint))
    assert before == {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}


def test_cut_off_at_any_step_it_is_done_by_the_next_start(checkpoint, tmp_path_factory, monkeypatch):
    class Cut(Exception):  # noqa: N818 - a kill -9
        pass

    def cutting(step):
        def cut(*arguments):
            left[0] -= 1
            if not left[0]:
                raise Cut
            step(*arguments)

        return cut

    left = [0]
    for steps in range(1, 20):
        copy = tmp_path_factory.mktemp("cut") / "checkpoint"
        shutil.copytree(checkpoint, copy)
        left[0] = steps
        with monkeypatch.context() as patched:
            for room, name in ((batch_files, "write"), (checksums, "forget"), (storage, "put")):
                patched.setattr(room, name, cutting(getattr(room, name)))
            try:
                older_checkpoints.bring_up(str(copy))
                break
            except Cut:
                pass
        brought_up(copy)
    assert steps > 6


def test_a_new_checkpoint_and_one_of_this_release_are_left_alone(tmp_path):
    older_checkpoints.bring_up(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["query/offsets/7", "query/sources/0/11"])
def test_what_cannot_be_read_is_refused_and_nothing_altered(checkpoint, name):
    (checkpoint / name).write_text("v1\n{")
    with pytest.raises(CheckpointRefused, match="is damaged"):
        older_checkpoints.bring_up(str(checkpoint))
    assert not (checkpoint / "files").exists()
