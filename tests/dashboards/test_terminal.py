"""The terminal page of a replay: what was seen comes first, what is wrong comes before what is merely known."""

from dataclasses import replace

import pytest
from rich.console import Console

from tests.dashboards.results import ABOUT, FINDING, HOSTILE, RESULT, SIDE, TOPIC, changed, hostile, read
from wirecheck.commands.screen import legible
from wirecheck.dashboards import terminal, terminal_tables
from wirecheck.dashboards.verdict import PLURALS, cut_messages, unknown_clocks
from wirecheck.story.marks import CLOCKS_UNKNOWN
from wirecheck.story.seen import NotKept, Partition
from wirecheck.story.verdict import Captured
from wirecheck.wording import hex_id, ns_of


def page(result, width=200, every=()):
    console = Console(width=width, record=True, file=open("/dev/null", "w"), force_terminal=False)  # noqa: SIM115, PTH123
    terminal.show_details(read(result, every), console)
    console.file.close()
    return console.export_text().splitlines()


def test_coverage_is_the_first_line_and_names_what_is_missing():
    first = page(RESULT)[0]
    assert "9,045 frames, 61 connections, 4,200 messages; decoded 4,199 (99.9 %)" in first
    assert "2 encrypted connections, 1 message not decoded" in first
    assert "bytes not captured" not in first


def test_packets_that_did_not_come_are_named_and_what_is_no_kafka_is_not():
    skipped = {"a: ipv4-fragment": 1, "b: ipv4-fragment": 2, "a: non-tcp": 70, "a: not-ip": 5}
    more = {"dropped_frames": 7, "measures": {"skipped_frames": 78}, "details": {"skipped_frames": skipped}}
    first = page(changed(RESULT, {"coverage": changed(RESULT.coverage, more)}))[0]
    assert "7 packets dropped while capturing, 3 packets not readable (ipv4-fragment)" in first


def test_the_head_says_when_frames_were_captured_also_where_nothing_was_found_in_them():
    captured = Captured(*map(ns_of, ("2026-11-20T21:00:00Z", "2026-11-20T23:00:00Z")))
    about = replace(ABOUT, captured=captured)
    assert "Captured  2026-11-20 21:00:00 to 23:00:00 UTC" in page(changed(RESULT, {"about": about}))


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


def test_topics_fit_on_80_columns_and_no_time_goes_on_below():
    lines = page(
        changed(RESULT, {"topics": [TOPIC, changed(TOPIC, {"name": "__consumer_offsets", "state": "replaced"})]}),
        width=80,
    )
    rows = [line.rstrip() for line in lines if line.startswith(("shipments", "__consumer_offsets"))]
    assert len(rows) == 2
    assert [row for row in rows if len(row) > 80 or not row.endswith("Z")] == []


def test_a_narrow_terminal_cuts_no_id():
    text = "\n".join(page(RESULT, width=80))
    assert "da2uCyqPT-6vP4yDIMcDSw" in text
    assert "75adae0b-2a8f-4fee-af3f-8c8320c7034b" in text


def test_a_recreated_topic_fits_a_narrow_terminal_with_one_row_per_id():
    ids = ["1kItcVyISSW2qinBWMWing", "3dQYQ6GHSY6paRw3TwiVqA"]
    earlier = [changed(TOPIC, {"topic_id": topic_id, "state": "replaced"}) for topic_id in ids]
    lines = page(changed(RESULT, {"topics": [*earlier, changed(TOPIC, {"earlier_ids": ids})]}), width=80)
    assert [sum(topic_id in line for line in lines) for topic_id in ids] == [1, 1]
    assert [line.split()[2] for line in lines if line.startswith(TOPIC.name)] == ["replaced", "replaced", "current"]


def test_an_id_that_begins_with_a_dash_has_a_hex_form():
    assert hex_id("-7mHRrhnRnmJp0IdlILMMw") == "fbb98746-b867-4679-89a7-421d9482cc33"


