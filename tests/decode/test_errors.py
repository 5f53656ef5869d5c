"""The closed family: each member has bytes that produce it, and those produce no other."""

import struct

import pytest

from tests.decode.log.batches import Batch, batch, batches, entries, entry, record
from wirecheck.decode import errors
from wirecheck.decode.log.compression import decompressed


def read(data):
    for found in batches(data).batches:
        found.records()


def read_entry(value):
    (refused,) = entries(batch(value)).refused
    raise refused.reason(0)


BUILDERS = {
    errors.Truncated: lambda: read(Batch([record()[:-1]]).bytes()),
    errors.BadLength: lambda: read(Batch(count=-1).bytes()),
    errors.BadVarint: lambda: read(Batch([b"\xff" * 5 + bytes(10)]).bytes()),
    errors.UnexpectedNull: lambda: read_entry(None),
    errors.BadChecksum: lambda: _raise(entries(Batch(crc=0).bytes()).refused[0].reason),
    errors.BadMagic: lambda: read(batch(b"").replace(b"\x02", b"\x03", 1)),
    errors.BadCompression: lambda: decompressed(1, b"no gzip"),
    errors.UnknownApi: lambda: read_entry(entry(40_000, b"")),
    errors.UnknownVersion: lambda: read_entry(entry(2, b"", frame=0)),
    errors.LeftoverBytes: lambda: read(Batch([record(tail=b"\x00")]).bytes()),
}
# What only the interpreter finds is built in tests/decode/test_message.py and tests/decode/test_nested.py.
ELSEWHERE = {errors.BadTag, errors.BadText}


def _raise(reason):
    raise reason(0)


def test_the_family_is_closed():
    family = {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.DecodeError)}
    assert family == {*BUILDERS, *ELSEWHERE, errors.DecodeError}
    assert all(issubclass(member, errors.DecodeError) for member in family)


@pytest.mark.parametrize("member", BUILDERS, ids=lambda member: member.__name__)
def test_every_member_has_bytes_that_are_refused_for_it_and_nothing_else(member):
    with pytest.raises(errors.DecodeError) as caught:
        BUILDERS[member]()
    assert caught.type is member


def test_an_error_says_what_where_and_in_which_field():
    assert str(errors.BadLength(12, "topics.name")) == "BadLength at byte 12 in topics.name"
    assert str(errors.BadMagic(struct.calcsize(">qi"))) == "BadMagic at byte 12"
