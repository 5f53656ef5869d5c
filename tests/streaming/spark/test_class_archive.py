"""The archive of Java's classes: whose it must be, what is left of one that was not finished, that no error counts."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from wirecheck.commands.doctor import doctor
from wirecheck.streaming.run.query_requirements import archive
from wirecheck.streaming.spark import class_archive
from wirecheck.streaming.spark.class_archive import archive_of, archives, quoted
from wirecheck.streaming.spark.java import Java

ROOT = Path(__file__).resolve().parents[3]
WRITES = """
import subprocess, sys
from pathlib import Path
from wirecheck.streaming.spark.class_archive import ClassArchive
archive = ClassArchive(Path(sys.argv[1]), sys.argv[3])
script = f"trap 'printf whole > {archive.part}; {sys.argv[2]}' TERM; echo; while :; do sleep 0.05; done"
# the shell names its sleep's end on stderr, if SIGTERM meets that first
subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.readline()
archive.write()
"""


@pytest.fixture
def java(tmp_path, monkeypatch):
    """Its home, and a cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(class_archive.SETTING, raising=False)
    base = tmp_path / "home" / class_archive.BASE
    base.parent.mkdir(parents=True)
    base.write_text("base")
    return Java(tmp_path / "home", 17)


def written(path, mode=0o600):
    """With the size that its name states."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text("classes")
    path.chmod(mode)
    return path


def path_of(archive):
    return archive.folder / f"{archive.name}-{len('classes')}.jsa"


def ended(archive, by):
    """What Java's end leaves; SIGTERM ends it with 143."""
    command = [sys.executable, "-c", WRITES, str(archive.folder), by, archive.name]
    return subprocess.run(command, cwd=ROOT, process_group=0, capture_output=True, text=True, check=True, timeout=60)


def test_it_is_named_after_the_versions_and_changes_with_java_and_jars(java):
    first = archive_of(java)
    assert first.name.startswith("java-17-pyspark-4.")
    os.utime(java.folder / class_archive.BASE, (1, 1))
    assert archive_of(java) != first


def test_there_is_none_where_it_is_turned_off_or_java_has_no_archive_of_its_own(java, monkeypatch):
    monkeypatch.setenv(class_archive.SETTING, "off")
    assert archive_of(java) is None
    monkeypatch.delenv(class_archive.SETTING)
    monkeypatch.setenv("XDG_CACHE_HOME", "/with:colon")
    assert archive_of(java) is None
    monkeypatch.delenv("XDG_CACHE_HOME")
    (java.folder / class_archive.BASE).unlink()
    assert archive_of(java) is None


@pytest.mark.parametrize(
    ("folder", "file", "counts"), [(0o700, 0o600, True), (0o770, 0o600, False), (0o700, 0o644, False)]
)
def test_only_what_is_this_users_alone_is_read(java, folder, file, counts):
    found = archive_of(java)
    written(path_of(found), file).parent.chmod(folder)
    assert (found.whole() is not None) == counts


@pytest.mark.parametrize("text", ["", "class", "classes and more"])
def test_one_that_is_not_whole_is_not_read(java, text):
    found = archive_of(java)
    written(path_of(found)).write_text(text)
    assert found.whole() is None


def test_a_link_in_its_place_is_not_read(java, tmp_path):
    found = archive_of(java)
    written(path_of(found)).rename(tmp_path / "elsewhere")
    path_of(found).symlink_to(tmp_path / "elsewhere")
    assert found.whole() is None


def test_java_writes_it_as_it_ends_and_then_it_is_put_in_place(java):
    found = archive_of(java)
    assert found.part.name in found.write_option()
    assert ended(found, "exit 143").stderr == ""
    assert found.whole().read_text() == "whole"
    assert list(found.folder.iterdir()) == [found.whole()]


def test_what_a_java_wrote_that_was_killed_is_thrown_away(java):
    found = archive_of(java)
    found.write_option()
    ended(found, "kill -KILL $$")
    assert list(found.folder.iterdir()) == []


def test_where_nothing_can_be_written_there_is_one_line(java, tmp_path, monkeypatch, capsys):
    found = archive_of(java)
    (tmp_path / "cache").write_text("no folder")
    assert found.write_option() == ""
    (tmp_path / "cache").unlink()
    monkeypatch.setattr(class_archive.shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))
    assert found.write_option() == ""
    found.folder.chmod(0o755)
    assert found.write_option() == ""
    lines = capsys.readouterr().err.splitlines()
    assert ["Not a directory" in lines[0], "less than 1024 MB" in lines[1], "this user alone" in lines[2]] == [True] * 3
    assert len(lines) == 3


def test_what_a_killed_process_left_goes_and_what_another_writes_stays(java):
    found = archive_of(java)
    dead = subprocess.Popen(["/bin/true"])
    dead.wait()
    left, writes = (written(found.folder / f".{found.name}.{pid}.tmp") for pid in (dead.pid, os.getpid()))
    found.write_option()
    assert (left.exists(), writes.exists()) == (False, True)


def test_those_used_last_are_kept(java):
    found = archive_of(java)
    for number in range(3):
        os.utime(written(found.folder / f"java-{number}.jsa"), (number + 1, number + 1))
    found.write_option()
    ended(found, "exit 143")
    assert [path.name for path in archives(found.folder)] == [found.whole().name, "java-2.jsa"]


def test_doctor_shows_and_removes_it(java):
    path = written(path_of(archive_of(java)))
    (line,) = archive()
    assert line.state == "ok"
    assert str(path) in line.text
    result = CliRunner().invoke(doctor, ["--remove-class-archive"])
    assert (result.exit_code, result.output) == (0, "Removed 1 file, 0 MB.\n")
    assert list(archive()) == []


def test_an_option_with_spaces_and_quotes_is_one_option():
    assert quoted('-X=/a "b"\\c') == '"-X=/a \\"b\\"\\\\c"'
