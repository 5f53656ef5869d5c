"""What a file says is expected counts nowhere; what is new about it does."""

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

import wirecheck
from tests.judge import cases_unserved as cases
from tests.judge.lab import Lab
from tests.story.test_cards import HURT
from wirecheck import cli
from wirecheck.story.expectations import parsed
from wirecheck.streaming.run.metrics_page import Page
from wirecheck.streaming.store.result_folder import latest_run, read

CLIENT = "writer"


@pytest.fixture
def denied(tmp_path):
    lab = Lab()
    cases.cli006_fires(lab)
    (tmp_path / "denied.pcap").write_bytes(lab.pcap())
    return tmp_path / "denied.pcap"


def replayed(capture, lines, *more):
    file = capture.parent / "expected.txt" if capture != HURT else more[0]
    file.write_text(lines)
    arguments = ["replay", str(capture), "--expect", str(file), "--format", "json"]
    result = CliRunner().invoke(cli.main, arguments)
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("CLI006 writer songs - known", 0),
        ("# a comment\n\n  CLI* wri* * 2099-01-01  known for long  ", 0),
        ("CLI006 reader songs - another client", 1),
        ("CLI006 writer tunes - another topic", 1),
        ("CTL010 * * - another check", 1),
        ("CLI006 writer songs 2020-01-01 over", 1),
    ],
)
def test_an_exit_status_leaves_out_what_is_expected(denied, lines, code):
    found, result = replayed(denied, lines)
    assert found == code
    (entry,), (line,) = result["entries"], result["expectations"]
    assert bool(entry["expected"]) == (code == 0) == (line["cards"] == 1)
    assert result["findings"]  # it is listed all the same
    assert result["verdict"].startswith("Only what is expected was found" if code == 0 else "writer (10.0.0.7) cannot")


def test_a_card_that_hurts_another_client_is_news(tmp_path):
    assert replayed(HURT, "LOG003 p-lost * - known", tmp_path / "one")[0] == 1
    assert replayed(HURT, "LOG003 ?-lost * - known", tmp_path / "both")[0] == 1, "c-good missed one record"
    assert replayed(HURT, "* ?-lost * - known\nGRP010 c-good * - known", tmp_path / "all")[0] == 0


def test_lines_that_are_of_no_use_are_named(denied, tmp_path):
    file = tmp_path / "expected.txt"
    file.write_text("CLI006 writer songs 2020-01-01 late\nTID001 * * - never\n")
    shown = CliRunner(env={"COLUMNS": "120"}).invoke(cli.main, ["replay", str(denied), "--expect", str(file)]).stdout
    assert "   expected line 1 is over: late\n" in shown
    assert "   expected line 2 covers no card: never\n" in shown


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("CLI006 writer songs", "line 1: expected CODE CLIENT TOPIC UNTIL REASON"),
        ("\nXYZ999 * * - why", "line 2: XYZ999 is no check"),
        ("CLI006 * * tomorrow why", "line 1: tomorrow is no day such as 2026-12-31, nor -"),
    ],
)
def test_a_line_that_cannot_be_read_is_one_line_of_error(denied, tmp_path, lines, said):
    file = tmp_path / "expected.txt"
    file.write_text(lines)
    result = CliRunner().invoke(cli.main, ["replay", str(denied), "--expect", str(file)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    with pytest.raises(wirecheck.InputError, match=said.split(":")[0]):
        wirecheck.replay(denied, expect=file)


def test_the_library_has_it_too(denied, tmp_path):
    file = tmp_path / "expected.txt"
    file.write_text("CLI006 writer songs - known")
    assert wirecheck.replay(denied, expect=file).json["entries"][0]["expected"] == "known"


def test_a_monitor_counts_it_in_no_alert(denied, tmp_path):
    CliRunner().invoke(cli.main, ["replay", str(denied), "--out", str(tmp_path / "out")])
    harms = pa.concat_tables(read(tmp_path / "out", "harms", latest_run(tmp_path / "out")))

    def samples(*lines):
        page = Page(expect=lines)
        page.take({"harms": harms})
        every = [one for family in page.collect() for one in family.samples]
        roles = {one.labels["role"] for one in every if one.name == "wirecheck_findings" and one.value}
        return roles, sum(one.value for one in every if one.name == "wirecheck_clients_affected")

    assert samples() == ({"alone"}, 1)
    assert samples(parsed(1, "CLI006 * * - known")) == ({"expected"}, 0)
