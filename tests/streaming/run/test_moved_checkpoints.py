"""A checkpoint that was moved is gone on with; what did not come along is said."""

import json
import shutil

import pytest

from wirecheck.streaming.run import manifest
from wirecheck.streaming.run.manifest import CheckpointRefused
from wirecheck.streaming.run.older_checkpoints import relocate
from wirecheck.streaming.run.plan import Plan
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store import checksums
from wirecheck.streaming.store.storage import at

DESCRIPTION = "query/state/0/_metadata/v2/0"


def facts(folder):
    return manifest.facts(Settings(), Plan(str(folder / "frames"), str(folder / "out"), str(folder / "checkpoint")))


@pytest.fixture
def there(tmp_path):
    """Where a monitor worked: its checkpoint, with sums, and its results."""
    folder = tmp_path / "there"
    schema = f"file:{folder}/checkpoint/query/state/0/_stateSchema/default/0_a"
    info = {"numPartitions": 1, "stateSchemaFilePaths": [schema]}
    files = {
        "out/totals/run=one/batch_id=0/part.parquet": "",
        "checkpoint/checkpoint.json": json.dumps(facts(folder)),
        "checkpoint/query/metadata": '{"id":"one"}',
        f"checkpoint/{DESCRIPTION}": "v2\n" + json.dumps({"stateStoreInfo": [info], "more": 1}),
        "checkpoint/query/state/0/_metadata/v2/.0.crc": "sum",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    checksums.keep(*at(str(folder / "checkpoint")), ["checkpoint.json", DESCRIPTION])
    return folder


def moved(there, *, results=True):
    here = there.with_name("here")
    shutil.move(there, here)
    if not results:
        shutil.rmtree(here / "out")
    return here


def test_what_was_moved_is_gone_on_with_where_somebody_says_so(there):
    here = moved(there)
    checkpoint = str(here / "checkpoint")
    with pytest.raises(CheckpointRefused, match="say --moved if that was moved"):
        manifest.claim(checkpoint, facts(here))
    for _ in range(2):  # as where a crash came between
        relocate(checkpoint, facts(here))
    assert manifest.claim(checkpoint, facts(here), moved=True) == f"{checkpoint}/query"
    head, _, text = (here / "checkpoint" / DESCRIPTION).read_text().partition("\n")
    said = json.loads(text)
    assert (head, said["more"]) == ("v2", 1)
    paths = [f"file:{here}/checkpoint/query/state/0/_stateSchema/default/0_a"]
    assert said["stateStoreInfo"][0]["stateSchemaFilePaths"] == paths
    assert not (here / "checkpoint/query/state/0/_metadata/v2/.0.crc").exists()
    manifest.unaltered(checkpoint)
    manifest.claim(checkpoint, facts(here))  # from now on it is there


def test_results_that_did_not_come_along_are_asked_for(there):
    here = moved(there, results=False)
    with pytest.raises(CheckpointRefused, match=r"holds no results of it \(totals/run=one is missing\)"):
        relocate(str(here / "checkpoint"), facts(here))


def test_damage_is_not_taken_for_a_move(there):
    here = moved(there)
    (here / "checkpoint" / DESCRIPTION).write_text("v2\n{}")
    with pytest.raises(CheckpointRefused, match="is damaged"):
        relocate(str(here / "checkpoint"), facts(here))


def test_where_nothing_was_moved_nothing_is_written(there):
    before = (there / "checkpoint" / DESCRIPTION).read_bytes()
    relocate(str(there / "checkpoint"), facts(there))
    relocate(str(there / "new"), facts(there))
    assert (there / "checkpoint" / DESCRIPTION).read_bytes() == before
    assert not (there / "new").exists()


@pytest.mark.parametrize(("spark", "fits"), [("4.1.9", True), ("4.2.0", False), ("5.1.0", False)])
def test_a_patch_version_of_spark_is_no_reason_to_refuse(there, monkeypatch, spark, fits):
    monkeypatch.setattr(manifest.pyspark, "__version__", "4.1.0")
    checkpoint = str(there / "checkpoint")
    (there / "checkpoint/checksums.json").unlink()
    (there / "checkpoint/checkpoint.json").write_text(json.dumps(facts(there) | {"spark": spark}))
    if fits:
        manifest.claim(checkpoint, facts(there))
        assert manifest.read(checkpoint)["spark"] == "4.1.0"
    else:
        with pytest.raises(CheckpointRefused, match=f"made with spark {spark}"):
            manifest.claim(checkpoint, facts(there))
