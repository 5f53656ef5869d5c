"""Cases of proxies and balancers that keep names (CLU005), in bytes: what comes in goes out again."""

from tests.judge.lab import B1, B2, ID_1, ID_2

PROXY, OTHER_PROXY = "10.0.9.1:9092", "10.0.9.1:9093"
ONE, TWO, FRONT = "127.0.0.1:9092", "127.0.0.1:9093", "127.0.0.1:19092"
SECONDS = 30
STEP_S = 0.11


def fetched(talk, at, number, session=7, *, answered_in=0.02, **more):
    """A fetch of a session, as a client with nothing to read sends it."""
    asked = {"sessionId": session, "sessionEpoch": number, "replicaId": -1, "topics": [], **more}
    talk.ask(at, "Fetch", 13, asked, {"responses": [], "sessionId": session}, answered_in=answered_in)


def times(seconds=SECONDS, offset=0.0):
    return [(number, offset + number * STEP_S) for number in range(1, int(seconds / STEP_S))]


def through(
    lab, clients=3, *, front=PROXY, target=B1, host="10.0.8.{}", lost=(), seconds=SECONDS, session=100, back=None
):
    """Clients whose requests a proxy sends on; `lost`: which of them were not captured behind it; `back`: from which
    address it sends.
    """
    for client in range(clients):
        proxy_host = back.format(client) if back else front.partition(":")[0]
        name = f"app-{client}"
        outer = lab.talk(front, name, host.format(client))
        inner = lab.talk(target, name, proxy_host)
        for number, at in times(seconds, client * 0.017):
            fetched(outer, at, number, session + client)
            if number % 50 not in lost:
                fetched(inner, at + 0.002, number, session + client, answered_in=0.01)
    lab.until = max(lab.until, seconds + 20)


def listed(lab, *servers):
    for server in servers:
        lab.metadata(0, [("orders", ID_1)], server=server, brokers={one: n for n, one in enumerate(servers, 1)})


def clu005_fires__a_balancer(lab):
    through(lab)


def clu005_fires__of_which_some_packets_were_lost(lab):
    through(lab, lost=(3, 17, 31))


def clu005_fires__on_one_host(lab):
    through(lab, front=FRONT, target=ONE, host="127.0.0.1")
    listed(lab, ONE, TWO)


def clu005_fires__with_a_port_for_each_broker(lab):
    listed(lab, B1, B2)
    through(lab)
    through(lab, front=OTHER_PROXY, target=B2, session=200)


def clu005_fires__beside_an_application(lab):
    """What the proxy's host sends by itself stays a client of its own."""
    through(lab)
    own = lab.talk(B1, "beside", "10.0.9.1")
    for number, at in times(SECONDS, 0.05):
        fetched(own, at, number, 900)


def renamed(lab, seconds=SECONDS):
    """Each client's writes name a topic, which the proxy gives its tenant's name; fetches name none."""
    through(lab)
    for client in range(3):
        for server, host, late, topic in ((PROXY, f"10.0.8.{client}", 0, "own"), (B1, "10.0.9.1", 0.002, "a-own")):
            talk = lab.talk(server, f"app-{client}", host)
            asked = {"acks": 1, "topicData": [{"name": topic, "partitionData": []}]}
            for _, at in times(seconds, 0.013 * client):
                talk.ask(at + late, "Produce", 9, asked, {"responses": []}, answered_in=0.02 - 5 * late)


def clu005_fires__that_renames_topics(lab):
    renamed(lab)


def clu003_near_miss__a_proxy_of_both_legs(lab):
    """Its tenant's name is that of another topic behind it, and no broker was asked for the topic's own name."""
    renamed(lab)
    for at in range(0, SECONDS + 10, 5):
        lab.metadata(at, [("own", ID_1)], server=PROXY, brokers={PROXY: 1})
        lab.metadata(at, [("own", ID_2)], server=B1, brokers={B1: 1})
    lab.until = SECONDS + 20


