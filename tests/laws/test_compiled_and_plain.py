"""Compiled and plain, every result is the same: golden bytes, bent ones, and ones with holes.

Each way runs in a process of its own (`python -m tests.laws.compiled_and_plain`), for a process has one of them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.laws.compiled_and_plain import CASES

ROOT = Path(__file__).parents[2]


def results(**more):
    """By case, a line for each input."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WIRECHECK_")} | more
    command = [sys.executable, "-m", "tests.laws.compiled_and_plain"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return result.stdout.splitlines(), result.stderr, result.returncode


def test_every_result_is_the_same_compiled_and_plain():
    lines, error, code = results(WIRECHECK_COMPILED="1")
    if code and "nothing was compiled" in error:
        pytest.skip("nothing is compiled here")
    assert (code, error) == (0, "")
    plain, error, code = results(WIRECHECK_PURE="1")
    assert (code, error) == (0, "")
    assert [(mine, theirs) for mine, theirs in zip(lines, plain, strict=True) if mine != theirs] == []
    assert {line.split()[0] for line in lines} == set(CASES)
