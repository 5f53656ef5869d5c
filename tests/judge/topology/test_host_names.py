"""Where brokers advertise host names, what an endpoint serves shows which broker it is."""

from itertools import permutations

import pytest

from tests.judge.lab import B1, B2, B3, ID_1, ID_2, ID_3, Lab
from wirecheck.judge.checks.shapes import captured_brokers

ID_4 = "vQ0iPcnTSAyxDFwuP5yHTg"
NAMES = {"kafka-1:9092": 1, "kafka-2:9092": 2, "kafka-3:9092": 3}
LED = [(B1, ID_1, 1), (B2, ID_2, 2), (B3, ID_3, 3)]


class Named(Lab):
    """A lab whose brokers list each other by host names."""

    def leads(self, at, topic_id, leader, *, server=B1, brokers=NAMES, epoch=0):
        self.metadata(at, [(f"t-{topic_id[:3]}", topic_id, 0, epoch)], server=server, brokers=brokers, leader=leader)

    def resolved(self):
        self.judge()
        return dict(self.judged.clusters.resolved)


def cluster(led=LED, *, brokers=NAMES):
    lab = Named()
    for at, (server, topic_id, leader) in enumerate(led):
        lab.leads(at, topic_id, leader, brokers=brokers)
        lab.fetches([at + 1], topic_id, server=server)
    return lab


@pytest.mark.parametrize("order", list(permutations(LED)))
def test_each_endpoint_is_the_leader_of_what_it_serves(order):
    assert cluster(order).resolved() == {B1: 1, B2: 2, B3: 3}


def test_an_endpoint_that_serves_nothing_is_no_broker_that_is_known():
    assert cluster(LED[:2]).resolved() == {B1: 1, B2: 2}


def test_a_cluster_of_one_broker_has_one_whatever_its_endpoints():
    lab = cluster(LED[:1], brokers={"localhost:9092": 1})
    lab.leads(3, ID_1, 1, server=B2, brokers={"localhost:9092": 1})
    assert lab.resolved() == {B1: 1, B2: 1}


def test_another_port_is_another_listener():
    lab = cluster(LED[:1], brokers={"localhost:29092": 1})
    assert lab.resolved() == {}


def test_where_addresses_are_listed_nothing_is_concluded():
    assert cluster(brokers={**NAMES, B3: 3}).resolved() == {}


def test_a_leader_that_moved_shows_what_was_stated_before():
    lab = cluster()
    lab.leads(20, ID_1, 2, epoch=1)
    lab.fetches([21], ID_1, server=B2)
    assert lab.resolved() == {B1: 1, B2: 2, B3: 3}


def test_a_leader_that_no_statement_names_shows_nothing():
    """Broker 3 leads all while the others restart; who led before was stated, and who leads after was not."""
    lab = cluster()
    lab.leads(10, ID_4, 3)
    lab.fetches([11, 30], ID_4, server=B3)
    lab.fetches([50, 60], ID_4, server=B1)
    assert lab.resolved() == {B1: 1, B2: 2, B3: 3}


def test_several_leaders_of_what_one_endpoint_serves_show_nothing():
    """Those of the others were not captured."""
    lab = cluster()
    for at, leader in enumerate((2, 3)):
        lab.leads(10 + at, ID_4, leader, epoch=at)
    lab.fetches([9, 60], ID_4, server=B1)
    assert lab.resolved() == {B1: 1, B2: 2, B3: 3}


def test_each_listener_of_a_broker_serves_what_it_leads():
    internal = {B1.replace("9092", "9093"): 1, B2.replace("9092", "9093"): 2}
    both = {**NAMES, **{f"kafka-{number}:9093": number for number in (1, 2, 3)}}
    lab = cluster(brokers=both)
    for at, (server, topic_id) in enumerate(zip(internal, (ID_1, ID_2), strict=True)):
        lab.metadata(at, [], server=server, brokers=both)
        lab.fetches([at + 1.5], topic_id, server=server)
    assert lab.resolved() == {B1: 1, B2: 2, B3: 3, **internal}


def test_a_follower_that_clients_fetch_from_shows_nothing():
    """KIP-392: the leader and a follower serve the partition at one time."""
    lab = cluster()
    lab.leads(10, ID_4, 1)
    for server in (B1, B3):
        lab.fetches([9, 30], ID_4, server=server)
    assert lab.resolved() == {B1: 1, B2: 2, B3: 3}


def test_an_endpoint_that_serves_what_several_lead_is_none_of_them():
    """One address of several brokers."""
    lab = cluster(LED[:2])
    for at, (topic_id, leader) in enumerate([(ID_3, 3), (ID_4, 2)]):
        lab.leads(20 + at, topic_id, leader)
        lab.fetches([21 + at], topic_id, server=B3)
    assert lab.resolved() == {B1: 1, B2: 2}


def test_a_topic_by_name_alone_counts_too():
    lab = Named()
    for number, (server, leader) in enumerate([(B1, 1), (B2, 2)]):
        lab.metadata(number, [(f"t{number}", None)], server=server, version=8, brokers=NAMES, leader=leader)
        row = {"partitionIndex": 0, "highWatermark": 10, "records": None, "abortedTransactions": None}
        asked = {"topics": [{"topic": f"t{number}", "partitions": [{"partition": 0}]}], "replicaId": -1}
        answer = {"responses": [{"topic": f"t{number}", "partitions": [row]}]}
        lab.talk(server).ask(number + 1, "Fetch", 11, asked, answer)
    assert lab.resolved() == {B1: 1, B2: 2}


def captured(lab):
    lab.judge()
    context = lab.judged.context()
    return captured_brokers(context.clusters.of(B1, 0), context)


def test_all_brokers_were_captured_where_each_name_has_an_endpoint():
    assert captured(cluster()) == {B1, B2, B3}
    assert captured(cluster(LED[:2])) is None


def test_a_broker_that_answers_no_more_may_have_got_another_address():
    lab = cluster()
    lab.fetches([80], ID_1, server=B1)
    lab.fetches([80], ID_2, server=B2)
    assert captured(lab) is None
    lab.fetches([80], ID_3, server=B3)
    assert captured(lab) == {B1, B2, B3}


def test_what_was_shown_outlives_the_judge():
    lab = cluster()
    lab.judge()
    stored = lab.judged.shards()
    again = type(lab.judged)("lab", stored.get, lab.judged.settings)
    assert again.host_names.left == lab.judged.host_names.left
    assert dict(again.clusters.resolved) == {B1: 1, B2: 2, B3: 3}
