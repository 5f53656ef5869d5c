"""What people say when they ask for messages: APIs, addresses, topics, times, clients, errors; and what then passes."""

import re

import pytest

from tests.decode.show.test_message_lines import (
    CREATED,
    SECOND,
    START,
    answered,
    asked,
    forwarded,
    metadata,
    opened,
    printed_lines,
)
from wirecheck.decode.show.message_filter import Filter, endpoint, key_of
from wirecheck.decode.show.message_lines import Reading
from wirecheck.wording import DAY_NS, TimeSpan


@pytest.mark.parametrize("value", ["Fetch", "fetch", "FETCH", "1"])
def test_an_api_is_said_by_its_name_in_any_case_or_by_its_key(value):
    assert key_of(value) == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("Fetsch", "Fetsch: no such API; did you mean Fetch, ShareFetch?"),
        ("leaderandisr2", "leaderandisr2: no such API; did you mean LeaderAndIsr?"),
        ("Lea", "Lea: no such API; did you mean LeaderAndIsr, LeaveGroup?"),
    ],
)
def test_an_api_that_does_not_exist_is_an_error_with_those_like_it(value, message):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        Filter(apis=("Metadata", value))
    assert str(error.value) == message


@pytest.mark.parametrize("value", ["999", "", "zzzz"])
def test_where_no_api_is_like_it_all_are_named(value):
    with pytest.raises(ValueError, match=rf"^{value}: no such API; Kafka calls them AddOffsetsToTxn, .*, Fetch, "):
        Filter(apis=("Metadata", value))


@pytest.mark.parametrize(
    ("value", "end"),
    [
        ("10.0.0.7:9092", ("10.0.0.7", 9092)),
        ("10.0.0.7", ("10.0.0.7", None)),
        ("[fd00::1]:9092", ("fd00::1", 9092)),
        ("[fd00::1]", ("fd00::1", None)),
        ("fd00::1", ("fd00::1", None)),
        ("FD00:0:0::1", ("fd00::1", None)),
    ],
)
def test_an_end_is_an_address_with_a_port_or_without(value, end):
    assert endpoint(value) == end


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("broker-1:9092", "broker-1:9092: not an address; give IP"),
        ("10.0.0:9092", "not an address"),
        ("", "not an address"),
        (":9092", "not an address"),
        ("10.0.0.1>", "not an address"),
        ("10.0.0.7:kafka", "10.0.0.7:kafka: kafka is not a port"),
        ("10.0.0.7:0", "0 is not a port"),
        ("10.0.0.7:70000", "70000 is not a port"),
        ("10.0.0.7:", "nothing is not a port"),
        ("10.0.0.1>10.0.0.2>10.0.0.3", "a connection has two ends"),
    ],
)
def test_what_no_connection_can_have_is_said_to_be_wrong(value, message):
    with pytest.raises(ValueError, match=r"not a|two ends") as error:
        Filter(connection=value)
    assert message in str(error.value)


def test_a_topic_without_name_is_none():
    with pytest.raises(ValueError, match="a topic has a name or an ID"):
        Filter(topic="")


def times(found):
    return [line["time"][17:23] for line in found]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"since": 4}, ["20.004", "21.005", "21.006"]),
        ({"until": 4}, ["20.003", "20.004"]),
        ({"since": 4, "until": 1_005}, ["20.004", "21.005"]),
        ({"since": 2_000}, []),
    ],
)
@pytest.mark.parametrize("of_day", [False, True])
def test_messages_of_a_time_are_those_captured_within_it_both_ends_included(wanted, expected, of_day):
    """A time of day is one of the day on which the capture begins."""
    talk = metadata(opened())
    talk.ts_ns += SECOND
    metadata(talk, 2)
    midnight = START % DAY_NS if of_day else START
    moments = {name: midnight + ms * 1_000_000 for name, ms in wanted.items()}
    spans = {name: TimeSpan(ns, ns, of_day) for name, ns in moments.items()}
    assert times(printed_lines(talk, wanted=Filter(**spans))) == expected


CLOCK_S = {"23:50": 85_800, "23:55": 86_100, "00:05": 300, "00:10": 600, "12:00": 43_200, "10:00": 36_000}


@pytest.mark.parametrize(
    ("begins", "since", "until", "days"),
    [
        ("23:50", "00:05", "00:10", (1, 1)),
        ("23:50", "23:55", "00:05", (0, 1)),
        ("10:00", "23:50", "00:10", (0, 1)),
        ("12:00", "10:00", "12:00", (0, 0)),
        ("00:05", "23:50", "23:55", (0, 0)),
        ("10:00", "00:05", "12:00", (0, 0)),
    ],
)
def test_times_of_day_after_midnight_are_of_the_day_after_a_capture_began(begins, since, until, days):
    spans = [TimeSpan(CLOCK_S[one] * SECOND, CLOCK_S[one] * SECOND, of_day=True) for one in (since, until)]
    wanted = Filter(since=spans[0], until=spans[1])
    wanted.settle(7 * DAY_NS + CLOCK_S[begins] * SECOND)
    assert (wanted.since.ns // DAY_NS - 7, wanted.until.ns // DAY_NS - 7) == days


def test_a_time_of_day_is_settled_by_the_first_frame_for_good():
    wanted = Filter(since=TimeSpan(60 * SECOND, 61 * SECOND, of_day=True))
    wanted.settle(5 * DAY_NS + 7)
    wanted.settle(9 * DAY_NS)
    assert wanted.since.ns == 5 * DAY_NS + 60 * SECOND


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("app", [1, 1]),
        ("a*", [1, 1]),
        ("*", [1, 1, 2, 2]),
        ("ap", []),
        ("consumer.*-7", [2, 2]),
        ("consumer?*", []),
    ],
)
def test_messages_of_a_client_are_those_whose_request_has_its_id(client, expected):
    talk = metadata(opened())
    talk.request(asked("Heartbeat", 4, {}, 2, "consumer.billing-7")).response(answered("Heartbeat", 4, {}, 2))
    assert [line["correlation_id"] for line in printed_lines(talk, wanted=Filter(client=client))] == expected


def test_an_envelope_is_of_the_client_that_it_carries_too():
    request = asked("CreateTopics", 7, CREATED, 41, "admin")[4:]
    for client, count in (("admin", 1), ("2", 2), ("app", 0)):
        assert len(printed_lines(forwarded(request), wanted=Filter(client=client))) == count


def test_what_went_wrong_has_an_error_code_or_is_malformed():
    talk = metadata(opened())
    talk.request(asked("Heartbeat", 4, {}, 2)).response(answered("Heartbeat", 4, {}, 2))
    talk.request(asked("Metadata", 12, {"topics": [{"name": "orders"}]}, 3).replace(b"\x07orders", b"\x00orders"))
    found = printed_lines(talk, wanted=Filter(error=True), reading=Reading(summary=True))
    assert [(line["correlation_id"], line["side"]) for line in found] == [(1, "response"), (3, "request")]
    response = answered("CreateTopics", 7, {"topics": [{"name": "payments", "errorCode": 36}]})[4:]
    carried = printed_lines(forwarded(asked("CreateTopics", 7, CREATED)[4:], response), wanted=Filter(error=True),
                   reading=Reading(summary=True))  # fmt: skip
    assert [line["side"] for line in carried] == ["response"]
