"""Administrators and their principals: nobody's change is listed under another one's name."""

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import plain
from tests.decode.show.test_message_lines import frames
from tests.depth import DEEP
from tests.questions.test_changes import BROKER, CLIENT, CONTROLLER, CREATE, MS, SONGS, START, b64, request, response
from tests.traffic import Talk
from wirecheck.questions.changes import Changes


class Admin(NamedTuple):
    """One run of kafka-topics: each numbers its requests alike, with one client ID, on one host."""

    topic: str
    at_ms: int
    took_ms: int
    is_by_tls: bool
    is_answered: bool


ADMINS = st.lists(
    st.builds(
        Admin,
        st.sampled_from(("wages", "menus", "songs", "songs2")),
        st.integers(0, 20_000),
        st.integers(20, 3_000),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)
SKEW_MS = st.sampled_from((0, 0, -2_000, 2_000))
"""By how much the clock at the controller's host is ahead."""


OWN_SERVER, OWN_HOST = ("10.0.66.6", 9092), "10.0.66.7"
ELSEWHERE = ("10.0.4.9", 9092)
BROKERS = {3: BROKER, 4: ELSEWHERE}


def principal_of(number):
    name = f"admin{number}".encode()
    return b"\0\0\x05User" + bytes([len(name) + 1]) + name + b"\0\0"


def talks(number, admin, skew_ms, node=3, code=0):
    broker = BROKERS[node]
    asked = {**CREATE, "topics": [{**SONGS, "name": admin.topic}]}
    inner = request("CreateTopics", 7, asked)
    answer = response("CreateTopics", 7, {"topics": [{"name": admin.topic, "errorCode": code}]})
    if not admin.is_by_tls:
        talk = Talk(client=(CLIENT[0], 40000 + number), server=broker, ts_ns=START + admin.at_ms * MS).open()
        talk.request(inner)
        talk.ts_ns += admin.took_ms * MS
        if admin.is_answered:
            talk.response(answer)
        yield talk.close()
    at_ms = admin.at_ms + 5 + skew_ms
    talk = Talk(client=(broker[0], 50000 + number), server=CONTROLLER, ts_ns=START + at_ms * MS).open()
    body = {
        "requestData": b64(inner[4:]),
        "requestPrincipal": b64(principal_of(number)),
        "clientHostAddress": b64(b"\x0a\0\4\x0c"),
    }
    talk.request(plain("Envelope", "request", 0, body, {"correlationId": number, "clientId": str(node)}))
    talk.ts_ns += min(admin.took_ms, 10) * MS
    carried = {"responseData": b64(answer[4:])}
    talk.response(plain("Envelope", "response", 0, carried, {"correlationId": number}))
    yield talk.close()


@settings(max_examples=2_000 if DEEP else 60)
@given(ADMINS, SKEW_MS)
def test_a_change_has_its_own_administrators_name_or_none(admins, skew_ms):
    segments = [
        segment
        for number, admin in enumerate(admins)
        for talk in talks(number, admin, skew_ms)
        for segment in talk.segments
    ]
    listed = list(Changes().read([frames(sorted(segments, key=lambda one: one.ts_ns))]).merged())
    topics = [admin.topic for admin in admins]
    for one in listed:
        if one.principal is not None:
            assert topics[int(one.principal.removeprefix("User:admin"))] == one.object
    for number, admin in enumerate(admins):
        own = [one.principal for one in listed if one.object == admin.topic]
        if topics.count(admin.topic) == 1:  # nobody else's request has its bytes
            assert own == [f"User:admin{number}"]
    names = [one.principal for one in listed if one.principal is not None]
    assert len(names) == len(set(names))


NODES = st.lists(st.sampled_from(sorted(BROKERS)), min_size=4, max_size=4)


@settings(max_examples=2_000 if DEEP else 60)
@given(ADMINS, SKEW_MS, NODES, st.booleans(), st.booleans())
def test_of_equal_requests_each_one_is_listed_once_under_its_own_name_or_none(
    admins, skew_ms, nodes, are_known, is_lost
):
    """All ask for the same, byte for byte, and one of them in the clear: what the others send is in Envelopes alone.
    The Envelope of the first one may be lost; then it is known whose the others are by the brokers that were asked.
    """
    is_lost = is_lost and are_known and nodes[0] not in nodes[1 : len(admins)]
    every = [listing(server, n, BROKERS.items()) for n, server in enumerate(BROKERS.values())] if are_known else []
    for number, admin in enumerate(admins):
        one = admin._replace(topic="songs", at_ms=admin.at_ms // 10, is_by_tls=number > 0)
        every += [*talks(number, one, skew_ms, nodes[number])][: 1 if is_lost and number == 0 else None]
    segments = [segment for talk in every for segment in talk.segments]
    listed = list(Changes().read([frames(sorted(segments, key=lambda one: one.ts_ns))]).merged())
    names = [f"User:admin{number}" for number in range(len(admins))]
    assert [one.principal for one in listed].count(None) == is_lost
    assert sorted(filter(None, (one.principal for one in listed))) == names[is_lost:]
    for one in listed:
        node = nodes[names.index(one.principal or names[0])]
        host, port = BROKERS[node]
        assert one.via_broker in {str(node), f"{host}:{port}"}


@settings(max_examples=2_000 if DEEP else 60)
@given(ADMINS, SKEW_MS)
def test_an_envelope_with_another_answer_is_another_ones(admins, skew_ms):
    """The first one's request is in the clear and rejected, and its Envelope was not captured; the others ask for the
    same, byte for byte, by TLS, and are granted it.
    """
    first = admins[0]._replace(topic="songs", at_ms=admins[0].at_ms // 10, is_by_tls=False, is_answered=True)
    every = [next(talks(0, first, skew_ms, code=36))]
    for number, admin in enumerate(admins[1:], 1):
        one = admin._replace(topic="songs", at_ms=admin.at_ms // 10, is_by_tls=True)
        every += talks(number, one, skew_ms)
    segments = [segment for talk in every for segment in talk.segments]
    listed = list(Changes().read([frames(sorted(segments, key=lambda one: one.ts_ns))]).merged())
    assert [one.principal for one in listed if one.error == "TOPIC_ALREADY_EXISTS"] == [None]
    named = sorted(one.principal for one in listed if one.error == "NONE")
    assert named == [f"User:admin{number}" for number in range(1, len(admins))]


def listing(server, number, brokers):
    talk = Talk(client=(OWN_HOST, 42000 + number), server=server, ts_ns=START + number * MS).open()
    listed = [{"nodeId": node, "host": host, "port": port} for node, (host, port) in brokers]
    answer = {"brokers": listed, "clusterId": "CL", "controllerId": 1, "topics": []}
    talk.request(request("Metadata", 12, {"topics": None}))
    talk.response(response("Metadata", 12, answer))
    return talk.close()


@settings(max_examples=500 if DEEP else 30)
@given(ADMINS, st.integers(0, 20_000), st.booleans())
def test_what_a_server_of_its_own_accepts_and_names_is_its_senders_word(admins, at_ms, lists_itself):
    """Its Envelope holds a request that another client sent, byte for byte, and it names brokers by other numbers."""
    true = [*BROKERS.items()]
    other = [(7, BROKER), (8, ELSEWHERE), *([(9, OWN_SERVER)] if lists_itself else [])]
    every = [listing(server, n, true if n < 2 else other) for n, server in enumerate((BROKER, ELSEWHERE, OWN_SERVER))]
    every += [talk for number, admin in enumerate(admins) for talk in talks(number, admin, 0)]
    body = {"requestPrincipal": b64(principal_of(len(admins))), "clientHostAddress": b64(b"\x0a\0\4\x0c")}
    talk = Talk(client=(OWN_HOST, 41000), server=OWN_SERVER, ts_ns=START + at_ms * MS).open()
    inner = request("CreateTopics", 7, {**CREATE, "topics": [{**SONGS, "name": admins[0].topic}]})
    talk.request(plain("Envelope", "request", 0, {**body, "requestData": b64(inner[4:])}, {"correlationId": 1}))
    answer = response("CreateTopics", 7, {"topics": [{"name": admins[0].topic, "errorCode": 0}]})
    talk.response(plain("Envelope", "response", 0, {"responseData": b64(answer[4:])}, {"correlationId": 1}))
    segments = [segment for one in [*every, talk.close()] for segment in one.segments]
    for one in Changes().read([frames(sorted(segments, key=lambda one: one.ts_ns))]).merged():
        assert one.claimed_by == OWN_HOST or one.principal != f"User:admin{len(admins)}"
        assert one.via_broker not in {"7", "8"}
