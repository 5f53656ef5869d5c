"""The interpreter's parts, and its refusals byte by byte: where on the wire, in which field."""

import struct

import pytest
from librt.vecs import vec
from mypy_extensions import i64, u8

from wirecheck.decode.columns import tables
from wirecheck.decode.interpret.interpreter import Interpreter, is_text, uvarint
from wirecheck.decode.interpret.kept_bytes import one_message
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.message import Status, decode, only
from wirecheck.decode.nested import nested
from wirecheck.decode.wire import REQUEST, pack


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\0", (0, 1)),
        (b"\x7f", (127, 1)),
        (b"\x80\x01", (128, 2)),
        (b"\xff\xff\xff\xff\x0f", (2**32 - 1, 5)),
        (b"\x81\x80\x80\x80\x00", (1, 5)),  # padded: Kafka reads it too
        (b"\x80", (-1, 1)),
        (b"", (-1, 0)),
        (b"\x80\x80\x80\x80\x80\x01", (-2, 5)),
    ],
)
def test_varints(data, expected):
    assert uvarint(data, 0, len(data)) == expected


TEXTS = ["", "plain", "größe", "注文", "🚀", "\x7f\x80", "߿ࠀ", "퟿\ue000", "\uffff\U00010000", "\U0010ffff"]
NO_TEXTS = [
    b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xc2", b"\xc2\x41", b"\xe0\x9f\xbf", b"\xe1\x80", b"\xe1\x80\xc0",
    b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"ok\xff", b"\xf1\x80\x80\x40",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_utf8_is_text(text):
    data = text.encode()
    assert is_text(data, 0, len(data))


@pytest.mark.parametrize("data", NO_TEXTS)
def test_anything_else_is_not(data):
    with pytest.raises(UnicodeDecodeError):
        data.decode()
    assert not is_text(data + b"x", 0, len(data))


def outcome(data, key, version, spans=None, side=REQUEST):
    out = decode(pack([data], [side], [key], [version], [spans or []]))
    return Status(out.status[0]).name, int(out.error_at[0]), out.error_path(0)


HEADER = b"\0\1\0\x0d" + bytes(4) + b"\xff\xff\0"  # Fetch v13
FIXED = struct.pack(">iiiibii", -1, 500, 1, 5, 0, 0, 0)
TOPIC = bytes(16)
PARTITION = struct.pack(">iiqiqi", 0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (FIXED[:-4], ("TRUNCATED", 32, "sessionEpoch")),
        (FIXED + b"\x03", ("TRUNCATED", 36, "topics")),
        (FIXED + b"\0", ("UNEXPECTED_NULL", 36, "topics")),
        (FIXED + b"\x80\x80\x80\x80\x80\1", ("BAD_VARINT", 36, "topics")),
        (FIXED + b"\x80\x80\x80\x80\x08", ("BAD_LENGTH", 36, "topics")),
        (FIXED + b"\x02" + TOPIC + b"\x02" + PARTITION[:30] + b"\0" * 2, ("TRUNCATED", 53, "topics.partitions")),
        (FIXED + b"\x02" + TOPIC + b"\x02" + PARTITION + b"\1\5\1",
         ("TRUNCATED", 87, "topics.partitions._unknownTaggedFields")),
        (FIXED + b"\x02" + TOPIC + b"\x01\0\x01\x03\xff\xff", ("BAD_TEXT", 57, "rackId")),
        (FIXED + b"\x01\x01\x01\0\0", ("LEFTOVER_BYTES", 40, "")),
    ],
)  # fmt: skip
def test_a_refusal_says_where_on_the_wire_and_in_which_field(rest, expected):
    assert outcome(HEADER + rest, 1, 13) == expected


FETCH_12 = b"\0\1\0\x0c" + bytes(4) + b"\xff\xff\0" + FIXED + b"\1\1\1"  # its tag section follows


