"""A message as one row of text: its cells, their order and their width."""

import pytest

from tests.decode.show.test_message_lines import (
    CREATED,
    START,
    answered,
    asked,
    by_id,
    forwarded,
    metadata,
    opened,
    printed_lines,
    wrapped,
)
from wirecheck.decode.show.message_lines import Reading
from wirecheck.decode.show.message_page import Rows, duration

SHORT = Reading(bodies=False, summary=True)
DAY_NS = 86_400 * 1_000_000_000
ENDS = "app \u2192 10.0.0.9:9092"


def rows(*talks, several=False, **options):
    """Every line's cells as (text, role)."""
    shown = Rows(several=several)
    return [[tuple(cell) for cell in shown.cells(line)] for line in printed_lines(*talks, reading=SHORT, **options)]


def after_ends(row):
    return [(text, role) for text, role in row if role not in {"time", "ends", "frame", "latency"}]


def test_a_row_says_when_who_what_about_which_topic_what_went_wrong_and_where_it_was_seen():
    request, response = rows(metadata(opened()).close())
    assert request == [
        ("22:13:20.003", "time"),
        (ENDS, "ends"),
        ("Metadata v12", "api"),
        ("orders", "topic"),
        ("#4", "frame"),
    ]
    assert response == [
        ("22:13:20.004", "time"),
        ("10.0.0.9:9092 \u2192 app", "ends"),
        ("Metadata v12", "api"),
        ("orders", "topic"),
        ("UNKNOWN_TOPIC_OR_PARTITION", "error"),
        ("1.0 ms", "latency"),
        ("#5", "frame"),
    ]


def test_a_topic_that_other_messages_named_is_shown_by_its_name():
    found = rows(by_id(metadata(opened()), 2).close())
    assert after_ends(found[2])[1] == ("orders", "topic")


def test_of_several_captures_a_frame_names_its_own():
    assert rows(metadata(opened()), several=True)[0][-1] == ("#4 of a.pcap", "frame")


def test_cells_stand_below_each_other_as_far_as_was_known():
    """What is longer than its column may be is shown whole, and widens no other row."""
    long = opened(server=("fd00:aaaa:bbbb:cccc:dddd:eeee:ffff:1", 9092))
    short = opened(client=("10.0.0.2", 40000))
    short.ts_ns = START + DAY_NS // 1000
    found = rows(metadata(long), metadata(short))
    widths = [[len(text) for text, role in row if role in {"ends", "api"}] for row in found]
    assert widths == [[49, 12], [49, 12], [30, 12], [30, 12]]
    assert found[2][1][0].rstrip() == "app \u2192 10.0.0.9:9092"


def test_on_another_day_than_the_first_the_date_is_said():
    talk = metadata(opened())
    talk.ts_ns += DAY_NS
    assert [row[0][0] for row in rows(metadata(talk, 2))] == [
        "22:13:20.003",
        "22:13:20.004",
        "11-15 22:13:20.005",
        "11-15 22:13:20.006",
    ]


def test_more_topics_than_are_named_are_counted():
    assert after_ends(rows(metadata(opened(), names="abcde"))[0])[1] == ("a, b +3", "topic")


def test_an_error_that_kafka_does_not_have_keeps_its_number():
    talk = opened().request(asked("Metadata", 12, {"topics": []}))
    talk.response(answered("Metadata", 12, {"topics": [{"name": "orders", "errorCode": code} for code in (999, 3)]}))
    assert after_ends(rows(talk)[1])[2] == ("error 999 UNKNOWN_TOPIC_OR_PARTITION", "error")


def test_a_message_about_a_group_names_it():
    talk = metadata(opened()).request(asked("Heartbeat", 4, {"groupId": "billing"}, 2))
    assert after_ends(rows(talk)[2])[1] == ("group billing", "topic")


def test_what_no_release_knows_is_shown_by_its_number_and_why_it_is_not_decoded():
    talk = metadata(opened()).request(b"\0\0\0\x0a\0\x63\0\1\0\0\0\2\0\0")
    assert [cell for cell in after_ends(rows(talk.close())[2]) if cell[1] != "api"] == [
        ("undecoded: unknown-api", "unread")
    ]
    assert rows(talk)[2][2][0].rstrip() == "key 99 v1"


def test_an_answer_whose_request_was_not_seen_is_of_unknown_api_and_took_nobody_knows_how_long():
    talk = metadata(metadata(opened()), 2)
    del talk.segments[3]
    (found,) = [row for row in rows(talk) if row[2][0].startswith("unknown")]
    assert found[2][0].rstrip() == "unknown v?"
    assert ("undecoded: no-request", "unread") in found
    assert "latency" not in [role for _, role in found]


def test_what_is_malformed_says_where():
    talk = metadata(opened())
    talk.request(asked("Metadata", 12, {"topics": [{"name": "orders"}]}, 2).replace(b"\x07orders", b"\x00orders"))
    assert after_ends(rows(talk)[-1])[1:] == [
        ("malformed: Truncated at byte 32 in topics._unknownTaggedFields", "error")
    ]


def test_an_envelope_says_what_it_carries_and_what_that_says():
    request = asked("CreateTopics", 7, CREATED)[4:]
    response = answered("CreateTopics", 7, {"topics": [{"name": "payments", "errorCode": 36}]})[4:]
    found = [after_ends(row) for row in rows(forwarded(request, response))]
    assert found[0] == [("Envelope v0 [CreateTopics v7]", "api"), ("payments", "topic")]
    assert found[1][1:] == [("payments", "topic"), ("TOPIC_ALREADY_EXISTS", "error")]
    (deep, _) = rows(forwarded(wrapped(request, 1), wrapped(response, 1, "response")))
    assert deep[2][0] == "Envelope v0 [Envelope v0 [CreateTopics v7]]"


@pytest.mark.parametrize(
    ("ns", "expected"),
    [
        (430_000, "0.43 ms"),
        (4_310_000, "4.3 ms"),
        (10_000_000, "10 ms"),
        (203_000_000, "203 ms"),
        (1_200_000_000, "1.20 s"),
        (1_234_567_000_000, "1,234.57 s"),
    ],
)
def test_a_time_is_said_with_three_digits(ns, expected):
    assert duration(ns) == expected
