"""The busiest ports of frames files: those of servers, each frame counted once."""

import pytest

from tests import traffic
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.capture.traffic import busiest


@pytest.fixture
def files(tmp_path):
    packets = []
    for number, (server, asked) in enumerate([(5432, 9), (5432, 2), (5432, 1), (80, 3), (443, 1)]):
        talk = traffic.Talk(client=("10.0.0.1", 40000 + number), server=("10.0.0.2", server)).open()
        for _ in range(asked):
            talk.request(b"x" * 40)
        packets += traffic.packets(talk.close().segments)
    (tmp_path / "a.pcap").write_bytes(traffic.pcap(packets))
    return write_frames([tmp_path / "a.pcap"], tmp_path / "frames", "default").files


def test_servers_come_first_and_clients_of_a_busy_one_do_not_come(files):
    found = busiest(files)
    assert [port for port, _ in found] == [5432, 80, 443]
    assert [count for _, count in found] == sorted((count for _, count in found), reverse=True)
    assert busiest(files, 1) == found[:1]


def test_without_files_there_are_none():
    assert busiest([]) == []


def test_a_file_that_holds_no_frames_is_passed_over(files, tmp_path):
    lying = tmp_path / "lying.parquet"
    lying.write_bytes(b"PAR1 and nothing else PAR1")
    assert busiest([lying, *files]) == busiest(files)
