"""Text on its way to a terminal: what it would obey is written out, and JSON stays the same value."""

import json

from wirecheck.commands.screen import as_json, legible


def test_escapes_and_turned_text_are_written_out():
    assert legible("a\x1b[2J\u202eb") == r"a\x1b[2J\u202eb"


def test_a_name_begins_no_line_of_its_own():
    assert legible({"name": ["orders\n0 findings\t."]}) == {"name": [r"orders\n0 findings\t."]}
    assert legible("two\nlines") == "two\nlines"


def test_json_stays_the_same_value_and_holds_nothing_to_obey():
    value = {"client_id": "a\x1b\x9b\u202e\u2066b\n", "topic": "größe"}
    line = as_json(value)
    assert json.loads(line) == value
    assert not set(line) & set("\x1b\x9b\u202e\u2066\n")
