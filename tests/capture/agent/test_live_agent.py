"""The live agent on loopback, as a process of its own. Skipped where raw sockets are not allowed."""

import ctypes.util
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import ClassVar

import pyarrow as pa
import pytest

from tests.awaited import PATIENCE_S, await_line, await_that
from tests.capture import canaries
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.live_agent import Signals

RUN = """
import sys
from pathlib import Path
from wirecheck.capture.frames import Stamp
from wirecheck.capture.agent.live_agent import Listening, listen
what = Listening(
    ("lo",), (int(sys.argv[2]),), buffer_bytes=4 << 20, roll_s=float(sys.argv[3]), keep_records=sys.argv[4] == "whole"
)
print(listen(what, Path(sys.argv[1]), Stamp("prod", "agent"), lambda line: print(line, flush=True)).kept_frames)
"""


def may_listen():
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except (OSError, AttributeError):
        return False
    return True


def has_libpcap():
    return ctypes.util.find_library("pcap") is not None


pytestmark = pytest.mark.skipif(not may_listen(), reason="needs CAP_NET_RAW")


@pytest.fixture(autouse=True)
def nobody_goes_on():
    """An agent that a failed test left behind would capture for ever."""
    yield
    for process in Agent.started:
        process.kill()
        process.communicate()
    Agent.started.clear()


class Agent:
    started: ClassVar = []

    def __init__(self, folder, port, roll_s=60.0, content="whole"):
        arguments = [sys.executable, "-c", RUN, str(folder), str(port), str(roll_s), content]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(self.process)
        self.folder = folder
        await_line(self.process.stdout, self.process, "capturing ")  # it says first that it compiles

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.wait()

    def wait(self):
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out.strip(), err

    def await_files(self, count=1, meanwhile=lambda: None):
        def written():
            meanwhile()
            return len(list(self.folder.glob("*.parquet"))) >= count

        await_that(written, self.process, f"{count} files in {self.folder}")

    def table(self):
        return pa.concat_tables(frames_file.read(path) for path in sorted(self.folder.glob("agent-*.parquet")))


@pytest.fixture
def server():
    listener = socket.create_server(("127.0.0.1", 0))

    def echo():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                while data := connection.recv(65536):
                    connection.sendall(data)

    thread = threading.Thread(target=echo)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def talk(port, data):
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(data)
        received = b""
        while len(received) < len(data):
            received += client.recv(65536)


def stream(said):
    """What one side said, whatever was sent again; loopback may show segments of two processors out of order."""
    first = min(said, key=lambda row: (row["tcp_seq"] - said[0]["tcp_seq"] + 2**31) % 2**32)["tcp_seq"]
    data = bytearray()
    for row in sorted(said, key=lambda row: (row["tcp_seq"] - first) % 2**32):
        at = (row["tcp_seq"] - first) % 2**32
        assert at <= len(data)
        data[at : at + row["payload_len"]] = row["payload"]
    return bytes(data)


def test_a_conversation_is_captured_once_and_whole(tmp_path, server):
    agent = Agent(tmp_path, server)
    data = os.urandom(300_000)
    talk(server, data)
    code, out, err = agent.end()
    assert (code, err) == (0, "")
    rows = [row for row in agent.table().to_pylist() if row["kind"] == frames.FRAME]
    assert out == str(len(rows))
    for way in ("src_port", "dst_port"):
        said = [row for row in rows if row[way] == server and row["payload_len"]]
        assert len({row["tcp_seq"] for row in said}) == len(said)  # loopback shows every packet twice; one is kept
        assert [row["left_out"] for row in said] == [[]] * len(said)
        assert stream(said) == data
    kinds = agent.table()["kind"].to_pylist()
    assert (kinds[0], kinds[-2:]) == (frames.STARTED, [frames.ENDED, frames.PROGRESS])


