"""Cases of the WIR, VIS and DRF checks, in bytes."""

from tests.judge.cases_forwarding import listed, through
from tests.judge.lab import B1, B2, B3, BROKERS, CLUSTER, ID_1, START, disagrees_at, disagrees_later, lacks, ns
from wirecheck.decode.connection.exchanges import CLOSED_BY_CLIENT, CLOSED_BY_SERVER, NO_RESPONSE_DUE, ORPHAN, PENDING
from wirecheck.decode.layouts.program import Dialect

LIBRDKAFKA = b"\0\0\0\0\1\0\0"


def broken(talk, number, tail, *, spare=0):
    """The message with bytes too many behind it, or without its last ones."""
    data, *rest = talk.messages[number]
    talk.messages[number] = (data[: len(data) - spare] + tail, *rest)
    return talk


@disagrees_at(0)
def wir003_fires(lab):
    broken(lab.metadata(0, [("orders", None)]), 1, b"\0\0")


def wir003_near_miss__one_spare_byte_of_a_server(lab):
    broken(lab.metadata(0, [("orders", ID_1)]), 1, b"\0")


def wir003_fires__a_server(lab):
    """Its clients are no senders of it."""
    for host, client_id in (("10.0.0.97", "app"), ("10.0.0.98", "billing"), ("10.0.0.99", None)):
        broken(lab.metadata(0, talk=lab.talk(client_id=client_id, host=host)), 1, b"\0\1\2\3")


def wir003_fires__a_client(lab):
    """It sends the same to two brokers."""
    for server in (B1, B2):
        broken(lab.metadata(0, talk=lab.talk(server)), 0, b"\1\2\3")


def wir003_fires__what_a_broker_closes_on(lab):
    """Another one reads it."""
    broken(lab.metadata(0, talk=lab.talk(B1)), 0, b"\1\2\3")
    broken(lab.talk(B2).refused(1, "Metadata", 12, {"topics": None}), 0, b"\1\2\3")


FRONT = "10.0.9.1:9092"


def relayed(lab, *, front=b"", back=b"", client_id="app", local="10.0.8.1"):
    """A client's request that a host receives at a port of its own, and what comes out of that host."""
    for server, host, tail in ((FRONT, local, front), (B1, "10.0.9.1", back)):
        talk = lab.metadata(0.5, [("orders", ID_1)], server=server, talk=lab.talk(server, client_id, host))
        if tail:
            broken(talk.refused(1, "Metadata", 12, {"topics": None}), 2, tail)
        else:
            talk.ask(1, "Metadata", 12, {"topics": None}, {"clusterId": None})


def wir003_fires__what_comes_out_of_a_host_that_received_it_whole(lab):
    """Too few requests to know the host as a proxy."""
    relayed(lab, back=b"\1\2\3")


def wir003_fires__a_client_beside_a_server(lab):
    """It runs on the server's host, and another instance elsewhere."""
    relayed(lab, client_id="app", local="10.0.9.1", back=b"\1\2\3")


def proxied(lab, *, front=b"", back=b""):
    """The same through a proxy that is known."""
    through(lab)
    relayed(lab, front=front, back=back, client_id="app-1")


def wir003_fires__a_proxy_that_breaks_what_it_sends_on(lab):
    proxied(lab, back=b"\1\2\3")


def wir003_fires__a_client_behind_a_proxy(lab):
    proxied(lab, front=b"\1\2\3", back=b"\1\2\3")


def wir003_fires__a_server_behind_a_proxy(lab):
    listed(lab, B1, B2)
    through(lab)
    for server, host in ((FRONT, "10.0.8.1"), (B1, "10.0.9.1")):
        broken(lab.metadata(0, talk=lab.talk(server, "app-1", host), server=server), 1, b"\0\1\2\3")


def wir003_near_miss(lab):
    """What librdkafka sends too much is known."""
    talk = lab.talk(client_id="rdkafka").ask(0, "Metadata", 12, {"topics": None}, {"clusterId": None})
    data, *rest = talk.messages[0]
    talk.messages[0] = (data[:-4] + LIBRDKAFKA, *rest)
    asks_for_versions(lab)


def asks_for_versions(lab):
    """As librdkafka up to 1.x does."""
    return broken(lab.talk(client_id="rdkafka").ask(0, "ApiVersions", 0, {}, {}), 0, bytes(4))


def wir003_cannot_know(lab):
    """The connection has a gap: nobody knows where messages begin behind it."""
    talk = broken(lab.metadata(0, [("orders", None)]), 1, b"\0\0")
    talk.facts.update(gaps=(lacks(START, 1, 1448),), unseen_response_bytes=1448)


