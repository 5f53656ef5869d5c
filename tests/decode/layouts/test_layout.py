"""The notation: every mark means what the page says, and what it does not know is refused."""

import pytest

from wirecheck.decode.layouts.layout import OPEN, Versions, layouts, parse, snake

EXAMPLE = """\
7 Sample request v0-5 flexible v3+
  .aka Example Specimen
  .since v2=2.7 v3-4=3.1
  .last v0-1=3.9
  .unstable v5=4.1,4.2
  .deprecated v0
  .header v0=0
  .lacked v3 in 2.7,2.8: topics.extra
  throttleTimeMs int32 v1+ =-1
  topics [] ?v2+
    name string v0-4 ?
    ids []uuid v5 ? =null
    extra {} v3+ tag2
      level float64
      on bool =true
      mask uint16 =0x7f
  clientId string v1+ ? inflexible
  token bytes
  .changed v2 in 2.5,2.6 inflexible
    other string =
      
7 Sample response v0-5 flexible none
  .header all=0

- Blob data v0 flexible v0+
  type int8 tag* literal
"""  # noqa: W293


def sample():
    return parse(EXAMPLE.replace("      \n", "\n"))


def test_a_heading_says_key_api_side_and_versions():
    request, response, blob = sample()
    assert (request.key, request.api, request.side) == (7, "Sample", "request")
    assert (list(request.versions), request.flexible) == ([0, 1, 2, 3, 4, 5], Versions(3, OPEN))
    assert not list(response.flexible)
    assert (blob.key, blob.side) == (2, "data")  # the position in its file


def test_older_names_are_read_and_notes_are_not():
    request = sample()[0]
    assert request.aka == ("Example", "Specimen")


def test_the_header_follows_the_rule_but_where_it_says_otherwise():
    request, response, _ = sample()
    assert [request.header_version(v) for v in (0, 1, 3)] == [0, 1, 2]
    assert [response.header_version(v) for v in (0, 3)] == [0, 0]


def test_a_field_has_type_versions_null_tag_and_default():
    throttle, topics, client, token = sample()[0].fields
    name, ids, extra = topics.fields
    assert (throttle.type, throttle.versions, throttle.default) == ("int32", Versions(1, OPEN), -1)
    assert (topics.type, topics.array, topics.versions, topics.nullable) == (
        "struct",
        True,
        Versions(0, 5),
        Versions(2, OPEN),
    )
    assert (name.versions, name.nullable) == (Versions(0, 4), Versions(0, 4))
    assert (ids.type, ids.array, ids.default) == ("uuid", True, None)
    assert (extra.type, extra.array, extra.tag) == ("struct", False, 2)
    assert [f.default for f in extra.fields] == [0.0, True, 127]
    assert [f.versions for f in extra.fields] == [Versions(3, OPEN)] * 3  # as what encloses it
    assert (client.inflexible, token.secret, token.inflexible) == (True, True, False)


def test_a_layout_changed_in_place_has_its_own_fields():
    (changed,) = sample()[0].changed
    assert (changed.versions, changed.releases, changed.flexible) == (Versions(2, 2), ("2.5", "2.6"), False)
    assert [(f.name, f.default) for f in changed.fields] == [("other", "")]


def test_marks_of_drafts():
    (field,) = sample()[2].fields
    assert (field.tag, field.literal) == (-1, True)


@pytest.mark.parametrize("line", ["name text", "name string v1+ mystery", "    deep string"])
def test_what_the_page_does_not_explain_is_refused(line):
    with pytest.raises((AssertionError, ValueError)):
        parse(f"1 A request v0 flexible none\n  {line}\n")


def test_version_ranges():
    assert Versions.of("v3") == Versions(3, 3)
    assert Versions.of("v0-4") == Versions(0, 4)
    assert Versions.of("v2+") == Versions(2, OPEN)
    assert not list(Versions.of("none"))
    assert (2 in Versions(1, 2), 3 in Versions(1, 2)) == (True, False)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("topicId", "topic_id"),
        ("isKRaftController", "is_kraft_controller"),
        ("kRaftVersion", "kraft_version"),
        ("v3AndBelowTopics", "v3_and_below_topics"),
        ("_unknownTaggedFields", "_unknown_tagged_fields"),
    ],
)
def test_columns_are_kafkas_names_in_snake_case(name, column):
    assert snake(name) == column


def test_all_files_are_read():
    assert [len(layouts(name)) for name in ("kafka", "metadata_records", "other", "kip516_draft", "kip4_draft")] == [
        192, 29, 12, 20, 1,
    ]  # fmt: skip


def test_ranges_of_versions_are_compared_by_their_ends():
    assert len({Versions.of("v1-3"), Versions(1, 3), Versions(1, 4)}) == 2
    assert Versions(1, 3) != (1, 3)
