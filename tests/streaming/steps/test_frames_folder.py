"""What folders of frames hold, before any of it is read."""

import pytest

from wirecheck.streaming.steps.frames_folder import FramesError, agents_of, frames_files
from wirecheck.streaming.steps.settings import AgentFiles


def folder_of(path, *names):
    path.mkdir()
    for name in names:
        (path / name).touch()
    return path


def test_agents_and_their_missing_files_are_known_beforehand(tmp_path):
    names = ["b-1-0000000003.parquet", "b-1-0000000004.parquet", "b-1-0000000006.parquet", "a-0000000001.parquet"]
    files = frames_files([folder_of(tmp_path / "x", *names, ".b-1-0000000007.parquet.tmp")])
    assert agents_of(files) == {"a": AgentFiles(1, (), 1), "b-1": AgentFiles(3, (range(5, 6),), 6)}


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "holds no capture and no frames"),
        (["x.parquet"], "x.parquet is not a file of frames"),
        ([".hidden"], "holds no capture and no frames"),
    ],
)
def test_a_folder_without_frames_gets_one_line(tmp_path, names, words):
    with pytest.raises(FramesError, match=words):
        frames_files([folder_of(tmp_path / "x", *names)])


def test_a_strange_file_beside_frames_is_used_so_that_it_is_named(tmp_path):
    files = frames_files([folder_of(tmp_path / "x", "a-0000000001.parquet", "x.parquet")])
    assert [file.name for file in files] == ["a-0000000001.parquet", "x.parquet"]


def test_two_folders_of_one_agent_are_refused(tmp_path):
    folders = [folder_of(tmp_path / name, "a-0000000001.parquet") for name in "xy"]
    with pytest.raises(FramesError, match=r"a-0000000001\.parquet is in more than one folder"):
        frames_files(folders)