def test_many_sides_are_cut_and_the_cut_is_said():
    lines = page(RESULT)
    assert sum("frame 8123 of capture.pcap" in line for line in lines) == terminal.SIDES_SHOWN
    assert any("and 2 more" in line for line in lines)


def test_no_finding_is_said_in_words():
    result = changed(RESULT, {"findings": []})
    assert any(line.split() == ["Findings", "none"] for line in page(result))


def test_a_topic_without_an_id_or_a_name_is_shown_as_such():
    rows = [changed(TOPIC, {"topic_id": None}), changed(TOPIC, {"name": None, "state": "unresolved"})]
    lines = page(changed(RESULT, {"topics": rows}))
    assert any("(no ID)" in line for line in lines)
    assert any("(name unknown)" in line and "unresolved" in line for line in lines)


def test_no_name_reaches_the_terminal_as_a_command():
    text = "\n".join(page(legible(hostile())))
    assert not {letter for letter in text if ord(letter) < 32 and letter != "\n"} | {"\u202e", "\u2066"} & set(text)
    assert r"\x1b]0;owned\x07" in text
    assert all(name in text for name in HOSTILE if name.isascii() and name.isprintable())


def test_a_violation_says_how_to_see_its_frames_and_what_to_do():
    lines = page(RESULT)
    assert [line.strip() for line in lines if " decode capture" in line] == [
        "wirecheck decode capture.pcap --frame 8123"
    ]
    assert all(line.endswith("  # needs tshark 4.6") for line in lines if "tshark -r" in line)  # for LeaderAndIsr v7
    assert sum(line.startswith("  Next  On that broker, compare topic_id") for line in lines) == 1
    assert lines[-3].endswith("  wirecheck explain CODE")


def test_what_to_do_is_said_once_for_each_code():
    twice = [changed(RESULT.findings[1], {"id": letter * 16}) for letter in "ab"]
    lines = page(changed(RESULT, {"findings": twice}))
    assert sum(line.startswith("  Next  ") for line in lines) == 1


def test_the_span_of_the_capture_has_its_dates():
    (line,) = [line for line in page(RESULT) if line.startswith("Captured")]
    assert line.split(maxsplit=1)[1].strip() == "2026-11-20 22:13:08 to 22:13:46 UTC"


def test_what_is_beyond_the_bounds_is_said_with_its_count():
    others = NotKept("clients", "L", "C", None, None, 1234)
    more = changed(RESULT.findings[0], {"id": "L|others", "sides": [], "others": 5000, "count": 5000})
    before, lines = page(RESULT), page(changed(RESULT, {"others": [others], "findings": [*RESULT.findings, more]}))
    assert "and 1,234 more clients of C that were seen and are not kept" in lines
    assert not any("not kept" in line for line in before)
    tally = next(line for line in lines if line.startswith("Findings"))
    assert f"5,001 {PLURALS[more.kind]}" in tally


def test_a_side_without_an_api_names_none():
    bare = changed(
        SIDE,
        {
            "api": None,
            "version": None,
            "correlation_id": None,
            "frame": {"source": "", "first": 0, "last": 0},
        },
    )
    finding = changed(RESULT.findings[1], {"code": "VIS002", "sides": [bare]})
    line = next(line for line in page(changed(RESULT, {"findings": [finding]})) if SIDE.claim in line)
    assert line.rstrip().endswith(SIDE.connection)


def test_what_was_not_decoded_is_counted_by_its_reason():
    details = {"undecoded_messages": {"truncated": 2, "no_request": 3, "unknown_version": 2}}
    first = page(
        changed(RESULT, {"coverage": changed(RESULT.coverage, {"undecoded_messages": 7, "details": details})}), 300
    )[0]
    assert "7 messages not decoded (3 without their request, 2 truncated, 2 of a version newer than is known)" in first


def test_where_nothing_was_read_it_is_not_said_that_nothing_was_found():
    unread = changed(RESULT.coverage, {"messages": 0, "decoded_messages": 0})
    lines = page(changed(RESULT, {"findings": [], "coverage": unread}))
    assert any(line.startswith("Findings  none: no Kafka message was read") for line in lines)


