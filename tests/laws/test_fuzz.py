"""The fuzzer itself: it runs, it repeats, and it would notice."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from fuzz import fields, seeds
from fuzz.bound import Bound
from fuzz.guarded import Guarded
from fuzz.machine import Breach, Run, bent, check, guarded
from tests.build import CASES
from wirecheck.decode import message
from wirecheck.decode.interpret.interpreter import uvarint
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.message import Status, decode
from wirecheck.decode.wire import pack
from wirecheck.extension_modules import PLAIN


def test_a_short_run_finds_nothing():
    run = Run(np.random.default_rng(7), plain=True)
    run.batch(seeds.messages(), 100)
    assert run.inputs == 100
    assert run.statuses["OK"] > 0
    assert len(run.statuses) > 4
    assert fields.run(np.random.default_rng(7), Bound(100)) == 0


def test_every_layout_is_bent():
    """Of every API, side, version and dialect there are seeds, and unbent they decode."""
    found = seeds.messages()
    there = set(
        zip(found.dialect.tolist(), found.side.tolist(), found.key.tolist(), found.version.tolist(), strict=True)
    )
    assert there == {(d, SIDES.index(layout.side), layout.key, version) for d, layout, version in CASES}
    whole = pack(
        [found.data[a:b].tobytes() for a, b in pairwise(found.at)], *map(list, (found.side, found.key, found.version))
    )
    assert set(decode(whole, dialect=found.dialect).status.tolist()) == {Status.OK}


def test_the_same_seed_bends_the_same_bytes():
    (first, _), (again, _) = (bent(seeds.messages(), 50, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(first.data, again.data)
    assert np.array_equal(first.span_offset, again.span_offset)


def test_what_must_not_be_is_a_breach():
    decoded = decode(bent(seeds.messages(), 50, np.random.default_rng(3))[0])
    check(decoded)
    wrong = [
        replace(decoded, status=np.full(50, 99, np.int8)),
        replace(decoded, status=np.full(50, Status.TRUNCATED, np.int8)),
        replace(decoded, status=np.full(50, Status.OK, np.int8)),
        replace(decoded, error_at=decoded.messages.size + 1),
        replace(decoded, token_at=np.arange(51) * 100_000),
    ]
    for case in wrong:
        with pytest.raises(Breach):
            check(case)


@pytest.mark.parametrize("index", [-1, 3, slice(-1, 2), slice(2, 1)])
def test_guarded_bytes_are_read_inside_only(index):
    data = Guarded(b"\0\1\2")
    with pytest.raises(IndexError):
        data[index]
    assert data[2] == 2
    assert (data[1:], data[:2], data[1:9]) == (b"\1\2", b"\0\1", b"\1\2")


@pytest.mark.skipif(not PLAIN, reason="only the plain source can be handed guarded bytes")
def test_an_index_in_front_of_the_bytes_would_be_seen():
    with guarded(), pytest.raises(IndexError):
        uvarint(message.bytes_of(np.zeros(3, np.uint8)), -1, 3)
    assert type(message.bytes_of(np.zeros(3, np.uint8))) is bytes
