"""Dialects: the drafts' own layouts, what detection believes, and what it does not."""

# ruff: noqa: E501 -- messages in hex

import random

import numpy as np
import pytest

from tests.build import build, case
from tests.decode.test_message import batch, vectors
from wirecheck.commands import options
from wirecheck.decode.columns import tables
from wirecheck.decode.dialect import DIALECTS, ID_IS_AN_EXTRA_TAG, id_tags, plausible, read, read_as_any, suggested
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.message import Dialect, Status, decode, only
from wirecheck.decode.nested import nested
from wirecheck.decode.wire import REQUEST, RESPONSE, pack

ID = "JMxDMvfeRaOyTjPWGqDRbA"

# One logical message, three encodings: the same topic, id and partition states.
SAME = {
    ("LeaderAndIsr", "request", 3, "shipped"): "000000010000000300000000000000070000000100017400000001000000000000000300000001000000050000000200000001000000020000000900000002000000010000000200000000000000000100000001000000010002623100002384",
    ("LeaderAndIsr", "request", 3, "flexible"): "00000001000000030000000000000007020274020000000000000003000000010000000503000000010000000200000009030000000100000002010001001024cc4332f7de45a3b24e33d61aa0d16c0200000001036231000023840001000102",
    ("LeaderAndIsr", "request", 3, "inline"): "00000001000000030000000000000007020000000100017424cc4332f7de45a3b24e33d61aa0d16c0000000100000000000000030000000100000005000000020000000100000002000000090000000200000001000000020100000001000000010002623100002384",
    ("StopReplica", "request", 2, "shipped"): "000000010000000300000000000000070102027402000000000000",
    ("StopReplica", "request", 2, "flexible"): "0000000100000003000000000000000701020274020000000001001024cc4332f7de45a3b24e33d61aa0d16c00",
    ("Fetch", "request", 12, "shipped"): "00000002000001f40000000100a00000000000000000000000020274020000000000000005000000000000000a000000050000000000000000001000000000010100",
    ("Fetch", "request", 12, "flexible"): "00000002000001f40000000100a00000000000000000000000020274020000000000000005000000000000000a0000000000000000001000000001001024cc4332f7de45a3b24e33d61aa0d16c010100",
    ("Metadata", "response", 10, "shipped"): "000000000200000001036231000023840000026300000001020000027424cc4332f7de45a3b24e33d61aa0d16c000180000000008000000000",
    ("Metadata", "response", 10, "flexible"): "000000000200000001036231000023840000026300000001020000027400018000000001001024cc4332f7de45a3b24e33d61aa0d16c8000000000",
    ("Vote", "request", 0, "shipped"): "0002135f5f636c75737465725f6d657461646174610200000000000000040000000200000003"  "0000000000000063000000",
    ("Vote", "request", 0, "flexible"): "00020000000000000000000000000000000102000000000000000400000002000000030000000000000063000000",
}  # fmt: skip
KEYS = {"LeaderAndIsr": 4, "StopReplica": 5, "Fetch": 1, "Metadata": 3, "Vote": 52}
SPOKEN = {"shipped": Dialect.KAFKA, "flexible": Dialect.KIP516_DRAFT, "inline": Dialect.KIP516_DRAFT_INLINE}
CASES = [
    (case, SPOKEN[case[3]]) if case[0] != "StopReplica" else (case, Dialect.KAFKA) for case in SAME
]  # of StopReplica the draft is the shipped bytes and an unknown tag


def whole(api, side, version, form):
    """Header and body: header v2 or v1 where the body is flexible."""
    flexible = form == "flexible" or api != "LeaderAndIsr"
    if side == "response":
        return bytes(4) + bytes(flexible) + bytes.fromhex(SAME[api, side, version, form])
    header = KEYS[api].to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
    return header + bytes(flexible) + bytes.fromhex(SAME[api, side, version, form])


def messages(cases):
    sides = [SIDES.index(side) for _, side, _, _ in cases]
    return pack([whole(*c) for c in cases], sides, [KEYS[c[0]] for c in cases], [c[2] for c in cases])


def test_each_encoding_of_the_same_message_is_distinguished_from_the_others():
    """All in one batch: message by message, the shipped layouts first."""
    cases = [c for c, _ in CASES]
    named = read(messages(cases), ["kip516-draft"])
    assert [Dialect(d) for d in named.dialect] == [SPOKEN[case[3]] for case in cases]
    assert not named.status.any()
    out = read_as_any(messages(cases))
    assert [Status(s).name for s in out.status] == ["OK"] * len(cases)
    assert [Dialect(d) for d in out.dialect] == [dialect for _, dialect in CASES]


@pytest.mark.parametrize(("api", "side", "version", "form"), [c for c, dialect in CASES if dialect])
def test_a_draft_said_is_a_draft_read(api, side, version, form):
    one = messages([(api, side, version, form)])
    out = read(one, ["kip516-draft"])
    assert out.dialect.tolist() == [SPOKEN[form]]
    body = nested(out, 0)["body"]
    topics = body.get("topicStates") or body["topics"]
    assert topics[0]["topicId"] in {ID, "AAAAAAAAAAAAAAAAAAAAAQ"}
    assert body.get("type", 2) == 2


