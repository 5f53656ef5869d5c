"""The agent in an environment of its own: what it installs, how long it takes to start, how much memory it takes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.live.conftest import ROOT
from tests.live.test_robustness import chatter, wait_for
from tools import lock
from wirecheck.capture import frames

STRANGERS = {"pyspark", "pandas", "py4j"}
MOST_MB = 400


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin/python"
    pins = lock.constraints(folder.with_name("pins.txt"), "build", "demo", "work")
    install = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(pins), ".[capture]"]
    done = subprocess.run(install, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot install here: {done.stderr.strip().splitlines()[-1:]}")
    return python


@pytest.fixture
def as_in_the_unit(tmp_path):
    """What puts a command where the systemd unit puts it: one right, all read-only but one folder, no home."""
    alone = 'mount --bind {0} {0} && mount -o remount,bind,ro / && cd / && exec setpriv --no-new-privs {1} {2} -- "$@"'
    rights = "--bounding-set=-all,+net_raw", "--inh-caps=-all,+net_raw"
    before = ["unshare", "--mount", "sh", "-c", alone.format(tmp_path, *rights), "sh"]
    tried = [*before, sys.executable, "-c", f"open('{tmp_path}/may', 'w'); open('{ROOT}/may-not', 'w')"]
    if "Read-only file system" not in subprocess.run(tried, capture_output=True, text=True, check=False).stderr:
        pytest.skip("needs unshare, mount and setpriv")
    return before


def test_the_agent_installs_and_listens_without_spark_and_pandas(python, tmp_path, agents, as_in_the_unit, capsys):
    listed = subprocess.run([python, "-m", "pip", "list"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert STRANGERS & {line.split()[0].lower() for line in listed.stdout.splitlines()} == set()
    command = [str(python.parent / "wirecheck"), "capture"]
    assert subprocess.run([*command, "--help"], cwd=tmp_path, capture_output=True, check=False).returncode == 0
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    here = {"before": as_in_the_unit, "python": str(python), "env": env}
    first = started(agents, tmp_path / "first", **here)
    assert first.said[0].startswith("wirecheck: capturing ")
    later = started(agents, tmp_path / "later", **here)
    assert later.said[0].startswith("wirecheck: capturing ")
    with capsys.disabled():
        for name, agent in (("first start", first), ("later starts", later)):
            print(f"\n  agent alone, {name}: {agent.figures}", end="")
        print(f", imports {imports_s(python, tmp_path, env):.1f} s")
    assert later.peak_mb < MOST_MB


def started(agents, out, **options):
    """An agent that listened until it had written what came since its start, with its figures."""
    begin_s = time.perf_counter()
    with chatter(pause_s=0.02) as port:
        agent = agents(out, "-i", "lo", "--port", port, "--buffer-mb", 8, "--agent", "a", cwd=out.parent, **options)
        listens_s = time.perf_counter() - begin_s
        wait_for(agent, agent.files, 1200)
        writes_s = time.perf_counter() - begin_s
        status = Path(f"/proc/{agent.process.pid}/status").read_text()
        agent.peak_mb = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024
        time.sleep(2)
        assert agent.end() == 0
    assert "; lost 0 in the kernel, 0 at the disk" in agent.said[-1]
    ts_ns = [row["ts_ns"] for row in agent.rows() if row["kind"] == frames.FRAME]
    assert (max(ts_ns) - min(ts_ns)) / 1e9 > writes_s - listens_s  # nothing waited for the compiler
    agent.figures = (
        f"listens after {listens_s:.1f} s, writes after {writes_s:.1f} s, {agent.peak_mb:.0f} MB at its peak"
    )
    return agent


def imports_s(python, folder, env):
    begin_s = time.perf_counter()
    subprocess.run(
        [python, "-c", "import wirecheck.capture.agent.live_agent, scapy.arch.linux"], cwd=folder, env=env, check=True
    )
    return time.perf_counter() - begin_s
