"""Secrets in metadata-log batches: found precisely in whole records, hidden whole where that is not possible."""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decode.log.batches import (
    TOPIC_ID,
    Batch,
    batch,
    config,
    entries,
    entry,
    gzipped,
    leader_change,
    message,
    record,
    remove_topic,
    secret_spans,
    text,
    topic,
    uvarint,
    without,
)
from tests.depth import examples
from wirecheck.decode.log import compression
from wirecheck.decode.log import secrets as s
from wirecheck.decode.message import Status, decode
from wirecheck.decode.nested import nested

RECORDS = [
    json.loads(line)
    for line in gzip.decompress(
        (Path(__file__).parents[1] / "golden" / "metadata-records.jsonl.gz").read_bytes()
    ).splitlines()
]

SCRAM = entry(
    11,
    text("alice")
    + b"\x01"
    + b"".join(uvarint(len(x) + 1) + x for x in (b"SALT", b"STORED", b"SERVER"))
    + bytes(4)
    + b"\x00",
)
TOKEN = entry(26, text("TOKEN") + b"\x00")


def hidden(data, spans):
    return [data[offset : offset + length] for offset, length in spans]


def test_the_types_that_carry_secrets():
    assert s.secret_types() == {4, 10, 11, 25, 26}


def test_only_the_secret_fields_of_a_record_are_hidden():
    data = batch(topic(), config("PASSWORD"), SCRAM, remove_topic(), TOKEN, config(None))
    assert hidden(data, secret_spans(data)) == [b"PASSWORD", b"SALT", b"STORED", b"SERVER", b"TOKEN"]


def without_unknown_tags(value):
    if isinstance(value, list):
        return [without_unknown_tags(one) for one in value]
    if isinstance(value, dict):
        return {name: without_unknown_tags(one) for name, one in value.items() if name != "_unknownTaggedFields"}
    return value


def test_the_rest_of_the_log_stays_readable():
    values = [bytes.fromhex(v["hex"]) for v in RECORDS]
    data = leader_change() + batch(*values, base_offset=1)
    spans = secret_spans(data)
    found = entries(without(data, *spans), left_out=spans)
    decoded = decode(found.messages)
    assert (len(found), found.refused, found.unseen) == (305, (), 0)
    assert (decoded.status == Status.OK).all()
    for i, vector in enumerate(RECORDS, 1):
        if vector["type"] not in s.secret_types():
            assert without_unknown_tags(nested(decoded, i)["body"]) == without_unknown_tags(vector["json"])


def test_a_log_without_secrets_has_no_spans():
    assert secret_spans(leader_change() + batch(topic(), remove_topic(), base_offset=1)) == []
    assert secret_spans(Batch([record(None)]).bytes()) == []
    assert secret_spans(b"") == []


def test_unknown_tags_of_a_secret_record_are_secret():
    tagged = entry(26, text("TOKEN") + b"\x01\x63\x03NEW")
    data = batch(tagged)
    assert hidden(data, secret_spans(data)) == [b"TOKEN", b"NEW"]