CAUSE = changed(
    FINDING,
    {
        "id": "c" * 16,
        "code": "LOG003",
        "brokers": [4],
        "topic": None,
        "consequences": ["a" * 16, "b" * 16],
    },
)
UNDER = [
    changed(FINDING, {"id": letter * 16, "code": code, "cause": CAUSE.id, "summary": f"{code} follows."})
    for letter, code in (("a", "TID007"), ("b", "LOG001"))
]


def test_what_follows_is_indented_under_its_cause_and_needs_nothing_of_its_own():
    lines = page(changed(RESULT, {"findings": [*UNDER, CAUSE]}))
    said = "Broker 4 stopped following the metadata log at 22:13:23; 2 findings follow from it."
    assert f"  {said}" in lines
    heads = [line.split()[0] for line in lines if line.startswith(("LOG003", "    LOG001", "    TID007"))]
    assert heads == ["LOG003", "LOG001", "TID007"]
    assert [line[:8] for line in lines if "Next" in line] == ["  Next  "]


def test_what_follows_and_has_work_of_its_own_says_it():
    cause = changed(CAUSE, {"code": "TID001", "kind": "information", "topic": "t"})
    lines = page(changed(RESULT, {"findings": [changed(UNDER[0], {"code": "FET001"}), cause]}))
    assert sum(line.startswith("      Next  Restart the client") for line in lines) == 1


def test_what_may_follow_from_several_names_them_and_what_is_not_listed_is_said():
    unsure = changed(FINDING, {"possible_causes": ["c" * 16, "z" * 16]})
    lines = page(changed(RESULT, {"findings": [changed(CAUSE, {"consequences": []}), unsure]}))
    assert f"  May follow from LOG003 {'c' * 16}, {'z' * 16}; that is not certain." in lines


def test_what_follows_from_a_finding_that_is_not_listed_says_so_and_that_some_are_not():
    lines = page(changed(RESULT, {"findings": UNDER[:1], "not_listed": 2}), every=[*UNDER, CAUSE])
    said = f"  Follows from LOG003 {CAUSE.id}: Broker 4 stopped following the metadata log at 22:13:23."
    assert said in lines
    assert "Findings  1 violation  2 not listed, by what was asked for" in lines


def test_where_nothing_of_what_was_asked_for_is_found_nothing_is_called_well():
    lines = page(changed(RESULT, {"findings": [], "not_listed": 2}), every=[*UNDER, CAUSE])
    assert not any("No contradiction" in line or line.split() == ["Findings", "none"] for line in lines)


def test_500_topics_with_one_fault_each_are_one_screen():
    ids = [f"{n:022}" for n in range(500)]
    topics = [changed(TOPIC, {"name": f"t-{n:03}", "topic_id": topic_id}) for n, topic_id in enumerate(ids)]
    findings = [
        changed(
            FINDING,
            {
                "id": f"f{n:015}",
                "topic": f"t-{n:03}",
                "topic_ids": [topic_id],
                "summary": f"Broker 3 refuses t-{n:03} partition {n % 12}: it holds another id than {topic_id}.",
            },
        )
        for n, topic_id in enumerate(ids)
    ]
    lines = page(changed(RESULT, {"topics": topics, "findings": findings}), width=120)
    assert len(lines) <= 45
    assert "and 492 more: wirecheck topics INPUT" in lines
    assert sum("(499 more like it)" in line for line in lines) == 1
    assert any(
        line.startswith("  500 topics: t-000, t-001,") and line.endswith("and 492 more (--format json)")
        for line in lines
    )


HEAD = {"about": ABOUT}


def test_the_input_is_named_once_with_version_and_grace():
    lines = page(changed(RESULT, HEAD))
    assert "Input     capture.pcap" in lines
    assert "Version   9.8; grace 30 s for brokers, 300 s for clients" in lines
    assert [line for line in lines if " of capture.pcap" in line] == []
    assert any(line.endswith("  frame 8123") for line in lines)


