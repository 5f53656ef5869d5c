"""Inside TLS, of a capture that lost 1 % of its packets: nearly all messages still whole are read, and none wrongly."""

import pytest

from bench import recovery
from bench.damage import Capture
from bench.traffic import write_capture

BYTES = 500_000


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("version", recovery.TLS_VERSIONS)
def test_behind_lost_packets_inside_tls_messages_are_found_again(version, seed, tmp_path):
    path = tmp_path / "plain.pcap"
    write_capture(path, BYTES, "small", 10)
    capture, inside = Capture.read(path), recovery.wrapped(path, version)
    damaged = recovery.damaged_by(inside.capture, "1% loss", seed)
    wanted, found, wrong = recovery.recovered(capture, recovery.pairs(capture), damaged, tmp_path / "lost.pcap", inside)
    assert len(wanted) > 1000
    assert wrong == []
    assert found >= recovery.BAR * len(wanted)