def unreadable(lab, key, version):
    talk = lab.metadata(0)
    for number in (0, 1):
        data, side, _, _, *rest = talk.messages[number]
        talk.messages[number] = (data, side, key, version, *rest)


@disagrees_at(0)
def wir004_fires(lab):
    unreadable(lab, 120, 0)


def wir004_near_miss(lab):
    lab.metadata(0)


def wir004_cannot_know(lab):
    """An answer whose request was not seen has no key at all."""
    talk = lab.metadata(0)
    talk.messages, talk.exchanges = talk.messages[1:], [(-1, 0, 2)]


@disagrees_at(0)
def wir005_fires(lab):
    unreadable(lab, 3, 30)


wir005_near_miss, wir005_cannot_know = wir004_near_miss, wir004_cannot_know


@disagrees_at(0)
def wir006_fires(lab):
    talk = lab.talk(client_id="rdkafka").ask(0, "Metadata", 12, {"topics": None}, {"clusterId": None})
    data, *rest = talk.messages[0]
    talk.messages[0] = (data[:-4] + LIBRDKAFKA, *rest)
    asks_for_versions(lab)


def wir006_fires__a_server(lab):
    """Two clients receive it."""
    for host in ("10.0.0.98", "10.0.0.99"):
        broken(lab.metadata(0, [("orders", ID_1)], talk=lab.talk(host=host)), 1, b"\0")
        broken(lab.metadata(1, [("orders", ID_1)], server=B2), 1, b"\0")


def wir006_fires__no_throttle_time(lab):
    lab.metadata(0)
    broken(lab.talk().ask(1, "ApiVersions", 2, {}, {"apiKeys": [{"apiKey": 3, "maxVersion": 8}]}), 1, b"", spare=4)


def wir006_near_miss(lab):
    lab.metadata(0)


def wir006_cannot_know(lab):
    """Other bytes too many are nothing that is known."""
    broken(lab.metadata(0), 0, b"\1\2\3")


def stray(lab, **facts):
    talk = lab.metadata(0)
    talk.facts.update(facts)
    talk.messages = [*talk.messages, talk.messages[1]]
    talk.exchanges.append((-1, 2, ORPHAN))


@disagrees_at(0)
def wir001_fires(lab):
    stray(lab)


def wir001_near_miss(lab):
    lab.metadata(0)


def wir001_cannot_know(lab):
    stray(lab, gaps=(lacks(START, 0, 100),), unseen_request_bytes=100)


def swapped(lab, **facts):
    talk = lab.metadata(0)
    lab.metadata(1, talk=talk)
    talk.facts.update(facts)
    talk.early = {1}


@disagrees_at(1)
def wir002_fires(lab):
    swapped(lab)


def wir002_near_miss(lab):
    """Ids that repeat, as SASL's do, are in order all the same."""
    talk = lab.metadata(0)
    lab.metadata(1, talk=talk)
    talk.messages = [(*message[:4], 7, message[5]) for message in talk.messages]


def wir002_cannot_know(lab):
    swapped(lab, from_start=False)


@disagrees_at(0)
def vis001_fires(lab):
    lab.metadata(0).facts.update(gaps=(lacks(START, 1, 1448),), unseen_response_bytes=1448)


def vis001_fires__where_a_snap_length_cut(lab):
    lab.metadata(0).facts.update(cut_bytes=900, cut_segments=3)


def vis001_near_miss(lab):
    lab.metadata(0)


vis001_cannot_know = vis001_near_miss


@disagrees_at(0)
def vis002_fires(lab):
    lab.metadata(0).facts.update(from_start=False)


def vis002_near_miss(lab):
    lab.metadata(0)


def vis002_cannot_know(lab):
    """What does not speak Kafka is not said to be missing."""
    lab.metadata(0).facts.update(from_start=False, protocol="other")


@disagrees_at(0)
def vis003_fires(lab):
    lab.metadata(0).facts.update(protocol="tls")


def vis003_near_miss__a_handshake_that_was_given_up(lab):
    lab.metadata(0).facts.update(protocol="tls", tls_unfinished=True, closed_by="client-fin")


def vis003_near_miss(lab):
    lab.metadata(0)


def vis003_cannot_know(lab):
    lab.metadata(0).facts.update(protocol="undecided")


def open_at_close(lab, api, closed, version=12, **request):
    """A request at 10 s that is still open when the client gives up."""
    talk = lab.metadata(0)
    talk.ask(10, api, version, request, outcome=CLOSED_BY_CLIENT)
    talk.closed = closed
    lab.until = max(lab.until, closed + 1)


