"""Files that lie or are damaged: some of each kind are read here, and whoever runs them notices what must not be."""

import argparse
import subprocess
import sys
import time
from collections import Counter

import pytest

from fuzz import files
from fuzz.bound import Bound


@pytest.mark.parametrize(
    ("kind", "inputs", "seen"),
    [
        ("captures", 75, {"rows", "rows, error", "nothing to read"}),
        ("frames", 30, {"not frames", "believed, messages"}),
        ("traffic", 5, {"findings"}),
    ],
)
def test_a_short_run_finds_nothing(kind, inputs, seen, tmp_path):
    outcomes = Counter()
    for number in range(inputs):
        data, rng = files.made(kind, 7, number)
        path = tmp_path / f"a-0000000001.{files.subject(kind).SUFFIX}"
        path.write_bytes(data)
        outcomes[files.subject(kind).read(path, rng)] += 1
    assert seen <= outcomes.keys()


@pytest.mark.parametrize("kind", files.KINDS)
def test_an_input_is_made_again_from_its_number(kind):
    made = [files.made(kind, seed, number)[0] for seed, number in ((3, 5), (3, 5), (3, 6), (4, 5))]
    assert made[0] == made[1]
    assert len(set(made)) == 3


ENDS = {
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": "ended by SIGSEGV",
    "raise SystemExit(3)": "ended with 3",
    "import time; time.sleep(60)": "no end after 1 s",
    "open(FOLDER + '/breach', 'w').write('IndexError at packet.py:1')": "IndexError at packet.py:1",
}


@pytest.mark.parametrize(("program", "said"), ENDS.items(), ids=ENDS.values())
def test_what_must_not_be_is_a_breach_and_the_run_goes_on_behind_it(program, said, tmp_path, monkeypatch):
    start = subprocess.Popen

    def instead(command):
        folder = command[command.index("--child") + 1]
        return start([sys.executable, "-c", program.replace("FOLDER", repr(folder))])

    monkeypatch.setattr(files.subprocess, "Popen", instead)
    patience_s = 1 if said == "no end after 1 s" else 60
    monkeypatch.setattr(files, "HANGS_S", patience_s)
    monkeypatch.setattr(files, "COMPILES_S", patience_s)
    monkeypatch.setattr(files, "BUILD", tmp_path)
    run = files.Run()
    assert files.in_a_process(argparse.Namespace(kind="captures", seed=1, first=5, child=None), 5, Bound(10), run) == 6
    assert run.breaches == [said]
    assert (tmp_path / "fuzz" / "captures-1-5.capture").read_bytes() == files.made("captures", 1, 5)[0]


def test_a_run_of_minutes_ends_at_its_time_with_its_count():
    timed, counted = Bound(10, 60.0), Bound(10)
    assert (timed.next(8, 5), counted.next(8, 5)) == (5, 2)
    assert (timed.over(10**6), counted.over(9), counted.over(10)) == (False, False, True)
    assert [(part.inputs, part.minutes) for part in (timed.part(0.5), counted.part(0.5))] == [(5, 30.0), (5, None)]
    assert Bound(10, 60.0, time.monotonic() - 3600).over(0)
    assert Bound(10, 60.0, time.monotonic() - 3600).left_minutes() == 0
