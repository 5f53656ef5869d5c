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


def principal_of(number):
    name = f"admin{number}".encode()
    return b"\0\0\x05User" + bytes([len(name) + 1]) + name + b"\0\0"


def talks(number, admin, skew_ms):
    asked = {**CREATE, "topics": [{**SONGS, "name": admin.topic}]}
    inner = request("CreateTopics", 7, asked)
    answer = response("CreateTopics", 7, {"topics": [{"name": admin.topic, "errorCode": 0}]})
    if not admin.is_by_tls:
        talk = Talk(client=(CLIENT[0], 40000 + number), server=BROKER, ts_ns=START + admin.at_ms * MS).open()
        talk.request(inner)
        talk.ts_ns += admin.took_ms * MS
        if admin.is_answered:
            talk.response(answer)
        yield talk.close()
    at_ms = admin.at_ms + 5 + skew_ms
    talk = Talk(client=(BROKER[0], 50000 + number), server=CONTROLLER, ts_ns=START + at_ms * MS).open()
    body = {
        "requestData": b64(inner[4:]),
        "requestPrincipal": b64(principal_of(number)),
        "clientHostAddress": b64(b"\x0a\0\4\x0c"),
    }
    talk.request(plain("Envelope", "request", 0, body, {"correlationId": number, "clientId": "3"}))
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
