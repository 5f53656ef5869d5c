"""Columns: they say cell by cell what the nested values say; defaults, presence, projections, left-out content."""

import base64
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.vecs import vec
from mypy_extensions import i32, i64

from tests.build import CASES, Still, build, case
from tests.decode.test_message import batch, vectors
from wirecheck.decode.columns import tables
from wirecheck.decode.interpret.content import numbered
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.message import Status, decode, only
from wirecheck.decode.nested import nested
from wirecheck.decode.texts import Bytes, Lists, Text, id_codes
from wirecheck.decode.wire import REQUEST, RESPONSE, pack


def objects(slot, values):
    """What the rows of a table are, read off the nested values."""
    chain = [step for step in reversed(list(slot.enclosing())) if step.kind != Kind.MESSAGE]
    for step in chain:
        inner = []
        for value in values:
            if step.kind in {Kind.ELEMENT, Kind.ENTRY}:
                inner += value
            elif step.kind == Kind.UNKNOWN_TAG:
                inner += value.get(step.name, [])
            elif value.get(step.name) is not None:
                inner.append(value[step.name])
        values = inner
    return values


ABSENT = object()


def said(row, slot, table):
    """What a nested object says of a column; ABSENT if it has no such field."""
    if table.slot.kind == Kind.ENTRY:
        return row
    names = [step.name for step in slot.enclosing()]
    for name in reversed(names[: [step is table.slot for step in slot.enclosing()].index(True)]):
        if row is None or name not in row:
            return ABSENT
        row = row[name]
    return row


def canonical(column, i, kind):
    """A cell as canonical JSON."""
    if kind == Kind.TEXT:
        return column[i]
    if kind in {Kind.BYTES, Kind.RECORDS}:
        raw = column.raw(i)
        return None if raw is None else base64.b64encode(raw).decode()
    if kind == Kind.UUID:
        return base64.urlsafe_b64encode(column[i].tobytes()).rstrip(b"=").decode()
    if kind in {Kind.INTEGERS, Kind.UUIDS}:
        if column.count[i] < 0:
            return None
        rows = column.row(i)
        return rows.tolist() if kind == Kind.INTEGERS else [canonical(rows, j, Kind.UUID) for j in range(len(rows))]
    return float(column[i]) if kind == Kind.FLOAT else int(column[i])


def plain(value, kind):
    if kind == Kind.ARRAY:
        return -1 if value is None else len(value)
    if kind == Kind.STRUCT:
        return int(value is not None)
    return int(value) if kind == Kind.BOOLEAN else value


def compare(decoded, values, api, side):
    cells = 0
    for table in tables(decoded, api, side).values():
        rows = objects(table.slot, values)
        assert len(rows) == len(table)
        for name, slot in table.names.items():
            column = table[name].strings() if isinstance(table[name], Text) else table[name]
            expected = [said(row, slot, table) for row in rows]
            assert [value is not ABSENT for value in expected] == table.present(name).tolist(), (api, side, name)
            for i, value in enumerate(expected):
                if value is not ABSENT:
                    assert canonical(column, i, slot.kind) == plain(value, slot.kind), (api, side, table.path, name)
                    cells += 1
    return cells


def test_columns_say_what_the_nested_values_say():
    rows = vectors("kafka-messages")
    out = decode(batch(rows))
    kinds = sorted({(row["api"], row["side"]) for row in rows})
    cells = sum(
        compare(out, [row["json"] for row in rows if (row["api"], row["side"]) == kind], *kind) for kind in kinds
    )
    assert cells > 20_000


def test_columns_of_records_blobs_and_drafts_too():
    rng = random.Random(5)
    built = [
        (c, build(c[1], c[2], rng)) for c in CASES if c[0] >= Dialect.KIP516_DRAFT or c[1].side in {"record", "data"}
    ]
    for (dialect, layout, version), message in built:
        messages = pack([message.data], [SIDES.index(layout.side)], [layout.key], [version])
        compare(decode(messages, dialect=dialect), [message.value], layout.key, layout.side)


FETCH = case("Fetch", "request", 12), case("Fetch", "request", 13)


def fetch_batch(*bodies):
    built = [build(c[1], c[2], random.Random(1), body) for c, body in zip(FETCH, bodies, strict=True)]
    return pack([b.data for b in built], [REQUEST] * 2, [1] * 2, [12, 13])


