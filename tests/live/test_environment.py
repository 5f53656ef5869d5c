"""The agent in an environment of its own: what it installs, how long it takes to start, how much memory it takes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.live.conftest import ROOT

STRANGERS = {"pyspark", "pandas", "py4j"}
MOST_MB = 400


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin/python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt", ".[capture]"]
    done = subprocess.run(install, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot install here: {done.stderr.strip().splitlines()[-1:]}")
    return python


def test_the_agent_installs_and_listens_without_spark_and_pandas(python, tmp_path, agents, capsys):
    listed = subprocess.run([python, "-m", "pip", "list"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert STRANGERS & {line.split()[0].lower() for line in listed.stdout.splitlines()} == set()
    door = [str(python.parent / "wirecheck"), "capture"]
    assert subprocess.run([*door, "--help"], cwd=tmp_path, capture_output=True, check=False).returncode == 0
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    first_s, _, _ = run(agents, python, tmp_path, env)
    start_s, imports_s, peak_mb = run(agents, python, tmp_path, env)
    with capsys.disabled():
        print(
            f"\n  agent alone: first start {first_s:.1f} s, later starts {start_s:.1f} s (imports {imports_s:.1f} s), "
            f"{peak_mb:.0f} MB at its peak with a ring of 8 MB"
        )
    assert peak_mb < MOST_MB


def run(agents, python, folder, env):
    """(seconds to listening, seconds of imports, MB at the peak) of a capture of 2 s."""
    begin_s = time.perf_counter()
    subprocess.run([python, "-c", "import capture.listen, scapy.arch.linux"], cwd=folder, env=env, check=True)
    imports_s = time.perf_counter() - begin_s
    begin_s = time.perf_counter()
    agent = agents(
        folder / "out", "-i", "lo", "--duration", "2s", "--buffer-mb", 8, python=str(python), cwd=folder, env=env
    )
    start_s = time.perf_counter() - begin_s
    status = Path(f"/proc/{agent.process.pid}/status").read_text()
    peak_mb = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024
    agent.process.wait(timeout=60)
    assert agent.end() == 0
    assert agent.said[0].startswith("wirecheck: capturing ")
    return start_s, imports_s, peak_mb
