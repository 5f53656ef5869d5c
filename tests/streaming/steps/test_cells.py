"""Cells give back what went in."""

from dataclasses import dataclass, fields

import numpy as np
import pytest

from wirecheck.decode.interpret.vectors import bytes_around, bytes_of
from wirecheck.streaming.steps.cells import from_cell, named, to_cell


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
    found = from_cell(to_cell((np.zeros(3, np.bool_), np.arange(4, dtype=np.int64))))
    assert all(array.flags.writeable and array.flags.aligned for array in found)


def test_what_messages_hold_comes_back_as_bytes_that_compiled_code_reads_in_place():
    cell = to_cell((np.arange(100, dtype=np.uint8),))
    (found,) = from_cell(cell)
    whole, at = bytes_around(found[10:])
    assert whole is cell
    assert whole[at : at + 90] == bytes(range(10, 100))
    assert bytes_of(found) == bytes(range(100))


def test_cells_of_equal_values_are_equal():
    assert to_cell(Inner(np.arange(3), np.arange(2))) == to_cell(Inner(np.arange(3), np.arange(2)))


def test_a_view_of_an_array_takes_only_its_own_bytes():
    assert len(to_cell(np.zeros(1_000_000, np.uint8)[::100_000])) < 200


def test_what_cannot_be_told_is_refused():
    with pytest.raises(TypeError, match="object does not fit"):
        to_cell(object())


@pytest.mark.parametrize(
    ("numbers", "saved"),
    [
        (np.arange(100) * 10**15, 0),
        (np.array([-(2**63), 2**63 - 1] * 50), 0),
        (np.array([-(2**63), 255 - 2**63] * 50), 7 * 100),
        (np.array([2**63 - 1, 2**63 - 2] * 50), 7 * 100),
        (np.array([-5, 250] * 50, np.int16), 100),
        (np.full((50, 2), -7, np.int32), 3 * 100),
        (np.array([0, 1 << 16] * 50), 4 * 100),
        (np.array([-1, 126] * 50, np.int8), 0),
    ],
)
def test_numbers_near_each_other_take_little_room_and_come_back(numbers, saved):
    cell = to_cell(numbers)
    found = from_cell(cell)
    assert (found.dtype, found.shape, found.tolist()) == (numbers.dtype, numbers.shape, numbers.tolist())
    assert found.flags.writeable
    assert abs(len(cell) + saved - len(to_cell(np.zeros(8 * 100, np.uint8))) - numbers.nbytes + 800) < 120


def test_a_cell_as_it_was_written_before_numbers_were_packed_is_read():
    cell = bytearray(to_cell(np.arange(3)))
    assert b'"as"' not in cell
    assert from_cell(bytes(cell)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", [b"7 a", b"12345678", "17 broker-ü".encode()])
def test_a_name_is_read_alone_and_the_cell_behind_it(name):
    found, cell = named(to_cell((np.arange(200), b"x"), name))
    assert found == name
    values, blob = from_cell(cell)
    assert (values.tolist(), blob) == (list(range(200)), b"x")