@disagrees_at(0)
def vis004_fires(lab):
    open_at_close(lab, "Metadata", 80, topics=None)
    lab.talk().ask(0, "Fetch", 12, {"maxWaitMs": 500}, outcome=PENDING)
    lab.until = 90


def vis004_near_miss(lab):
    """No response is due (acks=0), the server is given time, or the connection closes soon, as when a broker stops."""
    lab.talk().ask(0, "Produce", 9, {"acks": 0}, outcome=NO_RESPONSE_DUE)
    open_at_close(lab, "Fetch", 80, maxWaitMs=30_000)
    open_at_close(lab, "Heartbeat", 12, version=4)
    lab.talk(client_id="3").ask(12, "StopReplica", 3, {}, outcome=CLOSED_BY_SERVER).closed = 12.5
    open_at_close(lab, "JoinGroup", 200, version=7)


def vis004_cannot_know(lab):
    """The capture ended before the answer came."""
    lab.metadata(0)
    lab.talk().ask(60, "Fetch", 12, {"maxWaitMs": 500}, outcome=PENDING)
    lab.until = 100


def given_up(lab, api="Produce", version=9, *, waited=30.1, times=(10, 41), client_id="writer", quota_ms=0, **request):
    """A client that asks, waits, closes the connection and tries again on another."""
    lab.metadata(0)
    for at in times:
        talk = lab.talk(client_id=client_id).ask(at - 1, "Metadata", 12, {"topics": None}, {"clusterId": None})
        if quota_ms:
            talk.ask(at - 0.5, "Produce", 9, {"acks": -1}, {"throttleTimeMs": quota_ms})
        talk.ask(at, api, version, request or {"acks": -1, "timeoutMs": 30_000}, outcome=CLOSED_BY_CLIENT)
        talk.closed = at + waited
        talk.facts.update(closed_by="client-fin")
        lab.until = max(lab.until, talk.closed + 1)


@disagrees_at(10)
def wir007_fires(lab):
    given_up(lab, "ApiVersions", 3)


def wir007_fires__one_wait(lab):
    given_up(lab, "Fetch", 12, times=(10,), maxWaitMs=500)


def takes_no_connection(lab):
    (found,) = lab.findings("WIR007")
    return "full" in {word["name"] for word in found["words"]}


def serves_others(lab, times):
    talk = lab.talk(client_id="connected before")
    for at in times:
        talk.ask(at, "Metadata", 12, {"topics": None}, {"clusterId": None})


def wir007_fires__the_listener_has_all_its_connections(lab):
    """max.connections: the kernel accepts it, and no broker reads from it."""
    given_up(lab, "ApiVersions", 3, times=(10, 45, 80))
    serves_others(lab, range(1, 115, 4))
    assert takes_no_connection(lab)


def wir007_fires__requests_on_connections_that_work(lab):
    given_up(lab, "Metadata", 12, times=(10, 45, 80), topics=None)
    serves_others(lab, range(1, 115, 4))
    assert not takes_no_connection(lab)


def wir007_fires__who_was_connected_gets_nothing_either(lab):
    given_up(lab, "ApiVersions", 3, times=(10, 45, 80))
    serves_others(lab, (1, 4, 112))
    assert not takes_no_connection(lab)


def wir007_near_miss__a_quota(lab):
    """The server has said for how long it will read nothing more from the connection."""
    given_up(lab, "Metadata", 12, quota_ms=60_000)


def wir007_fires__behind_a_quota_that_is_over(lab):
    given_up(lab, "Metadata", 12, quota_ms=2_000)


def wir007_near_miss__late_answers(lab):
    lab.metadata(0).ask(10, "Fetch", 12, {"maxWaitMs": 500}, {"responses": []}, answered_in=45)
    lab.until = 60


def wir007_near_miss(lab):
    """It closes in time, or waits as long as it allowed, for others of its group, or as a broker."""
    given_up(lab)
    given_up(lab, "Metadata", 12, waited=5, topics=None)
    given_up(lab, "Fetch", 12, waited=29, maxWaitMs=30_000)
    given_up(lab, "JoinGroup", 7, waited=200, times=(10,))
    given_up(lab, "Metadata", 12, client_id="broker-2-fetcher-0", topics=None)
    lab.talk().ask(10, "Produce", 9, {"acks": 0, "timeoutMs": 500}, outcome=NO_RESPONSE_DUE)
    lab.until = 300


def wir007_fires__the_client_takes_data_again_and_the_server_is_silent(lab):
    given_up(lab, "ApiVersions", 3)
    for talk in lab.talks[1:]:
        talk.closed += 40
        talk.facts.update(blocked_until_ns=ns(talk.messages[-1][-1] + 40))
    lab.until += 40