def test_a_field_absent_at_a_version_holds_the_schemas_default():
    decoded = decode(fetch_batch({"topics": [{"topic": "a"}, {"topic": "b"}]}, {"topics": [{"topicId": "A" * 22}]}))
    topics = tables(decoded, "Fetch", "request")["topics"]
    assert topics["topic"].strings() == ["a", "b", ""]
    assert topics.present("topic").tolist() == [True, True, False]
    assert topics["topic_id"].shape == (3, 16)
    assert not topics["topic_id"].any()
    assert topics.present("topic_id").tolist() == [False, False, True]
    assert topics.parent.tolist() == [0, 0, 1]
    assert topics.message.tolist() == [0, 0, 1]


def test_header_fields_are_columns_of_the_table_of_messages():
    decoded = decode(fetch_batch({"topics": []}, {"topics": []}))
    root = tables(decoded, 1, "request")[""]
    assert root["request_api_version"].tolist() == [12, 13]
    assert root.message.tolist() == [0, 1]
    assert root["correlation_id"].tolist() == decoded.messages.correlation_id.tolist()


def test_default_numbers_are_the_schemas():
    produce = case("Produce", "response", 0)
    built = build(produce[1], 0, random.Random(1), {"responses": [{"name": "t", "partitionResponses": [{}]}]})
    decoded = decode(pack([built.data], [RESPONSE], [0], [0]))
    partitions = tables(decoded, "Produce", "response")["responses.partition_responses"]
    assert partitions["log_append_time_ms"].tolist() == [-1]
    assert partitions["error_message"].strings() == [None]
    assert partitions["current_leader"].tolist() == [0]
    assert partitions["record_errors"].tolist() == [0]


def test_a_float_and_a_null_list_hold_their_default_where_absent():
    assert {slot.default for slot in programs().slots if slot.kind == Kind.FLOAT} == {0.0}
    change = case("PartitionChangeRecord", "record", 0)
    built = build(change[1], 0, random.Random(3), {})
    decoded = decode(pack([built.data], [2], [5], [0]))
    lists = tables(decoded, "PartitionChangeRecord", "record")[""]
    for name in ("isr", "replicas"):
        assert lists[name].count.tolist() == [
            -1 if built.value["body"].get(name) is None else len(built.value["body"][name])
        ]


def test_a_column_outside_the_projection_is_a_key_error():
    body = {"topics": [{"partitions": [{"fetchOffset": 7}, {"fetchOffset": 8}]}]}
    decoded = decode(
        fetch_batch(body, body), only({("Fetch", "request"): ["topics.topic", "topics.partitions.fetch_offset"]})
    )
    found = tables(decoded, "Fetch", "request")
    assert found["topics.partitions"]["fetch_offset"].tolist() == [7, 8] * 2
    table = found["topics"]
    assert len(table["topic"]) == len(table)
    with pytest.raises(KeyError, match="topic_id"):
        table["topic_id"]
    with pytest.raises(KeyError):
        table["no_such_column"]


def test_a_kind_without_messages_has_empty_tables():
    found = tables(decode(fetch_batch({}, {})), "Metadata", "response")
    assert {len(table) for table in found.values()} == {0}
    assert found["topics"]["topic_id"].shape == (0, 16)
    assert found["topics"]["name"].codes()[1] == []
    assert found["topics.partitions"]["isr_nodes"].flat()[1].tolist() == [0]


def test_text_codes_number_strings_by_first_sight():
    names = [f"topic-{i % 300}" for i in range(2000)]
    body = {"topics": [{"name": name} for name in names]}
    metadata = case("Metadata", "request", 9)
    built = build(metadata[1], 9, random.Random(0), body)
    column = tables(decode(pack([built.data], [REQUEST], [3], [9])), "Metadata", "request")["topics"]["name"]
    codes, unique = column.codes()
    assert unique == [f"topic-{i}" for i in range(300)]
    assert [unique[code] for code in codes] == names == column.strings()
    assert len(column) == 2000


def test_id_codes_number_uuids_by_first_sight():
    ids = np.array([[1] * 16, [2] * 16, [1] * 16], np.uint8)
    codes, unique = id_codes(ids)
    assert codes.tolist() == [0, 1, 0]
    assert unique.tolist() == ids[:2].tolist()


def test_flat_lists_are_the_rows_one_after_the_other():
    for width, code in ((1, ">i1"), (2, ">i2"), (4, ">i4"), (8, ">i8")):
        numbers = np.array([-1, 0, 1, -(2 ** (8 * width - 1)), 2 ** (8 * width - 1) - 1])
        data = np.frombuffer(numbers.astype(code).tobytes(), np.uint8)
        column = Lists(data, np.array([0, 0, 2 * width, -1], np.int64), np.array([2, -1, 3, 4], np.int32), width)
        values, offsets = column.flat()
        assert values.tolist() == numbers.tolist()
        assert offsets.tolist() == [0, 2, 2, 5, 5]
        assert [column.row(i).tolist() for i in range(4)] == [[-1, 0], [], numbers[2:].tolist(), []]
        assert len(column) == 4


