"""The report page: the verdict comes first, nothing of the capture is markup, and it opens with many findings."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.dashboards.results import CLIENT, FINDING, HOSTILE, RESULT, changed, hostile, read, result
from wirecheck.commands.screen import legible
from wirecheck.dashboards import verdict
from wirecheck.dashboards.report import coverage_tiles, matrix
from wirecheck.dashboards.report import page as report
from wirecheck.story.seen import ConnectionRead, Coverage, NotKept

VOID = {"meta", "input", "br"}
CHROMIUM = shutil.which("chromium")
BROWSER = (CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr")


def page(result, connections=()):
    return report.page(read(result), report.Attached(connections))


class Document(HTMLParser):
    """Elements in order and the visible text; a tag that does not close where it should fails."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in {"style", "script"}:
            self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)


@pytest.mark.parametrize("findings", [0, 1, 300])
def test_the_page_is_whole_and_loads_nothing(findings):
    made = result(findings)
    document = Document(page(made))
    shown = {value for name, value in document.attributes if name == "id" and value.startswith("f-")}
    assert shown == {f"f-{finding.id}" for finding in made.findings}
    assert document.tags.count("article") == len(made.entries) == min(findings, 4)
    assert document.tags.count("script") == document.tags.count("style") == document.tags.count("h1") == 1
    assert [
        value for name, value in document.attributes if name in {"src", "action", "style"} or name[:2] == "on"
    ] == []
    assert all(value.startswith("#") for name, value in document.attributes if name == "href")


def test_no_finding_is_said_in_words():
    assert "All checks ran on the captured traffic" in Document(page(result(0))).text


def test_names_that_try_markup_stay_text_wherever_they_stand():
    plain = Document(page(legible(hostile())))
    assert plain.tags.count("script") == 1
    assert not {"img", "b"} & set(plain.tags)
    assert not [name for name, _ in plain.attributes if name.startswith("on")]
    for name in HOSTILE:
        assert legible([name])[0] in plain.text
    assert "\x1b" not in plain.text
    assert "\u202e" not in plain.text


