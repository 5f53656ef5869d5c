"""Captures read in another process: the same files, each when it is whole, and nothing left behind."""

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests import traffic
from tests.awaited import await_that
from wirecheck.capture import frames_file
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.capture.agent.reading import Reading, ReadingError

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz"
SIZES = {"roll_bytes": 400_000, "batch_bytes": 1 << 20, "keep_records": False}
STARTED = f"""
import sys
from pathlib import Path
from wirecheck.capture.agent.reading import Reading
with Reading([Path("/dev/stdin")], Path(sys.argv[1]), "L", **{SIZES}) as reading:
    print(reading._process.pid, flush=True)
    list(reading.waiting(1))
"""


def reading(folder, *inputs):
    return Reading(list(inputs), folder, "L", **SIZES)


def test_the_files_are_those_that_this_process_would_have_written(tmp_path):
    reported = []
    with reading(tmp_path / "there", EXAMPLE) as other:
        files = [file for (file,) in other.waiting(1, lambda done, total: reported.append((done, total)))]
    here = write_frames([EXAMPLE], tmp_path / "here", "L", **SIZES).files
    assert [file.name for file in files] == [file.name for file in here]
    assert len(files) > 1
    assert reported[-1] == (EXAMPLE.stat().st_size,) * 2
    assert all(frames_file.read(one).equals(frames_file.read(two)) for one, two in zip(files, here, strict=True))


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [("missing", None, "missing: no such file"), ("notes", b"no pcap" * 9, "notes: not a pcap or pcapng file")],
)
def test_what_cannot_be_read_is_said_in_one_line(name, content, line, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with reading(tmp_path / "frames", tmp_path / name) as other, pytest.raises(ReadingError) as wrong:
        list(other.waiting(1))
    assert str(wrong.value) == f"{tmp_path}/{line}"


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").touch()
    advice = "Not a directory; set TMPDIR to another folder"
    with reading(tmp_path / "file" / "frames", EXAMPLE) as other, pytest.raises(ReadingError, match=advice):
        list(other.waiting(1))


def test_what_a_shell_hands_over_by_a_number_is_read(tmp_path):
    """As `replay <(zcat capture.pcap.gz)`."""
    talk = traffic.Talk().open().close()
    handle, writes = os.pipe()
    os.write(writes, traffic.pcap(traffic.packets(talk.segments)))
    os.close(writes)
    os.set_inheritable(handle, True)
    with reading(tmp_path / "frames", Path(f"/dev/fd/{handle}")) as other:
        os.close(handle)
        ((file,),) = other.waiting(1)
    assert set(frames_file.read(file, ["source"])["source"].to_pylist()) - {None} == {f"/dev/fd/{handle}"}


def test_modules_in_the_users_folder_are_not_taken_for_pythons(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit('mine')")
    with reading(tmp_path / "frames", EXAMPLE) as other:
        assert list(other.waiting(1))


def test_one_that_is_killed_is_said_to_have_been(tmp_path):
    handle, writes = os.pipe()
    os.set_inheritable(handle, True)
    with reading(tmp_path / "frames", Path(f"/dev/fd/{handle}")) as other:
        os.kill(other._process.pid, signal.SIGKILL)
        with pytest.raises(ReadingError, match="was ended by SIGKILL; is there enough memory"):
            list(other.waiting(1))
    os.close(handle)
    os.close(writes)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_does_not_outlive_who_started_it(number, tmp_path):
    command = [sys.executable, "-c", STARTED, str(tmp_path / "frames")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
    ) as started:
        pid = int(started.stdout.readline())
        time.sleep(0.3)
        started.send_signal(number)
        started.wait(60)
        with suppress(BrokenPipeError):  # it may have ended by then
            started.stdin.write(b"\0" * 100)
            started.stdin.flush()
        with suppress(BrokenPipeError):
            started.stdin.close()
        await_that(lambda: not alive(pid), None, "the end of who reads")


def alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def told_by(script, *arguments):
    """A reading whose process says what a script prints."""
    found = Reading.__new__(Reading)
    found.out = Path("frames")
    found._process = subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], stdout=subprocess.PIPE)
    return found


@pytest.mark.parametrize(("most", "together"), [(4, [4, 1, 1]), (2, [2, 2, 1, 1]), (1, [1] * 6)])
def test_files_that_wait_come_together_and_none_is_waited_for(most, together, tmp_path):
    """Five are there at once; the sixth comes only once the others were taken."""
    script = (
        "import json, os, sys, time\n"
        "print(*(json.dumps({'file': str(n)}) for n in range(5)), sep='\\n', flush=True)\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.02)\n"
        "print(json.dumps({'file': '5'}), json.dumps({'all': True}), sep='\\n', flush=True)\n"
    )
    with told_by(script, tmp_path / "go") as found:
        await_that(lambda: select.select([found._process.stdout], [], [], 0)[0], None, "the first lines")
        time.sleep(0.2)
        counts, names = [], []
        for files in found.waiting(most):
            counts.append(len(files))
            names += [file.name for file in files]
            if len(names) == 5:
                (tmp_path / "go").touch()
    assert (names, counts) == (list("012345"), together)


def test_a_process_that_ends_without_a_word_is_an_error():
    found = told_by('print(\'{"file": "a"}\')')
    with found, pytest.raises(ReadingError, match="ended with code 0"):
        list(found.waiting(4))
