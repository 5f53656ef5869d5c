"""Two agents on the two hosts of a connection, each losing 5 % of its frames: only what both lost is not seen."""

import contextlib
import random
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from tests import frame_files
from tests.build import plain as built
from tests.live.conftest import ROOT
from tests.scenarios.engines import plain
from wirecheck.capture import frames, frames_file

EXCHANGES, LOSS, PORT = 400, 0.05, 9092
NETS = {"wcnet-a": "10.250.7.1", "wcnet-b": "10.250.7.2"}
BROKER = f"""
import socket
from tests.live.test_two_agents import said
with socket.create_server(("{NETS["wcnet-b"]}", {PORT})) as listener:
    print("ready", flush=True)
    connection, _ = listener.accept()
    for request, response in said():
        connection.recv(len(request), socket.MSG_WAITALL)
        connection.sendall(response)
"""
CLIENT = f"""
import socket
from tests.live.test_two_agents import said
with socket.create_connection(("{NETS["wcnet-b"]}", {PORT})) as connection:
    for request, response in said():
        connection.sendall(request)
        connection.recv(len(response), socket.MSG_WAITALL)
"""


def said():
    """Requests and responses of one connection."""
    for number in range(EXCHANGES):
        ids = {"correlationId": number}
        topics = [{"name": f"topic-{i}", "partitions": [{"partitionIndex": 0}]} for i in range(20)]
        yield (
            built("Metadata", "request", 8, {"topics": [{"name": f"topic-{i}"} for i in range(20)]}, ids),
            built("Metadata", "response", 8, {"topics": topics}, ids),
        )


@pytest.fixture
def hosts():
    """Two network namespaces, joined by a veth pair."""

    def ip(*arguments, check=True):
        return subprocess.run(["ip", *arguments], capture_output=True, check=check).returncode == 0

    if not all(ip("netns", "add", net, check=False) for net in NETS):
        pytest.skip("needs the right to make network namespaces")
    try:
        ip("link", "add", "wcp0", "netns", "wcnet-a", "type", "veth", "peer", "name", "wcp1", "netns", "wcnet-b")
        for (net, address), name in zip(NETS.items(), ("wcp0", "wcp1"), strict=True):
            ip("-n", net, "address", "add", f"{address}/24", "dev", name)
            ip("-n", net, "link", "set", name, "up")
        yield
    finally:
        for net in NETS:
            ip("netns", "delete", net, check=False)


def in_net(net):
    return ["ip", "netns", "exec", net]


def converse():
    broker = subprocess.Popen(
        [*in_net("wcnet-b"), sys.executable, "-c", BROKER], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    with contextlib.closing(broker.stdout):
        assert broker.stdout.readline(), "the broker did not start"
        subprocess.run([*in_net("wcnet-a"), sys.executable, "-c", CLIENT], cwd=ROOT, check=True, timeout=120)
        assert broker.wait(timeout=60) == 0


def with_loss(files, folder, rng):
    """The same files without 5 % of their frames."""
    folder.mkdir()
    for file in files:
        table = frames_file.read(file).cast(frames.FRAMES)
        stays = [kind != frames.FRAME or rng.random() >= LOSS for kind in table["kind"].to_pylist()]
        frame_files.write(table.filter(pa.array(stays)), folder / file.name)
    return sorted(folder.glob("*.parquet"))


def bytes_of(files):
    """(source address, sequence number) of every byte of payload in these files."""
    rows = pa.concat_tables(frames_file.read(file) for file in files).to_pylist()
    return {
        (row["src_ip"], row["tcp_seq"] + i) for row in rows if row["payload_len"] for i in range(row["payload_len"])
    }


def coverage(*folders):
    return plain([[file for files in folders for file in files]])["coverage"]


def test_what_one_lost_the_other_has(tmp_path, hosts, agents, capsys):
    rng = random.Random(5)
    started = [
        agents(tmp_path / net, "-i", name, "--port", PORT, "--agent", net, "--cluster", "c", before=in_net(net))
        for net, name in zip(NETS, ("wcp0", "wcp1"), strict=True)
    ]
    converse()
    time.sleep(1)
    assert [agent.end() for agent in started] == [0, 0]
    whole = [agent.files() for agent in started]
    lossy = [with_loss(files, tmp_path / f"lossy-{i}", rng) for i, files in enumerate(whole)]
    everything = bytes_of(whole[0]) | bytes_of(whole[1])
    lost_by_both = len(everything - (bytes_of(lossy[0]) | bytes_of(lossy[1])))
    alone, together, complete = coverage(lossy[0]), coverage(*lossy), coverage(*whole)
    with capsys.disabled():
        print(
            f"\n  two agents: alone {alone['unseen_bytes']:,} bytes unseen, together {together['unseen_bytes']:,} of "
            f"{lost_by_both:,} that both lost; {together['decoded_messages']:,} of "
            f"{complete['decoded_messages']:,} messages"
        )
    assert (complete["connections"], complete["unseen_bytes"], complete["decoded_messages"]) == (1, 0, 2 * EXCHANGES)
    assert together["connections"] == 1
    assert together["unseen_bytes"] <= lost_by_both < alone["unseen_bytes"] / 4
    assert together["decoded_messages"] >= 0.98 * complete["decoded_messages"] > alone["decoded_messages"]
