"""Which endpoints forward what they receive: by samples of requests, whatever lost some of them."""

import random

import pytest

from wirecheck.decode import forwarding
from wirecheck.decode.forwarding import MOST_ALIKE, MOST_SAMPLED, Leg, Sample, Sampled, all_legs, forwarders

MS = 1_000_000
STRETCH = 1 << forwarding.STRETCH_BITS
FRONT, BACK, OTHER = "10.0.9.1:9092", "10.0.0.1:9092", "10.0.0.2:9092"
LEG = Leg("app", "10.0.9.1", BACK)


def request(number, delay=0, took=10 * MS, code=None):
    """The n-th request, one in a stretch, at its middle."""
    within = STRETCH // 2 + delay
    ts_ns = number * STRETCH + within
    return Sampled(number << 32 | within << 4, ts_ns, ts_ns + took, number if code is None else code)


def received(numbers, count=None, **more):
    requests = [request(number, **more) for number in numbers]
    return Sample(requests, len(requests) * 4 if count is None else count)


def sent(numbers, delay=MS, took=5 * MS, **more):
    return Sample([request(number, delay, took, **more) for number in numbers])


def never(_one, _other):
    return False


def found(front, legs, apart=never):
    return forwarders({FRONT: front}, legs, apart)


def test_what_comes_out_of_the_same_host_was_forwarded():
    (one,) = found(received(range(20)), {LEG: sent(range(20))})
    assert (one.endpoint, one.legs, one.others, one.reached) == (FRONT, (LEG,), (), ((LEG.host, BACK),))
    assert (one.matched, one.compared) == (20, 20)


@pytest.mark.parametrize(
    "back",
    [
        sent(range(20), delay=-MS),
        sent(range(20), delay=forwarding.SOON_NS + MS, took=0),
        sent(range(20), took=50 * MS),
        sent(range(20), code=7),
        sent(range(17)),
        sent([]),
    ],
    ids=["before", "late", "answered-later", "another-request", "too-few-of-them", "nothing"],
)
def test_what_is_no_copy_was_not_forwarded(back):
    assert found(received(range(20)), {LEG: back}) == []


@pytest.mark.parametrize("of", [0.03, 0.06])
def test_a_lossy_capture_of_a_proxy_that_renames_gives_the_same(of):
    """Of both legs exchanges are lost: with 2 % of packets one in 25, and more of those with large responses."""
    for seed in range(200):
        lost = random.Random(seed)
        front, back = renamed(range(60), range(60, 120))
        front, back = (Sample([one for one in each.requests if lost.random() > of], 400) for each in (front, back))
        assert [one.legs for one in found(front, {LEG: back})] == [(LEG,)]


FETCH, METADATA, HEARTBEAT = 1, 3, 12


def renamed(passing, changed, key=FETCH, other=METADATA):
    """What an endpoint receives, and what comes out: of one API as it was, of another one with other names."""
    requests = [*(request(n)._replace(key=key) for n in passing), *(request(n)._replace(key=other) for n in changed)]
    back = [
        *(request(n, MS, 5 * MS)._replace(key=key) for n in passing),
        *(request(n, MS, 5 * MS, code=1000 + n)._replace(key=other) for n in changed),
    ]
    return Sample(requests, 400), Sample(back)


@pytest.mark.parametrize("other", [METADATA, HEARTBEAT])
@pytest.mark.parametrize("host", ["10.0.9.1", "10.0.7.1"], ids=["one address", "two addresses"])
def test_a_proxy_that_renames_is_known_by_what_names_nothing(host, other):
    front, back = renamed(range(20), range(20, 120), other=other)
    if host == LEG.host:
        (one,) = found(front, {LEG: back})
        assert (one.legs, one.others) == ((LEG,), ())
    else:
        front, back = (
            Sample([one._replace(host=sender, answer=5) for one in each.requests], 400)
            for each, sender in ((front, "10.0.8.1"), (back, host))
        )
        (one,) = forwarders({FRONT: front, BACK: back}, {}, never)
    assert (one.endpoint, one.reached, one.matched, one.compared) == (FRONT, ((host, BACK),), 20, 20)