def wir007_near_miss__the_client_takes_no_data(lab):
    """Its receive window is 0, for all of the wait, or for all but the last seconds."""
    given_up(lab, "ApiVersions", 3)
    for talk in lab.talks[1:]:
        talk.facts.update(blocked_until_ns=1 << 62)
    lab.talks[-1].facts.update(blocked_until_ns=ns(lab.talks[-1].closed - 2))


def wir007_near_miss__behind_a_request_that_may_wait(lab):
    """A broker answers the requests of a connection in turn: who leaves while it joins waits for the other members."""
    lab.metadata(0)
    talk = lab.talk(client_id="member").ask(9, "Metadata", 12, {"topics": None}, {"clusterId": None})
    talk.ask(10, "JoinGroup", 7, {"groupId": "g"}, outcome=CLOSED_BY_CLIENT)
    talk.ask(20, "LeaveGroup", 4, {"groupId": "g"}, outcome=CLOSED_BY_CLIENT)
    talk.closed = 55
    talk.facts.update(closed_by="client-fin")
    lab.until = 60


def wir007_near_miss__the_controller_has_to_answer_first(lab):
    """Brokers forward these: a quorum without a leader lets them wait, and no broker hangs."""
    given_up(lab, "CreateTopics", 7, topics=[], timeoutMs=1000)
    given_up(lab, "IncrementalAlterConfigs", 1, resources=[])


def wir007_near_miss__transactions_wait_for_replicas_and_the_controller(lab):
    given_up(lab, "InitProducerId", 4)
    given_up(lab, "EndTxn", 3)


def wir007_near_miss__replicas_have_to_confirm_it(lab):
    given_up(lab, "StreamsGroupHeartbeat", 0, groupId="g")
    given_up(lab, "ShareAcknowledge", 1, topics=[])
    given_up(lab, "DeleteRecords", 2, topics=[])
    given_up(lab, "DeleteGroups", 2, groupsNames=[])


def wir007_near_miss__waits_that_are_far_apart(lab):
    given_up(lab, "Metadata", 12, waited=15, times=(10, 100, 200), topics=None)


def wir007_cannot_know(lab):
    """The response may be in what was not captured, or come after the capture."""
    lab.metadata(0)
    for facts in (
        {"gaps": (lacks(START, 1, 100),), "unseen_response_bytes": 100},
        {"gaps": (lacks(START, 0, 100),), "unseen_request_bytes": 100},
        {"cut_bytes": 900, "cut_segments": 3},
        {"from_start": False, "responses": 0},
    ):
        talk = lab.talk(client_id="writer")
        talk.ask(10, "Produce", 9, {"acks": -1, "timeoutMs": 30_000}, outcome=CLOSED_BY_CLIENT)
        talk.closed = 60
        talk.facts.update(closed_by="client-fin", **facts)
    lab.talk().ask(10, "Fetch", 12, {"maxWaitMs": 500}, outcome=PENDING)
    lab.until = 70


def foreign(lab, **facts):
    """Bytes that are no Kafka at a server that speaks it with others."""
    lab.metadata(0)
    talk = lab.talk()
    talk.facts.update({"protocol": "other", "payload_bytes": 78, **facts})
    return talk


@disagrees_at(0)
def vis007_fires(lab):
    foreign(lab)


def vis007_fires__too_few_to_tell(lab):
    foreign(lab, protocol="undecided", closed_by="client-fin")


def vis007_near_miss(lab):
    """A connection that carried nothing, as that of a port scanner."""
    foreign(lab, payload_bytes=0)


def vis007_near_miss__at_a_server_of_something_else(lab):
    foreign(lab).server = "10.0.0.1:80"


def vis007_cannot_know(lab):
    """It is still open, and has not said enough."""
    foreign(lab, protocol="undecided")


def vis007_cannot_know__what_a_snap_length_cut(lab):
    """Kafka's bytes without most of each message look like nothing at all."""
    foreign(lab, cut_bytes=900, cut_segments=3)
    foreign(lab, protocol="undecided", closed_by="client-fin", cut_bytes=900, cut_segments=3)


def vis001_near_miss__of_what_is_no_kafka(lab):
    foreign(lab, gaps=(lacks(START, 0, 1448),), unseen_request_bytes=1448)


def two_agents(lab, behind, *, ended):
    lab.metadata(0)
    lab.until = 200
    lab.agents = {"one": (200, True), "two": (behind, ended)}


@disagrees_at(0)
def vis005_fires(lab):
    two_agents(lab, 20, ended=False)


def vis005_near_miss(lab):
    two_agents(lab, 180, ended=False)