def keeps_the_old_id(lab, *, directly=(), until=100, front=PROXY, target=B1, host="10.0.8.{}"):
    """A proxy that goes on giving the ID of before; what it forwards to gives the new one, as that broker does to who
    asks it `directly`, at another listener.
    """
    through(lab, front=front, target=target, host=host)
    asked = [(front, ID_1, front), (target, ID_2, target), *((end, ID_2, end) for end in directly)]
    for server, _, listed_at in asked:
        lab.metadata(0, [("orders", ID_1, 0, 4)], server=server, brokers={listed_at: 1})
    lab.deleted(30, "orders", ID_1)
    for at in range(40, 100, 2):
        for late, (server, topic_id, listed_at) in enumerate(asked):
            now = topic_id if at < until else ID_2
            lab.metadata(at + late / 10, [("orders", now)], server=server, brokers={listed_at: 1})
    lab.until = 120


def tid007_fires__a_proxy_keeps_the_old_id(lab):
    keeps_the_old_id(lab)
    (found,) = lab.findings("TID007")
    assert found["brokers"] == []
    assert "the proxy at 10.0.9.1 reports" in found["summary"]


def tid007_near_miss__a_proxy_learns_the_new_id_soon(lab):
    keeps_the_old_id(lab, until=60)


def in_turns(lab):
    """What a balancer of several brokers gives while one of them, which was not captured, keeps the old ID."""
    through(lab)
    for server, listed_at in ((PROXY, PROXY), (B1, B1)):
        lab.metadata(0, [("orders", ID_1, 0, 4)], server=server, brokers={listed_at: 1})
    lab.deleted(30, "orders", ID_1)
    for number, at in enumerate(range(40, 100, 2)):
        lab.metadata(at, [("orders", ID_2 if number % 3 else ID_1)], server=PROXY, brokers={PROXY: 1})
        lab.metadata(at + 0.1, [("orders", ID_2)], server=B1, brokers={B1: 1})
    lab.until = 120


def tid007_fires__a_balancer_gives_the_old_id_in_turn(lab):
    """A restart of it helps no client."""
    in_turns(lab)
    (found,) = lab.findings("TID007")
    assert "proxy" not in found["summary"]


def tid007_fires__a_proxy_on_the_host_of_its_broker(lab):
    """Who fetches at the broker itself did not get the ID from it."""
    keeps_the_old_id(lab, front=FRONT, target=ONE, host="127.0.0.1")
    (found,) = lab.findings("TID007")
    assert {"name": "at", "value": FRONT} in found["words"]


def clu003_near_miss__a_proxy_that_keeps_an_old_id_beside_another_listener(lab):
    keeps_the_old_id(lab, directly=["10.0.0.1:9192"])


def clu003_fires__two_stacks_of_one_number(lab):
    """The same without requests that came out again."""
    for at in range(0, SECONDS + 10, 5):
        lab.metadata(at, [("own", ID_1)], server=PROXY, brokers={PROXY: 1})
        lab.metadata(at, [("own", ID_2)], server=B1, brokers={B1: 1})
    lab.until = SECONDS + 20


def clu005_near_miss__one_question_in_ten_to_both_brokers(lab):
    """On one host, and the second answers first: that a client asks two servers the same proves nothing."""
    first, second = (lab.talk(server, "exporter", "127.0.0.1") for server in (ONE, TWO))
    reads = lab.talk(ONE, "app", "127.0.0.1")
    for number, at in times():
        fetched(reads, at + 0.03, number, 5)
        first.ask(at, "ListGroups", 3, {}, {"groups": []}, answered_in=0.01)
        second.ask(at + 0.0001, "ListGroups", 3, {}, {"groups": []}, answered_in=0.001)
    lab.until = SECONDS + 20


def clu005_fires__with_two_interfaces(lab):
    through(lab, back="10.0.7.1")


