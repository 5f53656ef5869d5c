"""The checksums, against their published vectors and a bit-by-bit twin."""

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decode.log import batches
from wirecheck.decode.log.checksum import crc32c, xxh32_short


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),  # the catalogue's check value of CRC-32/ISCSI
        (bytes(32), 0x8A9136AA),  # RFC 3720 B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_crc32c_is_that_of_the_rfc(data, crc):
    assert crc32c(data) == crc


@given(st.binary(max_size=40))
def test_crc32c_of_any_bytes_is_that_of_its_bits(data):
    assert crc32c(data) == batches.crc32c(data)


@pytest.mark.parametrize(
    ("data", "result"),
    [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF), (b"abcd", 0xA3643705), (b"asdf", 0x5E702C32)],
)
def test_xxh32_of_short_bytes(data, result):
    assert xxh32_short(data) == result


@pytest.mark.parametrize("content", [b"", b"abc", bytes(70_000)])
def test_xxh32_is_what_an_lz4_frame_carries_of_its_descriptor(content):
    frame = bytes(cramjam.lz4.compress(content))
    end = 6 + (8 if frame[4] & 8 else 0)
    assert frame[end] == xxh32_short(frame[4:end]) >> 8 & 255
