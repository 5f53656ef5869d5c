"""The law of host names: what brokers advertise decides nothing. A capture whose brokers list host names has the
findings that it has with their addresses.
"""

from pathlib import Path

import pytest

from tests.depth import DEEP
from wirecheck import library
from wirecheck.decode.peer import Peer
from wirecheck.judge.claims.extract import replicas, servers
from wirecheck.judge.claims.reduce import Column

ROOT = Path(__file__).parents[2]
WORK = ROOT / "tests" / "scenarios" / "work"
CAPTURES = [
    ROOT / "examples" / "kraft4-stale-broker",
    WORK / "poison",
    WORK / "stopped-vanished-misnamed",
    WORK / "batch-readers",
    *([one.parent for one in sorted((ROOT / "tests" / "scenarios").rglob("capture.pcap.gz"))] if DEEP else []),
]


def found(path):
    return {(one.code, one.topic or "", one.client_ids, one.brokers) for one in library.replay(path).findings}


@pytest.fixture
def host_names(monkeypatch):
    """Brokers list host names from now on."""
    spelled = servers.addresses_of

    def named(table, host="host"):
        column = spelled(table, host)
        peers = [Peer.of(text) for text in column.values]
        names = [f"kafka-{one.host.replace('.', '-')}.example:{one.port}" for one in peers]
        return Column(column.codes, names)

    def use():
        for module in (servers, replicas):
            monkeypatch.setattr(module, "addresses_of", named)

    return use


@pytest.mark.parametrize("folder", CAPTURES, ids=lambda one: one.name)
def test_host_names_add_no_finding_and_take_none(folder, host_names):
    path = folder / "capture.pcap.gz"
    before = found(path)
    host_names()
    assert found(path) == before
