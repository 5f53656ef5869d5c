"""Dialects: the drafts' own layouts, what detection believes, and what it does not."""

# ruff: noqa: E501 -- messages in hex

import random

import numpy as np
import pytest

from tests.build import build, case
from tests.decode.test_message import batch, vectors
from wirecheck.commands import options
from wirecheck.decode import dialect as dialects
from wirecheck.decode.columns import tables
from wirecheck.decode.dialect import DIALECTS, ID_IS_AN_EXTRA_TAG, hear, id_tags, plausible, read
from wirecheck.decode.message import EVERYTHING, Dialect, Status, decode, only
from wirecheck.decode.nested import nested
from wirecheck.decode.wire import REQUEST, RESPONSE, SIDES, pack

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


def heard(messages, peer=None, projection=EVERYTHING):
    """Read in the dialects heard; every message is a peer, and an exchange, of its own unless said."""
    each = np.arange(len(messages))
    return read(messages, hear(messages, each if peer is None else peer, each, {}), projection=projection)


def test_each_encoding_of_the_same_message_is_told_from_the_others():
    cases = [c for c, _ in CASES]
    out = heard(messages(cases))
    assert [Status(s).name for s in out.status] == ["OK"] * len(cases)
    assert [Dialect(d) for d in out.dialect] == [dialect for _, dialect in CASES]


@pytest.mark.parametrize(("api", "side", "version", "form"), [c for c, dialect in CASES if dialect])
def test_a_draft_said_is_a_draft_read(api, side, version, form):
    one = messages([(api, side, version, form)])
    out = read(one, np.zeros(1), "kip516-draft")
    assert out.dialect.tolist() == [SPOKEN[form]]
    body = nested(out, 0)["body"]
    topics = body.get("topicStates") or body["topics"]
    assert topics[0]["topicId"] in {ID, "AAAAAAAAAAAAAAAAAAAAAQ"}
    assert body.get("type", 2) == 2


def test_a_draft_read_of_stop_replica_has_the_id_as_a_field():
    out = read(messages([("StopReplica", "request", 2, "flexible")]), np.zeros(1), "kip516-draft")
    assert nested(out, 0)["body"]["topics"] == [{"name": "t", "topicId": ID, "partitionIndexes": [0]}]


def test_an_extra_id_tag_is_said_and_nothing_switched():
    cases = [("StopReplica", "request", 2, "shipped"), ("StopReplica", "request", 2, "flexible")]
    out = heard(messages(cases))
    path = ID_IS_AN_EXTRA_TAG[KEYS["StopReplica"], REQUEST]
    tags = tables(out, "StopReplica", "request")[f"{path}._unknown_tagged_fields"]
    rows, ids = id_tags(tags)
    assert (tags.message[rows].tolist(), tags["tag"][rows].tolist(), out.dialect.tolist()) == ([1], [0], [0, 0])
    assert ids.tobytes().hex() == "24cc4332f7de45a3b24e33d61aa0d16c"


def test_one_peer_does_not_mix():
    cases = [("LeaderAndIsr", "request", 3, "flexible"), ("StopReplica", "request", 2, "flexible")]
    apart, together = heard(messages(cases)), heard(messages(cases), np.array([7, 7]))
    assert apart.dialect.tolist() == [Dialect.KIP516_DRAFT, Dialect.KAFKA]
    assert together.dialect.tolist() == [Dialect.KIP516_DRAFT] * 2


def test_a_draft_is_heard_from_the_exchange_on_that_tells_it():
    """A Fetch of a session names no topics, and its answer is a release's as well, but for its tags."""
    first, later = ("StopReplica", "request", 2, "flexible"), ("LeaderAndIsr", "request", 3, "flexible")
    five = messages([first, later, first, first, later])
    peer, turn = np.array([7, 7, 7, 8, 7]), np.array([0, 2, 2, 3, 1])
    told = [0, Dialect.KIP516_DRAFT, Dialect.KIP516_DRAFT, 0, Dialect.KIP516_DRAFT]
    assert hear(five, peer, turn, {}).tolist() == told


def test_what_is_heard_does_not_depend_on_where_batches_are_cut():
    rng = random.Random(5)
    cases = rng.choices([c for c, _ in CASES if c[3] != "inline"], k=30)
    peer, turn = np.array([rng.randrange(4) for _ in cases]), np.arange(len(cases))
    whole = hear(messages(cases), peer, turn, {})
    known, apart = {}, []
    for cut in range(0, 30, 3):
        part = slice(cut, cut + 3)
        apart += hear(messages(cases[part]), peer[part], turn[part], known).tolist()
    assert apart == whole.tolist()
    assert len(set(apart)) == 2


def test_what_is_remembered_of_peers_is_bounded(monkeypatch):
    monkeypatch.setattr(dialects, "MOST_PEERS", 2)
    known = {}
    hear(messages([("LeaderAndIsr", "request", 3, "flexible")] * 3), np.arange(3), np.arange(3), known)
    assert known == {1: Dialect.KIP516_DRAFT, 2: Dialect.KIP516_DRAFT}


def test_what_is_said_is_all_that_is_tried():
    cases = [("LeaderAndIsr", "request", 3, form) for form in SPOKEN]
    assert read(messages(cases), np.zeros(3), "kafka").status.tolist()[1:] != [Status.OK] * 2
    drafts = read(messages(cases), np.zeros(3), "kip516-draft")
    assert (drafts.status == Status.OK).tolist() == [False, True, True]
    assert drafts.dialect.tolist()[1:] == [Dialect.KIP516_DRAFT, Dialect.KIP516_DRAFT_INLINE]
    changed = batch(vectors("kafka-variants"))
    assert (read(changed, np.zeros(len(changed)), "kafka").status == Status.OK).all()


def test_what_a_draft_cannot_read_on_its_connection_is_kafkas():
    cases = [("LeaderAndIsr", "request", 3, "flexible"), ("Fetch", "request", 12, "shipped")]
    out = heard(messages(cases), np.zeros(2))
    assert out.dialect.tolist() == [Dialect.KIP516_DRAFT, Dialect.KAFKA]
    assert not out.status.any()


def test_kafkas_own_traffic_is_left_alone():
    rows = vectors("kafka-messages")
    out = heard(batch(rows), np.zeros(len(rows), np.int64))
    assert not out.dialect.any()
    assert [nested(out, i) for i in range(0, len(rows), 20)] == [row["json"] for row in rows[::20]]


def test_malformed_messages_are_no_dialect():
    rows = vectors("malformed")
    out = heard(batch(rows))
    assert not out.dialect.any()
    assert out.status.all()


def test_layouts_changed_in_place_are_found_without_being_said():
    rows = vectors("kafka-variants")
    out = heard(batch(rows))
    plain = decode(batch(rows))
    refused = np.flatnonzero(plain.status)
    assert len(refused) > 20
    assert [nested(out, i) for i in refused] == [rows[i]["json"] for i in refused]
    assert set(out.dialect[refused].tolist()) == {Dialect.KAFKA_CHANGED}


def test_the_projection_holds_in_every_dialect():
    wanted = only({("LeaderAndIsr", "request"): ["topic_states.topic_id"]})
    out = heard(messages([("LeaderAndIsr", "request", 3, "flexible")]), projection=wanted)
    assert nested(out, 0) == {"body": {"topicStates": [{"topicId": ID}]}}


def test_every_dialect_can_be_said():
    assert {reading for readings in DIALECTS.values() for reading in readings} == set(Dialect)
    assert ("auto", *DIALECTS) == options.DIALECTS


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
    out = heard(pack([fetch_v12(partition=-1)], [REQUEST], [1], [12]))
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