def test_of_several_captures_each_frame_names_its_own():
    other = changed(
        FINDING, {"id": "b" * 16, "sides": [changed(SIDE, {"frame": {"source": "b.pcap", "first": 1, "last": 1}})]}
    )
    lines = page(changed(RESULT, HEAD | {"findings": [FINDING, other]}))
    assert any(line.endswith("  frame 8123 of capture.pcap") for line in lines)


def test_on_a_narrow_terminal_words_go_on_below_indented_and_commands_stay_whole():
    console = Console(width=80, record=True, file=open("/dev/null", "w"), force_terminal=True)  # noqa: SIM115, PTH123
    terminal.show_details(read(changed(RESULT, HEAD)), console)
    console.file.close()
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    command = "    wirecheck decode capture.pcap --frame 8123"
    assert command in lines
    assert [line for line in lines if len(line) > 80 and "tshark -r" not in line] == []
    begins = next(n for n, line in enumerate(lines) if line.startswith("  Next  "))
    assert lines[begins + 1].startswith(" " * 8)
    assert not lines[begins + 1].startswith(" " * 9)
    whole = next(line for line in page(changed(RESULT, HEAD)) if line.startswith("  Next  "))
    end = next(n for n, line in enumerate(lines) if n > begins and not line.startswith(" " * 8))
    assert " ".join(" ".join(lines[begins:end]).split()) == " ".join(whole.split())


def test_one_and_many_are_said_as_such():
    second = changed(FINDING, {"id": "b" * 16, "topic": "other", "brokers": [9]})
    tally = [line for line in page(changed(RESULT, {"findings": [FINDING, second]})) if line.startswith("Findings")]
    assert tally == ["Findings  2 violations  "]
    few = changed(RESULT.coverage, {"frames": 1, "connections": 1, "messages": 1, "decoded_messages": 1})
    assert "1 frame, 1 connection, 1 message; " in page(changed(RESULT, {"coverage": few}))[0]


@pytest.mark.parametrize(
    ("partitions", "shown"),
    [
        ([], ("", "")),
        ([(1, [1, 2, 3], [1, 2, 3]), (2, [1, 2, 3], [3])], ("1,2", "1 of 3")),
        ([(-1, [1], [])], ("", "0 of 1")),
        ([(number, [number], [number]) for number in range(7)], ("0,1,2,3 and 3", "1 of 1")),
    ],
)
def test_leaders_and_the_isr_that_lacks_most_of_a_topic(partitions, shown):
    rows = [
        Partition(number, leader, 0, tuple(replicas), tuple(isr), None, 0, "metadata", "")
        for number, (leader, replicas, isr) in enumerate(partitions)
    ]
    assert (terminal_tables.leaders(rows), terminal_tables.least_isr(rows)) == shown


def test_bytes_that_tables_of_an_earlier_release_lack_are_not_shown_as_none_at_all():
    from wirecheck.dashboards.terminal_tables import volume

    assert (volume(0), volume(700, 300), volume(None), volume(700, None)) == ("0 B", "1000 B", "", "")


@pytest.mark.parametrize(
    ("skipped", "encrypted", "text"),
    [(0, 0, ""), (5_032, 0, ", besides 5,032 bytes of messages that were cut"), (204, 1, "")],
)
def test_what_was_captured_of_cut_messages_is_beside_the_count_of_whole_ones(skipped, encrypted, text):
    measures = {"skipped_bytes": skipped} if skipped else {}
    assert cut_messages(replace(RESULT.coverage, measures=measures, encrypted_connections=encrypted)) == text


@pytest.mark.parametrize(
    ("files", "lines"),
    [
        ([], []),
        (["a.pcap: why"], ["a.pcap: why"]),
        (["a.pcap: why", "b.pcap: why"], ["a.pcap: why, nor of 1 other file"]),
    ],
)
def test_files_with_unknown_clocks_are_one_line_however_many(files, lines):
    coverage = replace(RESULT.coverage, details={CLOCKS_UNKNOWN: dict.fromkeys(files, 1)})
    assert [line.partition(";")[0] for line in unknown_clocks(coverage)] == lines
