"""Records found again, numbers tried, and whatever hostile bytes are: bounded, never plain without a proof."""

import random

import pytest

from wirecheck.capture.tls.cipher_suites import TLS_1_3
from wirecheck.capture.tls.record_keys import Tls13Key
from wirecheck.capture.tls.records import MOST_TRIES, PlainPieces, RecordStream

SECRET = bytes(range(32))
FRAME = 5 + 17


def key():
    return Tls13Key(TLS_1_3[0x1301], SECRET)


def sealed(number, content, kind=23, padding=0):
    """A record as RFC 8446 5.2 has it, by the key's own cipher."""
    made = key()
    inner = content + bytes([kind]) + bytes(padding)
    header = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big")
    return header + made._aead.encrypt((made._iv ^ number).to_bytes(12, "big"), inner, header)


def plain_of(stream, begin, end):
    """Plain bytes of [begin, end), dots where numbers jump."""
    pieces, found, at = PlainPieces(), b"", stream.space.place(begin)
    stream.space.collect(begin, end, pieces)
    data, done = b"".join(pieces.data), 0
    for place, size in zip(pieces.place, pieces.size, strict=True):
        found += b"." * (place - at) + data[done : done + size]
        at, done = place + size, done + size
    return found + b"." * (stream.space.place(end) - at)


def fed(*parts, most_tries=MOST_TRIES):
    """A stream that was fed bytes, or lengths of gaps."""
    stream, at = RecordStream(0), 0
    stream.numbers.most_tries = most_tries
    stream.use([key()])
    for part in parts:
        size = part if isinstance(part, int) else len(part)
        stream.feed(at, at + size, None if isinstance(part, int) else part)
        at += size
    while stream.run():
        pass
    return stream, at


def test_content_stands_where_it_stood_on_the_wire_less_the_overhead_before_it():
    stream, end = fed(sealed(0, b"hello"), sealed(1, b"you", padding=9))
    assert plain_of(stream, 0, end) == b"helloyou"
    assert [plain_of(stream, at, at + 8) for at in (0, 8, 30, 38)] == [b"hel", b"lo", b"you", b""]
    assert [stream.space.place(at) for at in (0, 5, 7, 20, 33, end)] == [0, 0, 2, 5, 6, 8]


def test_what_is_no_application_data_is_overhead():
    stream, end = fed(sealed(0, b"\x04" + bytes(50), kind=22), sealed(1, b"x"))
    assert plain_of(stream, 0, end) == b"x"


@pytest.mark.parametrize("lost", [1, 2, 40, 700])
def test_behind_lost_records_the_number_is_found_again(lost):
    gap = sum(len(sealed(n, bytes(30))) for n in range(1, 1 + lost))
    stream, end = fed(sealed(0, b"a"), gap, sealed(1 + lost, b"b"), sealed(2 + lost, b"c"))
    assert plain_of(stream, 0, end) == b"a" + b"." * gap + b"bc"


def test_a_gap_within_a_record_costs_that_record_alone():
    whole = sealed(1, bytes(3000))
    stream, end = fed(sealed(0, b"a") + whole[:1000], 500, whole[1500:] + sealed(2, b"b"))
    assert plain_of(stream, 0, end).replace(b".", b"") == b"ab"
    assert stream.opened == 2


def test_a_key_update_is_followed():
    renewed = key().next()
    inner = b"new\x17"
    header = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big")
    record = header + renewed._aead.encrypt(renewed._iv.to_bytes(12, "big"), inner, header)
    stream, end = fed(sealed(0, b"a"), sealed(1, b"\x18\0\0\1\0", kind=22), record)
    assert plain_of(stream, 0, end) == b"anew"


def test_a_record_that_another_key_made_is_never_plain_and_the_next_is_read():
    stream, end = fed(sealed(0, b"a"), sealed(5, b"x")[:-1] + b"\0", sealed(1, b"b"), sealed(2, b"c"))
    assert plain_of(stream, 0, end).replace(b".", b"") == b"abc"


LOST = len(sealed(1, bytes(30)))


