"""What changes over a capture: the errors that `errors` counts, and numbers that controllers and brokers send."""

from pathlib import Path

from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.questions.over_time import SLOTS, OverTime
from wirecheck.questions.traffic import Traffic

ROOT = Path(__file__).resolve().parents[2]
STALE = ROOT / "examples/kraft4-stale-broker/capture.pcap.gz"
ZOMBIE = ROOT / "tests/scenarios/captures/zk39-zombie-controller/capture.pcap.gz"


def seen(capture, clients):
    whole = Traffic().read(read_frames([capture]))
    return OverTime(clients, whole.first_ns, whole.last_ns).read(read_frames([capture])).courses(), whole


def test_errors_of_the_named_clients_are_in_slots_and_all_of_them():
    courses, whole = seen(STALE, {"p-lost"})
    found = {(one.who, one.what): sum(filter(None, one.values)) for one in courses["errors"]}
    expected = {}
    for failure, failed in whole.failures.items():
        if failure.client_id == "p-lost":
            key = failure.client_id, failure.error
            expected[key] = expected.get(key, 0) + failed.count
    assert found == expected
    assert found["p-lost", "UNKNOWN_TOPIC_ID"] == 28
    assert all(len(one.values) == SLOTS for one in courses["errors"])


def test_the_broker_that_stands_still_keeps_its_offset():
    courses, _ = seen(STALE, ())
    last = {one.who: [value for value in one.values if value is not None][-1] for one in courses["offsets"]}
    assert last == {"2": 288, "3": 288, "4": 61}
    assert "errors" not in courses


def test_two_controllers_are_two_courses_of_epochs():
    courses, _ = seen(ZOMBIE, ())
    assert {one.who: set(one.values) - {None} for one in courses["epochs"]} == {"2": {2}, "3": {1}}