def vis005_cannot_know(lab):
    """It ended in order."""
    two_agents(lab, 20, ended=True)


@disagrees_at(0)
def vis006_fires(lab):
    lab.metadata(0, [("orders", ID_1)])
    lab.planted = ("TID013",)


def vis006_near_miss(lab):
    """A check that would raise, and that nothing asks: no topic has an id."""
    lab.metadata(0, [("orders", None)], version=5)
    lab.planted = ("FET001", "CTL011")


def vis006_cannot_know(lab):
    """What was not seen, or cannot be told, is no exception."""
    lab.fetches([0, 50], ID_1)
    lab.talk(from_start=False, unseen_response_bytes=100).ask(1, "Metadata", 12, {"topics": None})


def drafted(lab, error=0):
    talk = lab.talk()
    talk.dialect = Dialect.KIP516_DRAFT
    talk.drafted(0, "StopReplica", 2, {}, {"errorCode": error})


@disagrees_at(0)
def drf001_fires(lab):
    drafted(lab)


def drf001_near_miss(lab):
    lab.talk().ask(0, "StopReplica", 2, {}, {})


drf001_cannot_know = drf001_near_miss


@disagrees_at(0)
def drf002_fires(lab):
    lab.metadata(0, [("orders", None, 1003)], version=9)


def drf002_near_miss(lab):
    lab.metadata(0, [("orders", None, 100)], version=9)


def drf002_cannot_know(lab):
    """What was answered was not seen."""
    talk = lab.metadata(0, [("orders", None, 1003)], version=9)
    talk.messages, talk.exchanges = talk.messages[:1], [(0, -1, 3)]


def served(lab, times, **facts):
    """A client that B1 answers at once, at each of these times."""
    talk = lab.metadata(times[0], **facts)
    for at in times[1:]:
        talk.ask(at, "Metadata", 12, {"topics": None}, {})
    return talk


def waiting(lab, sent, answered_at, api="Metadata", version=12, **request):
    """A client whose request waits for its answer."""
    lab.talk().ask(sent, api, version, request, {}, answered_in=answered_at - sent)


@disagrees_at(22)
def vis008_fires(lab):
    """20 s of silence, then two clients get what they had waited for."""
    served(lab, [*range(20), 41, 42, 43])
    waiting(lab, 22, 40.0)
    waiting(lab, 25, 40.1, "Fetch", maxWaitMs=500)
    lab.until = 60


def vis008_near_miss(lab):
    """One client alone waits, while others are answered; or all are silent, and nothing had waited."""
    served(lab, [*range(50)])
    waiting(lab, 22, 40.0)
    waiting(lab, 25, 40.1)
    lab.until = 60


def vis008_near_miss__nobody_asked(lab):
    served(lab, [*range(20), 41, 42, 43])
    lab.until = 60


def vis008_near_miss__asked_late(lab):
    """Nobody asked for 14 s of the 20 without an answer, so 7 s is all that it is known to have stood still."""
    served(lab, [*range(20), 41, 42, 43])
    waiting(lab, 33, 40.0)
    waiting(lab, 33.1, 40.1)
    lab.until = 60


def vis008_near_miss__what_a_request_allows(lab):
    """Long polls of an idle topic, and a rebalance, end at one time."""
    served(lab, [*range(20), 41, 42])
    waiting(lab, 20, 40.0, "Fetch", maxWaitMs=20_000)
    waiting(lab, 20, 40.1, "Fetch", maxWaitMs=20_000)
    waiting(lab, 22, 40.1, "JoinGroup", 7)
    waiting(lab, 22, 40.2, "Produce", 9)
    lab.until = 60


def vis008_cannot_know(lab):
    """One connection: its answer may be late for reasons of its own."""
    served(lab, [*range(20), 41, 42])
    waiting(lab, 22, 40.0)
    lab.until = 60


DEAD = "10.0.0.9:9092"


def wir008_refuses(lab, times, *, named_until=90, **facts):
    """Brokers name a ninth one at an address where connections are reset."""
    for at in range(0, 91, 5):
        lab.metadata(at, brokers={**BROKERS, **({DEAD: 9} if at <= named_until else {})})
    for at in times:
        lab.talk(DEAD, over=True, close_ns=ns(at), **{"closed_by": "server-rst", **facts})


@disagrees_at(10)
def wir008_fires(lab):
    wir008_refuses(lab, range(10, 80, 3))


def wir008_fires__a_client_is_cut_off(lab):
    """It asks other brokers meanwhile; its host is refused where broker 9 is said to be."""
    wir008_refuses(lab, ())
    talk = lab.talk(client_id="app", host="10.0.0.77")
    for at in range(0, 90, 10):
        lab.metadata(at, brokers={**BROKERS, DEAD: 9}, talk=talk)
    for at in range(10, 80, 3):
        lab.talk(DEAD, "app", "10.0.0.77", over=True, close_ns=ns(at), closed_by="server-rst")


