"""Laws of records fields, for all inputs: closure, truncation, split, bounds, holes."""

import time
import tracemalloc
from itertools import pairwise

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decode.log.batches import (
    Batch,
    batch,
    batches,
    config,
    entries,
    leader_change,
    objects,
    record,
    secret_spans,
    topic,
    without,
)
from wirecheck.decode.errors import DecodeError
from wirecheck.decode.holes import laid_out
from wirecheck.decode.log.metadata_log import field_entries
from wirecheck.decode.log.record import Records
from wirecheck.decode.log.records import read_batches
from wirecheck.decode.log.secrets import LogSecrets

CODECS = [None, cramjam.gzip.compress, cramjam.snappy.compress_raw, cramjam.lz4.compress, cramjam.zstd.compress]

contents = st.none() | st.binary(max_size=20)
headers = st.lists(st.tuples(st.text(max_size=5).map(str.encode), contents), max_size=2)
records = st.builds(
    lambda value, key, names, delta: record(value, key=key, headers=names, timestamp=delta),
    contents, contents, headers, st.integers(-(2**40), 2**40),
)  # fmt: skip


@st.composite
def any_batches(draw):
    """A batch of v2 under any codec."""
    inner, codec = draw(st.lists(records, max_size=4)), draw(st.integers(0, 4))
    block = bytes(CODECS[codec](b"".join(inner))) if codec else None
    return Batch(
        inner, block=block, attributes=codec, count=len(inner), base_offset=draw(st.integers(0, 2**40))
    ).bytes()


fields = st.lists(any_batches(), max_size=3).map(b"".join)


def read(data, left_out=()):
    """Everything there is to read, in comparable form."""
    return [
        (b.base_offset, objects(b.records()) if not left_out else b.records()) for b in batches(data, left_out).batches
    ]


@given(fields, st.data())
def test_a_cut_field_gives_the_batches_that_are_whole(data, more):
    end = more.draw(st.integers(0, len(data)))
    whole, found = read(data), batches(data[:end])
    assert read(data[:end]) == whole[: len(found.batches)]
    assert sum(b.size for b in found.batches) + found.left_over == end


@given(fields, st.binary(max_size=80), st.data())
def test_bent_bytes_raise_only_decode_errors(data, garbage, more):
    at = more.draw(st.integers(0, len(data)))
    bent = data[:at] + garbage + data[at + more.draw(st.integers(0, 8)) :]
    for found in read_batches(laid_out(bent)).batches:
        try:
            found.records(1 << 16)
        except DecodeError:
            continue
    entries(bent)
    assert all(offset >= 0 and offset + length <= len(bent) for offset, length in secret_spans(bent))


@given(fields, st.data())
def test_a_hole_hides_what_is_in_it_and_changes_nothing_else(data, more):
    begin = more.draw(st.integers(0, len(data)))
    length = more.draw(st.integers(1, 30))
    end = min(begin + length, len(data))
    if begin == end:
        return
    whole = {b.position: objects(b.records()) for b in batches(data).batches}
    try:
        found = [(seen, seen.records()) for seen in batches(data[:begin] + data[end:], [(begin, end - begin)]).batches]
    except DecodeError:  # a size or a magic is never judged by what is in a hole
        raise AssertionError("a hole was read") from None
    for seen, got in found:
        assert isinstance(got, Records)
        for mine, theirs in zip(objects(got), whole[seen.position], strict=False):
            assert mine.unseen or mine == theirs


ZEROS = batch(config("\0" * 7), base_offset=9)
HIDDEN = (ZEROS.index(bytes(7)), 7)
PIECES = [
    leader_change(), batch(topic("a"), topic("b"), base_offset=1), ZEROS, batch(b""), Batch(crc=1).bytes(),
    b"\xff" * 70,
    Batch([record(topic("c"))], block=bytes(cramjam.zstd.compress(record(topic("c")))), attributes=4).bytes(),
]  # fmt: skip
log_fields = st.tuples(st.lists(st.sampled_from(PIECES), max_size=4).map(b"".join), st.booleans())


