"""A file that kills its reader is found by trying each file alone; the others, and whoever asks, live on."""

import os

import pytest

from wirecheck.streaming.run.suspects import killers
from wirecheck.streaming.steps.settings import Settings

KILLS = """
import os, signal
if os.environ.get("KILLS"):
    from wirecheck.streaming.steps import pack_step
    read = pack_step.read
    pack_step.read = lambda path: os.kill(os.getpid(), signal.SIGKILL) if os.environ["KILLS"] in path else read(path)
"""
"""Imported by every Python that is started: what a kernel that reads beyond its arrays does to it."""


@pytest.fixture
def killing(tmp_path, monkeypatch, frames_files):
    """Has whoever reads the second file die; its name."""
    (tmp_path / "sitecustomize.py").write_text(KILLS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.setenv("KILLS", frames_files[1].name)
    return frames_files[1].name


def test_the_file_that_kills_is_found_and_the_others_are_not_blamed(killing, frames_files):
    paths = [path.as_uri() for path in frames_files[:2]]
    assert killers(paths, Settings(buckets=1)) == {killing: "whoever reads it dies of SIGKILL"}


def test_what_is_set_aside_already_is_not_tried_again(killing, frames_files):
    known = Settings(buckets=1, set_aside={killing: "known"})
    assert killers([frames_files[1].as_uri()], known) == {}
