"""Sums of files: what they notice, and what never makes a good folder a bad one."""

import json

import pytest

from wirecheck.streaming.store import checksums
from wirecheck.streaming.store.checksums import NAME, SumsDamagedError
from wirecheck.streaming.store.storage import at


@pytest.fixture
def place(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "a").write_bytes(b"some")
    (tmp_path / "inner" / "b").write_bytes(b"more" * checksums.PIECE_BYTES)
    return at(str(tmp_path))


def test_a_file_is_known_by_its_size_and_every_bit(place, tmp_path):
    checksums.keep(*place, ["a", "inner/b"])
    sums = checksums.read(*place)
    assert sorted(sums) == ["a", "inner/b"]
    system, folder = place
    for name, content in (("a", b"some"), ("inner/b", b"more" * checksums.PIECE_BYTES)):
        assert checksums.of_file(system, f"{folder}/{name}") == sums[name]
        for other in (content[:-1], b"", bytes(len(content)), content[:2] + b"\0" + content[3:], content + b"\0"):
            (tmp_path / name).write_bytes(other)
            assert checksums.of_file(system, f"{folder}/{name}") != sums[name]


def test_a_sum_stays_the_first_one_and_goes_with_its_file(place, tmp_path):
    checksums.keep(*place, ["a", "inner/b", "gone"])
    before = checksums.read(*place)
    (tmp_path / "a").write_bytes(b"bent")
    checksums.keep(*place, ["a"])
    assert checksums.read(*place) == {"a": before["a"]}


def test_a_file_that_is_to_be_written_again_is_forgotten_first(place, tmp_path):
    checksums.forget(*place, "a")
    assert not (tmp_path / NAME).exists()
    checksums.keep(*place, ["a", "inner/b"])
    checksums.forget(*place, "a")
    assert sorted(checksums.read(*place)) == ["inner/b"]


def test_without_sums_there_are_none(place):
    assert checksums.read(*place) == {}


def test_nothing_is_written_while_nothing_is_new(place, tmp_path):
    checksums.keep(*place, ["a"])
    written = (tmp_path / NAME).stat().st_mtime_ns
    checksums.keep(*place, ["a"])
    assert (tmp_path / NAME).stat().st_mtime_ns == written


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"crc32": 1, "files": 3}', b'{"crc32": 1, "files": {}}', b"\0" * 9]
)
def test_damaged_sums_are_said_and_made_anew(place, tmp_path, content):
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(SumsDamagedError):
        checksums.read(*place)
    checksums.keep(*place, ["a"])
    assert list(checksums.read(*place)) == ["a"]


def test_every_bit_of_the_sums_counts(place, tmp_path):
    checksums.keep(*place, ["a"])
    whole = checksums.read(*place)
    content = (tmp_path / NAME).read_bytes()
    said = json.loads(content)
    for at_byte in range(len(content)):
        bent = bytearray(content)
        bent[at_byte] ^= 1
        (tmp_path / NAME).write_bytes(bent)
        try:
            assert json.loads(bytes(bent)) == said
        except (AssertionError, ValueError):
            with pytest.raises(SumsDamagedError):
                checksums.read(*place)
        else:
            assert checksums.read(*place) == whole