def test_a_client_of_which_a_proxy_changes_every_request_is_counted_by_number():
    writes = LEG._replace(client_id="writes")
    front, back = renamed(range(20), range(20, 60))
    of_reader, of_writer = (Sample([one for one in back.requests if one.key == key]) for key in (FETCH, METADATA))
    (one,) = found(front, {LEG: of_reader, writes: of_writer})
    assert (one.legs, one.others) == ((LEG,), ())
    asked = {Leg("writes", "10.0.8.1", FRONT): {"Metadata:12": 40}, writes: {"Metadata:12": 40}}
    assert all_legs([one], asked) == {LEG: FRONT, writes: FRONT}


@pytest.mark.parametrize(
    ("passing", "key", "missing", "other"),
    [
        (range(20), METADATA, range(20, 120), 16),
        (range(11), FETCH, range(20, 120), METADATA),
        (range(20), FETCH, range(20, 24), FETCH),
        (range(60), FETCH, range(60, 90), FETCH),
        (range(60), METADATA, range(60, 70), METADATA),
    ],
    ids=["asked of any server", "too few", "not all of one API", "two thirds of many", "many, of any server"],
)
def test_a_part_of_what_is_received_proves_nothing_by_itself(passing, key, missing, other):
    front, back = renamed(passing, missing, key, other)
    assert found(front, {LEG: back}) == []


def test_a_few_requests_are_no_proof():
    assert found(received(range(11)), {LEG: sent(range(11))}) == []
    assert found(received(range(20), count=49), {LEG: sent(range(20))}) == []


def test_two_brokers_of_one_list_and_another_host_forward_nothing():
    assert found(received(range(20)), {LEG: sent(range(20))}, lambda one, other: (one, other) == (FRONT, BACK)) == []
    assert found(received(range(20)), {LEG._replace(host="10.0.9.2"): sent(range(20))}) == []
    assert found(received(range(20)), {LEG._replace(server=FRONT): sent(range(20))}) == []


def test_a_request_that_comes_out_on_two_legs_proves_nothing():
    other = LEG._replace(server=OTHER)
    assert found(received(range(20)), {LEG: sent(range(20)), other: sent(range(20))}) == []


