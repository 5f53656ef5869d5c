"""What a proxy sends on counts once, for the client in front of it; all else counts as before."""

from itertools import pairwise

import pytest

from tests.build import plain
from tests.questions.test_traffic import MS, START, capture, fetch
from tests.traffic import Talk
from wirecheck.decode.show.message_lines import followed
from wirecheck.questions import counted_once
from wirecheck.questions.changes import Changes
from wirecheck.questions.error_rows import error_rows
from wirecheck.questions.recent_traffic import RecentTraffic
from wirecheck.questions.traffic import Call, Traffic

PROXY, BROKER, OTHER = ("10.0.9.1", 9092), ("10.0.1.3", 9092), ("10.0.1.4", 9092)
CLIENT = ("10.0.4.12", 40000)
REQUESTS = 300


def asked(talk, number, *, wait_ms, at_ms, error=0):
    talk.ts_ns = START + at_ms * MS
    answer = {"errorCode": error, "groupId": "g"} if error else {"errorCode": 0}
    talk.request(
        plain("Heartbeat", "request", 4, {"groupId": f"g-{number}"}, {"correlationId": number, "clientId": "app"})
    )
    talk.ts_ns = START + (at_ms + wait_ms) * MS
    talk.response(plain("Heartbeat", "response", 4, answer, {"correlationId": number}))


def both_legs(requests=REQUESTS, lost=0, back=PROXY[0]):
    outer = Talk(client=CLIENT, server=PROXY, ts_ns=START - 50 * MS).open()
    own = {"client_seq": 70_000_000, "server_seq": 90_000_000}  # of a proxy; those of NAT are equal
    inner = Talk(client=(back, 50000), server=BROKER, ts_ns=START - 50 * MS, **own).open()
    for number in range(requests):
        error = 27 if number % 10 == 0 else 0
        asked(outer, number, wait_ms=8, at_ms=number * 40, error=error)
        if number >= lost:
            asked(inner, number, wait_ms=4, at_ms=number * 40 + 2, error=error)
    return outer.close(), inner.close()


def own_traffic(client=(PROXY[0], 51000)):
    talk = Talk(client=client, server=BROKER, ts_ns=START - 40 * MS).open()
    for number in range(20):
        fetch(talk, number, client_id="beside")
    return talk.close()


def named(addresses, server=OTHER):
    talk = Talk(client=("10.0.4.13", 41000), server=server, ts_ns=START - 60 * MS).open()
    brokers = [{"nodeId": number, "host": host, "port": port} for number, (host, port) in enumerate(addresses, 1)]
    talk.request(plain("Metadata", "request", 12, {"topics": []}, {"correlationId": 1, "clientId": "looks"}))
    talk.response(plain("Metadata", "response", 12, {"brokers": brokers, "topics": []}, {"correlationId": 1}))
    return talk.close()


@pytest.mark.parametrize("back", [PROXY[0], "10.0.7.1"], ids=["one-address", "two-addresses"])
def test_requests_and_errors_count_once(back):
    traffic = Traffic().read([capture(*both_legs(back=back), own_traffic())])
    counts = {call: one.count for call, one in traffic.calls.items()}
    assert counts == {
        Call("app", "10.0.4.12", "10.0.9.1:9092", "Heartbeat"): REQUESTS,
        Call("beside", "10.0.9.1", "10.0.1.3:9092", "Fetch"): 20,
    }
    (row,) = error_rows(traffic)
    assert (row.count, row.requests, row.host) == (30, REQUESTS, "10.0.4.12")
    assert row.servers == row.through == ("10.0.9.1:9092",)
    assert f"{4 * REQUESTS + 40:,} messages, all decoded, {2 * REQUESTS} of them sent on by a proxy" in traffic.text()
    assert Changes().read([capture(*both_legs(back=back))]).text().count("sent on") == 0


@pytest.mark.parametrize("back", [PROXY[0], "10.0.7.1"], ids=["one-address", "two-addresses"])
def test_a_change_through_a_proxy_counts_once(back):
    """Also where nothing but the other requests shows that it sends from another address."""
    created = [*created_through(back)]
    rows = [*Changes().read([capture(*both_legs(back=back), *created)]).merged()]
    assert [(one.host, one.via_broker) for one in rows] == [(CLIENT[0], "10.0.9.1:9092")]
    without = [*Changes().read([capture(*created)]).merged()]
    assert len(without) == (1 if back == PROXY[0] else 2)


