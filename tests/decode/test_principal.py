"""The principal and the address in an Envelope: Kafka's own form, and everything else."""

import pytest

from wirecheck.decode.envelope import LONGEST_TEXT, client_host, principal

ANONYMOUS = b"\0\0\x05User\x0aANONYMOUS\0\0"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (ANONYMOUS, "User:ANONYMOUS"),
        (b"\0\0\x05User\x06alice\x01\0", "User:alice"),  # authenticated by a delegation token
        (b"\0\0\x05User\x01\0\0", "User:"),
        (b"\0\0\x05User\x97\x01" + b"C" * 150 + b"\0\0", "User:" + "C" * 150),  # a length of two bytes
        (None, None),
        (b"", None),
        (b"\0\1" + ANONYMOUS[2:], None),  # another version
        (b"\0\0\0", None),  # a null type
        (ANONYMOUS[:-1], None),
        (ANONYMOUS + b"\0", None),
        (ANONYMOUS[:-1] + b"\1", None),  # with a tag
        (ANONYMOUS[:9], None),  # the name ends early
        (b"\0\0\x05User\x0a\xff\xfeONYMOUS\0\0", None),  # not UTF-8
        (b"\0\0\xff\xff\xff\xff\x0f", None),  # a varint without an end in three bytes
        (b"\0\0\x80", None),
        (b"\0\0\x05User\x82\x80\x02" + b"x" * (LONGEST_TEXT + 1), None),
        (b"CN=somebody,O=example", None),  # another KafkaPrincipalSerde
    ],
)
def test_a_principal_is_read_from_kafkas_own_form_only(data, expected):
    assert principal(data) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (b"\x7f\0\0\x01", "127.0.0.1"),
        (bytes(15) + b"\x01", "::1"),
        (b"\x7f\0\0", None),
        (b"", None),
        (None, None),
    ],
)
def test_an_address_has_four_or_sixteen_bytes(address, expected):
    assert client_host(address) == expected
