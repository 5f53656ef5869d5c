"""Spark's state before Spark reads it: whole it passes; with a file it needs damaged or gone, that one is named."""

import json
import zipfile

import pytest

from wirecheck.streaming.spark.state_files import BLOCK, LZ4, damaged, needed
from wirecheck.streaming.store.storage import at

SST = "000008-a1.sst"
SCHEMA = "0_5f"
NEEDED = (
    "0/_metadata/v2/0", f"0/_stateSchema/default/{SCHEMA}", "0/0/2.zip", f"0/0/SSTs/{SST}", "0/0/3.changelog",
    "0/0/4.changelog", "0/1/4.changelog",
)  # fmt: skip
LEFT_OVER = "0/0/1.changelog", "0/0/5.changelog", "0/0/1.zip"


def changelog(*blocks):
    return b"".join(BLOCK.pack(LZ4, 21, len(block), len(block), 7) + block for block in (*blocks, b""))


@pytest.fixture
def state(tmp_path):
    """Of one operator with two partitions, at version 4: the first from a snapshot of 2, the other from nothing."""
    info = {"numPartitions": 2, "stateSchemaFilePaths": [f"file:/then/{SCHEMA}"]}
    files = {
        "0/_metadata/v2/0": b"v2\n" + json.dumps({"stateStoreInfo": [info]}).encode(),
        f"0/_stateSchema/default/{SCHEMA}": b"schema",
        f"0/0/SSTs/{SST}": b"sst",
        **{f"0/0/{number}.changelog": changelog(b"some", b"more") for number in (1, 3, 4, 5)},
        **{f"0/1/{number}.changelog": changelog() for number in (1, 2, 3, 4)},
        "0/0/1.zip": b"of before",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    with zipfile.ZipFile(tmp_path / "0/0/2.zip", "w") as snapshot:
        said = {"sstFiles": [{"localFileName": "8.sst", "dfsSstFileName": SST, "sizeBytes": 3}]}
        snapshot.writestr("metadata", "v1\n" + json.dumps(said))
        snapshot.writestr("CURRENT", "MANIFEST-000005")
    return tmp_path


def wrong(state):
    return damaged(*at(str(state)), 4)


def test_whole_it_passes(state):
    assert wrong(state) is None


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("how", ["empty", "half", "gone"])
def test_what_is_needed_is_named(state, name, how):
    file = state / name
    content = file.read_bytes()
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes(content[: len(content) // 2 if how == "half" else 0])
    told = wrong(state)
    if (how, name) == ("half", f"0/_stateSchema/default/{SCHEMA}"):
        assert told is None  # only Spark knows what it should hold
    elif (how, name) == ("gone", "0/0/2.zip"):
        assert told == "state/0/0/1.zip is damaged"
    else:
        place = "0/_metadata/v2" if (how, name) == ("gone", "0/_metadata/v2/0") else name
        assert told == f"state/{place} is {'missing' if how == 'gone' else 'damaged'}"


def test_a_bit_of_a_snapshot_or_of_where_blocks_begin_is_noticed(state):
    for name, at_byte in (("0/0/2.zip", 40), ("0/0/4.changelog", 9)):
        content = bytearray((state / name).read_bytes())
        content[at_byte] ^= 0x10
        (state / name).write_bytes(content)
        assert wrong(state) == f"state/{name} is damaged"
        content[at_byte] ^= 0x10
        (state / name).write_bytes(content)


@pytest.mark.parametrize("name", LEFT_OVER)
def test_what_is_left_over_is_nobodys_affair(state, name):
    (state / name).write_bytes(b"?")
    assert wrong(state) is None


def test_no_state_at_all_is_said(tmp_path):
    assert damaged(*at(str(tmp_path / "none")), 1) == "state is missing"


def test_what_a_version_needs_is_told(state):
    assert sorted(needed(*at(str(state)), 4)) == sorted(
        f"state/{n}" for n in (*NEEDED, *(f"0/1/{i}.changelog" for i in (1, 2, 3)))
    )


def test_of_what_is_damaged_is_told_what_can_be(state):
    (state / "0/0/2.zip").write_bytes(b"no zip")
    assert sorted(needed(*at(str(state)), 4)) == [
        f"state/0/{n}" for n in ("0/2.zip", "_metadata/v2/0", f"_stateSchema/default/{SCHEMA}")
    ]
    (state / "0/_metadata/v2/0").write_bytes(b"{")
    assert list(needed(*at(str(state)), 4)) == []