@pytest.mark.parametrize(
    ("tags", "status"),
    [
        (b"\0", "OK"),
        (b"\1\0\3\2a", "TRUNCATED"),
        (b"\1\0\2\2a", "OK"),  # cluster id
        (b"\1\0\3\2a\0", "BAD_TAG"),
        (b"\1\0\1\2a", "BAD_TAG"),
        (b"\2\5\0\5\0", "BAD_TAG"),
        (b"\2\5\0\4\0", "BAD_TAG"),
        (b"\2\4\0\5\1x", "OK"),
        (b"\1\5\x80\x80\x80\x80\x80\1", "BAD_VARINT"),
        (b"\1\x80\x80\x80\x80\x80\1\0", "BAD_VARINT"),
        (b"\x80\x80\x80\x80\x80\1", "BAD_VARINT"),
        (b"\1\xff\xff\xff\xff\x0f\0", "BAD_LENGTH"),
        (b"\1\5\xff\xff\xff\xff\x0f", "BAD_LENGTH"),
        (b"\x81", "TRUNCATED"),
        (b"\1\x81", "TRUNCATED"),
        (b"\1", "TRUNCATED"),
        (b"\1\5", "TRUNCATED"),
        (b"\1\5\2x", "TRUNCATED"),
    ],
)
def test_tag_sections(tags, status):
    assert outcome(FETCH_12 + tags, 1, 12)[0] == status


def test_bytes_left_out_are_seen_only_where_structure_lies_in_them():
    whole = FETCH_12 + b"\2\4\0\5\3xyz"
    begin = len(whole)
    at = {
        "header": ((2, 3), "LEFT_OUT"),
        "a run of integers": ((15, 9), "LEFT_OUT"),
        "an array's count": ((len(FETCH_12) - 3, 1), "LEFT_OUT"),
        "the tag count": ((len(FETCH_12), 1), "LEFT_OUT"),
        "a tag": ((begin - 5, 1), "LEFT_OUT"),
        "a tag's size": ((begin - 4, 1), "LEFT_OUT"),
        "a tag's bytes": ((begin - 3, 3), "OK"),
        "some of them": ((begin - 2, 1), "OK"),
    }
    assert {name: outcome(whole, 1, 12, [cut])[0] for name, (cut, _) in at.items()} == {
        name: status for name, (_, status) in at.items()
    }


def test_empty_spans_change_nothing():
    whole = FETCH_12 + b"\1\5\3xyz"
    spans = [(0, 0), (4, 0), (len(whole) - 3, 1), (len(whole) - 2, 0), (len(whole) - 1, 1)]
    out = decode(pack([whole], [REQUEST], [1], [12], [spans]))
    assert nested(out, 0)["body"]["_unknownTaggedFields"] == [{"tag": 5, "data": {"left_out": 3}}]


def test_a_length_in_a_hole_is_left_out_and_one_beyond_the_end_is_cut_off():
    metadata = b"\0\3\0\1" + bytes(4) + b"\0\2ab" + b"\0\0\0\1" + b"\0\5topic"
    assert outcome(metadata, 3, 1)[0] == "OK"
    assert outcome(metadata, 3, 1, [(8, 1)])[0] == "LEFT_OUT"
    assert outcome(metadata, 3, 1, [(13, 2)])[0] == "LEFT_OUT"
    assert outcome(metadata[:-5], 3, 1)[:2] == ("TRUNCATED", 16)
    assert outcome(metadata[:9], 3, 1)[:2] == ("TRUNCATED", 8)
    assert outcome(metadata[:-1], 3, 1, [(18, 4)])[0] == "TRUNCATED"


def test_a_hole_that_goes_on_behind_the_content_it_began_in_is_left_out():
    whole = FETCH_12 + b"\2\4\0\5\3xyz"
    assert outcome(whole + b"\0", 1, 12, [(len(whole) - 2, 3)])[0] == "LEFTOVER_BYTES"
    assert outcome(FETCH_12 + b"\2\4\3xyz\5\0", 1, 12, [(len(FETCH_12) + 4, 3)])[0] == "LEFT_OUT"