def test_equal_requests_are_told_apart_by_time():
    front = Sample([request(1, delay * MS, took=9 * MS, code=3) for delay in range(20)], 80)
    back = Sample([request(1, delay * MS + MS // 2, took=MS, code=3) for delay in range(20)])
    (one,) = found(front, {LEG: back})
    assert one.matched == 20


def test_a_host_may_send_requests_of_its_own():
    own = LEG._replace(client_id="beside")
    (one,) = found(received(range(20)), {LEG: sent(range(20)), own: sent(range(20), code=99)})
    assert (one.legs, one.others) == ((LEG,), (own,))


def test_a_leg_may_be_known_for_longer_than_all_that_is_received():
    """The sample of a quiet client reaches further than that of all clients together."""
    quiet = LEG._replace(client_id="quiet")
    front = received(range(MOST_SAMPLED + 50))
    legs = {LEG: sent(range(MOST_SAMPLED)), quiet: sent(range(MOST_SAMPLED, MOST_SAMPLED + 50))}
    assert front.last is not None
    (one,) = found(front, legs)
    assert (one.legs, one.others) == ((LEG,), ())


def test_what_was_sent_on_in_the_next_stretch_is_not_missed():
    edge = STRETCH // 2 - MS
    late = [request(100 + number, edge) for number in range(20)]
    front = Sample([*late, *received(range(20)).requests], 100)
    begun = [request(200 + number, -STRETCH // 2 + MS) for number in range(20)]
    (one,) = found(front, {LEG: Sample([*sent(range(20)).requests, *begun])})
    assert (one.matched, one.compared) == (20, 20)


def test_a_lossy_capture_gives_the_same():
    lost = random.Random(5)
    front, back = ([one for one in range(100) if lost.random() > 0.04] for _ in range(2))
    assert [one.legs for one in found(received(front), {LEG: sent(back)})] == [(LEG,)]


def test_clients_with_few_requests_are_counted():
    few, own = LEG._replace(client_id="admin"), LEG._replace(client_id="beside")
    asked = {
        Leg("admin", "10.0.8.1", FRONT): {"CreateTopics:7": 3},
        few: {"CreateTopics:7": 3},
        own: {"CreateTopics:7": 1},
        few._replace(server=OTHER): {"CreateTopics:7": 1},
        Leg("admin", "10.0.8.1", BACK): {"CreateTopics:7": 1},
    }
    proxies = found(received(range(20)), {LEG: sent(range(20))})
    assert all_legs(proxies, asked) == {LEG: FRONT, few: FRONT}
    assert all_legs(proxies, asked | {few: {"CreateTopics:7": 8}}) == {LEG: FRONT, few: FRONT}
    assert all_legs(proxies, asked | {few: {"CreateTopics:7": 9}}) == {LEG: FRONT}
    assert all_legs(proxies, asked | {few: {"DeleteTopics:6": 1}}) == {LEG: FRONT}
    assert all_legs([], asked) == {}


def test_what_was_compared_and_not_found_is_not_counted_by_number():
    own = LEG._replace(client_id="beside")
    proxies = found(received(range(20)), {LEG: sent(range(20)), own: sent(range(20), code=99)})
    asked = {Leg("beside", "10.0.8.1", FRONT): {"Fetch:13": 9}, own: {"Fetch:13": 9}}
    assert all_legs(proxies, asked) == {LEG: FRONT}


def asked_by(host, numbers, count=None, **more):
    requests = [request(number, **more)._replace(host=host) for number in numbers]
    return Sample(requests, len(requests) * 4 if count is None else count)


def test_what_comes_out_of_another_host_was_forwarded():
    ends = {FRONT: asked_by("10.0.8.1", range(20)), BACK: asked_by("10.0.7.1", range(20), delay=MS, took=5 * MS)}
    (one,) = forwarders(ends, {}, never)
    assert (one.endpoint, one.legs, one.reached) == (FRONT, (), (("10.0.7.1", BACK),))
    asked = {Leg("app", "10.0.8.1", FRONT): {"Fetch": 80}, Leg("app", "10.0.7.1", BACK): {"Fetch": 80}}
    asked[Leg("own", "10.0.7.1", BACK)] = {"Fetch": 80}
    asked[Leg("app", "10.0.7.9", BACK)] = {"Fetch": 80}
    assert all_legs([one], asked) == {Leg("app", "10.0.7.1", BACK): FRONT}


def test_several_proxies_and_brokers_are_reached():
    backs = {
        BACK: asked_by("10.0.7.1", range(0, 40, 2), delay=MS, took=5 * MS),
        OTHER: asked_by("10.0.7.2", range(1, 40, 2), delay=MS, took=5 * MS),
    }
    (one,) = forwarders({FRONT: asked_by("10.0.8.1", range(40)), **backs}, {}, never)
    assert (one.reached, one.matched, one.compared) == ((("10.0.7.1", BACK), ("10.0.7.2", OTHER)), 40, 40)


def test_a_broker_with_more_requests_than_its_sample_holds_is_compared_as_far_as_it_reaches():
    front = asked_by("10.0.8.1", range(0, 100, 2))
    mine = [request(number, MS, 5 * MS)._replace(host="10.0.7.1") for number in range(0, 100, 2)]
    others = [request(number, 3 * MS, code=-number)._replace(host="10.0.8.9") for number in range(100)]
    (one,) = forwarders({FRONT: front, BACK: Sample([*mine, *others], 9000)}, {}, never)
    assert one.matched == one.compared < 50


@pytest.mark.parametrize(
    ("back", "apart"),
    [
        (asked_by("10.0.8.1", range(20), delay=MS, took=5 * MS), never),
        (asked_by("", range(20), delay=MS, took=5 * MS), never),
        (asked_by("10.0.7.1", range(20), delay=MS, took=50 * MS), never),
        (asked_by("10.0.7.1", range(20), delay=-MS), never),
        (asked_by("10.0.7.1", range(17), delay=MS, took=5 * MS), never),
        (asked_by("10.0.7.1", range(20), delay=MS, took=5 * MS), lambda _one, _other: True),
    ],
    ids=["one-client-of-both", "a-node", "answered-later", "before", "too-few-of-them", "two-brokers"],
)
def test_what_is_no_copy_did_not_come_out_of_another_host(back, apart):
    assert forwarders({FRONT: asked_by("10.0.8.1", range(20)), BACK: back}, {}, apart) == []


def test_requests_that_two_others_receive_are_of_neither():
    backs = {end: asked_by("10.0.7.1", range(20), delay=MS, took=5 * MS) for end in (BACK, OTHER)}
    assert forwarders({FRONT: asked_by("10.0.8.1", range(20)), **backs}, {}, never) == []


def test_a_request_that_one_leg_lost_parts_no_client_from_its_own():
    (one,) = forwarders(
        {FRONT: asked_by("10.0.8.1", range(20)), BACK: asked_by("10.0.7.1", range(20), delay=MS, took=5 * MS)},
        {},
        never,
    )
    back = Leg("app", "10.0.7.1", BACK)
    front = {Leg("app", "10.0.8.1", FRONT): {"Produce": 80}}
    assert all_legs([one], {**front, back: {"Produce": 78, "InitProducerId": 1}}) == {back: FRONT}
    assert all_legs([one], {**front, back: {"Produce": 2, "ListGroups": 1}}) == {}
    assert all_legs([one], {**front, back: {"Produce": 78, "ListGroups": 10}}) == {}


@pytest.mark.parametrize(("answer", "is_sent_on"), [(7, True), (8, False), (0, False)], ids=["one", "other", "none"])
def test_of_one_host_only_what_got_the_same_response_was_forwarded(answer, is_sent_on):
    """On loopback a proxy's requests and its clients' have one address."""
    front = Sample([one._replace(answer=7 if answer else 0) for one in asked_by("127.0.0.1", range(20)).requests], 80)
    back = asked_by("127.0.0.1", range(20), delay=MS, took=5 * MS)
    back = Sample([one._replace(answer=answer) for one in back.requests])
    found = forwarders({"127.0.0.9:9092": front, "127.0.0.1:9092": back}, {}, never)
    assert [one.reached for one in found] == [(("127.0.0.1", "127.0.0.1:9092"),)] * is_sent_on


def alike(endpoints, host=None):
    """Brokers that receive the same requests at about the same time, of many clients: more than are held against one
    request.
    """
    return {
        f"{host or f'10.0.{number}.1'}:{9092 + number}": Sample(
            [request(n, delay=number * 10_000, code=n % 4)._replace(host=f"10.9.{n % 50}.{number}") for n in range(16)],
            count=1000,
        )
        for number in range(endpoints)
    }


@pytest.mark.parametrize("host", [None, "10.0.0.1"], ids=["own-hosts", "one-host"])
def test_the_search_grows_with_the_number_of_endpoints_and_not_with_its_square(host, monkeypatch):
    compared = []
    true_fits = forwarding.fits

    def fits(asked, other):
        compared.append(1)
        return true_fits(asked, other)

    monkeypatch.setattr(forwarding, "fits", fits)
    fronts = alike(600, host)
    legs = {Leg("app", host, server): sample for server, sample in fronts.items()} if host else {}
    assert forwarders(fronts, legs, never) == []
    assert len(compared) <= 600 * 16 * MOST_ALIKE * (2 if host else 1)
