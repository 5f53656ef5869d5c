"""Values for people: canonical JSON, what was left out, one message by itself."""

import base64
import random

import pytest

from tests.build import build, case
from tests.decode.test_message import vectors
from wirecheck.decode.errors import BadText, Truncated, UnknownApi, UnknownVersion
from wirecheck.decode.message import Dialect, decode
from wirecheck.decode.nested import decode_one, nested
from wirecheck.decode.wire import REQUEST, pack

TOPIC = bytes.fromhex("027424cc4332f7de45a3b24e33d61aa0d16c00")


def test_one_message_by_itself():
    row = next(row for row in vectors("kafka-messages") if row["api"] == "Metadata" and row["side"] == "response")
    assert decode_one(bytes.fromhex(row["hex"]), "response", "Metadata", row["version"]) == row["json"]
    assert decode_one(bytes.fromhex(row["hex"]), "response", 3, row["version"]) == row["json"]


def test_one_message_in_a_draft():
    layout = case("LeaderAndIsr", "request", 3, Dialect.KIP516_DRAFT)[1]
    built = build(layout, 3, random.Random(1))
    assert decode_one(built.data, "request", "LeaderAndIsr", 3, Dialect.KIP516_DRAFT) == built.value


def test_what_is_wrong_is_raised_with_its_place():
    with pytest.raises(Truncated) as caught:
        decode_one(TOPIC[:9], "record", "TopicRecord", 0)
    assert (caught.value.at, caught.value.path) == (2, "topicId")
    with pytest.raises(BadText) as caught:
        decode_one(b"\x02\xff" + TOPIC[2:], "record", "TopicRecord", 0)
    assert (caught.value.at, caught.value.path) == (1, "name")
    with pytest.raises(UnknownVersion):
        decode_one(TOPIC, "record", "TopicRecord", 9)
    with pytest.raises(UnknownApi):
        decode_one(b"", "request", 400, 0)


def test_values_of_records_and_blobs():
    assert decode_one(TOPIC, "record", "TopicRecord", 0)["body"] == {"name": "t", "topicId": "JMxDMvfeRaOyTjPWGqDRbA"}
    assert decode_one(b"\0\0\0\7", "data", "EndTxnMarker", 0)["body"] == {"coordinatorEpoch": 7}


def test_a_message_that_was_not_decoded_has_no_value():
    assert nested(decode(pack([b""], [REQUEST], [1], [1])), 0) == {}


def test_records_and_secrets_can_be_shown_as_lengths():
    layout = case("SaslAuthenticate", "request", 2)[1]
    built = build(layout, 2, random.Random(0), {"authBytes": base64.b64encode(b"token").decode()})
    shown = nested(decode(pack([built.data], [REQUEST], [36], [2])), 0, contents=False)
    assert shown["body"]["authBytes"] == {"left_out": 5}
    assert shown["header"] == built.value["header"]
