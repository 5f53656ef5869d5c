"""An agent that is killed again and again beside one that is not: what it has, and what is missing, add up.

Whatever a file has is checked as in a replay of the same packets, nothing is there twice, and what no file has is
counted: bytes within connections as unseen, the time between a kill and the next start as seconds not captured.
"""

import contextlib
import itertools
import random
import signal
import socket
import threading
import time
from collections import Counter

import pyarrow as pa
import pytest

from tests import frame_files
from tests.build import plain as built
from tests.live.test_robustness import wait_for
from tests.scenarios.engines import plain
from wirecheck.capture import frames, frames_file

KILLS, ROLL_S, S = 8, 0.25, 1_000_000_000
CONNECTIONS = (1, 3, 40, 400, 100_000)
"""Exchanges of one connection, after which its client connects again."""
MESSAGES = ("frames", "connections", "requests", "responses", "decoded_messages")


def exchange(client, number):
    ids = {"correlationId": number, "clientId": client}
    names = [f"{client}-{number % 7}-{part}" for part in range(1 + number % 40)]
    topics = [{"name": name, "partitions": [{"partitionIndex": 0}]} for name in names]
    asked = built("Metadata", "request", 8, {"topics": [{"name": name} for name in names]}, ids)
    return asked, built("Metadata", "response", 8, {"topics": topics}, {"correlationId": number})


def talk(port, length, over):
    """A client that connects again after so many exchanges."""
    numbers = itertools.count(1)
    while not over.is_set():
        with socket.create_connection(("127.0.0.1", port)) as client:
            broker = ACCEPTED.pop(client.getsockname()[1])
            with broker:
                for number in itertools.islice(numbers, length):
                    asked, answered = exchange(f"each-{length}", number)
                    client.sendall(asked)
                    broker.recv(len(asked), socket.MSG_WAITALL)
                    broker.sendall(answered)
                    client.recv(len(answered), socket.MSG_WAITALL)
                    time.sleep(0.004)
                    if over.is_set():
                        break


class Accepted:
    """The broker's end of each connection, by the client's port."""

    def __init__(self):
        self.ends, self.changed = {}, threading.Condition()

    def serve(self, listener):
        with contextlib.suppress(OSError):
            while True:
                end, (_, port) = listener.accept()
                with self.changed:
                    self.ends[port] = end
                    self.changed.notify_all()

    def pop(self, port):
        with self.changed:
            assert self.changed.wait_for(lambda: port in self.ends, 20)
            return self.ends.pop(port)


ACCEPTED = Accepted()


@contextlib.contextmanager
def traffic():
    """Clients of connections of several lengths, until it is over; gives the port."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        threads = [threading.Thread(target=ACCEPTED.serve, args=(listener,), daemon=True)]
        threads += [threading.Thread(target=talk, args=(port, length, over)) for length in CONNECTIONS]
        for thread in threads:
            thread.start()
        try:
            yield port
        finally:
            over.set()
            for thread in threads[1:]:
                thread.join()
            listener.shutdown(socket.SHUT_RDWR)


def packet(row):
    """What makes a packet the same in the files of two agents."""
    return tuple(
        row[name] for name in ("src_ip", "src_port", "dst_port", "tcp_seq", "tcp_ack", "tcp_flags", "payload_len")
    )


def captured(seed, tmp_path, agents):
    """The files of an agent that was killed, and of one that was not."""
    dice = random.Random(seed)
    with traffic() as port:

        def begin(name):
            return agents(
                tmp_path / name, "-i", "lo", "--port", port, "--agent", "a", "--roll-s", ROLL_S, "--cluster", "c"
            )

        whole = begin("whole")
        wait_for(whole, whole.files)
        for _ in range(KILLS):
            agent = begin("killed")
            upto = len(agent.files()) + dice.randrange(1, 5)
            wait_for(agent, lambda agent=agent, upto=upto: len(agent.files()) >= upto, 60)
            time.sleep(dice.uniform(0, ROLL_S))
            agent.end(signal.SIGKILL)
            time.sleep(dice.choice((0, 0, 1.5)))
        agent = begin("killed")
        wait_for(agent, lambda: len(agent.files()) > upto + 3, 60)
        assert agent.end() == 0
        assert whole.end() == 0
    return agent.files(), whole.files()


def rows_of(files):
    return pa.concat_tables(frames_file.read(file) for file in files).to_pylist()


def spans(files):
    """When the files of each life begin and end."""
    found = []
    for row in rows_of(files):
        if row["kind"] == frames.STARTED:
            found.append([row["ts_ns"], row["ts_ns"]])
        elif row["kind"] == frames.PROGRESS:
            found[-1][1] = row["ts_ns"]
    return found


def without(files, kept, folder):
    """The same files with these frames alone."""
    folder.mkdir()
    left = Counter(kept)
    for file in files:
        table = frames_file.read(file).cast(frames.FRAMES)
        stays = [row["kind"] != frames.FRAME or taken(left, packet(row)) for row in table.to_pylist()]
        frame_files.write(table.filter(pa.array(stays)), folder / file.name)
    return sorted(folder.glob("*.parquet"))


def taken(left, one):
    left[one] -= 1
    return left[one] >= 0


@pytest.mark.parametrize("seed", [1, 2])
def test_what_a_killed_agent_has_and_what_it_lacks_add_up(seed, tmp_path, agents, capsys):
    killed, whole = captured(seed, tmp_path, agents)
    had = Counter(packet(row) for row in rows_of(killed) if row["kind"] == frames.FRAME)
    there = Counter(packet(row) for row in rows_of(whole) if row["kind"] == frames.FRAME)
    found, twin = plain([killed])["coverage"], plain([without(whole, had, tmp_path / "twin")])["coverage"]
    lives = spans(killed)
    away = [(begun - ended) // S for (_, ended), (begun, _) in itertools.pairwise(lives) if begun - ended >= S]
    with capsys.disabled():
        print(f"\n  {len(lives)} lives, {len(killed)} files, {had.total():,} of {there.total():,} frames")
        print("  ", {name: (found[name], twin[name]) for name in (*MESSAGES, "unseen_bytes")}, sum(away), "s away")
    assert len(lives) == KILLS + 1
    assert had <= there
    assert {name: found[name] for name in MESSAGES} == {name: twin[name] for name in MESSAGES}
    assert found["unseen_bytes"] == twin["unseen_bytes"] > 0
    assert found["agent_away_seconds"] == sum(away)
