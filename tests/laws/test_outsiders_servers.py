"""The law of servers that no member names: their logs, their brokers and their number change nothing about members.

Beside random grants (`test_granting.py`), these are what one server can do that knows all names, IDs and numbers of a
cluster, or what many can do that know its ClusterId alone.
"""

import pytest

from tests import traffic
from tests.build import plain
from tests.judge.lab import ID_2
from tests.laws.test_granting import capture  # noqa: F401 - a fixture
from tests.laws.test_refused import CLUSTERS, OUTSIDE, S, cards_of, findings_of, with_talks
from wirecheck import library

SERVER, CLIENT, PORT = f"{OUTSIDE}20", f"{OUTSIDE}10", 9092
ASKED = 30
"""So many times, from a third of the capture on."""
TOPIC_AUTHORIZATION_FAILED = 29
FAR_AHEAD = 1_000_000
BROKERS = 3
RECREATED = "tickets"
"""Its ID does not exist from the beginning."""
SOME, MANY = 4, 7
"""More servers than list one another in a captured cluster."""


class Client:
    """One connection of an outsider, which asks one thing after the other."""

    def __init__(self, of, server, client_id, number, share=1 / 3):
        self.begin_ns, self.step_ns = of.begin_s * S + int(of.seconds * S * share), of.seconds * S // (2 * ASKED)
        self.talk = traffic.Talk(client=(CLIENT, 40_000 + number), server=server, ts_ns=self.begin_ns, step_ns=20_000)
        self.talk.open()
        self.client_id, self.count = client_id, 0

    def ask(self, api, version, asked, answer, at=0):
        self.count += 1
        self.talk.ts_ns = max(self.talk.ts_ns, self.begin_ns + at * self.step_ns)
        header = {"correlationId": self.count, "clientId": self.client_id}
        self.talk.request(plain(api, "request", version, asked, header))
        self.talk.response(plain(api, "response", version, answer, {"correlationId": self.count}))


def brokers_of(of):
    """Those that its broker lists have."""
    every = [{"nodeId": n, "host": h, "port": p} for n, (h, p) in zip(of.nodes, of.servers, strict=True)]
    return every[-BROKERS:]


def metadata(of, brokers, topics):
    topics = [
        {"errorCode": 0, "name": name, "topicId": topic_id, "partitions": []} for name, topic_id in topics.items()
    ]
    return {"brokers": brokers, "clusterId": of.cluster_id, "controllerId": of.nodes[0], "topics": topics}


def after(name, clients, path):
    return library.replay(with_talks(name, [one.talk.close().segments for one in clients], path / "outsiders.pcap"))


def test_logs_of_a_server_that_no_member_names_are_not_the_clusters(capture, tmp_path):  # noqa: F811
    name, before = capture
    of = CLUSTERS[name]
    ids = [topic_id for topic, topic_id in of.topics.items() if topic != RECREATED]
    one = Client(of, (SERVER, PORT), of.clients[2], 0, share=1 / 15)
    one.ask("Metadata", 12, {"topics": None}, metadata(of, brokers_of(of), {}))
    for number in range(9):  # members go on for longer than it takes to notice that a log fell
        parts = [{"partition": 0, "currentLeaderEpoch": 0, "fetchOffset": number}]
        asked = [{"topicId": topic_id, "partitions": parts} for topic_id in ids]
        parts = [{"partitionIndex": 0, "errorCode": 0, "highWatermark": FAR_AHEAD, "records": ""}]
        answer = [{"topicId": topic_id, "partitions": parts} for topic_id in ids]
        request = {"replicaId": of.nodes[-1], "sessionEpoch": -1, "topics": asked}
        one.ask("Fetch", 13, request, {"responses": answer}, number)
    found = after(name, [one], tmp_path)
    assert findings_of(found) == findings_of(before)
    assert cards_of(found) == cards_of(before)