def cut_off_clients(lab):
    return {client for finding in lab.findings("WIR008") for client in finding["client_ids"]}


def wir008_fires__several_on_one_host(lab):
    """Two ask for metadata only, again and again; one looks once, and one works."""
    wir008_refuses(lab, ())
    for client_id, times in (("app", range(0, 90, 5)), ("job", range(1, 90, 5)), ("kcat", (20,)), ("fine", ())):
        talk = lab.talk(client_id=client_id, host="10.0.0.77")
        for at in times:
            lab.metadata(at, brokers={**BROKERS, DEAD: 9}, talk=talk)
        if client_id == "fine":
            lab.fetches(range(0, 90, 5), ID_1, client_id=client_id, host="10.0.0.77", talk=talk)
    for at in range(10, 80, 3):
        lab.talk(DEAD, "app", "10.0.0.77", over=True, close_ns=ns(at), closed_by="server-rst")
    assert cut_off_clients(lab) == {"app", "job"}


def wir008_fires__one_of_several_asks_as_often_as_before(lab):
    """metadata.max.age.ms is 5 s there; another client of its host is refused."""
    wir008_refuses(lab, (), named_until=200)
    for at in range(95, 201, 5):
        lab.metadata(at, brokers={**BROKERS, DEAD: 9})
    for client_id, times in (("steady", range(0, 200, 5)), ("fine", (1, 190)), ("half", range(100, 200, 4))):
        talk = lab.talk(client_id=client_id, host="10.0.0.77")
        for at in times:
            lab.metadata(at, brokers={**BROKERS, DEAD: 9}, talk=talk)
        lab.fetches(range(min(times), 200, 5), ID_1, client_id=client_id, host="10.0.0.77", talk=talk)
    for at in range(105, 190, 3):
        lab.talk(DEAD, "half", "10.0.0.77", over=True, close_ns=ns(at), closed_by="server-rst")
    assert cut_off_clients(lab) == {"half"}


def wir008_fires__one_of_several_reads_elsewhere(lab):
    """It reads what other brokers lead, and asks for metadata after each refused connection. Others of its host read
    and are content, or asked at a listener where broker 9 has another address.
    """
    wir008_refuses(lab, ())
    for client_id, times, dead in (("half", range(0, 90, 4), DEAD), ("fine", (1,), DEAD), ("inner", range(90), INSIDE)):
        talk = lab.talk(B1 if dead == DEAD else B2, client_id, "10.0.0.77")
        for at in times:
            lab.metadata(at, brokers={**BROKERS, dead: 9}, talk=talk)
        lab.fetches(range(0, 90, 5), ID_1, client_id=client_id, host="10.0.0.77", talk=talk)
    for at in range(10, 80, 3):
        lab.talk(DEAD, "half", "10.0.0.77", over=True, close_ns=ns(at), closed_by="server-rst")
    assert cut_off_clients(lab) == {"half"}


def gone_at(lab, at, clients):
    """Broker 9 refuses connections from then on, and brokers name it still: controllers have no leader. Each client of
    one host reads there until then; when it asks for metadata, and for its coordinator.
    """
    for when in range(0, at + 100, 5):
        lab.metadata(when, brokers={**BROKERS, DEAD: 9})
    lab.metadata(1, brokers={**BROKERS, DEAD: 9}, server=DEAD)
    for client_id, (metadata, coordinator) in clients.items():
        begun = range(min(metadata) + 1, at, 5)
        lab.fetches(begun, ID_1, client_id=client_id, host="10.0.0.77", server=DEAD)
        talk = lab.talk(client_id=client_id, host="10.0.0.77")
        for when in metadata:
            lab.metadata(when, brokers={**BROKERS, DEAD: 9}, talk=talk)
        for when in coordinator:
            talk.ask(when, "FindCoordinator", 2, {"key": "g", "keyType": 0}, {"nodeId": 9, "port": 9092})
    for when in range(at, at + 90, 3):
        lab.talk(DEAD, "a", "10.0.0.77", over=True, close_ns=ns(when), closed_by="server-rst")


def wir008_fires__those_that_the_broker_served(lab):
    """One looks for the leader since and one for its coordinator; others look as often as before, or are content."""
    clients = {"a": ([1, *range(70, 160, 4)], ()), "b": ([1], range(71, 160, 4))}
    gone_at(lab, 70, clients | {"steady": (range(1, 160, 4), ()), "fine": ((1, 120), ())})
    assert cut_off_clients(lab) == {"a", "b"}