def clu005_fires__of_several_proxies_behind_one_address(lab):
    """The balancer rewrites addresses, and was captured where clients see it."""
    through(lab, back="10.0.7.{}")


def clu005_fires__with_two_interfaces_and_brokers_that_are_listed(lab):
    listed(lab, B1, B2)
    through(lab, back="10.0.7.1")
    through(lab, front=OTHER_PROXY, target=B2, session=200, back="10.0.7.1")


def clu005_fires__on_one_host_with_an_address_of_its_own(lab):
    """Clients, proxy and broker connect from 127.0.0.1."""
    through(lab, front="127.0.0.9:9092", target=ONE, host="127.0.0.1", back="127.0.0.1")


def clu005_fires__of_a_translation_that_two_agents_captured(lab):
    """Each sees one side, so packets could not be compared; the server sees the clients' own addresses."""
    through(lab, back="10.0.8.{}")


def clu005_near_miss__an_exporter_of_two_clusters(lab):
    """It asks both in one round; the second answers first, and otherwise."""
    one, other = lab.talk(B1, "exporter", "10.0.8.1"), lab.talk(B2, "exporter", "10.0.8.1")
    for _, at in times():
        for talk, delay, took, group in ((one, 0, 0.01, "billing"), (other, 0.001, 0.001, "stock")):
            talk.ask(at + delay, "ListGroups", 3, {}, {"groups": [{"groupId": group}]}, answered_in=took)
    lab.until = SECONDS + 20


def clu005_near_miss__an_application_on_two_hosts(lab):
    """Two instances with one client ID and one configuration, each with its own sessions."""
    one, other = lab.talk(B1, "app", "10.0.8.1"), lab.talk(B2, "app", "10.0.8.2")
    for number, at in times():
        fetched(one, at, number, 5)
        fetched(other, at + 0.001, number, 6, answered_in=0.002)
    lab.until = SECONDS + 20


def clu005_near_miss__exporters_on_two_hosts(lab):
    """Both ask the same in one round, one within the time of the other: their brokers are two, as a list shows."""
    listed(lab, B1, B2)
    one, other = lab.talk(B1, "exporter", "10.0.8.1"), lab.talk(B2, "exporter", "10.0.8.2")
    for _, at in times():
        one.ask(at, "ListGroups", 3, {}, {"groups": []}, answered_in=0.01)
        other.ask(at + 0.001, "ListGroups", 3, {}, {"groups": []}, answered_in=0.001)
    lab.until = SECONDS + 20


def clu005_near_miss__exporters_of_two_clusters_in_lockstep(lab):
    """What is asked first is answered first."""
    one, other = lab.talk(B1, "exporter", "10.0.8.1"), lab.talk(B2, "exporter", "10.0.8.2")
    for _, at in times():
        one.ask(at, "ListGroups", 3, {}, {"groups": []}, answered_in=0.001)
        other.ask(at + 0.0001, "ListGroups", 3, {}, {"groups": []}, answered_in=0.001)
    lab.until = SECONDS + 20


def clu005_near_miss__clients_of_two_clusters_of_which_the_second_answers_first(lab):
    """Each in its own cluster, as their brokers say."""
    lab.metadata(0, server=B1, brokers={B1: 1})
    lab.metadata(0, server=B2, brokers={B2: 1}, cluster_id="another-cluster-id-000")
    one, other = lab.talk(B1, "app", "10.0.8.1"), lab.talk(B2, "app", "10.0.8.2")
    for _, at in times():
        one.ask(at, "ListGroups", 3, {}, {"groups": []}, answered_in=0.01)
        other.ask(at + 0.001, "ListGroups", 3, {}, {"groups": []}, answered_in=0.001)
    lab.until = SECONDS + 20


