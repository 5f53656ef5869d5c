"""The picture on top of the page: a lane per topic id and speaker, nothing over another, and the odd one stands out."""

import itertools

import pytest

from tests.dashboards.results import ABOUT, FINDING, HOSTILE, RESULT, TOPIC, changed, read
from tests.dashboards.test_report import Document
from wirecheck.commands.screen import legible
from wirecheck.dashboards import axis as axes
from wirecheck.dashboards.report import lanes
from wirecheck.dashboards.report import page as report
from wirecheck.story.seen import Statement
from wirecheck.wording import ns_of

OLD, NEW = "A" * 21 + "w", "B" * 21 + "w"
CLUSTER = TOPIC.cluster


def at(seconds):
    return f"2026-11-20T22:{seconds // 60:02}:{seconds % 60:02}.000000Z"


def said(topic_id, broker, first, last, **more):
    row = {"cluster": CLUSTER, "name": "shipments", "topic_id": topic_id, "speaker": "broker", "does": "says"}
    row |= {"who": f"10.0.0.{broker}:9092", "broker": broker, "count": 3}
    return Statement(**row | more, first_ns=ns_of(at(first)), last_ns=ns_of(at(last)))


SLEPT = changed(FINDING, {"code": "TID007", "topic_ids": [OLD, NEW], "brokers": [3], "first_seen": at(60)})
TOPICS = [
    changed(TOPIC, {"topic_id": OLD, "state": "replaced", "first_seen": at(0), "last_seen": at(100)}),
    changed(TOPIC, {"topic_id": NEW, "first_seen": at(50), "last_seen": at(100)}),
]
STATEMENTS = [
    said(OLD, 1, 1, 48),
    said(OLD, 3, 1, 100),
    said(NEW, 1, 51, 99),
    said(NEW, None, 50, 50, speaker="metadata-log", who=""),
    said(OLD, None, 2, 90, speaker="client", who="billing", does="uses"),
]


def traffic(first, last, *payload_bytes):
    return axes.Traffic(ns_of(at(first)), ns_of(at(last)), payload_bytes)


def result_of(findings=(SLEPT,), topics=TOPICS):
    return read(changed(RESULT, {"findings": list(findings), "topics": list(topics)}))


def drawn(result, statements):
    return lanes.topics(result, statements, axes.axis_of(result))


def test_a_speaker_has_one_lane_and_what_goes_on_behind_the_new_id_leads_to_its_finding():
    (topic,) = drawn(result_of(), STATEMENTS)
    assert [(lane["who"], [bar["number"] for bar in lane["bars"]], lane["odd"]) for lane in topic["lanes"]] == [
        ("metadata log", [1], False),
        ("broker 1", [0, 1], False),
        ("broker 3", [0, 0], True),
    ]
    before, behind = topic["lanes"][2]["bars"]
    assert (before["finding"], behind["finding"], behind["kind"]) == (None, SLEPT.id, "violation")
    assert topic["turns"] == [behind["start"]] == [round(before["start"] + before["width"], 3)]


def test_ids_that_a_speaker_uses_at_the_same_time_are_beside_each_other():
    both = [said(OLD, 1, 1, 80), said(NEW, 1, 51, 60), said(NEW, 1, 85, 99)]
    (topic,) = drawn(result_of(), both)
    (lane,) = topic["lanes"]
    assert (lane["tracks"], [bar["track"] for bar in lane["bars"]]) == (2, [0, 1, 0])


def test_a_broker_that_a_finding_does_not_name_never_stands_out():
    late = [*STATEMENTS, said(OLD, 2, 1, 70)]
    (topic,) = drawn(result_of(), late)
    assert [lane["who"] for lane in topic["lanes"] if lane["odd"]] == ["broker 3"]
    fetching = changed(SLEPT, {"code": "FET001", "client_ids": ["billing"], "brokers": [2]})
    (topic,) = drawn(result_of([fetching]), late)
    assert [lane["who"] for lane in topic["lanes"] if lane["odd"]] == ["billing"]


def test_a_refusal_is_hatched_over_the_bar_of_its_id_although_there_is_one_id():
    finding = changed(FINDING, {"topic_ids": [OLD], "brokers": [3]})
    refused = [said(OLD, 1, 1, 90), said(OLD, 3, 1, 90), said(OLD, 3, 30, 40, does="refuses")]
    (topic,) = drawn(result_of([finding], [changed(TOPICS[0], {"state": "current"})]), refused)
    (odd,) = [lane for lane in topic["lanes"] if lane["odd"]]
    assert [(bar["refused"], bar["track"], bar["code"]) for bar in odd["bars"]] == [
        (False, 0, None),
        (True, 0, "TID002"),
    ]


@pytest.mark.parametrize("seconds", [(50, 50, 50, 51, 90), tuple(range(100)), (0, 100)])
def test_marks_never_touch_and_none_is_lost(seconds):
    found = [changed(FINDING, {"id": f"{n:016}", "first_seen": at(second)}) for n, second in enumerate(seconds)]
    result = result_of(found)
    made = lanes.marks(found, axes.axis_of(result))
    assert sum(mark["count"] for mark in made) == len(found)
    assert all(b["percent"] - a["percent"] >= lanes.APART for a, b in itertools.pairwise(made))


def test_bars_of_a_lane_follow_each_other():
    for topic in drawn(result_of(), STATEMENTS):
        for lane in topic["lanes"]:
            ordered = sorted(lane["bars"], key=lambda bar: (bar["track"], bar["start"]))
            for a, b in ((a, b) for a, b in itertools.pairwise(ordered) if a["track"] == b["track"]):
                assert a["start"] + a["width"] <= b["start"] + 1e-3


