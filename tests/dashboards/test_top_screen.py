"""The live view: what fits, what keys do."""

import pytest
from rich.console import Console

from wirecheck.dashboards.top_screen import Failed, Finding, Sample, Screen, Talk, age


def talk(client, api="Fetch", requests=1.0, errors=0.0, p99=None, throttled=0):
    return Talk(client, "10.0.0.1", api, requests, errors, p99, throttled, 1000.0, ("versions 12",), ())


SAMPLE = Sample(
    "a.pcap",
    "00:20:03 UTC",
    (
        Finding("information", "TID001", "Topic songs was recreated.", 200.0, "", ()),
        Finding("violation", "FET001", "Consumer billing is stuck on songs.", 76.0, "Restart billing.", ("look here",)),
    ),
    (talk("quiet", requests=0.01), talk("busy", requests=1234.5), talk("failing", "Produce", 2.0, 1.5, 12.3, 4)),
    (Failed("00:20:02", "failing", "Produce", "songs", "UNKNOWN_TOPIC_ID", 7),),
)


def drawn(screen, sample=SAMPLE, columns=80, lines=24):
    console = Console(width=columns, height=lines, color_system=None)
    with console.capture() as captured:
        console.print(screen.draw(sample, columns, lines))
    return captured.get().splitlines()


def clients(lines):
    names = ("quiet", "busy", "failing")
    return [name for line in lines for name in names if line.startswith(f"{name} ")]


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("many", [1, 300])
def test_it_fits_the_terminal(columns, many):
    sample = SAMPLE._replace(findings=SAMPLE.findings * many, talks=SAMPLE.talks * many, errors=SAMPLE.errors * many)
    lines = drawn(Screen(), sample, columns)
    assert len(lines) <= 24
    assert max(map(len, lines)) <= columns
    assert (f"Open findings: {2 * many}" in lines[1], "Last errors" in lines) == (True, True)


def test_violations_come_first_and_rates_are_short():
    lines = drawn(Screen())
    assert lines[2].split(maxsplit=2) == ["76s", "FET001", "Consumer billing is stuck on songs."]
    assert lines[3].startswith("   3m  TID001")
    assert [line.split()[1:] for line in lines if line.startswith("failing")] == [
        ["Produce", "2.0", "1.5", "12.3", "4"]
    ]
    assert [line.split()[2] for line in lines if line.startswith(("busy", "quiet"))] == ["1,234", "<0.1"]


def test_s_sorts_by_the_next_column():
    screen, seen = Screen(), []
    for _ in range(6):
        seen.append((screen.sort, clients(drawn(screen))))
        screen.press("s")
    assert seen[0] == seen[5] == ("errors", ["failing", "busy", "quiet"])
    assert seen[1] == ("requests", ["busy", "failing", "quiet"])
    assert seen[4] == ("client", ["busy", "failing", "quiet"])


def test_a_filter_is_typed_kept_and_taken_away():
    screen = Screen()
    for key in ("/", "q", "x", "backspace"):
        screen.press(key)
    assert not screen.over, "letters are text while a filter is typed"
    assert drawn(screen)[-1] == "filter: q_"
    screen.press("enter")
    assert clients(drawn(screen)) == ["quiet"]
    screen.press("escape")
    assert clients(drawn(screen)) == ["failing", "busy", "quiet"]


def test_enter_opens_what_is_selected_and_escape_goes_back():
    screen = Screen()
    drawn(screen)
    screen.press("enter")
    text = "\n".join(drawn(screen))
    assert "do    Restart billing." in text
    assert "look  look here" in text
    screen.press("escape")
    for _ in range(9):
        drawn(screen)
        screen.press("down")
    screen.press("enter")
    assert "versions 12" in "\n".join(drawn(screen)), "the selection ends at the last row"
    screen.press("q")
    assert screen.over


@pytest.mark.parametrize(("seconds", "text"), [(-3, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")])
def test_an_age_is_short(seconds, text):
    assert age(seconds) == text