def clu005_near_miss__followers_on_two_hosts(lab):
    """Of one session number, each at its own leader: nodes are no clients of a proxy."""
    for server, host, delay in ((B1, "10.0.0.3", 0), (B2, "10.0.0.4", 0.001)):
        follower = lab.talk(server, "broker-3-fetcher-0", host)
        for number, at in times(SECONDS, delay):
            fetched(follower, at, number, 5, replicaId=3, answered_in=0.03 - 20 * delay)
    lab.until = SECONDS + 20


def clu005_near_miss__one_client_of_two_brokers_on_one_host(lab):
    """It asks both in one round, and the second answers first."""
    listed(lab, ONE, TWO)
    first, second = (lab.talk(server, "app", "127.0.0.1") for server in (ONE, TWO))
    for number, at in times():
        fetched(first, at, number, 5)
        fetched(second, at + 0.0001, number, 6, answered_in=0.001)
    lab.until = SECONDS + 20


def clu005_near_miss__an_exporter(lab):
    """The same question to both brokers in one round: they are two, as a list shows."""
    listed(lab, ONE, TWO)
    first, second = (lab.talk(server, "exporter", "127.0.0.1") for server in (ONE, TWO))
    for _, at in times():
        first.ask(at, "ListGroups", 3, {}, {"groups": []}, answered_in=0.01)
        second.ask(at + 0.0001, "ListGroups", 3, {}, {"groups": []}, answered_in=0.001)
    lab.until = SECONDS + 20


def clu005_near_miss__two_clients_in_lockstep(lab):
    """Of two clusters on one host: what each is asked first, it answers first."""
    first, second = (lab.talk(server, "poller", "127.0.0.1") for server in (ONE, TWO))
    for number, at in times():
        fetched(first, at, number, 5, answered_in=0.001)
        fetched(second, at + 0.0001, number, 5, answered_in=0.001)
    lab.until = SECONDS + 20


def clu005_near_miss__followers_and_a_consumer(lab):
    """On one host, each at its own pace, and the followers with the same bytes."""
    listed(lab, ONE, TWO)
    for server, broker in ((ONE, 2), (TWO, 1)):
        follower = lab.talk(server, f"broker-{broker}-fetcher-0", "127.0.0.1")
        for number, at in times(SECONDS, 0.001 * broker):
            fetched(follower, at, number, 5, replicaId=broker, answered_in=0.03 / broker)
    consumer = lab.talk(ONE, "app", "127.0.0.1")
    for number, at in times(SECONDS, 0.04):
        fetched(consumer, at, number, 11)
    lab.until = SECONDS + 20


def clu005_near_miss__a_mirror(lab):
    """It reads from one cluster and writes what it read to the other, on one host."""
    reads, writes = lab.talk(ONE, "mirror", "127.0.0.1"), lab.talk(TWO, "mirror", "127.0.0.1")
    for number, at in times():
        fetched(reads, at, number, answered_in=0.05)
        writes.ask(at + 0.001, "Produce", 8, {"acks": 1, "topicData": []}, {"responses": []})
    lab.until = SECONDS + 20


def clu005_near_miss__applications_beside_a_broker(lab):
    """The broker's host sends requests of the same kind to another broker, of other sessions."""
    listed(lab, B1, B2)
    there, beside = lab.talk(B1, "app", "10.0.8.1"), lab.talk(B2, "app", "10.0.0.1")
    for number, at in times():
        fetched(there, at, number, 5)
        fetched(beside, at + 0.001, number, 6, answered_in=0.002)
    lab.until = SECONDS + 20


def clu005_near_miss__too_few_requests(lab):
    through(lab, clients=1, seconds=4)


def clu005_near_miss__half_of_it_comes_out(lab):
    through(lab, lost=range(25))


def clu005_cannot_know__only_the_clients_side(lab):
    for client in range(3):
        outer = lab.talk(PROXY, f"app-{client}", f"10.0.8.{client}")
        for number, at in times(SECONDS, client * 0.017):
            fetched(outer, at, number, 100 + client)
    lab.metadata(0, [("orders", ID_2)], server=PROXY, brokers={PROXY: 1})
    lab.until = SECONDS + 20
