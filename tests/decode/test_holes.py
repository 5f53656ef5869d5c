"""Bytes with holes: positions stay true, and nothing in a hole is known."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wirecheck.decode.hole_search import hidden
from wirecheck.decode.holes import NO_HOLES, Field, laid_out, pairs


@st.composite
def cut_bytes(draw):
    """(bytes, which of them were kept)."""
    data = draw(st.binary(max_size=60))
    return data, draw(st.lists(st.booleans(), min_size=len(data), max_size=len(data)))


def spans(kept):
    """Runs of what was not kept, as (offset, length)."""
    found = []
    for at, there in enumerate(kept):
        if there:
            continue
        if found and sum(found[-1]) == at:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((at, 1))
    return found


@given(cut_bytes(), st.integers(0, 60), st.integers(0, 60))
def test_what_was_kept_is_where_it_was_and_the_rest_is_hidden(cut, a, b):
    data, kept = cut
    field = laid_out(bytes(byte for byte, there in zip(data, kept, strict=True) if there), spans(kept))
    begin, end = sorted((min(a, len(data)), min(b, len(data))))
    assert len(field) == len(data)
    assert field.bytes(0, len(data)) == bytes(b * there for b, there in zip(data, kept, strict=True))
    assert field.known(begin, end) == all(kept[begin:end])
    assert hidden(pairs(field.holes), begin, end) == kept[begin:end].count(False)


def test_whole_bytes_have_no_holes_and_are_not_copied():
    data = np.arange(4, dtype=np.uint8)
    field = laid_out(data)
    assert field.data is data
    assert field.holes is NO_HOLES
    assert field.known(0, 4)


def test_spans_without_length_are_no_holes():
    assert laid_out(b"abc", [(1, 0)]).known(0, 3)


def test_integers_are_signed_and_big_endian():
    assert Field(np.array([0xFF, 0xFE, 1], np.uint8), NO_HOLES).integer(0, 2) == -2
