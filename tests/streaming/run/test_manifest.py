"""What a checkpoint must be to be gone on with: each of its files as its last committed batch left it."""

import json
import os
import zipfile

import pytest

from wirecheck.streaming.run import manifest
from wirecheck.streaming.run.manifest import CheckpointRefused
from wirecheck.streaming.spark.state_files import BLOCK, LZ4
from wirecheck.streaming.store import checksums

SST, SCHEMA = "000008-a1.sst", "0_5f"
DONE = 11
"""The last committed batch; Spark has begun with the next one."""
NEEDED = (
    "checkpoint.json", "set-aside.json", "query/metadata", "query/offsets/10", "query/offsets/11", "query/commits/11",
    "files/11.json", "query/state/0/_metadata/v2/0",
    f"query/state/0/_stateSchema/default/{SCHEMA}", "query/state/0/0/10.zip", f"query/state/0/0/SSTs/{SST}",
    "query/state/0/0/11.changelog", "query/state/0/0/12.changelog",
)  # fmt: skip
OTHERS = (
    "query/offsets/9", "query/commits/10", "files/10.json", "query/state/0/0/9.changelog", "query/state/0/0/3.zip",
    "query/offsets/12", "files/12.json", "query/state/0/0/13.changelog",
)  # fmt: skip


def changelog(content):
    return b"".join(BLOCK.pack(LZ4, 21, len(b), len(b), 7) + b for b in (content, b""))


@pytest.fixture
def checkpoint(tmp_path):
    offsets = {
        n: f"v1\n{json.dumps({'batchWatermarkMs': 0})}\n{json.dumps({'offset': 2 * n + 2, 'timestamp': 0})}".encode()
        for n in (9, 10, 11, 12)
    }
    info = {"numPartitions": 1, "stateSchemaFilePaths": [f"file:/then/{SCHEMA}"]}
    files = {
        "checkpoint.json": b"{}",
        "set-aside.json": b'{"a-1.parquet": "SIGSEGV"}',
        "query/metadata": b'{"id":"one"}',
        **{f"query/offsets/{n}": content for n, content in offsets.items()},
        **{f"query/commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}' for n in (10, 11)},
        **{
            f"files/{n}.json": json.dumps({"files": [f"a-{n:010d}.parquet"], "after": {}}).encode()
            for n in (10, 11, 12)
        },
        "query/state/0/_metadata/v2/0": b"v2\n" + json.dumps({"stateStoreInfo": [info]}).encode(),
        f"query/state/0/_stateSchema/default/{SCHEMA}": b"schema",
        f"query/state/0/0/SSTs/{SST}": b"sst",
        **{f"query/state/0/0/{n}.changelog": changelog(b"%d" % n) for n in (9, 11, 12, 13)},
        "query/state/0/0/3.zip": b"of before",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    with zipfile.ZipFile(tmp_path / "query/state/0/0/10.zip", "w") as snapshot:
        snapshot.writestr("metadata", "v1\n" + json.dumps({"sstFiles": [{"dfsSstFileName": SST, "sizeBytes": 3}]}))
    return tmp_path


def refusal(checkpoint):
    with pytest.raises(CheckpointRefused) as refused:
        manifest.readable(str(checkpoint))
    assert "\n" not in str(refused.value)
    return str(refused.value)


def damages(content):
    bent = content[:-1] + bytes([content[-1] ^ 1])
    return {"bit": bent, "cut": content[: len(content) // 2], "emptied": b"", "zeroed": bytes(len(content))}


def test_whole_it_is_gone_on_with(checkpoint):
    manifest.readable(str(checkpoint))
    manifest.sum_up(str(checkpoint))
    assert sorted(json.loads((checkpoint / checksums.NAME).read_text())["files"]) == sorted(NEEDED)
    manifest.readable(str(checkpoint))


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("how", ["bit", "cut", "emptied", "zeroed"])
def test_whatever_is_damaged_is_named(checkpoint, name, how):
    manifest.sum_up(str(checkpoint))
    (checkpoint / name).write_bytes(damages((checkpoint / name).read_bytes())[how])
    words = refusal(checkpoint)
    assert f"{name.removeprefix('query/')} is damaged" in words
    assert "start with a new --checkpoint" in words


@pytest.mark.parametrize("name", OTHERS)
def test_what_the_last_batch_does_not_rest_on_has_no_sum(checkpoint, name):
    """What came before it, and what a batch in flight has written: that is written again otherwise."""
    manifest.sum_up(str(checkpoint))
    (checkpoint / name).write_bytes((checkpoint / name).read_bytes() + b"\n")
    manifest.readable(str(checkpoint))


def test_what_a_crash_left_without_a_sum_is_looked_at_as_before(checkpoint):
    """A batch more was committed, and the monitor killed before it summed that up; older files have gone since."""
    manifest.sum_up(str(checkpoint))
    (checkpoint / "files/11.json").unlink()
    (checkpoint / "query/commits/12").write_bytes((checkpoint / "query/commits/11").read_bytes())
    for name in ("query/commits/11", "query/offsets/10"):
        (checkpoint / name).unlink()
    manifest.readable(str(checkpoint))
    manifest.sum_up(str(checkpoint))
    manifest.readable(str(checkpoint))
    (checkpoint / "query/state/0/0/13.changelog").write_bytes(changelog(b"31"))
    assert "state/0/0/13.changelog is damaged" in refusal(checkpoint)


def test_a_batch_that_was_not_committed_may_be_written_down_anew(checkpoint):
    assert manifest.listed_last(str(checkpoint)) == ["a-0000000012.parquet"]
    (checkpoint / "files/12.json").write_bytes(b"")
    manifest.readable(str(checkpoint))
    assert manifest.listed_last(str(checkpoint)) == []
    (checkpoint / "files/11.json").unlink()
    assert "files/11.json is missing" in refusal(checkpoint)


def test_before_the_first_batch_nothing_is_summed(tmp_path):
    manifest.sum_up(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_what_is_set_aside_later_is_no_damage(checkpoint):
    manifest.sum_up(str(checkpoint))
    manifest.remember(str(checkpoint), {"b-1.parquet": "SIGABRT"})
    manifest.readable(str(checkpoint))
    assert manifest.set_aside(str(checkpoint)) == {"b-1.parquet": "SIGABRT"}


def test_damaged_sums_say_that_they_can_be_removed(checkpoint):
    manifest.sum_up(str(checkpoint))
    (checkpoint / checksums.NAME).write_bytes(b"")
    assert "checksums.json is damaged; remove it to go on without" in refusal(checkpoint)
    (checkpoint / checksums.NAME).unlink()
    manifest.readable(str(checkpoint))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_not_called_damaged(checkpoint):
    manifest.sum_up(str(checkpoint))
    (checkpoint / "query/state/0/0/SSTs" / SST).chmod(0)
    assert f"state/0/0/SSTs/{SST}: Permission denied" in refusal(checkpoint)
