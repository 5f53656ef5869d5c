"""Round trip: what tests/build.py writes by a layout, the interpreter reads, for every layout, version and dialect."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import CASES, build
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.message import Status, decode
from wirecheck.decode.nested import nested
from wirecheck.decode.wire import pack

IDS = [f"{dialect.label}-{layout.api}-{layout.side}-v{version}" for dialect, layout, version in CASES]


def decoded(built):
    """All messages as one batch, each in its own dialect."""
    messages = pack(
        [message.data for message, _ in built],
        [SIDES.index(layout.side) for _, (_, layout, _) in built],
        [layout.key for _, (_, layout, _) in built],
        [version for _, (_, _, version) in built],
    )
    return decode(messages, dialect=np.array([dialect for _, (dialect, _, _) in built], np.int8))


@pytest.mark.parametrize("seed", range(4))
def test_every_layout_reads_back_what_it_writes(seed):
    rng = random.Random(seed)
    built = [(build(layout, version, rng), (dialect, layout, version)) for dialect, layout, version in CASES]
    out = decoded(built)
    assert {name: Status(s).name for name, s in zip(IDS, out.status, strict=True) if s} == {}
    different = [name for i, name in enumerate(IDS) if nested(out, i) != built[i][0].value]
    assert different == []


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, len(CASES) - 1), st.integers(0, 2**32))
def test_any_random_message_reads_back(number, seed):
    dialect, layout, version = CASES[number]
    built = build(layout, version, random.Random(seed))
    out = decoded([(built, CASES[number])])
    assert out.dialect.tolist() == [dialect]
    assert nested(out, 0) == built.value
