"""Messages: Kafka's own vectors, what is refused and why, fallbacks, tolerances, projections."""

import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from wirecheck.decode import message
from wirecheck.decode.interpret import interpreter
from wirecheck.decode.layouts.layout import SIDES, layouts
from wirecheck.decode.layouts.program import form
from wirecheck.decode.message import REASONS, Dialect, Status, Tolerance, decode, only
from wirecheck.decode.nested import nested
from wirecheck.decode.wire import RECORD, REQUEST, RESPONSE, known, pack, short_header

GOLDEN = Path(__file__).parent / "golden"


def vectors(name):
    return [json.loads(line) for line in gzip.decompress((GOLDEN / f"{name}.jsonl.gz").read_bytes()).splitlines()]


def batch(rows):
    return pack(
        [bytes.fromhex(row["hex"]) for row in rows],
        [SIDES.index(row["side"]) for row in rows],
        [row["key"] for row in rows],
        [row["version"] for row in rows],
    )


def test_kafkas_own_messages_decode_to_what_kafka_reads():
    rows = vectors("kafka-messages")
    out = decode(batch(rows))
    assert len(out) == len(rows)
    assert Counter(Status(s).name for s in out.status) == {"OK": len(rows)}
    different = [
        (row["api"], row["side"], row["version"]) for i, row in enumerate(rows) if nested(out, i) != row["json"]
    ]
    assert different == []


def test_the_vectors_cover_every_api_side_and_version():
    covered = {(row["key"], row["side"], row["version"]) for row in vectors("kafka-messages")}
    table = known()
    there = {
        (key, side, version)
        for key, (low, high, *_) in enumerate(table.tolist())
        for side in ("request", "response")
        for version in range(max(low, 0), high + 1)
    }
    assert there - covered == set()


def test_what_a_later_release_changed_in_place_decodes_by_its_own_layout():
    rows = vectors("kafka-variants")
    out = decode(batch(rows), dialect=Dialect.KAFKA_CHANGED)
    assert [nested(out, i) for i in range(len(rows))] == [row["json"] for row in rows]


# What Kafka's reader refuses; ours names the first thing that cannot be.
REASON_OF = {
    "above-31-bits": {"BAD_LENGTH"},
    "beyond-end": {"TRUNCATED"},
    "huge": {"TRUNCATED"},
    "negative": {"BAD_LENGTH"},
    "null-not-allowed": {"UNEXPECTED_NULL"},
    "overlong-varint": {"BAD_VARINT"},
    "trailing": {"LEFTOVER_BYTES"},
    "truncated": {"TRUNCATED"},
    "tag-count-beyond-end": {"TRUNCATED", "BAD_VARINT"},  # tags are read as they come
    "struct-marker-below-minus-1": {"BAD_TAG", "BAD_TEXT", "LEFTOVER_BYTES", "TRUNCATED", "UNEXPECTED_NULL"},
    "struct-marker-not-1": {"UNEXPECTED_NULL"},
}


def reasons(name):
    return next(REASON_OF[end] for end in sorted(REASON_OF, key=len, reverse=True) if name.endswith(end))


def test_what_is_malformed_is_refused_for_its_reason():
    rows = vectors("malformed")
    out = decode(batch(rows))
    found = {(row["class"], Status(s).name) for row, s in zip(rows, out.status, strict=True)}
    assert {(name, status) for name, status in found if status not in reasons(name)} == set()


@pytest.mark.parametrize("dialect", list(Dialect))
def test_what_is_malformed_is_read_by_no_dialect(dialect):
    out = decode(batch(vectors("malformed")), dialect=dialect)
    assert (out.status != Status.OK).all()


def test_what_kafka_lets_pass_is_read_or_refused_as_stated():
    rows = vectors("lenient")
    out = decode(batch(rows))
    for i, row in enumerate(rows):
        assert (nested(out, i) == row["json"]) == (row["strict"] == "same"), row["class"]
        assert (Status(out.status[i]) == Status.OK) == (row["strict"] == "same"), row["class"]


def test_unknown_is_not_malformed():
    rows = [
        (b"", REQUEST, 500, 0),
        (b"", REQUEST, -1, 0),
        (b"", REQUEST, 1, 30),
        (b"", RESPONSE, 1, 99),
        (b"", RESPONSE, 1, -1),
    ]
    out = decode(pack(*(list(column) for column in zip(*rows, strict=True))))
    assert [Status(s).name for s in out.status] == [
        "UNKNOWN_API", "UNKNOWN_API", "UNKNOWN_VERSION", "UNKNOWN_VERSION", "NO_REQUEST",
    ]  # fmt: skip
    assert out.error_path(0) == ""


