"""Lines and areas of the picture: what is high is drawn high, and the one that a finding is about stands out."""

from tests.dashboards.results import FINDING, RESULT, changed
from tests.dashboards.test_lanes import whole
from wirecheck.dashboards.report import courses

STILL = changed(FINDING, {"code": "LOG003", "words": {"broker": "4"}})
OFFSETS = [{"who": who, "what": "", "values": values} for who, values in (("2", [1, 5, 9]), ("4", [1, None, 1]))]


def test_the_line_of_the_finding_is_first_and_stands_out():
    (chart,) = courses.charts(changed(RESULT, {"findings": [STILL]}), {"offsets": OFFSETS})
    assert [(row["name"], row["odd"], row["last"]) for row in chart["rows"]] == [
        ("broker 4", True, 1),
        ("broker 2", False, 9),
    ]
    assert (chart["low"], chart["high"]) == (1, 9)
    assert [row["path"] for row in chart["rows"]] == ["M0 96.0L2 96.0h1", "M0 96.0L1 50.0L2 4.0h1"]


def test_without_its_finding_nothing_is_drawn():
    assert list(courses.charts(RESULT, {"offsets": OFFSETS})) == []
    assert list(courses.charts(changed(RESULT, {"findings": [STILL]}), {})) == []


def test_the_most_errors_come_first_and_a_page_names_them():
    made = [{"who": f"app-{n}", "what": "UNKNOWN_TOPIC_ID", "values": [None, n]} for n in range(1, 9)]
    assert [one["count"] for one in courses.errors({"errors": made})] == [8, 7, 6, 5, 4, 3]
    text = whole(courses={"errors": made})
    assert 'aria-label="app-8: UNKNOWN_TOPIC_ID, 8 times"' in text
    assert '<path d="M0 100V100H1V0H2V100Z"/>' in text
