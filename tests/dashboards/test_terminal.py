"""The terminal page of a replay: what was seen comes first, what is wrong comes before what is merely known."""

import copy

from rich.console import Console

from dashboards import terminal

SIDE = {
    "time": "2026-11-20T22:13:23.131025Z",
    "claim": "broker 3 refuses id da2uCyqPT-6vP4yDIMcDSw",
    "connection": "127.0.1.2:40112>127.0.1.3:19093",
    "api": "LeaderAndIsr",
    "version": 7,
    "correlation_id": 4,
    "frame": {"source": "capture.pcap", "first": 8123, "last": 8123},
}
FINDING = {
    "id": "abcdefghij234567",
    "code": "TID002",
    "name": "leader-and-isr-inconsistent-topic-id",
    "kind": "violation",
    "cluster": "aqj98zPCSGyEHO5efX6mPg",
    "topic": "shipments",
    "topic_ids": ["da2uCyqPT-6vP4yDIMcDSw"],
    "client_ids": [],
    "brokers": [3],
    "summary": "Broker 3 carries another id for shipments on disk.",
    "first_seen": "2026-11-20T22:13:23.131025Z",
    "last_seen": "2026-11-20T22:13:30.264000Z",
    "count": 2,
    "sides": [SIDE] * 6,
}
TOPIC = {
    "cluster": "aqj98zPCSGyEHO5efX6mPg",
    "name": "shipments",
    "topic_id": "da2uCyqPT-6vP4yDIMcDSw",
    "first_seen": "2026-11-20T22:13:08.994000Z",
    "last_seen": "2026-11-20T22:13:46.000000Z",
    "sources": ["leader-and-isr"],
    "state": "current",
    "earlier_ids": [],
}
RESULT = {
    "coverage": {
        "frames": 9045,
        "connections": 61,
        "messages": 4200,
        "exchanges": 2100,
        "decoded_messages": 4199,
        "unseen_bytes": 0,
        "encrypted_connections": 2,
        "undecoded_messages": 1,
        "input_errors": ["b.pcap: truncated packet at byte offset 77"],
    },
    "clusters": [{"label": "default", "cluster_id": "aqj98zPCSGyEHO5efX6mPg", "endpoints": ["127.0.1.3:19093"]}],
    "topics": [TOPIC],
    "clients": [],
    "findings": [{**FINDING, "code": "TID001", "kind": "information", "name": "topic-recreated"}, FINDING],
}


def page(result, width=200):
    console = Console(width=width, record=True, file=open("/dev/null", "w"), force_terminal=False)  # noqa: SIM115, PTH123
    terminal.show(result, console)
    console.file.close()
    return console.export_text().splitlines()


def test_coverage_is_the_first_line_and_names_what_is_missing():
    first = page(RESULT)[0]
    assert "9,045 frames, 61 connections, 4,200 messages; decoded 4,199 (100.0 %)" in first
    assert "2 encrypted connections, 1 messages not decoded" in first
    assert "bytes not captured" not in first


def test_what_could_not_be_read_is_said_before_any_verdict():
    lines = page(RESULT)
    error = next(n for n, line in enumerate(lines) if "truncated packet at byte offset 77" in line)
    assert error < next(n for n, line in enumerate(lines) if line.startswith("Findings"))


def test_a_violation_stands_before_an_information_although_it_came_later():
    lines = [line for line in page(RESULT) if line.startswith("TID")]
    assert [line.split()[0] for line in lines] == ["TID002", "TID001"]


def test_both_forms_of_an_id_are_shown():
    row = next(line for line in page(RESULT) if line.startswith("shipments"))
    assert "da2uCyqPT-6vP4yDIMcDSw" in row
    assert "75adae0b-2a8f-4fee-af3f-8c8320c7034b" in row


def test_a_narrow_terminal_cuts_no_id():
    text = "\n".join(page(RESULT, width=80))
    assert "da2uCyqPT-6vP4yDIMcDSw" in text
    assert "75adae0b-2a8f-4fee-af3f-8c8320c7034b" in text


def test_an_id_that_begins_with_a_dash_has_a_hex_form():
    assert terminal.hex_id("-7mHRrhnRnmJp0IdlILMMw") == "fbb98746-b867-4679-89a7-421d9482cc33"


def test_many_sides_are_cut_and_the_cut_is_said():
    lines = page(RESULT)
    assert sum("frame 8123 of capture.pcap" in line for line in lines) == terminal.SIDES_SHOWN
    assert any("and 2 more" in line for line in lines)


def test_no_finding_is_said_in_words():
    result = copy.deepcopy(RESULT) | {"findings": []}
    assert any(line.split() == ["Findings", "none"] for line in page(result))


def test_a_topic_without_an_id_or_a_name_is_shown_as_such():
    rows = [{**TOPIC, "topic_id": None}, {**TOPIC, "name": None, "state": "unresolved"}]
    lines = page(RESULT | {"topics": rows})
    assert any("(no id)" in line for line in lines)
    assert any("(not named)" in line and "unresolved" in line for line in lines)
