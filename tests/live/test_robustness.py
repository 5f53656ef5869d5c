"""The agent when things go wrong: nothing half-written is visible, it lives on, and each has its message."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import threading
import time

import pyarrow.parquet as pq
import pytest

from tests.awaited import await_that
from wirecheck.capture import frames, frames_file

KILLS = 50


@contextlib.contextmanager
def chatter(address="127.0.0.1", size=200, pause_s=0.001):
    """Packets of a conversation that nobody knows, until it is over; gives the port."""
    with socket.create_server((address, 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        broker, _ = listener.accept()
        over = threading.Event()

        def talk():
            while not over.is_set():
                with contextlib.suppress(OSError):
                    client.send(os.urandom(size))
                    broker.recv(65536)
                time.sleep(pause_s)

        thread = threading.Thread(target=talk)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            for end in (client, broker):
                end.close()
            thread.join()


def wait_for(agent, condition, seconds=20):
    await_that(condition, agent.process, "the agent's files", patience_s=seconds)


def test_a_kill_at_any_moment_leaves_only_whole_files_and_the_next_start_goes_on(tmp_path, agents):
    rng = random.Random(7)
    with chatter() as port:
        for _ in range(KILLS):
            agent = agents(tmp_path, "-i", "lo", "--port", port, "--agent", "a", "--roll-s", "0.05", "--keep-records")
            upto = len(agent.files()) + rng.randrange(4)  # in its start, or in the life of one of its first files
            wait_for(agent, lambda agent=agent, upto=upto: len(agent.files()) >= upto, 60)
            time.sleep(rng.uniform(0.0, 0.2))
            agent.end(signal.SIGKILL)
            assert not [line for line in agent.said if "Traceback" in line]
    files = sorted(tmp_path.glob("*.parquet"))
    assert len(files) > KILLS // 2
    for number, path in enumerate(files, 1):
        table = pq.read_table(path, columns=["kind", "file_seq"])
        assert (path.name, table["kind"][-1].as_py()) == (f"a-{number:010d}.parquet", frames.PROGRESS)
        assert set(table["file_seq"].to_pylist()) == {number}
    assert len(list(tmp_path.glob(".*.tmp"))) <= 1  # of the last kill


def test_a_full_disk_is_said_counted_and_over_when_there_is_room(disk_of, agents):
    small_disk = disk_of("2M")
    out = small_disk / "out"
    with chatter(size=20_000) as port:
        agent = agents(out, "-i", "lo", "--port", port, "--roll-s", "0.3", "--keep-records")
        wait_for(agent, lambda: sum(path.stat().st_size for path in agent.files()) > 1_000_000, 60)
        (small_disk / "filler").write_bytes(bytes(os.statvfs(small_disk).f_bavail * 4096 - 8192))
        time.sleep(4)
        assert agent.process.poll() is None
        assert agent.files()
        for path in agent.files():
            pq.read_metadata(path)
        (small_disk / "filler").unlink()
        for path in agent.files()[:-1]:
            path.unlink()
        seen = set(agent.files())
        wait_for(agent, lambda: any(has_kind(path, frames.DROPPED) for path in set(agent.files()) - seen))
        assert agent.end() == 0
    lines = [line for line in agent.said if "cannot write: " in line or "writing again; " in line]
    assert [line.split(":")[1].split(";")[0].strip() for line in lines][:2] == ["cannot write", "writing again"]
    lost = [row for row in agent.rows() if row["kind"] == frames.DROPPED and row["reason"] == "could not be written"]
    assert lost


def has_kind(path, kind):
    return kind in frames_file.read(path, ["kind"])["kind"].to_pylist()


def test_an_interface_that_vanishes_is_said_and_waited_for(tmp_path, agents):
    def link(*arguments):
        return subprocess.run(["ip", "link", *arguments], capture_output=True, check=False).returncode == 0

    add = ("add", "wcveth0", "type", "veth", "peer", "name", "wcveth1")
    if not link(*add):
        pytest.skip("needs the right to make interfaces")
    try:
        link("set", "wcveth0", "up")
        agent = agents(tmp_path, "-i", "wcveth0", "-i", "lo", "--port", 9, "--roll-s", "0.2", "--agent", "a")
        assert link("del", "wcveth0")
        wait_for(agent, lambda: any(reason_of(path, "interface went away") for path in agent.files()))
        assert agent.process.poll() is None
        assert link(*add)
        link("set", "wcveth0", "up")
        time.sleep(2.5)
        assert agent.end() == 0
    finally:
        link("del", "wcveth0")
    assert "wirecheck: interface wcveth0 went away; waiting for it" in agent.said
    assert "wirecheck: interface wcveth0 is back" in agent.said
    assert [row["kind"] for row in agent.rows()][-2:] == [frames.ENDED, frames.PROGRESS]


def reason_of(path, reason):
    return reason in frames_file.read(path, ["reason"])["reason"].to_pylist()


def test_a_folder_that_becomes_unwritable_is_said(tmp_path, agents):
    before = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
    out = tmp_path / "out"
    with chatter() as port:
        agent = agents(out, "-i", "lo", "--port", port, "--roll-s", "0.2", "--keep-records", before=before)
        wait_for(agent, lambda: len(agent.files()) > 1)
        out.chmod(0o500)
        time.sleep(1.5)
        assert agent.process.poll() is None
        out.chmod(0o700)
        time.sleep(2)
        assert agent.end() == 0
    assert [line for line in agent.said if "cannot write: Permission denied" in line]
    assert [line for line in agent.said if "writing again; " in line]
