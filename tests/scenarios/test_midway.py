"""Connections that were open when the capture began are counted once, on whichever side the lower port is."""

import pytest

from tests import build, traffic
from tests.scenarios.engines import frames, local
from tests.traffic import Talk

EXCHANGES, CONNECTIONS = 5, 3


def asked(number):
    return build.plain(
        "Metadata", "request", 9, {"topics": [{"name": "orders"}]}, {"correlationId": number, "clientId": "app"}
    )


def metadata_answer(number):
    body = {
        "brokers": [{"nodeId": 1, "host": "10.0.0.9", "port": 29092}],
        "clusterId": "c",
        "controllerId": 1,
        "topics": [{"name": "orders"}],
    }
    return build.plain("Metadata", "response", 9, body, {"correlationId": number})


def captured(folder, client_port, *, count=EXCHANGES):
    talks = []
    for number in range(CONNECTIONS):
        talk = Talk(client=("10.0.0.1", client_port + number), server=("10.0.0.9", 29092))
        for each in range(count):
            talk.request(asked(each)).response(metadata_answer(each))
        talks += talk.segments
    path = folder / "capture.pcap"
    path.write_bytes(traffic.pcap(traffic.packets(talks)))
    return path


@pytest.mark.parametrize("client_port", [20_000, 40_000])
def test_a_connection_joined_midway_counts_once_and_as_kafka(client_port, tmp_path):
    coverage = local(frames([captured(tmp_path, client_port)], tmp_path / "frames"))["coverage"]
    assert (coverage["frames"], coverage["connections"]) == (2 * EXCHANGES * CONNECTIONS, CONNECTIONS)
    assert coverage["details"]["connections"] == {"kafka": CONNECTIONS}


def test_a_connection_of_which_nobody_ever_knows_the_client_counts_once_too(tmp_path):
    coverage = local(frames([captured(tmp_path, 20_000, count=1)], tmp_path / "frames"))["coverage"]
    assert (coverage["frames"], coverage["connections"]) == (2 * CONNECTIONS, CONNECTIONS)
