"""The checksum, against its published vectors and a bit-by-bit twin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decode.log import batches
from wirecheck.decode.log.checksum import crc32c


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