def test_a_server_that_no_member_names_makes_no_client_a_broker(capture, tmp_path):  # noqa: F811
    name, before = capture
    of = CLUSTERS[name]
    listed = [*brokers_of(of)[:-1], {"nodeId": of.nodes[-1], "host": CLIENT, "port": of.servers[-1][1]}]
    clients = []
    for number in range(ASKED):
        own = Client(of, (SERVER, PORT), "app", 2 * number)
        own.ask("Metadata", 12, {"topics": None}, metadata(of, listed, of.topics), number)
        replica = Client(of, of.servers[1 + number % 2], f"broker-{of.nodes[-1]}-fetcher-0", 2 * number + 1)
        parts = [{"partition": 0, "currentLeaderEpoch": 0, "fetchOffset": 0}]
        asked = [{"topic": topic, "partitions": parts} for topic in of.topics]
        parts = [{"partitionIndex": 0, "errorCode": TOPIC_AUTHORIZATION_FAILED}]
        answer = [{"topic": topic, "partitions": parts} for topic in of.topics]
        request = {"replicaId": of.nodes[-1], "sessionEpoch": -1, "topics": asked}
        replica.ask("Fetch", 11, request, {"responses": answer}, number)
        clients += [own, replica]
    found = after(name, clients, tmp_path)
    assert findings_of(found) == findings_of(before)
    assert cards_of(found) == cards_of(before)


