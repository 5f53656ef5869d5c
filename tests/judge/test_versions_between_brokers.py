"""Versions between brokers, as a table: each API that only they send, in a version that its server advertises to
others, in one that it does not, and while the server is upgraded.
"""

import pytest

from tests.build import CASES
from tests.judge.cases_versions import between
from tests.judge.lab import Lab
from wirecheck.decode.layouts.program import Dialect

BETWEEN_BROKERS = (
    "LeaderAndIsr",
    "UpdateMetadata",
    "StopReplica",
    "ControlledShutdown",
    "WriteTxnMarkers",
    "Vote",
    "BeginQuorumEpoch",
    "EndQuorumEpoch",
    "FetchSnapshot",
    "AlterPartition",
    "Envelope",
    "BrokerRegistration",
    "BrokerHeartbeat",
    "AllocateProducerIds",
    "ControllerRegistration",
    "AssignReplicasToDirs",
    "UpdateRaftVoter",
)
"""Requests that only brokers and controllers send."""
NEWEST = {
    api: max(version for dialect, layout, version in CASES if dialect == Dialect.KAFKA and layout.api == api)
    for api in BETWEEN_BROKERS
}


def found(api, limit, **more):
    lab = Lab()
    between(lab, api, NEWEST[api], limit, **more)
    return [finding["summary"] for finding in lab.findings("VER002")]


@pytest.mark.parametrize("api", BETWEEN_BROKERS)
def test_a_version_outside_of_what_the_server_advertised_on_another_connection_is_found(api):
    version = NEWEST[api]
    says = f"3 sends {api} v{version} to broker 1 (10.0.0.1:9092), which does not advertise it; 2 times."
    assert found(api, version - 1) == [says]


@pytest.mark.parametrize("api", BETWEEN_BROKERS)
def test_a_version_inside_the_advertised_range_is_not_found(api):
    assert found(api, NEWEST[api]) == []


@pytest.mark.parametrize("api", BETWEEN_BROKERS)
def test_a_version_of_an_upgraded_server_is_not_found_before_and_after_it_is_heard(api):
    assert found(api, NEWEST[api] - 1, times=(30, 70), changed=NEWEST[api]) == []
