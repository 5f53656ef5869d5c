"""Wide captures hold what they say, and what is not found in them is an error of the bench."""

import pytest

from bench import wide
from bench.wide import Fleet


def test_all_of_a_fleet_is_found(tmp_path):
    spent = wide.cost(tmp_path / "wide.pcap", Fleet(6, 3, topics=4, partitions=3, brokers=5))
    assert spent.cpu_s > 0
    assert spent.memory_mb > 0


def test_a_fleet_that_is_not_found_is_an_error(tmp_path):
    pcap = tmp_path / "wide.pcap"
    pcap.write_bytes(b"".join(wide.packets(Fleet(2, 2))))
    with pytest.raises(RuntimeError, match="Fleet"):
        wide.replayed(pcap, Fleet(2, 2, topics=21))


@pytest.mark.parametrize("what", wide.WIDE)
def test_the_larger_fleet_is_larger_in_its_dimension_alone(what):
    fleet, grows = wide.WIDE[what]
    larger = fleet.times(*grows)
    assert {name for name in vars(fleet) if getattr(larger, name) != getattr(fleet, name)} == {*grows}
