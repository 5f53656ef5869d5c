"""Healthy operations that look like two clusters, two processes or two logs: no violation, no anomaly. Each story has a
neighbour with one fault, which the same judge finds.
"""

import pytest

from tests.decode.log.batches import topic
from tests.judge.cases_control import id_bytes, node_beats, registers
from tests.judge.cases_lives import begins, requested, shows, writes
from tests.judge.lab import B1, B2, B3, ID_1, ID_2, ID_3, Lab

INTERNAL = {B1: 1, B2: 2, B3: 3}
OUTER = {address.replace(":9092", ":9192"): number for address, number in INTERNAL.items()}
PROXIES = {f"10.0.9.9:{9090 + number}": number for number in (1, 2, 3)}
MOVED = {f"10.0.7.{number}:9092": number for number in (1, 2, 3)}
LATER = 40
"""When a topic is recreated in most stories."""


def answers(lab, at, brokers, topic_id, servers=None):
    for server in servers or brokers:
        lab.metadata(at, [("orders", topic_id)], server=server, brokers=brokers)


def two_views(lab, outer, stale=None):
    """Clients see other addresses than brokers do; the topic is recreated; broker 2 is started again."""
    registers(lab, ID_1, [0], epoch=20, host="10.0.0.2", broker=2)
    node_beats(lab, 20, range(1, 50, 2), host="10.0.0.2", broker=2)
    registers(lab, ID_3, [55], epoch=70, host="10.0.0.2", broker=2)
    node_beats(lab, 70, range(56, 120, 2), host="10.0.0.2", broker=2)
    lab.deleted(LATER - 1, "orders", ID_1)
    for at in range(0, 120, 5):
        for brokers in (INTERNAL, outer):
            for server, number in brokers.items():
                old = at < LATER or number == stale  # a broker knows one ID, whichever listener it is asked at
                lab.metadata(at, [("orders", ID_1 if old else ID_2)], server=server, brokers=brokers)


def listeners(lab):
    two_views(lab, OUTER)


def listeners_and_one_stale_broker(lab):
    two_views(lab, OUTER, stale=2)


def a_proxy_per_broker(lab):
    two_views(lab, PROXIES)


def a_proxy_before_a_stale_broker(lab):
    two_views(lab, PROXIES, stale=3)


def rolling(lab, swapped=True):
    """One broker after the other gets another address; at last two of them swap theirs."""
    now = dict(INTERNAL)
    for step, (old, new) in enumerate(zip(INTERNAL, MOVED, strict=True)):
        answers(lab, 10 * step, now, ID_1)
        del now[old]
        now[new] = MOVED[new]
        answers(lab, 10 * step + 5, now, ID_1)
    one, two, three = MOVED
    lab.deleted(LATER - 1, "orders", ID_1)
    after = {one: 2, two: 1, three: 3} if swapped else now
    for at in range(LATER, 120, 5):
        answers(lab, at, after, ID_2)


def rolling_and_the_old_address_still_answers(lab):
    """The process at the old address of broker 2 goes on beside the new one, and knows nothing of the recreation."""
    rolling(lab, swapped=False)
    for at in range(LATER, 120, 5):
        answers(lab, at, dict(INTERNAL), ID_1, servers=[B2])


def moved_to_another_host(lab, until=40):
    """A node ID goes on in another process at another host."""
    registers(lab, ID_1, [0], epoch=20, broker=4)
    node_beats(lab, 20, range(1, until, 2))
    registers(lab, ID_2, range(42, 49), error=101, host="10.0.0.44")
    registers(lab, ID_2, [50], epoch=90, host="10.0.0.44")
    node_beats(lab, 90, range(51, 120, 2), host="10.0.0.44")


def moved_and_the_first_goes_on(lab):
    moved_to_another_host(lab, until=110)