UNREADABLE = {
    "unknown type": entry(500, b"whatever"),
    "type beyond int16": entry(0x8001, b"whatever"),
    "unknown version of a secret one": entry(4, b"whatever", version=9),
    "version beyond int16": entry(4, b"whatever", version=0x10004),
    "a secret one that is malformed": entry(11, b"whatever"),
    "another frame": entry(2, b"whatever", frame=2),
    "unknown version of a harmless one": entry(2, b"whatever", version=9),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_the_body_of_what_cannot_be_told_to_be_harmless_is_hidden(case):
    data = batch(topic(), UNREADABLE[case], topic())
    assert hidden(data, secret_spans(data)) == [b"whatever"]


def test_unknown_tags_of_any_record_are_secret():
    tagged = entry(2, text("orders") + TOPIC_ID + b"\x01\x63\x03NEW")
    data = batch(tagged, topic())
    assert hidden(data, secret_spans(data)) == [b"NEW"]


BROKEN = {
    "a key": record(topic(), key=b"key"),
    "headers": record(topic(), headers=[(b"name", b"content")]),
    "bytes behind the headers": record(topic(), tail=b"tail"),
    "empty record": b"\x00" + bytes(20),
    "length too long": b"\xff" * 9,
    "length beyond the batch": b"\x7e" + bytes(20),
    "timestamp too long": b"\x2a\x00" + b"\xff" * 20,
    "value beyond the record": b"\x0e\x00\x00\x00\x01\x7e" + bytes(9),
    "frame cut off by the value's end": b"\x10\x00\x00\x00\x01\x02\x81" + bytes(9),
    "frame too long": b"\x1c\x00\x00\x00\x01\x10" + b"\xff" * 9,
}


@pytest.mark.parametrize("case", BROKEN)
def test_behind_a_broken_record_the_batch_is_hidden_and_the_next_is_read(case):
    tail = BROKEN[case] + b"PASSWORD"
    data = Batch([record(topic()), tail]).bytes() + batch(topic())
    begin = data.index(tail)
    assert secret_spans(data) == [(begin, len(tail))]


@pytest.mark.parametrize("garbage", [b"\xff" * 40, message(b"PASSWORD"), bytes(16) + b"\x02"])
def test_bytes_that_are_no_batch_are_hidden_to_the_end(garbage):
    data = batch(topic()) + garbage + batch(topic())
    begin = len(batch(topic()))
    assert secret_spans(data) == [(begin, len(data) - begin)]


@pytest.mark.parametrize(("values", "expected"), [([topic()], False), ([topic(), config()], True)])
def test_a_compressed_block_is_hidden_if_it_holds_a_secret(values, expected):
    block = gzipped(b"".join(record(v, offset=i) for i, v in enumerate(values)))
    data = Batch(block=block, attributes=1, count=len(values)).bytes()
    at = data.index(block)
    assert secret_spans(data + batch(topic())) == ([(at, len(block))] if expected else [])


@pytest.mark.parametrize("block", [b"no block", gzipped(record(topic())[:-3]), gzipped(record(topic()))[:-1]])
@pytest.mark.parametrize("codec", [1, 5])
def test_a_compressed_block_that_cannot_be_read_is_hidden(block, codec):
    data = Batch(block=block, attributes=codec, count=1).bytes()
    assert hidden(data, secret_spans(data)) == [block]


def test_a_compressed_block_that_is_cut_off_is_hidden_in_every_piece():
    block = gzipped(record(topic()))
    data = Batch(block=block, attributes=1, count=1).bytes() + batch(config("PASSWORD"))
    walk, found = s.LogSecrets(), b""
    for at in range(0, len(data), 10):
        piece = data[at : at + 10]
        found += b"".join(hidden(piece, walk.feed(piece)))
    assert found.startswith(block)
    assert b"PASSWORD" in found


WHOLE = (
    leader_change()
    + batch(topic(), config("PASSWORD-1"), SCRAM, config("PASSWORD-2"), base_offset=1)
    + Batch([record(config("PASSWORD-3")), record(topic(), offset=1)]).bytes()
    + batch(topic("last"), base_offset=9)
)
PRECISE = {at for offset, length in secret_spans(WHOLE) for at in range(offset, offset + length)}


@examples(80, deep=200)
@given(st.lists(st.integers(1, len(WHOLE) - 1), max_size=9))
def test_any_cut_hides_all_secrets_and_no_structure_of_other_records(cuts):
    walk, found = s.LogSecrets(), set()
    edges = [0, *sorted(set(cuts)), len(WHOLE)]
    for begin, end in pairwise(edges):
        found |= {begin + o + i for o, n in walk.feed(WHOLE[begin:end]) for i in range(n)}
    assert found >= PRECISE
    harmless = WHOLE.index(topic("last"))
    assert not found & set(range(harmless, len(WHOLE)))
    assert len(walk.carried) <= s.MOST_CARRIED_BYTES


@pytest.mark.parametrize("odd", [record(topic(), key=b"PASSWORD"), record(topic(), headers=[(b"n", b"PASSWORD")])])
def test_any_cut_hides_keys_and_headers(odd):
    data = Batch([odd, record(topic(), offset=1)]).bytes() + batch(topic("last"), base_offset=9)
    secret = data.index(b"PASSWORD")
    for cut in range(1, len(data)):
        walk = s.LogSecrets()
        spans = [*walk.feed(data[:cut]), *((cut + at, n) for at, n in walk.feed(data[cut:]))]
        covered = {at + i for at, n in spans for i in range(n)}
        assert covered >= set(range(secret, secret + 8))
        assert covered.isdisjoint(range(data.index(topic("last")), len(data)))


@pytest.mark.parametrize("odd", [b"\x01\x05\x08PASSWORD", b"\xff\x08PASSWORD"], ids=["unknown tag", "unreadable"])
def test_any_cut_hides_what_follows_it_of_a_harmless_record_that_has_more_than_its_layout(odd):
    """What was sent before the cut is gone; of what comes behind it, no byte is shown that a whole record hides."""
    body = topic()[:-1] + odd
    data = batch(body, topic("then")) + batch(topic("last"), base_offset=9)
    precise = {at for offset, length in secret_spans(data) for at in range(offset, offset + length)}
    assert precise
    for cut in range(1, len(data)):
        walk = s.LogSecrets()
        spans = [*walk.feed(data[:cut]), *((cut + at, n) for at, n in walk.feed(data[cut:]))]
        covered = {at + i for at, n in spans for i in range(n)}
        assert covered >= {at for at in precise if at >= cut}
        assert covered.isdisjoint(range(data.index(topic("last")), len(data)))


def test_a_record_that_is_cut_off_keeps_its_structure():
    at = WHOLE.index(b"PASSWORD-1") + 4
    walk = s.LogSecrets()
    spans = [*walk.feed(WHOLE[:at]), *((at + o, n) for o, n in walk.feed(WHOLE[at:]))]
    joined = [(spans[0][0], spans[0][1] + spans[1][1]), *spans[2:]]
    assert joined[0][0] + joined[0][1] == WHOLE.index(record(SCRAM, offset=2)) - 1  # its header count stays
    assert entries(without(WHOLE, *joined), left_out=joined).unseen == 0


def test_bombs_share_one_bound_and_what_is_beyond_is_hidden(monkeypatch):
    limits, unpack = [], compression.decompressed

    def counted(codec, block, limit):
        limits.append(limit)
        return unpack(codec, block, limit)

    monkeypatch.setattr(compression, "decompressed", counted)
    block = bytes(cramjam.zstd.compress(bytes(compression.LARGEST_OUTPUT_BYTES + 1)))
    bomb = Batch(block=block, attributes=4, count=3).bytes()
    harmless = Batch(block=gzip.compress(b"".join([record(topic())])), attributes=1, count=1).bytes()
    data = harmless + 9 * bomb + harmless
    spans = secret_spans(data)
    assert len(hidden(data, spans)) == 10
    assert spans[0][0] == len(harmless) + 61
    assert spans[-1][0] + spans[-1][1] == len(data)
    assert limits[1] < compression.LARGEST_OUTPUT_BYTES
    assert len(limits) == 9


TINY = record(None)
MANY = 300_000


@pytest.mark.parametrize(
    ("count", "looked_at"), [(MANY, 0), (compression.MOST_RECORDS + 10, 0), (10, 10), (0, 0), (-1, 0)]
)
def test_tiny_records_in_a_block_are_hidden_unwalked(monkeypatch, count, looked_at):
    """They are few bytes on the wire, and not many when unpacked: what costs is each record."""
    walked, head = [], s.RecordHead
    monkeypatch.setattr(s, "RecordHead", lambda *place: walked.append(place) or head(*place))
    bomb = Batch(block=bytes(cramjam.zstd.compress(TINY * MANY)), attributes=4, count=count).bytes()
    assert len(bomb) < 1000
    assert secret_spans(bomb) == [(61, len(bomb) - 61)]
    assert len(walked) == looked_at


def test_of_very_many_records_those_behind_the_first_are_hidden():
    data = batch(*[topic()] * 5)
    (span,) = s.LogSecrets(most=3).feed(data)
    assert span[0] + span[1] == len(data)
