"""Which engine checks a replay: the line below the cards names it."""

import json
import os
import subprocess
import sys

from tests.commands.conftest import EXAMPLE, ROOT


def test_the_line_below_the_cards_names_the_engine(run):
    assert " \u00b7 local engine \u00b7 " in run("replay", EXAMPLE).stdout.splitlines()[-1]
    assert json.loads(run("replay", EXAMPLE, "--format", "json").stdout)["engine"] == "local"


def test_a_piped_capture_is_checked_without_java():
    with EXAMPLE.open("rb") as capture:
        result = subprocess.run(
            [sys.executable, "-m", "wirecheck", "replay", "-", "-v"],
            cwd=ROOT,
            stdin=capture,
            env={**os.environ, "JAVA_HOME": "/nowhere", "PATH": ""},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert (result.returncode, result.stderr) == (1, "")
    assert " \u00b7 local engine \u00b7 " in result.stdout
