"""A real cluster, captured at once by the agent and by tcpdump: replaying either says the same."""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from tests.live.conftest import ROOT
from tests.live.kafka import Cluster, Missing

pytestmark = pytest.mark.skipif(not shutil.which("tcpdump"), reason="needs tcpdump")


@contextlib.contextmanager
def tcpdump(file, ports):
    bpf = "tcp and (" + " or ".join(f"port {port}" for port in ports) + ")"
    command = ["tcpdump", "-i", "lo", "-U", "-s", "0", "-B", "65536", "-w", str(file), bpf]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    process.stderr.readline()  # it listens
    time.sleep(0.5)
    assert process.poll() is None, process.stderr.read()
    try:
        yield
        time.sleep(2)
    finally:
        process.send_signal(signal.SIGINT)
    assert " 0 packets dropped by kernel" in " " + process.communicate(timeout=30)[1].replace("\n", " ")


def play(cluster):
    """A topic with records, deleted and made again while a consumer's group lives on."""
    cluster.tool("TopicCommand", "--create", "--topic", "orders", "--partitions", 3, "--replication-factor", 2)
    cluster.tool("TopicCommand", "--create", "--topic", "audit", "--partitions", 1, "--replication-factor", 2)
    for topic in ("orders", "audit"):
        cluster.tool("VerifiableProducer", "--topic", topic, "--max-messages", 3000)
    cluster.tool("VerifiableConsumer", "--topic", "orders", "--group-id", "g", "--max-messages", 3000)
    cluster.tool("TopicCommand", "--delete", "--topic", "orders")
    time.sleep(3)
    cluster.tool("TopicCommand", "--create", "--topic", "orders", "--partitions", 2, "--replication-factor", 2)
    cluster.tool("VerifiableProducer", "--topic", "orders", "--max-messages", 500)
    cluster.tool("TopicCommand", "--describe")
    time.sleep(3)


def replayed(source):
    command = [sys.executable, "-m", "wirecheck", "replay", str(source), "--engine", "spark"]
    command += ["--format", "json", "--fail-on", "never"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def topics(verdict):
    keys = ("name", "topic_id", "state", "sources", "earlier_ids")
    return sorted(json.dumps([topic[key] for key in keys if key in topic]) for topic in verdict["topics"])


def findings(verdict):
    keys = ("code", "kind", "topic", "topic_ids", "client_ids", "brokers")
    return Counter(json.dumps([finding[key] for key in keys]) for finding in verdict["findings"])


@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_the_agent_s_frames_say_what_tcpdump_s_capture_says(version, tmp_path, agents, capsys):
    try:
        cluster = Cluster(version, tmp_path)
    except Missing as reason:
        pytest.skip(str(reason))
    ports = [argument for port in cluster.captured_ports for argument in ("--port", port)]
    frames, pcap = tmp_path / "frames", tmp_path / "capture.pcap"
    agent = agents(frames, "-i", "lo", *ports)
    with tcpdump(pcap, cluster.captured_ports), cluster:
        play(cluster)
    assert agent.end() == 0
    ours, theirs = replayed(frames), replayed(pcap)
    with capsys.disabled():
        size = sum(path.stat().st_size for path in agent.files())
        print(
            f"\n  Kafka {version}: {agent.said[-1]}; {size:,} bytes on disk, tcpdump {pcap.stat().st_size:,}; "
            f"{len(ours['topics'])} topics, {sum(findings(ours).values())} findings"
        )
    assert agent.said[-1].endswith("lost 0 in the kernel, 0 at the disk") or "skipped" in agent.said[-1]
    assert ours["coverage"]["frames"] == theirs["coverage"]["frames"]
    assert ours["coverage"]["decoded_messages"] == theirs["coverage"]["decoded_messages"] > 0
    assert {"orders", "audit"} <= {topic["name"] for topic in ours["topics"]}
    assert topics(ours) == topics(theirs)
    assert findings(ours) == findings(theirs)
    assert "TID001" in {finding["code"] for finding in ours["findings"]}