@pytest.mark.parametrize(("api", "first"), [("DescribeCluster", 1), ("Metadata", 1), ("Metadata", 50)])
@pytest.mark.parametrize("count", [SOME, MANY])
@pytest.mark.parametrize("share", [0, 1 / 3])
def test_any_number_of_servers_that_list_one_another_hides_nothing(capture, api, first, count, share, tmp_path):  # noqa: F811
    name, before = capture
    of = CLUSTERS[name]
    hosts = [f"{OUTSIDE}{40 + number}" for number in range(count)]
    listed = [{"nodeId": first + n, "host": host, "port": PORT} for n, host in enumerate(hosts)]
    answers = {
        "Metadata": (12, {"topics": None}, metadata(of, listed, {})),
        "DescribeCluster": (1, {"endpointType": 1}, {
            "errorCode": 0, "endpointType": 1, "clusterId": of.cluster_id, "controllerId": 1,
            "brokers": [{**one, "brokerId": one["nodeId"]} for one in listed],
        }),
    }  # fmt: skip
    clients = []
    for number in range(ASKED * count):
        own = Client(of, (hosts[number % count], PORT), "app", number, share)
        own.ask(api, *answers[api], number // count)
        clients.append(own)
    found = after(name, clients, tmp_path)
    assert {*findings_of(before)} <= {*findings_of(found)}
    assert {*cards_of(before)} <= {*cards_of(found)}


def test_servers_without_a_cluster_id_that_have_the_numbers_of_all_brokers_change_nothing(capture, tmp_path):  # noqa: F811
    """Brokers state their ClusterId on each listener, so they are not one of members."""
    name, before = capture
    of = CLUSTERS[name]
    numbers = [broker["nodeId"] for broker in brokers_of(of)]
    hosts = [f"{OUTSIDE}{40 + number}" for number in range(MANY + BROKERS)]
    listed = [
        {"nodeId": n, "host": host, "port": PORT} for n, host in zip([*numbers, *range(50, 57)], hosts, strict=True)
    ]
    clients = []
    for number in range(ASKED * len(hosts)):
        state = {"partitionIndex": 0, "leaderId": numbers[number % BROKERS], "leaderEpoch": 300 + number // len(hosts)}
        answer = metadata(of, listed, of.topics) | {"clusterId": ""}
        for topic in answer["topics"]:
            topic["partitions"] = [{"errorCode": 0, **state, "replicaNodes": numbers, "isrNodes": numbers}]
        own = Client(of, (hosts[number % len(hosts)], PORT), "app", number)
        own.ask("Metadata", 12, {"topics": None}, answer, number // len(hosts))
        clients.append(own)
    found = after(name, clients, tmp_path)
    assert findings_of(found) == findings_of(before)
    assert cards_of(found) == cards_of(before)


@pytest.mark.parametrize("share", [1 / 15, 1 / 3])
@pytest.mark.parametrize("numbers", ["of brokers", "of their own"])
@pytest.mark.parametrize("count", [3, MANY])
def test_servers_that_list_one_another_alone_name_no_second_leader(capture, count, numbers, share, tmp_path):  # noqa: F811
    """Each of them names other leaders of all topics, in the epochs that there are: by lists they are a cluster."""
    name, before = capture
    of = CLUSTERS[name]
    brokers = [broker["nodeId"] for broker in brokers_of(of)]
    own = [*brokers, *range(50, 57)] if numbers == "of brokers" else [*range(50, 60)]
    hosts = [f"{OUTSIDE}{40 + number}" for number in range(count)]
    listed = [{"nodeId": n, "host": host, "port": PORT} for n, host in zip(own, hosts, strict=False)]
    clients = []
    for number in range(ASKED * count):
        state = {"partitionIndex": 0, "leaderId": brokers[number % BROKERS], "leaderEpoch": number % 2}
        answer = metadata(of, listed, of.topics)
        for topic in answer["topics"]:
            topic["partitions"] = [{"errorCode": 0, **state, "replicaNodes": brokers, "isrNodes": brokers}]
        one = Client(of, (hosts[number % count], PORT), "app", number, share=share)
        one.ask("Metadata", 12, {"topics": None}, answer, number // count)
        clients.append(one)
    found = after(name, clients, tmp_path)
    assert [one for one in findings_of(found) if one[0] == "CTL002"] == []
    assert {*cards_of(found)} == {*cards_of(before)} or share < 1 / 3  # who came first lists the brokers


def test_two_servers_that_list_one_another_are_no_listener_of_members(capture, tmp_path):  # noqa: F811
    """They have numbers of brokers, but not of all, and other IDs for all topics."""
    name, before = capture
    of = CLUSTERS[name]
    numbers = [broker["nodeId"] for broker in brokers_of(of)][:2]
    hosts = [f"{OUTSIDE}{40 + number}" for number in range(2)]
    listed = [{"nodeId": n, "host": host, "port": PORT} for n, host in zip(numbers, hosts, strict=True)]
    answer = metadata(of, listed, dict.fromkeys(of.topics, ID_2))
    clients = []
    for number in range(ASKED * 2):
        own = Client(of, (hosts[number % 2], PORT), "app", number)
        own.ask("Metadata", 12, {"topics": None}, answer, number // 2)
        clients.append(own)
    found = after(name, clients, tmp_path)
    assert findings_of(found) == findings_of(before)
    assert cards_of(found) == cards_of(before)


@pytest.mark.parametrize("share", [0, 1 / 3])
@pytest.mark.parametrize("api", ["Metadata", "DescribeCluster"])
@pytest.mark.parametrize("ids", ["of members", "of their own"])
@pytest.mark.parametrize("count", [3, MANY])
def test_servers_that_list_one_another_and_the_brokers_change_nothing(capture, count, ids, api, share, tmp_path):  # noqa: F811
    """The brokers go on without naming them."""
    name, before = capture
    of = CLUSTERS[name]
    true = brokers_of(of)
    hosts = [f"{OUTSIDE}{40 + number}" for number in range(count)]
    listed = [{"nodeId": 50 + n, "host": host, "port": PORT} for n, host in enumerate(hosts)] + true
    known = {topic: topic_id for topic, topic_id in of.topics.items() if topic != RECREATED}
    answer = metadata(of, listed, known if ids == "of members" else dict.fromkeys(of.topics, ID_2))
    numbers = [broker["nodeId"] for broker in true]
    for topic in answer["topics"]:
        state = {"errorCode": 0, "partitionIndex": 0, "leaderId": numbers[1], "leaderEpoch": 1}
        topic["partitions"] = [{**state, "replicaNodes": numbers, "isrNodes": numbers}]
    answers = {
        "Metadata": (12, {"topics": None}, answer),
        "DescribeCluster": (1, {"endpointType": 1}, {
            "errorCode": 0, "endpointType": 1, "clusterId": of.cluster_id, "controllerId": 50,
            "brokers": [{**one, "brokerId": one["nodeId"]} for one in listed],
        }),
    }  # fmt: skip
    clients = []
    for number in range(ASKED * count):
        own = Client(of, (hosts[number % count], PORT), "app", number, share)
        own.ask(api, *answers[api], number // count)
        clients.append(own)
    found = after(name, clients, tmp_path)
    assert findings_of(found) == findings_of(before)
    assert cards_of(found) == cards_of(before)