REFUSAL = bytes.fromhex("00000007002300000001001200000004")


@pytest.mark.parametrize("version", [1, 3, 5, 9])
def test_an_api_versions_refusal_is_read_as_version_0(version):
    out = decode(pack([REFUSAL], [RESPONSE], [18], [version]))
    assert (Status(out.status[0]), out.version[0]) == (Status.OK, 0)
    assert nested(out, 0)["body"] == {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 4}]}


def test_another_error_in_version_0_form_is_no_refusal():
    other = REFUSAL.replace(b"\x00\x23", b"\x00\x00", 1)
    out = decode(pack([other, REFUSAL[:-1], b"\0\0"], [RESPONSE] * 3, [18] * 3, [3, 3, 3]))
    assert [Status(s).name for s in out.status] == ["UNEXPECTED_NULL", "UNEXPECTED_NULL", "TRUNCATED"]


# confluent-kafka 2.16 in captures: client id "rdkafka", all topics.
LIBRDKAFKA = bytes.fromhex("0003000c000000020007") + b"rdkafka" + bytes.fromhex("0000000000010000")


@pytest.mark.parametrize("version", [12, 13])
def test_librdkafkas_trailing_bytes_are_tolerated_by_name(version):
    out = decode(pack([LIBRDKAFKA], [REQUEST], [3], [version]))
    assert (Status(out.status[0]), Tolerance(out.tolerance[0])) == (Status.OK, Tolerance.METADATA_INT32_NULL)
    assert nested(out, 0)["body"] == {
        "topics": None, "allowAutoTopicCreation": False, "includeTopicAuthorizedOperations": False,
    }  # fmt: skip


@pytest.mark.parametrize(("version", "zeros"), [(9, 8), (12, 7), (13, 7)])
def test_librdkafkas_consumers_ask_for_all_topics_and_let_none_be_created(version, zeros):
    """A subscription to a pattern: allow.auto.create.topics is false, so all is 0."""
    head = LIBRDKAFKA[:17]
    out = decode(pack([head + bytes(1 + zeros), head + bytes(zeros)], [REQUEST] * 2, [3] * 2, [version] * 2))
    assert [Status(status).name for status in out.status] == ["OK", "LEFTOVER_BYTES"]
    assert out.tolerance.tolist() == [Tolerance.METADATA_INT32_NULL, Tolerance.NONE]


# confluent-kafka 2.2.0 in a capture against 4.3.1: client id "ck-2.2.0", all topics.
LIBRDKAFKA_9 = bytes.fromhex("00030009000000040008") + b"ck-2.2.0" + bytes.fromhex("000000000001000000")


def test_librdkafkas_trailing_bytes_of_metadata_9_are_tolerated_by_name():
    rows = [(LIBRDKAFKA_9, 9), (LIBRDKAFKA_9[:-1], 9), (LIBRDKAFKA_9, 12)]
    out = decode(pack([data for data, _ in rows], [REQUEST] * 3, [3] * 3, [version for _, version in rows]))
    assert out.tolerance.tolist() == [Tolerance.METADATA_INT32_NULL, Tolerance.NONE, Tolerance.NONE]
    assert [Status(status).name for status in out.status] == ["OK", "OK", "LEFTOVER_BYTES"]
    assert nested(out, 0)["body"]["topics"] is None


def test_other_trailing_bytes_are_not_tolerated():
    rows = [(LIBRDKAFKA[:-1] + b"\1", 12), (LIBRDKAFKA + b"\0", 12), (LIBRDKAFKA, 11)]
    out = decode(pack([data for data, _ in rows], [REQUEST] * 3, [3] * 3, [version for _, version in rows]))
    assert {Status(s).name for s in out.status} == {"LEFTOVER_BYTES"}
    assert not out.tolerance.any()


def test_an_exact_message_that_ends_like_the_tolerated_one_is_just_well():
    whole = LIBRDKAFKA[:-7] + b"\x02" + bytes(16) + bytes(2) + b"\1\0\0"  # one topic, by a zero id
    out = decode(pack([whole], [REQUEST], [3], [12]))
    assert (Status(out.status[0]), out.tolerance[0]) == (Status.OK, Tolerance.NONE)


EMPTY_ARRAY = bytes.fromhex("00120000000000010007") + b"rdkafka" + bytes(4)  # librdkafka 0.9 to 1.x