NEXT = sealed(3, b"d") + sealed(4, b"e")


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        (sealed(2, b"c") + NEXT, b"acde"),  # the record that belongs there
        (bytes(9) + NEXT, b"ade"),
        (LOST, b"a"),  # nobody knows
        (b"\x17", b"a"),  # it may still be said
        (b"\0", b"a"),
    ],
)
def test_a_copy_of_another_record_is_not_plain_where_it_does_not_belong(behind, said):
    """A packet behind a gap carries the bytes of a later one, or of one that was lost: the place lies, not the tag."""
    stream, _ = fed(sealed(0, b"a"), LOST, sealed(3, b"copied"), behind)
    assert plain_of(stream, 0, stream.space.decided).replace(b".", b"") == said


def test_a_copy_of_several_records_is_not_plain_either():
    copy = sealed(3, b"copied") + sealed(4, b"too")
    stream, end = fed(sealed(0, b"a"), LOST, copy, sealed(2, b"c") + sealed(3, b"copied") + sealed(4, b"too"))
    stream.give_up(end)
    assert plain_of(stream, 0, end).replace(b".", b"") == b"accopiedtoo"


BROKEN = sealed(3, bytes(99))
"""Its header says where the next one stands."""


@pytest.mark.parametrize("behind", [[sealed(3, b"d")], [BROKEN[:60], len(BROKEN) - 60, sealed(4, b"d")]])
def test_what_was_found_is_held_until_what_follows_proves_it(behind):
    stream, at = fed(sealed(0, b"a"), LOST, sealed(2, b"c"))
    for part in behind:
        assert plain_of(stream, 0, stream.space.decided).replace(b".", b"") == b"a"
        size = part if isinstance(part, int) else len(part)
        stream.feed(at, at + size, None if isinstance(part, int) else part)
        stream.run()
        at += size
    assert plain_of(stream, 0, stream.space.decided).replace(b".", b"") == b"acd"


def test_what_is_held_is_believed_when_nothing_follows():
    stream, end = fed(sealed(0, b"a"), LOST, sealed(2, b"c"))
    stream.give_up(end)
    assert plain_of(stream, 0, end).replace(b".", b"") == b"ac"
    stream.feed(end, end + LOST, sealed(3, bytes(30)))
    stream.run()
    assert (stream.opened, stream.failed) == (3, 0)


BENT = sealed(3, bytes(30))[:-1] + b"\0"


def test_a_bent_record_between_takes_nothing_from_the_proof():
    stream, end = fed(sealed(0, b"a"), LOST, sealed(2, b"c"), BENT, BENT, sealed(5, b"f"), sealed(6, b"g"))
    assert plain_of(stream, 0, end).replace(b".", b"") == b"acfg"


def test_behind_a_record_that_was_not_believed_numbers_are_found_again():
    stream, end = fed(sealed(0, b"a"), LOST, sealed(2, b"c"), b"\0" + BENT[1:], sealed(4, b"f"), sealed(5, b"g"))
    assert plain_of(stream, 0, end).replace(b".", b"") == b"afg"


def test_trying_ends():
    rng = random.Random(1)
    junk = b"".join(b"\x17\x03\x03\x00\x30" + rng.randbytes(48) for _ in range(60))
    stream, end = fed(sealed(0, b"a"), 100_000, junk, sealed(1, b"b"), most_tries=300)
    assert stream.space.decided == end
    assert plain_of(stream, 0, end).replace(b".", b"") == b"a"


@pytest.mark.parametrize("seed", range(40))
def test_hostile_bytes_end_in_overhead_or_nothing(seed):
    rng = random.Random(seed)
    data = bytearray(b"".join(sealed(n, rng.randbytes(rng.randint(0, 400))) for n in range(12)))
    for _ in range(rng.randint(1, 30)):
        data[rng.randrange(len(data))] = rng.choice([0, 3, 20, 22, 23, 255, rng.randrange(256)])
    cut = sorted(rng.sample(range(1, len(data)), 4))
    parts = [bytes(data[: cut[0]]), cut[1] - cut[0], bytes(data[cut[1] : cut[2]]), bytes(data[cut[2] :])]
    stream, end = fed(*parts)
    stream.give_up(end)
    stream.stop()
    assert stream.space.decided == end
