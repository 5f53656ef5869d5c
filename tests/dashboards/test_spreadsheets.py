"""CSV: what clients chose as names is text in a spreadsheet."""

import csv
import io

import pytest

from wirecheck.dashboards.spreadsheets import csv_of


@pytest.mark.parametrize(
    "name", ["=cmd|' /C calc'!A0", '=HYPERLINK("http://evil.example")', "@SUM(1)", "+1+cmd", "-2+3", "\uff1d1+1"]
)
def test_a_name_is_no_formula(name):
    ((_, shown),) = list(csv.reader(io.StringIO(csv_of([{"count": -1, "name": name}]))))[1:]
    assert shown == f"'{name}"


@pytest.mark.parametrize("value", ["orders", "-", "-1", "+5.9", -7, 0.5, "a=b", "", "__x"])
def test_other_cells_are_as_they_are(value):
    assert csv_of([{"name": value}]) == f"name\n{value or (chr(34) * 2)}\n"


def test_a_list_is_one_cell():
    assert csv_of([{"names": ["=a", "b"]}, {"names": []}]).splitlines()[1:] == ["'=a b", '""']