def test_the_empty_array_of_librdkafkas_api_versions_is_tolerated_by_name():
    out = decode(pack([EMPTY_ARRAY, EMPTY_ARRAY[:-4]], [REQUEST] * 2, [18] * 2, [0, 0]))
    assert out.status.tolist() == [Status.OK, Status.OK]
    assert out.tolerance.tolist() == [Tolerance.API_VERSIONS_EMPTY_ARRAY, Tolerance.NONE]
    assert nested(out, 0) == nested(out, 1)


def test_no_other_api_versions_request_is_tolerated():
    rows = [(EMPTY_ARRAY[:-1] + b"\1", 0), (EMPTY_ARRAY + b"\0", 0), (EMPTY_ARRAY[:-1], 0), (EMPTY_ARRAY, 1)]
    out = decode(pack([data for data, _ in rows], [REQUEST] * 4, [18] * 4, [version for _, version in rows]))
    assert {Status(s).name for s in out.status} == {"LEFTOVER_BYTES"}
    assert not out.tolerance.any()


# confluent-kafka 2.0.2 in a capture against 4.3.1: list_consumer_groups() of client "ck-2.0.2".
LIST_GROUPS = bytes.fromhex("00100004000000060008") + b"ck-2.0.2" + bytes.fromhex("00010000")


def test_the_second_tags_of_librdkafkas_list_groups_are_tolerated_by_name():
    stable = LIST_GROUPS[:-3] + b"\x02\x07Stable\0\0"  # the same request with a state to filter by
    out = decode(pack([LIST_GROUPS, stable, LIST_GROUPS[:-1]], [REQUEST] * 3, [16] * 3, [4] * 3))
    assert out.status.tolist() == [Status.OK] * 3
    assert out.tolerance.tolist() == [Tolerance.LIST_GROUPS_SECOND_TAGS] * 2 + [Tolerance.NONE]
    assert nested(out, 0) == nested(out, 2)
    assert nested(out, 1)["body"] == {"statesFilter": ["Stable"]}


def test_no_other_list_groups_request_is_tolerated():
    rows = [(LIST_GROUPS[:-1] + b"\1", 4), (LIST_GROUPS + b"\0", 4), (LIST_GROUPS, 5)]
    out = decode(pack([data for data, _ in rows], [REQUEST] * 3, [16] * 3, [version for _, version in rows]))
    assert Status.OK not in out.status.tolist()
    assert not out.tolerance.any()


def flexible_responses():
    flexible = {layout.key: layout.flexible for layout in layouts("kafka") if layout.side == "response"}
    rows = [row for row in vectors("kafka-messages") if row["side"] == "response"]
    return [row for row in rows if row["version"] in flexible[row["key"]]]


def spoiled(rows, tail):
    return [{**row, "hex": row["hex"] + tail} for row in rows]


def test_a_second_section_of_tags_behind_a_response_is_tolerated_by_name():
    rows = flexible_responses()
    out, whole = decode(batch(spoiled(rows, "00"))), decode(batch(rows))
    assert len(rows) > 100
    assert set(out.status.tolist()) == {Status.OK}
    assert set(out.tolerance.tolist()) == {Tolerance.RESPONSE_SECOND_TAGS}
    assert not whole.tolerance.any()
    assert [nested(out, i) for i in range(len(rows))] == [nested(whole, i) for i in range(len(rows))]


@pytest.mark.parametrize("tail", ["01", "ff", "0000", "0001", "00000000"])
def test_no_other_bytes_behind_a_response_are_tolerated(tail):
    out = decode(batch(spoiled(flexible_responses(), tail)))
    assert set(out.status.tolist()) == {Status.LEFTOVER_BYTES}


def test_without_tagged_fields_no_byte_behind_a_response_is_tolerated():
    rows = [row for row in vectors("kafka-messages") if row["side"] == "response"]
    kept = {(row["key"], row["version"]) for row in flexible_responses()}
    out = decode(batch(spoiled([row for row in rows if (row["key"], row["version"]) not in kept], "00")))
    assert set(out.status.tolist()) == {Status.LEFTOVER_BYTES}


VERSIONS_0 = bytes.fromhex("00000001000000000001001200000003")


