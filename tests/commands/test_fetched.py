"""Captures and frames of an object store: the same answers as of the files, and one line where there is nothing."""

import sys
from pathlib import Path

import pytest

from tests import object_store
from tests.commands.conftest import ROOT
from wirecheck.session import fetched

EXAMPLE = ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz"
obstore = pytest.importorskip("obstore")


@pytest.fixture
def store(monkeypatch):
    with object_store.running() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        fetched.fetched.cache_clear()
        store.objects["bucket/captures/day.pcap.gz"] = EXAMPLE.read_bytes()
        yield store
        fetched.fetched.cache_clear()


@pytest.mark.parametrize("name", ["s3://bucket/captures/day.pcap.gz", "s3a://bucket/captures", "s3://bucket/captures/"])
def test_a_capture_of_a_store_is_read_as_the_file(run, store, name):
    for command in ("replay", "errors", "decode"):
        of_store, of_file = (run(command, which, "--format", "json") for which in (name, EXAMPLE))
        assert of_store.exit_code == of_file.exit_code
        assert of_store.stdout.count("\n") == of_file.stdout.count("\n") > 0
    assert store.count()["GET"] == 1  # copied once, whatever reads it


def test_frames_of_a_store_are_a_folder(run, store, tmp_path):
    run("capture", "-r", EXAMPLE, "--out", tmp_path / "frames")
    for file in (tmp_path / "frames").rglob("*.parquet"):
        store.objects[f"bucket/frames/{file.relative_to(tmp_path / 'frames')}"] = file.read_bytes()
    of_store = run("errors", "s3://bucket/frames", "--format", "json")
    assert of_store.stdout == run("errors", tmp_path / "frames", "--format", "json").stdout != ""


@pytest.mark.parametrize("name", ["s3://bucket/captures/none.pcap", "s3://bucket/nothing/"])
def test_nothing_there_is_one_line(run, store, name):
    ended = run("replay", name)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr == f"wirecheck: {name}: no such object, and none below it\n"


def test_a_store_that_refuses_is_one_line(run, store):
    store.away = True
    ended = run("replay", "s3://bucket/captures")
    assert (ended.exit_code, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)


def test_without_the_extra_a_line_names_it(run, monkeypatch):
    fetched.fetched.cache_clear()
    monkeypatch.setitem(sys.modules, "obstore.exceptions", None)
    assert "install the extra [objectstore], or copy it here" in run("replay", "s3://bucket/captures").stderr


def test_no_key_leads_out_of_the_copy():
    assert fetched.target("a/../../etc/passwd", "a") == Path("a/etc/passwd")
    assert fetched.target("a/b.pcap", "a/b.pcap") == Path("b.pcap")
