"""Values for people: canonical JSON, what was left out, one message by itself."""

import base64
import random

import pytest

from tests.build import build, case
from tests.decode.test_message import vectors
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.layouts.program import form
from wirecheck.decode.message import Dialect, Status, decode
from wirecheck.decode.nested import nested
from wirecheck.decode.wire import REQUEST, pack

TOPIC = bytes.fromhex("027424cc4332f7de45a3b24e33d61aa0d16c00")


def decoded_one(data, side, api, version, dialect=Dialect.KAFKA):
    """A batch of one whole message."""
    return decode(pack([data], [SIDES.index(side)], [form(api, side).key], [version]), dialect=dialect)


def test_one_message_by_itself():
    row = next(row for row in vectors("kafka-messages") if row["api"] == "Metadata" and row["side"] == "response")
    assert nested(decoded_one(bytes.fromhex(row["hex"]), "response", "Metadata", row["version"]), 0) == row["json"]


def test_one_message_in_a_draft():
    layout = case("LeaderAndIsr", "request", 3, Dialect.KIP516_DRAFT)[1]
    built = build(layout, 3, random.Random(1))
    assert nested(decoded_one(built.data, "request", "LeaderAndIsr", 3, Dialect.KIP516_DRAFT), 0) == built.value


@pytest.mark.parametrize(
    ("data", "version", "status", "at", "path"),
    [
        (TOPIC[:9], 0, Status.TRUNCATED, 2, "topicId"),
        (b"\x02\xff" + TOPIC[2:], 0, Status.BAD_TEXT, 1, "name"),
        (TOPIC, 9, Status.UNKNOWN_VERSION, -1, ""),
    ],
)
def test_what_is_wrong_has_its_place(data, version, status, at, path):
    decoded = decoded_one(data, "record", "TopicRecord", version)
    assert (decoded.status[0], decoded.error_at[0], decoded.error_path(0)) == (status, at, path)
    assert nested(decoded, 0) == {}


def test_values_of_records_and_blobs():
    topic, marker = decoded_one(TOPIC, "record", "TopicRecord", 0), decoded_one(b"\0\0\0\7", "data", "EndTxnMarker", 0)
    assert nested(topic, 0)["body"] == {"name": "t", "topicId": "JMxDMvfeRaOyTjPWGqDRbA"}
    assert nested(marker, 0)["body"] == {"coordinatorEpoch": 7}


def test_a_message_that_was_not_decoded_has_no_value():
    assert nested(decode(pack([b""], [REQUEST], [1], [1])), 0) == {}


def test_records_and_secrets_can_be_shown_as_lengths():
    layout = case("SaslAuthenticate", "request", 2)[1]
    built = build(layout, 2, random.Random(0), {"authBytes": base64.b64encode(b"token").decode()})
    shown = nested(decode(pack([built.data], [REQUEST], [36], [2])), 0, contents=False)
    assert shown["body"]["authBytes"] == {"left_out": 5}
    assert shown["header"] == built.value["header"]
