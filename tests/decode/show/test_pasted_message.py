"""One message by itself: with its size or without, said what it is or not, and what is wrong where it cannot be."""

import base64

import pytest

from tests.build import plain
from wirecheck.decode.show.message_lines import Reading
from wirecheck.decode.show.pasted_message import single

ORDERS = "JMxDMvfeRaOyTjPWGqDRbA"
ASKED = plain("Metadata", "request", 12, {"topics": [{"name": "orders"}]}, {"correlationId": 7, "clientId": "app"})
ANSWER = plain("Metadata", "response", 12, {"topics": [{"name": "orders", "topicId": ORDERS}]}, {"correlationId": 7})


@pytest.mark.parametrize("size", [True, False], ids=["with its size", "without"])
@pytest.mark.parametrize("said", [(), ("metadata", 12), ("Metadata", None), (None, 12), ("3", 12)])
def test_a_request_says_what_it_is(size, said):
    line = single(ASKED if size else ASKED[4:], "request", *said)
    assert line.pop("body")["topics"] == [{"topicId": "AAAAAAAAAAAAAAAAAAAAAA", "name": "orders"}]
    assert line == {
        "side": "request", "key": 3, "api": "Metadata", "version": 12, "correlation_id": 7, "size": len(ASKED) - 4,
    }  # fmt: skip


@pytest.mark.parametrize("size", [True, False], ids=["with its size", "without"])
def test_a_response_is_what_it_is_said_to_be(size):
    line = single(ANSWER if size else ANSWER[4:], "response", "Metadata", 12)
    assert (line["correlation_id"], line["size"]) == (7, len(ANSWER) - 4)
    assert line["body"]["topics"][0]["topicId"] == ORDERS


@pytest.mark.parametrize("said", [(), ("Metadata", None), (None, 12)])
def test_a_response_does_not_say_what_it_is(said):
    with pytest.raises(ValueError, match="a response does not say its API and version"):
        single(ANSWER[4:], "response", *said)


def test_a_response_whose_id_looks_like_a_size_is_read_as_it_is():
    answer = plain("Metadata", "response", 12, {}, {"correlationId": 0})[4:]
    answer = (len(answer) - 4).to_bytes(4, "big") + answer[4:]
    line = single(answer, "response", "Metadata", 12)
    assert (line["correlation_id"], line["size"]) == (len(answer) - 4, len(answer))
    assert "body" in line


def test_a_request_that_is_another_one_than_was_said_is_not_read():
    with pytest.raises(ValueError, match="begin as a request of Metadata v12, not of Fetch v4: a request begins with"):
        single(ASKED[4:], "request", "Fetch", 4)
    with pytest.raises(ValueError, match="of Metadata v12, not of any API v4"):
        single(ASKED[4:], "request", None, 4)


def test_a_request_without_its_header_is_said_to_lack_it():
    with pytest.raises(ValueError, match="key 621 v28786, not of Metadata v12: a request begins with its header"):
        single(b"\x02mpr" + ASKED[30:], "request", "Metadata", 12)


def test_an_unknown_api_or_version_is_undecoded():
    assert single(b"\x01\xf5\0\0\0\0\0\1\0\0", "request")["undecoded"] == "unknown-api"
    line = single(b"\0\x03\0\x63\0\0\0\1\0\0", "request", "Metadata", 99)
    assert (line["api"], line["version"], line["undecoded"]) == ("Metadata", 99, "unknown-version")


@pytest.mark.parametrize("cut", range(4, len(ASKED) - 4))
@pytest.mark.parametrize("sized", [True, False])
def test_a_request_that_was_cut_off_says_where_whatever_its_size_says(cut, sized):
    line = single(ASKED[: cut + 4] if sized else ASKED[4 : cut + 4], "request", "Metadata", 12)
    assert line["size"] == cut
    assert line["malformed"].split(" at ")[0] in {"Truncated", "BadLength"}


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\3\0"])
def test_fewer_bytes_than_an_id_are_truncated(data):
    assert single(data, "request", "Metadata", 12)["malformed"].startswith("Truncated at byte ")
    with pytest.raises(ValueError, match="bytes do not say which API and version"):
        single(data, "request", "Metadata")


def test_an_answer_inside_an_envelope_whose_request_was_not_seen_is_not_guessed():
    inner = plain("CreateTopics", "response", 7, {}, {"correlationId": 1})[4:]
    message = plain("Envelope", "response", 0, {"responseData": base64.b64encode(inner).decode()})[4:]
    inside = single(message, "response", "Envelope", 0)["enveloped"]
    assert (inside["api"], inside["client_id"], inside["undecoded"]) == (None, None, "no-request")


def test_a_draft_says_which():
    drafted = bytes.fromhex(
        "0004000300000000ffff00000000010000000300000000000000070202740200000000000000030000000100000005030000000100000002"
        "00000009030000000100000002010001001024cc4332f7de45a3b24e33d61aa0d16c0200000001036231000023840001000102"
    )
    line = single(drafted, "request", "LeaderAndIsr", 3, Reading(["kip516-draft"]))
    assert (line["dialect"], line["body"]["topicStates"][0]["topicId"]) == ("kip516-draft", ORDERS)
    undecoded = single(drafted, "request", "LeaderAndIsr", 3)["undecoded"]
    assert undecoded == "possibly-a-draft; it decodes with --dialect kip516-draft"