def test_lists_are_numbered_by_what_is_in_them_however_often_they_come():
    data = np.frombuffer(np.array([1, 2, 1, 2, 3], ">i4").tobytes(), np.uint8)
    at = np.array([0, 8, 4, 0, -1, 0], np.int64)
    column = Lists(data, at, np.array([2, 2, 3, -1, 2, 0], np.int32), 4)
    codes, unique = column.codes()
    assert [unique[code] if code >= 0 else None for code in codes.tolist()] == [
        [1, 2],
        [1, 2],
        [2, 1, 2],
        None,
        None,
        [],
    ]
    assert codes.tolist() == [0, 0, 1, -1, -1, 2]
    assert column.codes()[0] is codes


@given(st.data())
def test_content_is_numbered_by_first_sight_whatever_follows_what(data):
    content = data.draw(st.text("ab", max_size=30)).encode()
    row = st.tuples(st.integers(-1, 32), st.sampled_from([-1, 0, 1, 2, 8, 9]))
    rows = data.draw(st.lists(row, max_size=12)) * data.draw(st.integers(1, 3))
    codes, unique = numbered(content, vec[i64]([at for at, _ in rows]), vec[i32]([size for _, size in rows]))
    known = {}
    expected = [known.setdefault(content[at : at + n], len(known)) if min(at, n) >= 0 else -1 for at, n in rows]
    assert ([*codes], unique) == (expected, [*known])


def sasl(spans):
    auth = case("SaslAuthenticate", "request", 2)
    built = build(auth[1], 2, random.Random(4), {"authBytes": base64.b64encode(b"secret token").decode()})
    offset = built.data.index(b"secret")
    cuts = [(offset + begin, length) for begin, length in spans]
    messages = pack([b"", built.data, b"", built.data], [0] * 4, [36] * 4, [2] * 4, [[], cuts, [], []])
    return tables(decode(messages), "SaslAuthenticate", "request")[""]["auth_bytes"], decode(messages)


@pytest.mark.parametrize(
    "spans", [[(0, 12)], [(0, 3)], [(2, 4)], [(9, 3)], [(1, 2), (5, 2), (11, 1)], [(0, 0), (3, 4)]]
)
def test_content_left_out_in_part_has_its_holes(spans):
    column, decoded = sasl(spans)
    field = column.field(0)
    expected = bytearray(b"secret token")
    for begin, length in spans:
        expected[begin : begin + length] = bytes(length)
    assert bytes(field.data) == bytes(expected)
    assert [tuple(hole) for hole in field.holes] == [(begin, begin + length) for begin, length in spans if length]
    assert column.raw(0) is None
    assert column.raw(1) == b"secret token"
    assert column.field(1).data.tobytes() == b"secret token"
    assert nested(decoded, 1)["body"] == {"authBytes": {"left_out": 12}} | nested(decoded, 1)["body"]
    assert len(column) == 2


def test_content_left_out_at_a_messages_end_is_found_behind_empty_messages():
    records = case("Produce", "request", 3)
    body = {
        "topicData": [{"name": "t", "partitionData": [{"index": 0, "records": base64.b64encode(b"r" * 9).decode()}]}]
    }
    built = build(records[1], 3, random.Random(4), body)
    assert built.data.endswith(b"r" * 9)
    cut = [(len(built.data) - 9, 9)]
    messages = pack([built.data, b"", built.data], [0] * 3, [0] * 3, [3] * 3, [cut, [], cut])
    column = tables(decode(messages), "Produce", "request")["topic_data.partition_data"]["records"]
    assert [column.field(i).holes.tolist() for i in range(2)] == [[[0, 9]]] * 2


def test_null_bytes_are_none():
    join = case("Produce", "request", 3)
    built = build(join[1], 3, random.Random(4), {"topicData": [{"partitionData": [{"records": None}]}]})
    column = tables(decode(pack([built.data], [0], [0], [3])), "Produce", "request")["topic_data.partition_data"][
        "records"
    ]
    assert isinstance(column, Bytes)
    assert (column.raw(0), column.field(0)) == (None, None)


def test_text_left_out_is_no_string():
    configs = case("AlterConfigs", "request", 1)
    body = {
        "resources": [
            {"resourceName": "r", "configs": [{"name": "n", "value": "hidden"}, {"name": "n", "value": None}]}
        ]
    }
    built = build(configs[1], 1, random.Random(4), body)
    at = built.data.index(b"hidden")
    decoded = decode(pack([built.data], [0], [33], [1], [[(at, 6)]]))
    column = tables(decoded, "AlterConfigs", "request")["resources.configs"]["value"]
    assert column.codes()[0].tolist() == [-1, -1]
    assert column.strings() == [None, None]
    assert column.length.tolist() == [6, -1]


