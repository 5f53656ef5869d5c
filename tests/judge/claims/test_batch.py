"""Rows of a message-level table, looked up by message."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from wirecheck.decode.columns import row_of, value_per


class Rows(SimpleNamespace):
    """As much of a table as a look-up reads: the message of each row, and columns."""

    def __len__(self) -> int:
        return len(self.message)

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]


def test_a_message_without_a_row_has_no_value_of_its_neighbour() -> None:
    """A request that did not decode has no row: what its neighbour stated must not be taken for it."""
    table: Any = Rows(message=np.array([7, 3, 11]), columns={"epoch": np.array([70, 30, 110])})
    asked = np.array([3, 5, 7, 11, 12, -1])
    assert row_of(table, asked).tolist() == [1, -1, 0, 2, -1, -1]
    assert value_per(asked, table, "epoch", -9).tolist() == [30, -9, 70, 110, -9, -9]


def test_an_empty_table_has_no_rows() -> None:
    table: Any = Rows(message=np.array([], np.int64), columns={"epoch": np.array([], np.int64)})
    assert row_of(table, np.array([1])).tolist() == [-1]
    assert value_per(np.array([1]), table, "epoch", 0).tolist() == [0]
