"""What a command imports before it does something: what only prints starts without the judge, numpy and pyarrow.

Each case is a process of its own, which lists its modules as it ends. The bound on their number is a tenth above what
is imported today: a shell waits for these commands at each key.
"""

import json
import os
import subprocess
import sys

import pytest

HEAVY = {
    "numpy",
    "pyarrow",
    "pandas",
    "pyspark",
    "rich",
    "wirecheck.judge.revisions.judge",
    "wirecheck.judge.check_context",
}
LISTED = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
from wirecheck.cli import main
main(prog_name="wirecheck")
"""


def modules(line, environment=()):
    command = [sys.executable, "-c", LISTED, *line.split()]
    done = subprocess.run(command, env=os.environ | dict(environment), capture_output=True, text=True, check=True)
    assert done.stdout
    return {*json.loads(done.stderr.splitlines()[-1])}


@pytest.mark.parametrize(
    ("line", "most"),
    [
        ("--help", 225),  # it imports every command, so it answers for the help of each
        ("completion bash", 175),
        ("explain", 195),
        ("explain TID001", 195),
        ("explain INCONSISTENT_TOPIC_ID", 200),
    ],
)
def test_what_only_prints_starts_without_the_judge(line, most):
    found = modules(line)
    assert (found & HEAVY, len(found) <= most) == (set(), True)


@pytest.mark.parametrize("words", ["wirecheck expl", "wirecheck explain TID", "wirecheck decode --api Fe"])
def test_what_a_shell_completes_starts_without_the_judge(words):
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_WIRECHECK_COMPLETE": "bash_complete"}
    found = modules("", asked)
    assert (found & HEAVY, len(found) <= 195) == (set(), True)