def wir008_fires__others_look_as_often_as_before(lab):
    """Of four rhythms; one began shortly before."""
    steady = {f"s{pace}": (range(1, 160, pace), ()) for pace in (10, 15, 17, 20)}
    gone_at(lab, 70, {"a": ([1, *range(70, 160, 4)], ()), **steady, "young": (range(40, 160, 10), ())})
    assert cut_off_clients(lab) == {"a"}


def wir008_fires__one_is_served_there_still(lab):
    """Over a connection that it has kept."""
    gone_at(lab, 70, {"a": ([1, *range(70, 160, 4)], ())})
    lab.fetches(range(75, 160, 5), ID_1, client_id="a", host="10.0.0.77", server=INSIDE)
    for when in range(1, 160, 5):
        lab.metadata(when, brokers={**BROKERS, INSIDE: 9}, server=B2)
    assert not cut_off_clients(lab)


INSIDE = "10.0.0.8:9092"
BEHIND = "10.0.0.1:9192"
DOUBLING = [10, 10.1, 10.2, 10.4, 10.8, 11.6, 13.2, 16.4, 22.8, 36, 62.9, 98]
"""kafka-python waits twice as long each time, up to 36 s."""


def the_only_broker(lab, until=110, others=()):
    """It names an address that refuses, once: kafka-python asks for metadata when it connects."""
    talk = lab.talk(BEHIND, "app", "10.0.0.77")
    lab.metadata(9.9, talk=talk, brokers={DEAD: 9, **dict(others)})
    talk.ask(until, "ApiVersions", 3, {}, {"errorCode": 0})
    for at in DOUBLING:
        lab.talk(DEAD, "app", "10.0.0.77", over=True, close_ns=ns(at), closed_by="server-rst")
    lab.until = 120


def wir008_fires__the_only_broker(lab):
    the_only_broker(lab)
    assert cut_off_clients(lab) == {"app"}


def wir008_near_miss__the_only_broker_stops(lab):
    """Its connections end when it does."""
    the_only_broker(lab, until=11)


def wir008_near_miss__one_of_two_named_once(lab):
    """It may be down: no client asks for metadata again."""
    the_only_broker(lab, others={B1: 1}.items())


def wir008_near_miss(lab):
    """A broker is down, and the others stop naming it."""
    wir008_refuses(lab, range(10, 80, 3), named_until=20)


def wir008_near_miss__a_restart(lab):
    wir008_refuses(lab, range(10, 40, 2))


def wir008_near_miss__answers_others(lab):
    wir008_refuses(lab, range(10, 80, 3))
    lab.metadata(40, brokers={**BROKERS, DEAD: 9}, server=DEAD)


def wir008_near_miss__comes_back(lab):
    """A broker was down. Since it is back, the others name it again."""
    wir008_refuses(lab, range(10, 60, 3), named_until=15)
    for server in (None, DEAD):
        lab.metadata(70, brokers={**BROKERS, DEAD: 9}, **({"server": server} if server else {}))


def wir008_near_miss__clients_give_up(lab):
    wir008_refuses(lab, range(10, 80, 3), closed_by="client-rst")


def wir008_cannot_know(lab):
    """What was sent before the resets is not in the capture."""
    wir008_refuses(lab, range(10, 80, 3), from_start=False)


NOWHERE = "10.0.0.5:9099"


def wir009_refuses(lab, times, *, endpoint=NOWHERE, host="10.0.0.9", **facts):
    """A client with a wrong port, while others work."""
    for at in range(0, 91, 5):
        lab.metadata(at)
    for at in times:
        lab.talk(endpoint, None, host, over=True, close_ns=ns(at), **{"closed_by": "server-rst", **facts})


@disagrees_at(10)
def wir009_fires(lab):
    wir009_refuses(lab, range(10, 66))
    (found,) = lab.findings("WIR009")
    assert found["summary"].startswith("10.0.0.9 was refused at 10.0.0.5:9099 56 times in 55 s")
    assert found["kind"] == "information"


def wir009_fires__less_and_less_often(lab):
    wir009_refuses(lab, DOUBLING)
    lab.until = 140


def wir009_near_miss(lab):
    """A broker whose address the others name: it is WIR008's."""
    wir008_refuses(lab, range(10, 80, 3))


def wir009_near_miss__a_broker_that_is_down(lab):
    """The others stop naming it."""
    wir008_refuses(lab, range(10, 80, 3), named_until=20)


def wir009_near_miss__an_old_address_of_several(lab):
    """One of bootstrap.servers: a client tries it once in a while."""
    wir009_refuses(lab, (10, 30, 50, 70))


