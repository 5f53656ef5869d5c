"""Codecs: the four, Kafka's own framing of snappy, and output that never passes its bound."""

import struct

import cramjam
import pytest

from tests.decode.log.batches import SNAPPY_HEADER
from wirecheck.decode.errors import BadCompression, BadLength
from wirecheck.decode.log.compression import decompressed

CONTENT = b"0123456789" * 700
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)


def raw_snappy(content=CONTENT):
    return bytes(cramjam.snappy.compress_raw(content))


def xerial(*blocks):
    return SNAPPY_HEADER + b"".join(struct.pack(">i", len(b)) + b for b in blocks)


BLOCKS = {
    "gzip": (GZIP, bytes(cramjam.gzip.compress(CONTENT))),
    "snappy": (SNAPPY, raw_snappy()),
    "xerial": (SNAPPY, xerial(raw_snappy(CONTENT[:3000]), raw_snappy(CONTENT[3000:]))),
    "lz4": (LZ4, bytes(cramjam.lz4.compress(CONTENT))),
    "zstd": (ZSTD, bytes(cramjam.zstd.compress(CONTENT))),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_gives_what_was_put_into_it(name):
    assert decompressed(*BLOCKS[name]) == CONTENT


def test_no_codec_is_no_change():
    assert decompressed(NONE, b"as is") == b"as is"


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_may_fill_its_bound_and_not_pass_it(name):
    codec, block = BLOCKS[name]
    assert decompressed(codec, block, len(CONTENT)) == CONTENT
    with pytest.raises(BadLength):
        decompressed(codec, block, len(CONTENT) - 1)


@pytest.mark.parametrize("compress", [cramjam.gzip.compress, cramjam.zstd.compress, cramjam.lz4.compress])
def test_a_bomb_is_refused(compress):
    codec = {cramjam.gzip.compress: GZIP, cramjam.zstd.compress: ZSTD}.get(compress, LZ4)
    with pytest.raises(BadLength):
        decompressed(codec, bytes(compress(bytes(3 << 20))), 1 << 20)


def test_a_snappy_block_that_only_claims_to_be_large_is_refused_before_it_is_read():
    with pytest.raises(BadLength):
        decompressed(SNAPPY, b"\xff\xff\xff\xff\x0f" + b"\x00")


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_that_is_cut_off_is_refused_at_every_place(name):
    codec, block = BLOCKS[name]
    whole_blocks = {16, 16 + 4 + len(raw_snappy(CONTENT[:3000]))} if name == "xerial" else set()
    for end in sorted({*range(min(len(block), 60)), len(block) // 2, len(block) - 1} - whole_blocks):
        with pytest.raises(BadCompression):
            decompressed(codec, block[:end])


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_garbage_is_refused(codec):
    for garbage in (b"", b"\xff" * 40, b"garbage, not a block"):
        with pytest.raises((BadCompression, BadLength)):
            decompressed(codec, garbage, 1000)


def test_xerial_blocks_share_one_bound():
    with pytest.raises(BadLength):
        decompressed(SNAPPY, xerial(*[raw_snappy(bytes(600))] * 2), 1000)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codes_that_were_never_given_out_are_refused(codec):
    with pytest.raises(BadCompression):
        decompressed(codec, b"")
