"""The live agent with a key log that grows, as a process of its own: TLS on loopback, made by OpenSSL.

Skipped where raw sockets are not allowed.
"""

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

from tests import tls_traffic
from tests.awaited import PATIENCE_S, await_line, await_that
from tests.capture import canaries
from wirecheck.capture import frames, frames_file


def may_listen():
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except (OSError, AttributeError):
        return False
    return True


pytestmark = pytest.mark.skipif(not may_listen(), reason="needs CAP_NET_RAW")
NAMES = sorted(canaries.EXCHANGES)
KAFKA = [canaries.exchange(name, number) for number, name in enumerate(NAMES)]


class TlsServer:
    """Answers what it was told to, whatever it is asked."""

    def __init__(self, folder):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(tls_traffic.certificate(folder))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def converse(self, said, version, key_log):
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        client.minimum_version = client.maximum_version = tls_traffic.VERSIONS[version]
        client.keylog_filename = str(key_log)
        answering = threading.Thread(target=self._answer, args=(said,))
        answering.start()
        with client.wrap_socket(socket.create_connection(("127.0.0.1", self.port))) as ours:
            for asked, answered in said:
                ours.sendall(asked)
                read_all(ours, len(answered))
        answering.join()

    def _answer(self, said):
        with self.context.wrap_socket(self.listener.accept()[0], server_side=True) as theirs:
            for asked, answered in said:
                read_all(theirs, len(asked))
                theirs.sendall(answered)
            theirs.recv(1)


def read_all(end, count):
    while count > 0:
        data = end.recv(count)
        assert data
        count -= len(data)


@pytest.fixture
def server(tmp_path_factory):
    server = TlsServer(tmp_path_factory.mktemp("tls"))
    yield server
    server.listener.close()


@pytest.fixture
def agent(tmp_path, server):
    """`wirecheck capture -i lo`, with a key log that is not there yet."""
    command = [sys.executable, "-P", "-m", "wirecheck", "capture", "-i", "lo", "--port", str(server.port)]
    command += ["--out", tmp_path / "out", "--agent", "agent", "--roll-s", "0.3", "--buffer-mb", "4"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        metrics = free.getsockname()[1]
    command += ["--metrics-port", str(metrics), "--keylog", tmp_path / "keys.log"]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.metrics = f"http://127.0.0.1:{metrics}/metrics"
    await_line(process.stderr, process, "wirecheck: capturing ")
    yield process
    process.kill()
    process.communicate()


def kept(folder):
    rows = [row for file in sorted(folder.glob("*.parquet")) for row in frames_file.read(file).to_pylist()]
    return b"".join(row["payload"] or b"" for row in rows if row["kind"] == frames.FRAME)


def on_disk(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def secrets_of(key_log):
    words = [line.split() for line in key_log.read_text().splitlines() if line and line[0] != "#"]
    return [bytes.fromhex(word[2]) for word in words]


@pytest.mark.parametrize("version", tls_traffic.VERSIONS)
def test_no_record_secret_or_key_reaches_a_disk_and_the_rest_is_read(agent, server, tmp_path, version):
    """Through the end of the process by kill -9, in the middle of a conversation."""
    key_log, out = tmp_path / "keys.log", tmp_path / "out"
    await_line(agent.stderr, agent, f"wirecheck: {key_log}: no such file or directory")
    for _ in range(3):
        server.converse(KAFKA, version, key_log)
    await_line(agent.stderr, agent, f"wirecheck: {key_log}: is readable again")
    await_that(lambda: kept(out).count(b"client-1") == 3 * len(NAMES), agent, "what was said", pause_s=0.2)
    page = urllib.request.urlopen(agent.metrics, timeout=PATIENCE_S).read().decode()
    assert 'wirecheck_agent_tls_connections_total{outcome="decrypted"} 3.0' in page
    server.converse(KAFKA, version, key_log)
    os.kill(agent.pid, signal.SIGKILL)
    said = "".join(agent.communicate())
    assert canaries.leaks(sorted(out.glob("*.parquet"))) == []
    written, secrets = on_disk(out), secrets_of(key_log)
    assert secrets
    assert not [part for part in canaries.PARTS if part in written]
    assert not [s for s in secrets if s[:8] in written + kept(out) or s.hex()[:16].encode() in written + said.encode()]


def test_keys_may_come_later_and_connections_without_any_hold_up_nothing_for_long(agent, server, tmp_path):
    out, early = tmp_path / "out", tmp_path / "early.keys"
    server.converse(KAFKA, "1.3", tmp_path / "other.keys")
    server.converse(KAFKA, "1.3", early)
    time.sleep(1)
    assert b"client-1" not in kept(out)
    (tmp_path / "keys.log").write_bytes(early.read_bytes())
    await_that(lambda: b"client-1" in kept(out), agent, "what was said", pause_s=0.2)
    agent.send_signal(signal.SIGTERM)
    assert "TLS connections: 1 decrypted, 1 without keys, 0 failed" in agent.communicate(timeout=PATIENCE_S)[1]
    assert kept(out).count(b"client-1") == len(NAMES)
    assert canaries.leaks(sorted(out.glob("*.parquet"))) == []
