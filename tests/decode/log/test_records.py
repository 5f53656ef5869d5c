"""Records fields: Kafka's own vectors, the walk over batches, headers, sums, cut ends and holes."""

import base64
import gzip
import json
from pathlib import Path

import cramjam
import pytest

from tests.decode.log.batches import Batch, batch, batches, gzipped, leader_change, message, objects, record
from wirecheck.decode.errors import BadCompression, BadLength, BadMagic, DecodeError, Truncated
from wirecheck.decode.holes import laid_out
from wirecheck.decode.log.records import HEADER_BYTES, header, read_batches

GOLDEN = Path(__file__).parents[1] / "golden" / "record-batches.jsonl.gz"
VECTORS = [json.loads(line) for line in gzip.decompress(GOLDEN.read_bytes()).splitlines()]


def b64(content):
    return None if content is None else base64.b64encode(content).decode()


def as_vector(found):
    """A batch as the vectors write it, without what is inside a control record's value."""
    same = ("position", "size", "magic", "base_offset", "crc", "crc_valid", "max_timestamp", "base_timestamp")
    return {name: getattr(found, name) for name in (*same, "partition_leader_epoch", "count", "control")} | {
        "compressed": found.codec != 0,
        "records": [_record(r) for r in objects(found.records())],
    }


def _record(r):
    return {
        "offset": r.offset,
        "timestamp": r.timestamp_ms,
        "key": b64(r.key),
        "value": b64(r.value),
        "headers": [[name, b64(content)] for name, content in r.headers],
    }


UNREAD = {
    "timestamp_type", "last_sequence", "transactional", "delete_horizon_ms", "last_offset", "compression",
    "producer_id", "producer_epoch", "base_sequence",
}  # fmt: skip


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"].replace(" ", "-"))
def test_kafkas_own_batches_are_read_as_kafka_reads_them(vector):
    """Of older formats only where a batch ends."""
    found = batches(bytes.fromhex(vector["hex"]))
    assert [(b.position, b.size, b.magic) for b in found.batches] == [
        (one["position"], one["size"], one["magic"]) for one in vector["batches"]
    ]
    expected = [
        {name: value for name, value in one.items() if name not in UNREAD}
        for one in vector["batches"]
        if one["magic"] == 2
    ]
    for one in expected:
        for r in one["records"]:
            for name in ("control", "control_type", "coordinator_epoch"):
                r.pop(name, None)
    assert [as_vector(b) for b in found.batches if b.magic == 2] == expected
    assert found.left_over == vector["left_over"]


def test_all_vectors_are_there():
    assert len(VECTORS) == 106
    assert sum(one["magic"] == 2 for vector in VECTORS for one in vector["batches"]) == 71


FIELD = batch(b"a", b"b") + message(b"c") + batch(b"d", base_offset=3)


def test_every_cut_of_a_field_leaves_whole_batches_and_a_rest():
    ends = {b.end for b in batches(FIELD).batches}
    for end in range(len(FIELD)):
        found = batches(FIELD[:end])
        whole = max({0, *(e for e in ends if e <= end)})
        assert found.left_over == end - whole
        assert [b.end for b in found.batches] == sorted(e for e in ends if e <= end)


@pytest.mark.parametrize(
    ("field", "error"),
    [
        (FIELD + bytes(16) + b"\x03" + bytes(60), BadMagic),
        (FIELD + bytes(16) + b"\xff" + bytes(60), BadMagic),
        (FIELD + bytes(11) + b"\x30" + bytes(4) + b"\x02" + bytes(60), BadLength),
        (FIELD + bytes(11) + b"\x15" + bytes(4) + b"\x01" + bytes(60), BadLength),
        (FIELD + bytes(8) + b"\xff" * 4 + bytes(4) + b"\x00" + bytes(60), BadLength),
    ],
)
def test_what_is_no_batch_is_refused_and_what_stood_before_it_is_kept(field, error):
    found = read_batches(laid_out(field))
    assert len(found.batches) == 3
    assert type(found.refused) is error
    with pytest.raises(error):
        batches(field)


def test_a_compressed_batch_is_bounded():
    block = bytes(cramjam.zstd.compress(record(bytes(1 << 20))))
    (found,) = batches(Batch(block=block, attributes=4, count=1).bytes()).batches
    assert len(found.records()) == 1
    with pytest.raises(BadLength):
        found.records(1 << 16)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codes_that_were_never_given_out_are_refused(codec):
    (found,) = batches(Batch(attributes=codec).bytes()).batches
    with pytest.raises(BadCompression):
        found.records()


def test_an_error_within_a_compressed_block_is_told_at_the_batch():
    field = batch(b"a") + Batch(block=gzipped(record()[:-1]), attributes=1, count=1).bytes()
    found = batches(field).batches[1]
    with pytest.raises(DecodeError) as caught:
        found.records()
    assert caught.value.at == found.position


def test_an_error_in_plain_records_is_told_where_it_is():
    (found,) = batches(Batch([record(b"x" * 20)[:-9]]).bytes()).batches
    with pytest.raises(Truncated) as caught:
        found.records()
    assert caught.value.at > HEADER_BYTES - 1


def hole(field, offset, length):
    return read_batches(laid_out(field[:offset] + field[offset + length :], [(offset, length)]))


def test_a_hole_in_a_value_hides_the_value_and_the_sum():
    found = hole(FIELD, HEADER_BYTES + 6, 1)
    first, *rest = found.batches
    assert first.crc_valid is None
    assert [b.crc_valid for b in rest if b.magic == 2] == [True]
    assert [r.value for r in objects(first.records())] == [None, b"b"]
    assert found.refused is None


def test_a_record_whose_structure_is_hidden_has_no_offset():
    (first, *_) = hole(FIELD, HEADER_BYTES + 3, 1).batches
    unseen, seen = objects(first.records())
    assert (unseen.offset, unseen.unseen, seen.offset) == (-1, True, 1)


@pytest.mark.parametrize("offset", [0, 16, 17, 40, HEADER_BYTES - 1])
def test_a_hole_in_a_header_ends_the_walk(offset):
    second = len(batch(b"a"))
    found = hole(batch(b"a") + batch(b"b"), second + offset, 1)
    assert (len(found.batches), found.unseen_from, found.left_over) == (1, second, 0)


def test_a_compressed_batch_with_a_hole_is_unseen():
    field = Batch(block=gzipped(record() * 4), attributes=1, count=4).bytes()
    (found,) = hole(field, HEADER_BYTES + 2, 1).batches
    records = found.records()
    assert (len(records), records.unseen) == (0, 4)


def test_control_batches_say_so():
    (found,) = batches(leader_change()).batches
    assert found.control


def test_a_header_can_be_read_before_its_records_are_there():
    whole = batch(b"a")
    assert header(laid_out(whole[:HEADER_BYTES]), 0).size == len(whole)