COUNTS = [0, 3, 126, 127, 200, 1, 16_383, 2]


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("tagged", [False, True])
def test_rows_with_arrays_are_the_same_whether_many_are_read_at_once_or_one(version, tagged):
    """Counts of one byte and of more, with tags between rows and without."""
    partitions = [
        {"errorCode": i, "partitionIndex": -i, "leaderId": i, "leaderEpoch": 2**31 - 1 - i, "isrNodes": [i] * (i % 3),
         "replicaNodes": list(range(count)), "offlineReplicas": []}
        for i, count in enumerate(COUNTS)
    ]  # fmt: skip
    chance = random.Random(version) if tagged else Still()
    topics = [{"name": "t", "partitions": partitions}, {"name": "u", "partitions": []}]
    one = build(case("Metadata", "response", version)[1], version, chance, {"topics": topics})
    decoded = decode(pack([one.data] * 2, [RESPONSE] * 2, [3] * 2, [version] * 2))
    assert nested(decoded, 1) == one.value
    table = tables(decoded, "Metadata", "response")["topics.partitions"]
    assert table["replica_nodes"].count.tolist() == COUNTS * 2
    assert [table["replica_nodes"].row(i).tolist() for i in (3, 9)] == [list(range(127)), [0, 1, 2]]
    assert table["partition_index"].tolist() == [-i for i in range(len(COUNTS))] * 2
    assert table["leader_epoch"].tolist() == [2**31 - 1 - i for i in range(len(COUNTS))] * 2
    assert table["isr_nodes"].count.tolist() == [i % 3 for i in range(len(COUNTS))] * 2
    assert table.present("offline_replicas").all()
    assert table.parent.tolist() == [0] * len(COUNTS) + [2] * len(COUNTS)


def test_a_batch_of_several_versions_has_defaults_where_one_lacks_the_field():
    bodies = [(version, build(case("Metadata", "response", version)[1], version, Still(), {
        "brokers": [{"nodeId": version}], "topics": [{"name": "t"}]})) for version in (0, 9, 12)]  # fmt: skip
    decoded = decode(pack([one.data for _, one in bodies], [RESPONSE] * 3, [3] * 3, [version for version, _ in bodies]))
    found = tables(decoded, "Metadata", "response")
    assert found["topics"].present("is_internal").tolist() == [False, True, True]
    assert found["topics"]["topic_authorized_operations"].tolist() == [-(2**31), 0, 0]
    assert found[""]["controller_id"].tolist() == [-1, 0, 0]
    assert not found["topics"]["topic_id"].any()


def test_rows_of_a_message_that_is_taken_back_hold_defaults_and_never_what_lay_in_memory():
    body = {"brokers": [{"nodeId": 7, "host": "b", "port": 1}], "topics": []}
    one = build(case("Metadata", "response", 9)[1], 9, Still(), body)
    decoded = decode(pack([one.data] * 2, [RESPONSE] * 2, [3] * 2, [9] * 2))
    decoded.status[1] = Status.NO_REQUEST
    brokers = tables(decoded, "Metadata", "response")["brokers"]
    assert brokers["node_id"].tolist() == [7, 0]
    assert brokers["host"].length.tolist() == [1, 0]
    assert brokers["host"].strings() == ["b", ""]


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("name", ["leader_id", "error_code", "replica_nodes", "offline_replicas"])
def test_one_field_of_rows_with_arrays_is_found_between_those_nobody_wants(name, version):
    partitions = [
        {"errorCode": i, "leaderId": 70 + i, "replicaNodes": [i] * i, "offlineReplicas": [9]} for i in range(5)
    ]
    one = build(case("Metadata", "response", version)[1], version, Still(), {"topics": [{"partitions": partitions}]})
    messages = pack([one.data], [RESPONSE], [3], [version])
    path = "topics.partitions"
    whole = tables(decode(messages), "Metadata", "response")[path]
    part = tables(decode(messages, only({("Metadata", "response"): [f"{path}.{name}"]})), "Metadata", "response")[path]
    if isinstance(whole[name], Lists):
        assert [column.tolist() for column in part[name].flat()] == [column.tolist() for column in whole[name].flat()]
        assert whole[name].count.sum() in {5, 10}
    else:
        assert part[name].tolist() == whole[name].tolist() != [0] * 5
    assert part.present(name).all()
    assert part.present(name) is part.present(name)
