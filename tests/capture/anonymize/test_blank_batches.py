"""Record batches without content: their headers as before, valid sums, and as many records where these fit."""

import struct

import pytest

from wirecheck.capture.anonymize.blank_batches import filled
from wirecheck.decode.holes import laid_out
from wirecheck.decode.log.record_table import OFFSET, VALUE_BYTES
from wirecheck.decode.log.records import read_batches

HEADER = struct.Struct(">qiiBIhiqqqhii")
ZSTD, CONTROL = 4, 0x20


def kept(size, count, attributes=0, last=None):
    """What redaction leaves of a batch with so many bytes of records."""
    last = count - 1 if last is None else last
    return HEADER.pack(100, size + 49, 7, 2, 0, attributes, last, 1000, 2000, 5, 1, 30, count) + bytes(size)


@pytest.mark.parametrize("count", [1, 2, 5, 50])
@pytest.mark.parametrize("size", [*range(7, 200), *range(8185, 8200), 70_000])
def test_a_batch_of_any_size_is_read_again(size, count):
    (batch,) = read_batches(laid_out(filled(kept(size, count)))).batches
    records = batch.records()
    assert (
        batch.crc_valid,
        batch.base_offset,
        batch.partition_leader_epoch,
        batch.max_timestamp,
    ) == (True, 100, 7, 2000)
    assert (count if size >= 7 * count else 1) == len(records) == batch.count
    assert 99 + count == records.table[-1, OFFSET]


def test_a_compressed_batch_is_not_compressed_afterwards():
    (batch,) = read_batches(laid_out(filled(kept(20, 100, ZSTD)))).batches
    assert (batch.codec, len(batch.records()), batch.crc_valid, batch.records().table[0, OFFSET]) == (0, 1, True, 199)


def test_several_batches_are_filled_and_a_cut_one_is_zeros():
    cut = kept(500, 3)[:200]
    found = read_batches(laid_out(filled(kept(30, 2) + kept(90, 3, CONTROL) + cut)))
    assert [len(batch.records()) for batch in found.batches] == [2, 3]
    assert [batch.control for batch in found.batches] == [False, True]
    assert all(batch.crc_valid for batch in found.batches)
    assert bytes(len(cut)) == filled(cut)


def test_no_record_keeps_content():
    (batch,) = read_batches(laid_out(filled(kept(300, 4)[:-200] + b"secret" * 33 + b"!!"))).batches
    assert b"secret" not in batch.field.data.tobytes()
    assert set(batch.records().table[:-1, VALUE_BYTES].tolist()) == {-1}