def test_every_id_a_link_or_label_names_exists_once():
    document = Document(page(result(30)))
    ids = [value for name, value in document.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    named = {
        value.removeprefix("#") for name, value in document.attributes if name in {"href", "aria-labelledby", "for"}
    }
    assert named - set(ids) == set()


def test_every_table_has_a_caption_and_every_heading_cell_a_scope():
    document = Document(page(result(3), [ConnectionRead(connection="1.1.1.1:1>2.2.2.2:2", protocol="kafka", frames=3)]))
    assert document.tags.count("table") == document.tags.count("caption") >= 4
    assert document.tags.count("th") == sum(name == "scope" for name, _ in document.attributes)


def test_the_verdict_is_the_first_card_and_how_many_findings_there_are_stands_above_them():
    text = page(RESULT)
    headline = "Broker 3 does not replicate shipments partition 0: one replica short"
    assert f"<title>wirecheck report: {headline}</title>" in text
    assert "1 violation" in text[text.index('id="findings"') :]
    assert verdict.sentence(read(RESULT)) == headline


def test_the_first_card_is_open_above_the_picture_and_the_others_are_one_line_each():
    other = changed(FINDING, {"id": "c" * 16, "topic": "letters", "words": {**FINDING.words, "where": "9"}})
    text = page(changed(RESULT, {"findings": [FINDING, other]}))
    head = text[text.index('<h1 id="verdict">') : text.index('class="tiles"')]
    assert re.findall(r"<dt>(\w+)</dt>", head) == 2 * ["since", "cause", "impact", "fix", "look", "evidence"]
    assert head.count('<details class="card-more">') == 1
    fix, look = "partition.metadata for shipments", "<span>decode</span> <span>FILE</span>"
    assert head.index(fix) < head.index(look) < head.index("card-more")


def test_errors_and_topic_ids_of_the_finding_are_marked_in_a_decoded_message():
    lines = ["topicId: da2uCyqPT-6vP4yDIMcDSw  errorCode: 0", "errorCode: 100 UNKNOWN_TOPIC_ID  errorMessage: <b>"]
    assert report.marked(lines, FINDING) == (
        "topicId: <mark>da2uCyqPT-6vP4yDIMcDSw</mark>  errorCode: 0\n"
        "<mark>errorCode: 100 UNKNOWN_TOPIC_ID</mark>  errorMessage: &lt;b&gt;"
    )


def test_what_was_not_read_is_never_called_healthy():
    unread = changed(
        RESULT, {"findings": [], "coverage": changed(RESULT.coverage, {"messages": 0, "decoded_messages": 0})}
    )
    assert verdict.sentence(unread).startswith("No result: no Kafka message could be read")
    assert verdict.mood(unread) == "visibility"
    assert "in what could be read" in verdict.sentence(read(changed(RESULT, {"findings": []})))


def test_what_is_of_no_known_cluster_is_one_line_of_the_verdict():
    unknown = {"unassigned_endpoints": 1, "unassigned_topics": 3, "unassigned_clients": 0}
    reported = read(changed(RESULT, {"coverage": changed(RESULT.coverage, unknown)}))
    words = "1 endpoint, 3 topics of an unknown cluster not compared"
    assert verdict.basis(reported).endswith(f", {words}")
    assert page(reported).count(words) == 1
    assert "unknown cluster" not in verdict.basis(read(RESULT))


def test_packets_under_two_addresses_are_one_line_and_nothing_that_is_missing():
    more = {
        "measures": {"skipped_frames": 1237},
        "details": {"skipped_frames": {"a: translated": 1200, "b: translated": 34, "a: non-tcp": 3}},
    }
    reported = read(changed(RESULT, {"coverage": changed(RESULT.coverage, more)}))
    words = "the same packets under two addresses (NAT): 1,234 counted once"
    assert page(reported).count(words) == 1
    assert verdict.counted_once(reported.coverage) == words
    assert not any("not readable" in missing for missing in verdict.not_read(reported.coverage))
    assert verdict.counted_once(RESULT.coverage) == ""


def test_a_share_is_cut_and_never_rounded_up_to_all():
    assert Coverage(messages=100_000, decoded_messages=99_999).share == "99.9 %"
    assert Coverage(messages=3, decoded_messages=3).share == "100 %"


def test_the_worst_is_read_first():
    kinds = [entry.kind for entry in result(40).entries]
    assert kinds == ["violation", "anomaly", "information", "visibility"]


def test_who_never_said_its_software_stands_for_itself_and_what_is_refused_is_marked():
    old = changed(
        CLIENT,
        {
            "client_id": "old",
            "software_name": None,
            "software_version": None,
            "apis": {"Produce": (0, 1, 3)},
        },
    )
    side = changed(RESULT.findings[0].sides[0], {"api": "Produce", "version": 1})
    finding = changed(RESULT.findings[0], {"code": "VER005", "client_ids": ["old"], "sides": [side]})
    made = matrix.matrix(changed(RESULT, {"clients": [CLIENT, old], "findings": [finding]}))
    assert [row["name"] for row in made["rows"]] == ["old", "apache-kafka-java 3.9.1"]
    assert made["rows"][0]["cells"][made["apis"].index("Produce")] == {"versions": "0\u20131, 3", "mark": "removed"}


def test_the_endpoint_that_misses_most_is_the_first_row():
    rows = [
        ConnectionRead(connection="a:1>b:1", protocol="kafka", messages=4, decoded_messages=4),
        ConnectionRead(connection="a:2>c:1", protocol="kafka", messages=4, decoded_messages=3, unseen_bytes=9),
    ]
    assert [row.endpoint for row in coverage_tiles.endpoints(rows)] == ["c:1", "b:1"]
    assert [row.connection for row in coverage_tiles.incomplete(rows)] == ["a:2>c:1"]


def test_evidence_names_a_range_of_frames_and_only_what_is_known_of_a_side():
    reported = result(1)
    (finding,) = reported.findings
    side = changed(finding.sides[0], {"frame": {"source": "capture.pcap", "first": 7, "last": 9}})
    bare = changed(
        side,
        {
            "api": None,
            "version": None,
            "correlation_id": None,
            "frame": {"source": "", "first": 0, "last": 0},
        },
    )
    text = Document(page(changed(reported, {"findings": [changed(finding, {"sides": [side, bare]})]}))).text
    assert "frames 7\u20139 of capture.pcap" in text
    assert text.count("correlation") == text.count(f"{side.api} v{side.version}") == 1
    assert "None" not in text
    assert "\\u" not in text


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the page is not opened in a browser")
def test_a_browser_runs_the_script_and_nothing_of_the_capture(tmp_path):
    (tmp_path / "report.html").write_text(page(legible(hostile())))
    result = subprocess.run(
        [*BROWSER, f"--user-data-dir={tmp_path}/profile", "--dump-dom", (tmp_path / "report.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "<title>wirecheck report" in result.stdout
    assert re.search(r'<form class="filter" id="filter">', result.stdout), "the script did not run"
    assert "owned</title>" not in result.stdout
    assert "CONSOLE" not in result.stderr


def test_what_is_beyond_the_bounds_stands_below_its_table():
    others = [NotKept(table, "L", "C", None, None, count) for table, count in (("topics", 12), ("clients", 1234))]
    more = changed(RESULT.findings[0], {"id": "L|others", "sides": [], "others": 5000, "count": 5000})
    beyond = {"others": others, "findings": [*RESULT.findings, more]}
    text = " ".join(Document(page(changed(RESULT, {"clients": [CLIENT], **beyond}))).texts)
    assert "and 12 more topics of C that were seen and are not kept" in text
    assert "and 1,234 more clients of C that were seen and are not kept" in text


def test_what_is_there_to_be_clicked_or_copied_is_not_printed():
    style = (Path(report.__file__).parent / "page.css").read_text().split("@media print {")[1]
    (hidden,) = re.findall(r"^ *(.*) { display: none !important; }", style, re.MULTILINE)
    assert {"nav", ".filter", ".ticket"} <= set(hidden.split(", "))


def test_a_page_about_versions_draws_the_clients_and_apis_that_are_rejected():
    marked = {"versions": "2", "mark": "refused"}
    plain = {"versions": "9", "mark": None}
    found = {
        "apis": ["Metadata", "Produce"],
        "rows": [
            {"name": "old", "stated": False, "clients": 1, "cells": [plain, marked]},
            {"name": "new", "stated": True, "clients": 2, "cells": [plain, plain]},
        ],
    }
    made = matrix.picture(found)
    assert (made["apis"], [(row["name"], row["cells"]) for row in made["rows"]]) == (["Produce"], [("old", [marked])])
    assert matrix.picture(found | {"rows": found["rows"][1:]}) is None