ORDERS_V3 = ("LeaderAndIsr", "request", 3)
BAD_TEXT = ("027402", "02ff02")
NULL_NAME = ("027402", "0002")
TWICE = ("010010" + "24cc4332f7de45a3b24e33d61aa0d16c", "02" + ("0010" + "24cc4332f7de45a3b24e33d61aa0d16c") * 2)
DAMAGES = {
    "trailing bytes": (("0001000102", "000100010200"), Status.LEFTOVER_BYTES, ""),
    "bad UTF-8": (BAD_TEXT, Status.BAD_TEXT, "topicStates.topicName"),
    "no name": (NULL_NAME, Status.UNEXPECTED_NULL, "topicStates.topicName"),
    "a tag twice": (TWICE, Status.BAD_TAG, "topicStates._unknownTaggedFields"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_malformed_draft_is_explained_by_the_named_layout(damage):
    (old, new), status, path = DAMAGES[damage]
    good = whole(*ORDERS_V3, "flexible").hex()
    assert old in good
    out = read(pack([bytes.fromhex(good.replace(old, new))], [REQUEST], [4], [3]), ["kip516-draft"])
    assert (Status(out.status[0]), out.error_path(0)) == (status, path)
    assert out.dialect[0] == Dialect.KIP516_DRAFT


def test_a_malformed_shipped_message_is_explained_by_its_own_layout_whatever_is_named():
    data = whole(*ORDERS_V3, "shipped")
    named = read(pack([data[:-1]], [REQUEST], [4], [3]), ["kip516-draft"])
    alone = decode(pack([data[:-1]], [REQUEST], [4], [3]))
    assert (named.status[0], named.error_at[0]) == (alone.status[0], alone.error_at[0])
    assert named.dialect[0] == Dialect.KAFKA


def test_a_tag_where_the_named_draft_has_its_topic_id_is_the_drafts():
    cases = [("StopReplica", "request", 2, "shipped"), ("StopReplica", "request", 2, "flexible")]
    out = read(messages(cases), ["kip516-draft"])
    assert out.dialect.tolist() == [Dialect.KAFKA, Dialect.KIP516_DRAFT]
    assert nested(out, 1)["body"]["topics"] == [{"name": "t", "topicId": ID, "partitionIndexes": [0]}]
    assert not read(messages(cases), ["kip4-draft"]).dialect.any()


def test_an_extra_id_tag_is_found_and_the_reading_stays_shipped():
    cases = [("StopReplica", "request", 2, "shipped"), ("StopReplica", "request", 2, "flexible")]
    out = read(messages(cases))
    path = ID_IS_AN_EXTRA_TAG[KEYS["StopReplica"], REQUEST]
    tags = tables(out, "StopReplica", "request")[f"{path}._unknown_tagged_fields"]
    rows, ids = id_tags(tags)
    assert (tags.message[rows].tolist(), tags["tag"][rows].tolist(), out.dialect.tolist()) == ([1], [0], [0, 0])
    assert ids.tobytes().hex() == "24cc4332f7de45a3b24e33d61aa0d16c"


@pytest.mark.parametrize("named", DIALECTS)
def test_kafkas_own_traffic_is_left_alone(named):
    rows = vectors("kafka-messages")
    out = read(batch(rows), [named])
    assert not out.dialect.any()
    assert [nested(out, i) for i in range(0, len(rows), 20)] == [row["json"] for row in rows[::20]]


def test_malformed_messages_stay_malformed_and_are_a_drafts_only_where_it_comes_further():
    rows = vectors("malformed")
    shipped = decode(batch(rows))
    for named in DIALECTS:
        out = read(batch(rows), [named])
        drafted = out.dialect >= Dialect.KIP516_DRAFT
        assert (out.error_at[drafted] > shipped.error_at[drafted]).all()
        assert out.dialect[~drafted].max() == Dialect.KAFKA
        asked = [row["side"] == "request" and row["kafka"].startswith("leaves") for row in rows]
        assert (out.status == Status.OK).tolist() == asked  # Kafka's readers do not look for bytes left over
    assert set(suggested(batch(rows))) == {None}


def test_what_kafkas_readers_read_and_no_writer_writes_is_read_in_requests_and_marked():
    """By Kafka's own classes."""
    rows = vectors("lenient")
    out = read(batch(rows))
    asked = [i for i, row in enumerate(rows) if row["side"] == "request"]
    assert [nested(out, i) for i in asked] == [rows[i]["json"] for i in asked]
    assert [bool(out.deviation[i]) for i in asked] == [rows[i]["strict"] == "refuses" for i in asked]
    assert not out.deviation[[i for i in range(len(rows)) if i not in asked]].any()


def test_what_is_not_read_as_shipped_may_be_a_draft_and_is_never_malformed():
    """Only of an API and version that has a layout in a draft, and until that draft is named."""
    drafted = messages([("LeaderAndIsr", "request", 3, form) for form in SPOKEN])
    for named in ("kafka", "kip4-draft"):
        assert read(drafted, [named]).status.tolist() == [Status.OK, *[Status.POSSIBLY_A_DRAFT] * 2]
    assert suggested(drafted)[1:] == ["kip516-draft"] * 2
    cut = pack([whole("LeaderAndIsr", "request", 3, "shipped")[:-3]], [REQUEST], [4], [3])
    assert Status(read(cut).status[0]) == Status.POSSIBLY_A_DRAFT
    assert suggested(cut) == [None]
    assert Status(read(cut, ["kip516-draft"]).status[0]) >= Status.TRUNCATED
    undrafted = pack([bytes(8) + b"\xff\xff"], [REQUEST], [10], [0])  # FindCoordinator v0 without its key
    assert Status(read(undrafted).status[0]) >= Status.TRUNCATED


def test_layouts_changed_in_place_are_found_without_being_said():
    rows = vectors("kafka-variants")
    out = read(batch(rows))
    plain = decode(batch(rows))
    refused = np.flatnonzero(plain.status)
    assert len(refused) > 20
    assert [nested(out, i) for i in refused] == [rows[i]["json"] for i in refused]
    assert set(out.dialect[refused].tolist()) == {Dialect.KAFKA_CHANGED}


def test_the_projection_holds_in_every_dialect():
    wanted = only({("LeaderAndIsr", "request"): ["topic_states.topic_id"]})
    out = read(messages([("LeaderAndIsr", "request", 3, "flexible")]), ["kip516-draft"], wanted)
    assert nested(out, 0) == {"body": {"topicStates": [{"topicId": ID}]}}


def test_every_dialect_can_be_said():
    drafts = {reading for readings in DIALECTS.values() for reading in readings}
    assert drafts == {reading for reading in Dialect if reading >= Dialect.KIP516_DRAFT}
    assert tuple(DIALECTS) == options.DIALECTS


def test_the_literal_reading_of_update_metadata_has_the_three_extra_fields():
    implied, literal = (
        build(case("UpdateMetadata", "request", 7, dialect)[1], 7, random.Random(2), {"liveBrokers": [{}]})
        for dialect in (Dialect.KIP516_DRAFT, Dialect.KIP516_DRAFT_LITERAL)
    )
    assert "ungroupedPartitionStates" not in implied.value["body"]
    assert {"v0Host", "v0Port"} <= set(literal.value["body"]["liveBrokers"][0])


def fetch_v12(**fields):
    """A shipped Fetch v12 that is right but for these fields."""
    partition = {"partition": 1, "currentLeaderEpoch": 1, "fetchOffset": 5, "lastFetchedEpoch": 1, "logStartOffset": 0}
    body = {
        "replicaId": 1, "maxBytes": 5, "sessionEpoch": 0, "forgottenTopicsData": [], "rackId": "",
        "topics": [{"topic": "t", "partitions": [{**partition, "partitionMaxBytes": 9, **fields}]}],
    }  # fmt: skip
    if "topic" in fields:
        body["topics"][0]["topic"] = fields["topic"]
    quiet = random.Random(0)
    quiet.random = lambda: 0.99  # no tags
    return build(case("Fetch", "request", 12)[1], 12, quiet, body).data


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"partition": -1}, False),
        ({"partition": 2_000_000}, False),
        ({"currentLeaderEpoch": -2}, False),
        ({"fetchOffset": -2}, False),
        ({"partitionMaxBytes": -1}, False),
        ({"topic": "no topic"}, False),
        ({"topic": ""}, False),
        ({"topic": "x" * 250}, False),
    ],
)
def test_values_that_nobody_sends_are_not_plausible(fields, expected):
    out = decode(pack([fetch_v12(**fields)], [REQUEST], [1], [12]))
    assert (Status(out.status[0]), plausible(out).tolist()) == (Status.OK, [expected])