def test_the_worst_topic_is_drawn_first_and_lanes_are_bounded():
    many = [said(OLD, number, 1, 2) for number in range(40)]
    calm = [changed(row, {"name": "calm"}) for row in STATEMENTS]
    first, second = drawn(result_of(), [*calm, *many])
    assert (first["name"], len(first["lanes"]), first["left"]) == ("shipments", lanes.LANES, 40 - lanes.LANES)
    assert second["name"] == "calm"


def test_the_odd_one_out_is_the_marked_cell():
    made = lanes.who_says(result_of(), STATEMENTS)
    assert [name for _, name in made["columns"]] == ["metadata log", "broker 1", "broker 3", "billing"]
    (row,) = made["rows"]
    assert [cell["topic_id"] for cell in row["cells"]] == [NEW, NEW, OLD, OLD]
    assert [cell["finding"] for cell in row["cells"]] == [None, None, SLEPT.id, None]


def test_who_refuses_is_marked_although_it_says_the_id_later():
    finding = changed(FINDING, {"topic_ids": [OLD], "brokers": [3]})
    rows = [said(OLD, 1, 1, 90), said(OLD, 3, 1, 90), said(OLD, 3, 30, 40, does="refuses")]
    ((row,), _) = (lanes.who_says(result_of([finding], [changed(TOPICS[0], {"state": "current"})]), rows)["rows"], None)
    assert [(cell["does"], cell["code"]) for cell in row["cells"]] == [("says", None), ("refuses", "TID002")]


def test_columns_of_clients_are_bounded_and_those_of_findings_come_first():
    users = [said(OLD, None, 1, 2, speaker="client", who=f"app-{n:03}", does="uses") for n in range(50)]
    finding = changed(SLEPT, {"client_ids": ["app-049"]})
    made = lanes.who_says(result_of([finding]), users)
    assert made["columns"][0] == ("client", "app-049")
    assert (len(made["columns"]), made["clients_left"]) == (lanes.CLIENTS, 50 - lanes.CLIENTS)


def test_traffic_fills_its_height_and_its_part_of_the_axis():
    axis = axes.Axis([ns_of(at(0)), ns_of(at(100))])
    made = lanes.traffic(traffic(25, 75, 0, 10, 5), axis)
    assert (made["path"], made["start"], made["width"]) == ("M0 100V100H1V0H2V50H3V100Z", 25, 50)
    assert lanes.traffic(traffic(0, 1, 0, 0), axis) is None


def whole(**attached):
    finding = changed(SLEPT, {"next": "Restart it.", "commands": ["wirecheck decode a.pcap --frame 3"]})
    result = changed(result_of([finding]), {"about": ABOUT})
    exchange = {"connection": "a:1>b:2", "api": "Metadata", "version": 12, "correlation_id": 3, "client_id": "app"}
    given = {
        "statements": STATEMENTS,
        "traffic": traffic(0, 100, 1, 2),
        "exchanges": {finding.id: [{**exchange, "request": ["topics: null"], "response": None}]},
        "explanations": {"TID007": {"Detects": "Brokers that disagree."}},
    }
    return report.page(result, report.Attached(**(given | attached)))


def test_the_page_has_the_picture_the_matrix_the_messages_the_commands_the_codes_and_the_ticket():
    document = Document(whole())
    for text in (
        "broker 3",
        "Who uses which ID",
        "topics: null",
        "not captured",
        "decode a.pcap --frame 3",
        ABOUT.wirecheck,
    ):
        assert text in document.text
    assert "Brokers that disagree." in document.text
    assert "Restart it." in document.text
    assert "### TID007" in document.text
    ids = [value for name, value in document.attributes if name == "id"]
    named = {value.removeprefix("#") for name, value in document.attributes if name in {"href", "aria-labelledby"}}
    assert len(ids) == len(set(ids))
    assert named - set(ids) == set()
    assert not [value for name, value in document.attributes if name in {"src", "style"} or name[:2] == "on"]


def test_links_of_the_picture_say_where_they_lead():
    text = whole()
    picture = text[text.index('<figure class="picture"') : text.index("</figure>")]
    assert picture.count("<a ") == picture.count('<a href="#f-')
    svg_links = picture.count("<a href") - picture.count('<span class="name"><a href')
    assert picture.count(' aria-label="TID007: ') == svg_links > 0


def test_what_is_attached_stays_text():
    rows = [changed(STATEMENTS[0], {"name": name, "who": name, "broker": None}) for name in HOSTILE]
    side = {"connection": HOSTILE[0], "api": HOSTILE[1], "version": 1, "correlation_id": 1, "client_id": HOSTILE[2]}
    exchanges = {SLEPT.id: [{**side, "request": list(HOSTILE), "response": list(HOSTILE)}]}
    plain = Document(whole(statements=legible(rows), exchanges=legible(exchanges)))
    assert not {"img", "b"} & set(plain.tags)
    assert plain.tags.count("script") == 1
    assert not [name for name, _ in plain.attributes if name.startswith("on")]


def test_many_topics_are_folded_and_counted():
    rows = [changed(row, {"name": f"topic-{n:04}"}) for n in range(200) for row in STATEMENTS]
    text = " ".join(Document(whole(statements=rows)).texts)
    assert f"{200 - lanes.DRAWN} more topics with several IDs" in text
    assert f"and {200 - lanes.DRAWN - lanes.FOLDED} more, in the table of statements" in text
    assert f"and {200 - lanes.ROWS} more topics, in the table of statements" in text