def a_fresh_node_reads_the_log(lab, late=()):
    """A topic was recreated; then a node without a disk reads all records again."""
    old = writes(1, 1, 5, topic("orders", id_bytes(ID_1)))
    new = writes(21, 1, 40, topic("orders", id_bytes(ID_2)))
    shows(lab, 1, 10, begins(0, 1, 0), old)
    answers(lab, 2, INTERNAL, ID_1)
    lab.deleted(20, "orders", ID_1)
    shows(lab, 21, 60, new)
    for at in range(22, 120, 5):
        answers(lab, at, INTERNAL, ID_2)
    shows(lab, 90, 61, begins(0, 1, 0), old, new, *late)


def a_fresh_node_and_a_log_that_names_the_old_id_again(lab):
    """The last record gives the name its old ID back, and brokers go on with the other."""
    a_fresh_node_reads_the_log(lab, late=[writes(85, 1, 60, topic("orders", id_bytes(ID_1)))])


def two_clusters_that_swap_addresses(lab):
    """Each is one node; both are stopped, and go on at the other's address. One recreated its topic before."""
    blue, green = ("blue-cluster-id-22-char", 20, ID_1), ("green-cluster-id-22-cha", 31, ID_3)
    for since, until, places in ((0, 45, {B1: blue, B2: green}), (60, 120, {B2: blue, B1: green})):
        for server, (cluster_id, epoch, topic_id) in places.items():
            for at in range(since, until, 5):
                reported = ID_2 if topic_id == ID_1 and at > 20 else topic_id
                lab.metadata(at, [("orders", reported)], server=server, brokers={server: 1}, cluster_id=cluster_id)
                beat = {"brokerId": 1, "brokerEpoch": epoch, "currentMetadataOffset": epoch + at}
                lab.talk(server, "1", server.split(":")[0]).ask(at + 1, "BrokerHeartbeat", 1, beat, {"isFenced": False})
    lab.deleted(18, "orders", ID_1)


STORIES = [
    two_clusters_that_swap_addresses,
    listeners,
    a_proxy_per_broker,
    rolling,
    moved_to_another_host,
    a_fresh_node_reads_the_log,
]
FAULTS = [
    (listeners_and_one_stale_broker, "TID007"),
    (a_proxy_before_a_stale_broker, "TID007"),
    (rolling_and_the_old_address_still_answers, "TID007"),
    (moved_and_the_first_goes_on, "CTL012"),
    (a_fresh_node_and_a_log_that_names_the_old_id_again, "LOG002"),
]


def accused(story):
    lab = Lab()
    story(lab)
    lab.until = 200
    return {finding["code"] for finding in lab.findings() if finding["kind"] in {"violation", "anomaly"}}


def test_a_topic_is_recreated_in_a_cluster_that_moves_to_the_address_of_another():
    lab = Lab()
    two_clusters_that_swap_addresses(lab)
    lab.until = 200
    tables = lab.judge()
    states = {row["topic_id"]: row["state"] for row in tables["topics"].values()}
    assert states == {ID_1: "replaced", ID_2: "current", ID_3: "current"}
    found = [(one["code"], set(one["topic_ids"])) for one in lab.findings() if one["code"] in {"TID001", "CLU003"}]
    assert found == [("TID001", {ID_1, ID_2})]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_healthy_operation_has_no_finding(story):
    assert accused(story) == set()


@pytest.mark.parametrize(("story", "code"), FAULTS, ids=lambda part: getattr(part, "__name__", part))
def test_a_fault_beside_it_is_found(story, code):
    assert code in accused(story)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({}, True), ({"partition": 1}, False), ({"kind": 0}, False), ({"error": 84}, False)],
    ids=["as it was made", "another partition", "a preferred leader", "not needed"],
)
def test_an_unclean_election_names_who_requested_it(wrong, named):
    lab = Lab()
    requested(lab, **wrong)
    (found,) = [finding for finding in lab.findings() if finding["code"] == "CTL013"]
    assert ("which operator requested" in found["summary"]) is named
