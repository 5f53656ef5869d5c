"""The plain tables beside the layouts."""

from wirecheck.decode.layouts.layout import layouts
from wirecheck.decode.schemas import errors, newest_line, releases


def test_error_codes_have_kafkas_names():
    table = errors()
    assert {code: table[code].name for code in (-1, 0, 3, 100, 103, 106)} == {
        -1: "UNKNOWN_SERVER_ERROR", 0: "NONE", 3: "UNKNOWN_TOPIC_OR_PARTITION", 100: "UNKNOWN_TOPIC_ID",
        103: "INCONSISTENT_TOPIC_ID", 106: "FETCH_SESSION_TOPIC_ID_ERROR",
    }  # fmt: skip
    assert (table[100].retriable, table[100].since, table[0].retriable) == (True, "2.8.2", False)


def test_releases_have_their_ranges():
    table = releases()
    assert list(table)[0::21] == ["2.4.1", "4.4.0"]
    assert newest_line() == "4.4"
    assert table["2.8.2"][1] == (0, 12, False, "ZBC")
    assert table["4.1.2"][8] == (2, 10, True, "B")
    assert table["3.9.1"][4] == (0, 7, False, "Z")
    assert 4 not in table["4.0.0"]


def test_every_release_speaks_only_versions_that_have_a_layout():
    known = {layout.key: layout.versions for layout in layouts("kafka") if layout.side == "request"}
    outside = [
        (release, key)
        for release, apis in releases().items()
        for key, there in apis.items()
        if there.low not in known[key] or there.high not in known[key]
    ]
    assert outside == []
