"""The interpreter over foreign bytes: truncation, left-out spans, closure, bounds, independence of neighbours."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import CASES, build
from wirecheck.decode.columns import tables
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.layouts.program import Dialect
from wirecheck.decode.message import Status, decode
from wirecheck.decode.nested import nested
from wirecheck.decode.wire import pack

SHIPPED = [case for case in CASES if case[0] == Dialect.KAFKA]
NEWEST = [case for case in SHIPPED if case[2] == case[1].versions.high]
SAMPLE = SHIPPED


def small(case, seed=0):
    """A message that says something and is short enough to be cut everywhere."""
    found = (build(case[1], case[2], random.Random(seed + i)) for i in range(20))
    return next((built for built in found if 20 < len(built.data) < 400), build(case[1], case[2], random.Random(seed)))


def batch(case, payloads, spans=None):
    _, layout, version = case
    count = len(payloads)
    return pack(payloads, [SIDES.index(layout.side)] * count, [layout.key] * count, [version] * count, spans)


def test_a_message_cut_anywhere_is_truncated_and_nothing_else():
    others = {}
    for case in SAMPLE:
        data = small(case).data
        out = decode(batch(case, [data[:cut] for cut in range(len(data))]))
        others |= {(case[1].api, case[2], i): Status(s).name for i, s in enumerate(out.status) if s != Status.TRUNCATED}
    assert others == {}


def test_content_left_out_is_skipped_and_said():
    for case in SAMPLE[::3]:
        built = small(case, seed=7)
        whole = decode(batch(case, [built.data]))
        out = decode(batch(case, [built.data], [built.contents]))
        assert Status(out.status[0]) == Status.OK, case
        left = same_but_left_out(nested(out, 0), nested(whole, 0))
        assert left == len(built.contents)


def same_but_left_out(value, full):
    """How many values are only lengths; the rest must be equal."""
    if isinstance(value, dict) and set(value) == {"left_out"}:
        return 1
    if isinstance(value, dict):
        assert set(value) == set(full)
        return sum(same_but_left_out(value[name], full[name]) for name in value)
    if isinstance(value, list):
        assert len(value) == len(full)
        return sum(same_but_left_out(a, b) for a, b in zip(value, full, strict=True))
    assert value == full
    return 0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, len(SHIPPED) - 1), st.integers(0, 99), st.randoms(use_true_random=False))
def test_what_was_left_out_is_never_blamed(number, seed, rng):
    case = SHIPPED[number]
    data = build(case[1], case[2], random.Random(seed)).data
    edges = sorted(rng.choices(range(len(data) + 1), k=6))
    spans = [(begin, end - begin) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
    out = decode(batch(case, [data], [spans]))
    assert Status(out.status[0]) in {Status.OK, Status.LEFT_OUT}
    if any(length for _, length in spans) and out.status[0] == Status.OK:
        assert "left_out" in str(nested(out, 0))


def known_outcome(out):
    assert set(out.status.tolist()) <= {int(status) for status in Status}
    assert (np.diff(out.token_at)[out.status != Status.OK] == 0).all()
    assert ((out.error_at >= 0) | (out.status <= Status.NO_REQUEST)).all()
    assert (out.error_at <= out.messages.size).all()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, len(CASES) - 1), st.integers(0, 99), st.integers(0, 400), st.binary(max_size=60), st.booleans())
def test_a_valid_beginning_and_garbage_give_a_status(number, seed, cut, garbage, keep_end):
    case = CASES[number]
    data = build(case[1], case[2], random.Random(seed)).data
    bent = data[:cut] + garbage + (data[cut + len(garbage) :] if keep_end else b"")
    out = decode(batch(case, [bent, data]), dialect=case[0])
    known_outcome(out)
    assert Status(out.status[1]) == Status.OK  # whatever stands before it
    for i in range(2):
        nested(out, i)
    for table in tables(out, case[1].api, case[1].side).values():
        for name in table.names:
            assert len(table[name]) == len(table)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.binary(max_size=200), st.integers(0, 3), st.integers(-3, 130), st.integers(-2, 40)), max_size=8
    )
)
def test_any_bytes_give_a_status(rows):
    out = decode(pack(*([list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []])))
    known_outcome(out)
    assert len(out.field) <= 16 * len(out) + 4 * len(out.messages.data)


@pytest.mark.parametrize("count", [255, 2**31 - 2])
def test_a_huge_count_costs_nothing(count):
    data = b"\0\x03\0\x01" + bytes(4) + b"\xff\xff" + count.to_bytes(4, "big") + bytes(40)
    out = decode(pack([data], [0], [3], [1]))
    assert (Status(out.status[0]), len(out.field)) == (Status.TRUNCATED, 0)