def test_of_an_unknown_tag_only_what_is_wanted_is_kept():
    messages = pack([FETCH_12 + b"\1\5\3xyz"], [REQUEST], [1], [12])
    path = "_unknown_tagged_fields"
    for wanted in ("tag", "data"):
        (table,) = (
            table
            for name, table in tables(
                decode(messages, only({("Fetch", "request"): [f"{path}.{wanted}"]})), "Fetch", "request"
            ).items()
            if name == path
        )
        assert len(table) == 1
        assert table["tag"].tolist() == [5] if wanted == "tag" else table["data"].raw(0) == b"xyz"
        with pytest.raises(KeyError):
            table["data" if wanted == "tag" else "tag"]


def test_an_interpreter_can_be_used_again():
    wanted = vec[u8](bytes([1]) * (len(programs().slots) + len(programs().runs.stride)))
    walk = Interpreter(wanted, programs().levels)
    data, begin = FETCH_12 + b"\0", programs().instructions[programs().entries[0, REQUEST, 1, 12]]
    for _ in range(2):
        walk.forget()
        assert walk.walk(begin, one_message(data, vec[i64](), vec[i64]()), 0, 0) == Status.OK
        assert (walk.tokens.used, walk.problem_at, sum(walk.rows)) == (walk.met, len(data), 1)
    assert walk.walk(begin, one_message(data + b"x", vec[i64](), vec[i64]()), 0, 0) == Status.LEFTOVER_BYTES
    assert (walk.tokens.used, walk.problem_at, sum(walk.rows)) == (walk.met, len(data), 1)  # it leaves nothing


def consumer_group_response(marker):
    return bytes(4) + b"\0" + bytes(4) + bytes(2) + b"\0\0" + bytes(4) + bytes(4) + marker


@pytest.mark.parametrize(
    ("marker", "status"),
    [(b"\xff\0", "OK"), (b"\x80\0", "OK"), (b"\1\1\0\0", "OK"), (b"\7\1\0\0", "OK"), (b"", "TRUNCATED")],
)
def test_a_presence_byte_below_zero_is_null_and_any_other_is_there(marker, status):
    assert outcome(consumer_group_response(marker), 68, 0, side=1)[0] == status


def test_a_presence_byte_in_a_hole_is_left_out():
    assert outcome(consumer_group_response(b"\xff\0"), 68, 0, [(21, 1)], side=1)[0] == "LEFT_OUT"


def test_elements_with_and_without_tags_may_alternate():
    topics = b"\x04" + b"".join(TOPIC + b"\x04" + PARTITION + tags + PARTITION + b"\0" + PARTITION + tags + b"\0"
                                for tags in (b"\0", b"\1\5\1x", b"\0"))  # fmt: skip
    out = decode(pack([HEADER + FIXED + topics + b"\1\1\0"], [REQUEST], [1], [13]))
    partitions = [topic["partitions"] for topic in nested(out, 0)["body"]["topics"]]
    assert [["_unknownTaggedFields" in p for p in three] for three in partitions] == [
        [False] * 3, [True, False, True], [False] * 3,
    ]  # fmt: skip
    assert {p["fetchOffset"] for three in partitions for p in three} == {2}


def test_a_message_walked_alone_has_the_rows_of_a_first_one():
    compiled = programs()
    wanted = vec[u8]([1] * (len(compiled.slots) + len(compiled.runs.stride)))
    begin = compiled.instructions[compiled.entries[Dialect.KAFKA, REQUEST, 3][1]]
    data = struct.pack(">hhih", 3, 1, 7, -1) + struct.pack(">i", 2) + b"\0\1a\0\1b"
    walk, found = Interpreter(wanted, compiled.levels), []
    for spare in (0, 3, 0):
        assert walk.walk_alone(begin, one_message(data, vec[i64](), vec[i64]())) == Status.OK
        found.append((walk.met, walk.tokens.used, list(walk.tokens.row)[: walk.tokens.used]))
        for _ in range(spare):
            walk.walk(begin, one_message(data, vec[i64](), vec[i64]()), 0, 0)
    assert found[0] == found[1] == found[2]