@pytest.mark.parametrize("version", [1, 2])
def test_api_versions_without_throttle_time_is_tolerated_by_name(version):
    rows = [VERSIONS_0, VERSIONS_0 + bytes(4), VERSIONS_0[:-1], VERSIONS_0 + bytes(3), VERSIONS_0 + bytes(5)]
    out = decode(pack(rows, [RESPONSE] * 5, [18] * 5, [version] * 5))
    names = [Status(status).name for status in out.status]
    assert names == ["OK", "OK", "TRUNCATED", "TRUNCATED", "LEFTOVER_BYTES"]
    assert out.tolerance.tolist() == [Tolerance.API_VERSIONS_WITHOUT_THROTTLE_TIME, *[Tolerance.NONE] * 4]
    assert out.version.tolist()[:2] == [0, version]
    assert nested(out, 0)["body"]["apiKeys"] == nested(out, 1)["body"]["apiKeys"]


def test_a_later_version_of_api_versions_needs_its_throttle_time():
    out = decode(pack([VERSIONS_0], [RESPONSE], [18], [3]))
    assert (Status(out.status[0]), out.tolerance[0]) == (Status.UNEXPECTED_NULL, Tolerance.NONE)


def test_a_projection_keeps_what_was_asked_for_and_checks_everything():
    rows = [row for row in vectors("kafka-messages") if (row["api"], row["side"]) == ("Fetch", "request")]
    broken = {**rows[-1], "hex": rows[-1]["hex"] + "00"}
    wanted = only({("Fetch", "request"): ["topics.partitions.partition", "client_id"]})
    out = decode(batch([*rows, broken]), wanted)
    assert (Status(out.status[-1]), set(out.status[:-1].tolist())) == (Status.LEFTOVER_BYTES, {Status.OK})
    here = form("Fetch", "request")
    kept = {slot.path for slot in here.root.walk() if wanted.kept_slots[slot.number]}
    assert kept == {"", "client_id", "topics", "topics.partitions", "topics.partitions.partition"}
    full = decode(batch(rows))
    assert len(out.field) < len(full.field)
    assert out.rows[here.tables["topics.partitions"].level] == full.rows[here.tables["topics.partitions"].level]


def test_a_batch_larger_than_its_first_buffer_is_walked_on(monkeypatch):
    rows = [row for row in vectors("kafka-messages") if row["api"] in {"Fetch", "Metadata"}]
    roomy = decode(batch(rows))
    for capacity in range(1, 120, 1 + len(rows) // 20):
        monkeypatch.setattr(message, "Interpreter", tight_at_first(capacity))
        tight = decode(batch(rows))
        for column in ("status", "token_at", "field", "row", "value", "length", "rows"):
            assert getattr(tight, column).tolist() == getattr(roomy, column).tolist()


def tight_at_first(capacity):
    def made(*arguments):
        walk = interpreter.Interpreter(*arguments)
        walk.tokens.reserve(capacity)
        return walk

    return made


def test_the_buffer_may_end_at_any_token(monkeypatch):
    rows = [row for row in vectors("kafka-messages") if (row["api"], row["side"]) == ("Fetch", "request")]
    row = max(rows, key=lambda row: str(row["json"]).count("fetchOffset"))
    roomy = decode(batch([row]))
    for capacity in range(1, len(roomy.field) + 1):
        monkeypatch.setattr(message, "Interpreter", tight_at_first(capacity))
        assert decode(batch([row])).value.tolist() == roomy.value.tolist()


def test_every_malformed_status_has_its_error():
    assert {status for status in Status if status >= Status.TRUNCATED} <= set(REASONS)


def test_the_dialect_may_differ_by_message():
    end_quorum = [row for row in vectors("kafka-variants") if row["api"] == "EndQuorumEpoch"]
    plain = [row for row in vectors("kafka-messages") if row["api"] == "Vote"][:1]
    rows = end_quorum[1:2] + plain
    out = decode(batch(rows), dialect=np.array([Dialect.KAFKA_CHANGED, Dialect.KAFKA_CHANGED], np.int8))
    assert [nested(out, i) for i in range(2)] == [row["json"] for row in rows]
    assert out.dialect.tolist() == [Dialect.KAFKA_CHANGED, Dialect.KAFKA]  # of Vote there is one layout only


def test_known_tells_a_request_header():
    table = known()
    assert table[1].tolist() == [0, 18, 12, 12]  # the last: which version a draft changed
    assert table[17, 2] > 1000  # never flexible
    assert short_header(7, 0)
    assert not short_header(7, 1)


def test_metadata_records_are_messages_without_header():
    rows = vectors("metadata-records")
    values = [bytes.fromhex(row["hex"])[3:] for row in rows]  # behind the frame
    out = decode(pack(values, [RECORD] * len(rows), [row["type"] for row in rows], [row["version"] for row in rows]))
    assert [nested(out, i) for i in range(len(rows))] == [{"body": row["json"]} for row in rows]
