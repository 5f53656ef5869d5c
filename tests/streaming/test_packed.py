"""Cells give back what went in."""

from dataclasses import dataclass, fields

import numpy as np
import pytest

from streaming.packed import from_cell, to_cell


@dataclass(frozen=True)
class Inner:
    data: np.ndarray
    at: np.ndarray


@dataclass(frozen=True)
class Outer:
    inner: Inner
    names: tuple
    blob: bytes
    by_number: dict
    nothing: None = None


def test_a_value_of_arrays_and_texts_survives():
    value = Outer(
        Inner(np.arange(5, dtype=np.int32), np.zeros((2, 16), np.uint8)),
        ("a", ("b", 1), -1.5, True),
        b"\x00\xff",
        {1: b"early", "late": (None,)},
    )
    found = from_cell(to_cell(value), Outer, Inner)
    assert (found.names, found.blob, found.by_number, found.nothing) == (
        value.names, value.blob, value.by_number, None,
    )  # fmt: skip
    for f in fields(Inner):
        expected, actual = getattr(value.inner, f.name), getattr(found.inner, f.name)
        assert (actual.dtype, actual.shape, actual.tolist()) == (expected.dtype, expected.shape, expected.tolist())


def test_arrays_come_back_writable_and_aligned():
    found = from_cell(to_cell((np.zeros(3, np.uint8), np.arange(4, dtype=np.int64))))
    assert all(array.flags.writeable and array.flags.aligned for array in found)


def test_cells_of_equal_values_are_equal():
    assert to_cell(Inner(np.arange(3), np.arange(2))) == to_cell(Inner(np.arange(3), np.arange(2)))


def test_a_view_of_an_array_takes_only_its_own_bytes():
    assert len(to_cell(np.zeros(1_000_000, np.uint8)[::100_000])) < 200


def test_what_cannot_be_told_is_refused():
    with pytest.raises(TypeError, match="object does not fit"):
        to_cell(object())