def wir009_near_miss__it_starts_at_last(lab):
    wir009_refuses(lab, range(10, 66))
    lab.metadata(80, server=NOWHERE, brokers={})


def wir009_near_miss__the_other_loopback_address(lab):
    """`localhost` is ::1 first, and nothing listens there."""
    wir009_refuses(lab, range(10, 66), endpoint="[::1]:9092", host="::1")
    for at in range(10, 66):
        lab.metadata(at, server="127.0.0.1:9092", brokers={"localhost:9092": 1})


def wir009_near_miss__a_restart(lab):
    wir009_refuses(lab, range(10, 35))


def wir009_cannot_know(lab):
    """What was sent before the resets is not in the capture."""
    wir009_refuses(lab, range(10, 66), from_start=False)


def begins_tls(lab, times, *, host="10.0.0.9", unfinished=True, **facts):
    """A client with security.protocol=SSL at a plaintext listener, while others work there."""
    for at in range(0, 91, 5):
        lab.metadata(at)
    for at in times:
        how = {"over": True, "protocol": "tls", "payload_bytes": 240, "tls_unfinished": unfinished, **facts}
        lab.talk(B1, None, host, **how).closed = at


@disagrees_at(10)
def wir010_fires(lab):
    begins_tls(lab, range(10, 76))


def wir010_near_miss(lab):
    """A health check looks once in a while."""
    begins_tls(lab, (10, 70))


def wir010_near_miss__the_certificate_is_renewed(lab):
    """Its handshakes succeed at last."""
    begins_tls(lab, range(10, 76))
    begins_tls(lab, [80], unfinished=False, payload_bytes=9000)


def wir010_near_miss__sessions(lab):
    begins_tls(lab, range(10, 76), unfinished=False, payload_bytes=9000)


def wir010_cannot_know(lab):
    """The beginnings of its connections are not in the capture."""
    begins_tls(lab, range(10, 76), from_start=False)


def restarted(lab, pauses, *, until=200, brokers=BROKERS):
    """Each broker is away from one time to another; a client asks it every second."""
    for server in brokers:
        away = pauses.get(server, (0, 0))
        talk = None
        for at in range(until):
            if away[0] <= at < away[1]:
                talk = None
                lab.talk(server, None, "10.0.0.9", over=True, close_ns=ns(at), closed_by="server-rst")
            else:
                talk = talk or lab.talk(server, "app", "10.0.0.9")
                lab.metadata(at, talk=talk, brokers=brokers)
    lab.until = until


@disagrees_later("what stays away: from the last answer of any broker")
def clu006_fires(lab):
    restarted(lab, {B1: (20, 110), B2: (22, 112), B3: (21, 115)})
    (found,) = lab.findings("CLU006")
    assert "for 89 s" in found["summary"]
    assert sorted(found["brokers"]) == [1, 2, 3]


def clu006_fires__until_the_end(lab):
    restarted(lab, {B1: (20, 200), B2: (22, 200), B3: (21, 200)})
    (found,) = lab.findings("CLU006")
    assert "since" in found["summary"]


def clu006_fires__a_controller_answers(lab):
    restarted(lab, {B1: (20, 110), B2: (22, 112), B3: (21, 115)})
    talk = lab.talk("10.0.0.1:9093", "raft-client-2", "10.0.0.2")
    for at in range(200):
        talk.ask(at, "Fetch", 12, {"clusterId": CLUSTER, "topics": []}, {"responses": []})


def clu006_near_miss(lab):
    """A rolling restart, of more than a minute each."""
    restarted(lab, {B1: (20, 85), B2: (90, 150), B3: (155, 190)})


def clu006_near_miss__a_single_broker_restarts(lab):
    restarted(lab, {B1: (20, 58)}, brokers={B1: 1})


def clu006_near_miss__one_broker_was_not_captured(lab):
    """It may have answered."""
    restarted(lab, {B1: (20, 110), B2: (22, 112), B3: (21, 115)})
    lab.talks = [talk for talk in lab.talks if talk.server != B3]


def clu006_near_miss__nobody_asks(lab):
    restarted(lab, {B1: (20, 110), B2: (22, 112), B3: (21, 115)})
    lab.talks = [talk for talk in lab.talks if talk.facts.get("closed_by") != "server-rst"]


def clu006_cannot_know(lab):
    """What was sent before the resets is not in the capture."""
    restarted(lab, {B1: (20, 110), B2: (22, 112), B3: (21, 115)})
    for talk in lab.talks:
        if talk.facts.get("closed_by") == "server-rst":
            talk.facts["from_start"] = False
