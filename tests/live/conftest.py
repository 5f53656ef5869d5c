"""What live tests share: they run only when asked for (`make live`), as root on Linux, and leave nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.capture.agent.test_live_agent import may_listen
from wirecheck.capture import frames_file

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(config, items):
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.live)
        if config.option.markexpr != "live":
            item.add_marker(pytest.mark.skip(reason="needs -m live: make live"))
        elif not may_listen():
            item.add_marker(pytest.mark.skip(reason="needs CAP_NET_RAW"))


class Agent:
    """`wirecheck capture` as a process; end it."""

    def __init__(self, out, *arguments, before=(), python=sys.executable, cwd=ROOT, env=None):
        command = [*before, python, "-m", "wirecheck", "capture", "--out", str(out), *map(str, arguments)]
        self.out = Path(out)
        self.process = subprocess.Popen(
            command, cwd=cwd, env=env or dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.said = [self.process.stderr.readline().strip()]  # none where it ended: then who waits for it says so

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        self.said += err.splitlines()
        return self.process.returncode

    def files(self):
        return sorted(self.out.glob("*.parquet"))

    def rows(self):
        return pa.concat_tables(frames_file.read(path) for path in self.files()).to_pylist()


@pytest.fixture
def agents():
    """Start agents; whatever a test forgot is ended."""
    started = []

    def start(*arguments, **options):
        started.append(Agent(*arguments, **options))
        return started[-1]

    yield start
    for agent in started:
        if agent.process.poll() is None:
            agent.process.kill()
        agent.process.communicate(timeout=60)


@pytest.fixture
def disk_of(tmp_path):
    """Mount a small disk of a size: `disk_of("2M")`."""
    folder = tmp_path / "disk"

    def mount(size):
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("needs the right to mount")
        return folder

    yield mount
    if folder.is_mount():
        subprocess.run(["umount", "-l", str(folder)], check=True)