def test_nonsense_stays_kafkas_when_no_draft_reads_it():
    out = read(pack([fetch_v12(partition=-1)], [REQUEST], [1], [12]), ["kip516-draft"])
    assert (Status(out.status[0]), out.dialect.tolist()) == (Status.OK, [Dialect.KAFKA])


def test_an_unknown_tag_or_a_refusal_is_not_plausible():
    tagged = decode(messages([("StopReplica", "request", 2, "flexible")]))
    refused = decode(pack([b""], [RESPONSE], [1], [12]))
    assert (plausible(tagged).tolist(), plausible(refused).tolist()) == ([False], [False])


def test_random_messages_of_a_dialect_are_not_taken_for_another():
    """The draft's LeaderAndIsr v3, read as shipped or the other way round: never both."""
    rng = random.Random(11)
    for dialect in (Dialect.KAFKA, Dialect.KIP516_DRAFT, Dialect.KIP516_DRAFT_INLINE):
        for side in ("request", "response"):
            layout = case("LeaderAndIsr", side, 3, dialect)[1]
            built = [build(layout, 3, rng).data for _ in range(60)]
            one = pack(built, [SIDES.index(side)] * 60, [4] * 60, [3] * 60)
            readings = [decode(one, dialect=d).status == Status.OK for d in SPOKEN.values()]
            assert readings[list(SPOKEN.values()).index(dialect)].all()