def test_no_secret_reaches_the_disk_and_what_is_no_secret_does(tmp_path):
    foreign = [(b"POST /login HTTP/1.1\r\npassword=" + canaries.SECRET * 30, b"HTTP/1.1 200 OK\r\n" + canaries.SECRET)]
    names = sorted(canaries.EXCHANGES)
    kafka = [canaries.exchange(name, number) for number, name in enumerate(names)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        agent = Agent(tmp_path, listener.getsockname()[1], roll_s=0.2, content="trimmed")
        agent.await_files()  # until its code is loaded, it writes nothing
        for said in (kafka, foreign, kafka[3:]):
            converse(listener, said)
            time.sleep(0.3)  # files end in the middle of it
        agent.end()
    files = sorted(tmp_path.glob("*.parquet"))
    assert (len(files) > 2, canaries.leaks(files)) == (True, [])
    rows = [row for row in agent.table().to_pylist() if row["kind"] == frames.FRAME]
    kept = b"".join(row["payload"] for row in rows)
    assert kept.count(b"client-1") == 2 * len(names) - 3
    assert all(row["payload_len"] == len(row["payload"]) + sum(s["length"] for s in row["left_out"]) for row in rows)


def converse(listener, said):
    with socket.create_connection(listener.getsockname()) as client, listener.accept()[0] as broker:
        for asked, answered in said:
            client.sendall(asked)
            broker.recv(len(asked), socket.MSG_WAITALL)
            broker.sendall(answered)
            client.recv(len(answered), socket.MSG_WAITALL)


def test_a_silent_interface_still_gives_up_what_waits(tmp_path, server):
    agent = Agent(tmp_path, server, roll_s=0.2, content="trimmed")
    agent.await_files()  # until its code is loaded, it writes nothing
    with socket.create_connection(("127.0.0.1", server)) as client:
        client.sendall(struct.pack(">ihhi", 400, 3, 1, 1))  # the rest never comes
        client.recv(12, socket.MSG_WAITALL)
        await_that(lambda: count_payload(tmp_path) >= 24, agent.process, "what waits", pause_s=0.1)
        assert count_payload(tmp_path) == 24
    agent.end()


def count_payload(folder):
    return sum(sum(frames_file.read(path)["payload_len"].to_pylist()) for path in folder.glob("*.parquet"))


def test_files_roll_by_time(tmp_path, server):
    agent = Agent(tmp_path, server, roll_s=0.3)
    agent.await_files(3, lambda: talk(server, b"x" * 1000))
    agent.end(signal.SIGINT)
    kinds = [frames_file.read(path)["kind"].to_pylist()[-1] for path in tmp_path.glob("*.parquet")]
    assert set(kinds) == {frames.PROGRESS}


def test_a_hangup_begins_a_new_file_and_a_kill_leaves_only_complete_ones(tmp_path, server):
    agent = Agent(tmp_path, server)
    agent.process.send_signal(signal.SIGHUP)
    agent.await_files(1, lambda: talk(server, b"x" * 1000))
    agent.end(signal.SIGKILL)
    assert agent.table()["kind"].to_pylist()[-1] == frames.PROGRESS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'nosuch0', (9092,)", "nosuch0: no such interface"),
        pytest.param(
            "'lo', (), 'tcp and and'",
            "lo: filter 'tcp and and' is not valid",
            marks=pytest.mark.skipif(not has_libpcap(), reason="needs libpcap"),
        ),
    ],
)
def test_an_interface_or_a_filter_that_does_not_exist_says_so(arguments, message):
    code = f"from wirecheck.capture.source.interface import Interface; Interface({arguments})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert message in done.stderr


TWICE = """
import signal, sys
from wirecheck.capture.agent import live_agent
live_agent._ONE_SIGNAL_S = float(sys.argv[1])
with live_agent.Signals() as signals:
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
    print("goes on to its end", signals.stop)
"""


@pytest.mark.parametrize(
    ("one_signal_s", "code", "said"), [(60, 0, "goes on to its end True\n"), (0, -signal.SIGTERM, "")]
)
def test_a_second_signal_ends_without_waiting_and_what_comes_at_once_is_no_second_one(one_signal_s, code, said):
    done = subprocess.run([sys.executable, "-c", TWICE, str(one_signal_s)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, said)


def test_signals_are_somebody_elses_again_afterwards():
    before = signal.getsignal(signal.SIGTERM)
    with Signals() as signals:
        signal.raise_signal(signal.SIGHUP)
        assert (signals.roll, signals.stop) == (True, False)
        signal.raise_signal(signal.SIGTERM)
        assert signals.stop
    assert signal.getsignal(signal.SIGTERM) == before


NO_DESCRIPTOR = """
import os, resource, sys
from wirecheck.capture.agent.counts import Counts
from wirecheck.capture.agent.live_agent import Listening, _Loop
from wirecheck.capture.refusal import ListenError
from wirecheck.capture.source.interface import Interface
what, said = Listening(("lo", "nosuch0")), []
interfaces = {"lo": Interface("lo", buffer_bytes=2 << 20)}
class Writer:
    def check(self): pass
    def put(self, item): said.append("a mark")
loop = _Loop(what, None, interfaces, Writer(), Counts())
loop.say = said.append
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
while True:
    try:
        os.dup(0)
    except OSError:
        break
for _ in range(2):
    loop._looked_s = 0
    loop._look()
print(said, list(interfaces))
"""


def test_a_process_without_a_free_descriptor_does_not_report_a_lost_interface():
    command = [sys.executable, "-c", NO_DESCRIPTOR]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    reported = "['cannot capture on interface nosuch0: Too many open files']"
    assert (done.stderr, done.stdout) == ("", f"{reported} ['lo']\n")