@given(st.lists(log_fields, max_size=5))
def test_what_was_read_before_changes_nothing(fields):
    known = {}
    for data, hiding in fields:
        left_out = [(data.index(ZEROS) + HIDDEN[0], HIDDEN[1])] if hiding and ZEROS in data else []
        field = laid_out(without(data, *left_out), left_out)
        assert columns(field_entries(field, known)) == columns(field_entries(field))


def columns(found):
    """All of some entries, in comparable form."""
    parts = [getattr(found.messages, name) for name in found.messages.__slots__]
    parts += [found.offset, found.epoch, found.timestamp_ms]
    return [part.tolist() for part in parts], found.refused, found.unseen, found.read_to, found.left_over


METADATA = leader_change() + batch(topic("a"), config("PASSWORD"), topic("b"), base_offset=1) + batch(config("SECRET"))


@given(st.lists(st.integers(1, len(METADATA) - 1), max_size=8))
def test_secrets_do_not_pass_however_a_field_is_cut(cuts):
    walk, kept = LogSecrets(), bytearray()
    for begin, end in pairwise([0, *sorted(set(cuts)), len(METADATA)]):
        piece = bytearray(METADATA[begin:end])
        for offset, length in walk.feed(bytes(piece)):
            piece[offset : offset + length] = b"#" * length
        kept += piece
    assert b"PASSWORD" not in kept
    assert b"SECRET" not in kept
    for value in ("PASSWORD", "SECRET"):
        at = METADATA.index(value.encode())
        assert bytes(kept[at : at + len(value)]) == b"#" * len(value)


def seconds(work, *args):
    begin = time.thread_time()
    work(*args)
    return time.thread_time() - begin


@pytest.mark.parametrize(
    "read_it", [entries, secret_spans, lambda data: [objects(b.records()) for b in batches(data).batches]]
)
def test_time_is_in_proportion_to_the_bytes(read_it):
    small, large = (batch(*[topic(f"t{i}") for i in range(n)]) for n in (500, 4_000))
    read_it(small)
    assert min(seconds(read_it, large) for _ in range(5)) < 30 * max(
        min(seconds(read_it, small) for _ in range(5)), 1e-4
    )


BOMBS = {
    "records that are not there": Batch(count=2**31 - 1).bytes(),
    "headers that are not there": Batch([record(b"")[:-1] + b"\xfe\xff\xff\xff\x0f"]).bytes(),
    "a value that is not there": Batch([b"\x14\x00\x00\x00\x01\xfe\xff\xff\xff\x0f" + bytes(4)]).bytes(),
    "empty records": Batch([bytes(1)] * 60_000, count=60_000 // 7).bytes(),
    "zstd": Batch(block=bytes(cramjam.zstd.compress(bytes(200 << 20))), attributes=4, count=1).bytes(),
    "lz4": Batch(block=bytes(cramjam.lz4.compress(bytes(200 << 20))), attributes=3, count=1).bytes(),
    "gzip": Batch(block=bytes(cramjam.gzip.compress(bytes(200 << 20))), attributes=1, count=1).bytes(),
    "snappy": Batch(block=b"\xff\xff\xff\xff\x0f" + bytes(9), attributes=2, count=1).bytes(),
}


@pytest.fixture(scope="module")
def kernels_loaded():
    """A process's first call loads what was compiled, 15 MB of it: not what a bomb takes."""
    (harmless,) = batches(batch(topic("t"))).batches
    harmless.records(1 << 20)


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.usefixtures("kernels_loaded")
def test_no_bomb_goes_off(name):
    (bomb,) = batches(BOMBS[name]).batches
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            bomb.records(1 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
    entries(BOMBS[name])
    assert secret_spans(BOMBS[name])
