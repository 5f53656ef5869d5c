"""How much was captured when: every byte of payload is in one slot."""

import pytest

from tests import traffic as packets
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.capture.traffic import ends, traffic


@pytest.fixture
def files(tmp_path):
    talk = packets.Talk().open()
    for _ in range(10):
        talk.request(b"x" * 40).response(b"y" * 60)
    (tmp_path / "a.pcap").write_bytes(packets.pcap(packets.packets(talk.close().segments)))
    return write_frames([tmp_path / "a.pcap"], tmp_path / "frames", "default").files


@pytest.mark.parametrize("slots", [1, 7, 160])
def test_all_bytes_are_counted_whatever_the_slots(files, slots):
    found = traffic(files, slots)
    assert sum(found.payload_bytes) == 1000
    assert len(found.payload_bytes) == slots
    assert found.first_ns < found.last_ns
    assert ends(files) == (found.first_ns, found.last_ns)


def test_without_frames_there_is_none(tmp_path):
    lying = tmp_path / "lying.parquet"
    lying.write_bytes(b"PAR1 and nothing else PAR1")
    assert traffic([lying]) is None
    assert ends([lying]) is None
