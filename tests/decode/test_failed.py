"""What of messages that fail was understood."""

from tests.build import Still, build, case
from wirecheck.decode.failed import before_content, contents
from wirecheck.decode.wire import REQUEST, RESPONSE, pack


def fronts(*parts):
    datas, sides, keys, versions = zip(*parts, strict=True)
    return before_content(pack(list(datas), list(sides), list(keys), list(versions))).tolist()


def test_a_message_is_structure_up_to_its_first_array():
    """A Produce of one topic, its transactional ID null, cut off behind, inside and in front of the array's count."""
    data = build(case("Produce", "request", 3)[1], 3, Still(), {"topicData": [{"name": "t"}]}).data
    array = data.index(b"\0\0\0\1\0\1t")
    parts = [data[:-1], data[: array + 2], data[:array], data[: array - 1]]
    assert fronts(*((part, REQUEST, 0, 3) for part in parts)) == [array, array, array, array - 4]


def test_a_message_is_structure_up_to_its_first_text():
    body = {"transactionalId": "mine", "topicData": [{"name": "t"}]}
    data = build(case("Produce", "request", 3)[1], 3, Still(), body).data
    text = data.index(b"mine")
    assert fronts((data[:-1], REQUEST, 0, 3), (data[: text + 5], REQUEST, 0, 3), (data[: text + 3], REQUEST, 0, 3)) == [
        text, text, text - 2,
    ]  # fmt: skip


def test_a_tag_is_content():
    """Heartbeat v4 answers with a throttle time and an error behind a header of a correlation id and no tags."""
    plain = (1).to_bytes(4, "big") + b"\0" + bytes(6)
    assert fronts((plain + b"\0", RESPONSE, 12, 4), (plain + b"\1\7\4abcd", RESPONSE, 12, 4)) == [12, 12]
    tags_in_header = (1).to_bytes(4, "big") + b"\1\7\4abcd" + bytes(7)
    assert fronts((tags_in_header, RESPONSE, 12, 4)) == [5]


def test_of_one_that_is_whole_and_has_no_content_all_is_structure():
    assert fronts(((1).to_bytes(4, "big") + bytes(6), RESPONSE, 12, 1)) == [10]


def test_content_in_front_of_the_error_is_told():
    """A Metadata of three topics, the last one cut off; of a LeaderAndIsr its replicas; of a response its tag."""
    asked = build(
        case("Metadata", "request", 1)[1], 1, Still(), {"topics": [{"name": n} for n in ("one", "", "three")]}
    ).data
    partition = {"topicName": "t", "isr": [1, 2], "replicas": [3]}
    ordered = build(case("LeaderAndIsr", "request", 1)[1], 1, Still(), {"ungroupedPartitionStates": [partition]}).data
    tagged = (1).to_bytes(4, "big") + b"\0" + bytes(6) + b"\1\x63\4abcd" + b"more"
    parts = [(asked[:-1], REQUEST, 3, 1), (ordered + b"\0", REQUEST, 4, 1), (tagged, RESPONSE, 12, 4)]
    found = contents(pack(*map(list, zip(*parts, strict=True))))
    failures = [
        (row, parts[row][0][at : at + n]) for row, at, n in zip(*(column.tolist() for column in found), strict=True)
    ]
    assert failures == [(0, b"one"), (1, b"t"), (1, b"\0\0\0\1\0\0\0\2"), (1, b"\0\0\0\3"), (2, b"abcd")]


def test_of_a_message_with_more_contents_than_are_looked_at_first_all_are_told():
    many = 3000
    asked = build(case("Metadata", "request", 1)[1], 1, Still(), {"topics": [{"name": "t"}] * many}).data
    assert len(contents(pack([asked + b"\0"], [REQUEST], [3], [1])).message) == many