def test_a_change_through_a_proxy_that_renames_topics_counts_once_under_the_clients_name():
    created = [*created_through("10.0.7.1", behind="tenant-songs")]
    rows = [*Changes().read([capture(*both_legs(back="10.0.7.1"), *created)]).merged()]
    assert [(one.host, one.object) for one in rows] == [(CLIENT[0], "songs")]
    assert len([*Changes().read([capture(*created)]).merged()]) == 2


def created_through(back, *, behind="songs"):
    """A topic is created through the proxy: both legs."""
    for client, server, wait_ms in ((CLIENT, PROXY, 0), ((back, 50001), BROKER, 1)):
        own = {"client_seq": 80_000_000 + wait_ms * 1_000_000, "server_seq": 60_000_000 + wait_ms * 1_000_000}
        talk = Talk(client=(client[0], client[1] + 1), server=server, ts_ns=START + (7 + wait_ms) * MS, **own).open()
        name = behind if server == BROKER else "songs"
        body = {"topics": [{"name": name, "numPartitions": 1, "replicationFactor": 1}]}
        talk.request(plain("CreateTopics", "request", 7, body, {"correlationId": 5, "clientId": "admin"}))
        talk.ts_ns += (5 - 2 * wait_ms) * MS
        answer = {"topics": [{"name": name, "configs": []}]}
        talk.response(plain("CreateTopics", "response", 7, answer, {"correlationId": 5}))
        yield talk.close()


def test_one_leg_counts_as_it_is():
    for leg in both_legs():
        (one,) = Traffic().read([capture(leg)]).calls.values()
        assert one.count == REQUESTS


def test_what_was_read_before_a_proxy_is_known_counts_twice():
    whole = capture(*both_legs())
    cuts = [0, len(whole) // 8, len(whole) // 2, len(whole)]
    parts = [whole.slice(begin, end - begin) for begin, end in pairwise(cuts)]
    counts = {call.server: one.count for call, one in Traffic().read(parts).calls.items()}
    assert counts["10.0.9.1:9092"] == REQUESTS
    assert counts["10.0.1.3:9092"] < REQUESTS / 2


@pytest.mark.parametrize("apart", [True, False])
def test_two_brokers_of_one_list_are_no_legs(apart):
    talks = (*both_legs(), named([PROXY, BROKER] if apart else [PROXY]))
    servers = {call.server for call in Traffic().read([capture(*talks)]).calls}
    assert ("10.0.1.3:9092" in servers) == apart


def test_a_window_of_running_traffic_counts_once():
    recent = RecentTraffic(3600)
    for exchanges in followed([capture(*both_legs())]):
        recent.add(exchanges)
    assert [one.count for one in recent.traffic().calls.values()] == [REQUESTS]


def test_a_bound_on_what_is_kept(monkeypatch):
    monkeypatch.setattr(counted_once, "MOST_LEGS", 0)
    traffic = Traffic().read([capture(*both_legs(), own_traffic())])
    assert sum(one.count for one in traffic.calls.values()) == 2 * REQUESTS + 20


def test_an_address_of_several_brokers_keeps_its_name():
    traffic = Traffic().read([capture(named([PROXY, PROXY, BROKER], server=PROXY))])
    assert [traffic.brokers.named(end) for end in ("10.0.9.1:9092", "10.0.1.3:9092", "10.0.1.4:9092")] == [
        "10.0.9.1:9092",
        "3",
        "10.0.1.4:9092",
    ]


def test_two_clusters_are_no_legs_of_a_proxy():
    """A host of one cluster sends another cluster what it receives, at the same time: a mirror, or a test."""

    def counts(*more):
        found = Traffic().read([capture(*both_legs(), *more)])
        return sorted(call.server for call in found.calls if call.client_id == "app")

    assert counts() == ["10.0.9.1:9092"]
    assert counts(*(of_cluster(server, "one") for server in (PROXY, BROKER))) == ["10.0.9.1:9092"]
    assert counts(of_cluster(PROXY, "one"), of_cluster(BROKER, "other")) == ["10.0.1.3:9092", "10.0.9.1:9092"]


def of_cluster(server, cluster_id):
    talk = Talk(client=("10.0.4.13", 41000), server=server, ts_ns=START - 60 * MS).open()
    talk.request(plain("Metadata", "request", 12, {"topics": []}, {"correlationId": 1, "clientId": "looks"}))
    talk.response(plain("Metadata", "response", 12, {"clusterId": cluster_id, "topics": []}, {"correlationId": 1}))
    return talk.close()
