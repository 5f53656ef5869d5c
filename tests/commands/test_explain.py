"""`wirecheck explain`: its page wraps between words on a real terminal, and says what replay says of the same check."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from tests.commands.conftest import EXAMPLE, ROOT
from tests.depth import some
from wirecheck.decode import schemas
from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.judge.checks.error_meanings import by_api, error_causes, error_meanings

PAINT = re.compile(r"\x1b\[[0-9;]*m")


def on_a_terminal(columns, *words):
    """What a terminal so wide is sent, without its colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    command = [sys.executable, "-c", "from wirecheck.cli import main; main()", *words]
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment | {"TERM": "xterm"}, stdout=theirs, stderr=theirs, stdin=theirs
    ):
        os.close(theirs)
        screen = b""
        while chunk := read(ours):
            screen += chunk
    os.close(ours)
    return PAINT.sub("", screen.decode()).replace("\r\n", "\n")


def read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # EIO: nobody writes to it any more
        return b""


@pytest.mark.parametrize("columns", some([60, 80, 120]))
def test_a_page_wraps_between_words(run, columns):
    lines = on_a_terminal(columns, "explain", "LOG003").splitlines()
    assert max(map(len, lines)) <= columns
    whole = run("explain", "LOG003").stdout.replace("*", "").replace("`", "")
    assert {word for line in lines for word in line.split()} <= set(whole.split())


def words(text):
    """As somebody reads them: without lines, asterisks and backquotes."""
    return " ".join(re.sub(r"[*`]", "", text).split())


def test_replay_and_explain_say_the_same_of_a_check(run):
    screen = run("replay", EXAMPLE, "-v", "--engine", "local").stdout
    code, name, kind = re.search(r"^([A-Z]{3}\d{3}) (\S+)  (\w+)", screen, re.MULTILINE).groups()
    head, rest = run("explain", code).stdout.split("\n", 1)
    assert head == f"## {code} {name}"
    assert rest.lstrip().startswith(f"{kind}, ")
    (what_to_do,) = re.findall(r"^  Next  (.*)$", screen, re.MULTILINE)
    assert words(rest.split("**What to do.**")[1]) == words(what_to_do)


@pytest.mark.parametrize("code", CHECKS)
def test_a_page_says_its_check_s_name_kind_and_what_to_do(run, code):
    page = run("explain", code).stdout
    assert page.startswith(f"## {code} {CHECKS[code].name}\n\n{CHECKS[code].kind}, ")
    assert words(page.split("**What to do.**")[1])
    assert run("explain", CHECKS[code].name).stdout == page


def test_an_error_in_one_line_is_broken_between_words_on_a_terminal():
    screen = on_a_terminal(80, "decode", "-q", str(EXAMPLE), "--api", "zzzz")
    assert max(map(len, screen.splitlines())) <= 80
    assert screen.startswith("wirecheck: zzzz: no such API; Kafka calls them ")
    assert "\n  " in screen
    assert {"AddOffsetsToTxn,", "AllocateProducerIds,", "WriteTxnMarkers"} <= set(re.sub(r"[.;]", "", screen).split())


@pytest.mark.parametrize("said", ["INCONSISTENT_TOPIC_ID", "inconsistent_topic_id", "103"])
def test_an_error_is_explained_with_the_checks_that_name_it(run, said):
    result = run("explain", said)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "## INCONSISTENT_TOPIC_ID (103)")
    assert "TID002  violation    leader-and-isr-inconsistent-topic-id" in result.stdout
    named = re.findall(r"^    ([A-Z]{3}\d{3})  ", result.stdout, re.MULTILINE)
    assert named == [code for code in CHECKS if "INCONSISTENT_TOPIC_ID" in run("explain", code).stdout]


def test_an_error_in_a_capture_has_who_gets_it_and_the_findings_about_it(run):
    whole, page = run("explain", "103", EXAMPLE), run("explain", "103").stdout
    without_hints = "".join(line for line in page.splitlines(keepends=True) if "INPUT" not in line)
    assert (whole.exit_code, whole.stdout.startswith(without_hints)) == (0, True)
    assert "INPUT" not in whole.stdout
    seen, about = whole.stdout[len(page) :].split("\nFindings about it:\n")
    listed = run("errors", EXAMPLE, "--error", "INCONSISTENT_TOPIC_ID", "--format", "json").stdout.splitlines()
    for row in map(json.loads, listed):
        assert re.search(rf"{row['count']} +{row['requests']} .*INCONSISTENT_TOPIC_ID", seen)
    assert seen.count("  INCONSISTENT_TOPIC_ID") == len(listed) > 0
    assert about.split()[0] == "TID002"


def test_an_error_in_results_is_shown_as_in_the_capture(run, tmp_path):
    run("replay", EXAMPLE, "--out", tmp_path / "out")
    assert run("explain", "103", tmp_path / "out").stdout == run("explain", "103", EXAMPLE).stdout


def test_an_error_that_is_not_in_a_capture_is_not_found_there(run):
    assert run("explain", "INVALID_RECORD", EXAMPLE).stdout.endswith("\nNo response in this input has it.\n")


def test_a_check_is_not_looked_up_in_a_capture(run):
    ended = run("explain", "TID002", EXAMPLE)
    assert (ended.exit_code, "with INPUT, give an error" in ended.stderr) == (2, True)


def test_every_error_of_kafka_has_a_meaning_and_an_advice():
    names = {error.name for error in schemas.errors().values()} - {"NONE"}
    assert names <= {*error_meanings()}
    assert all(text.endswith(".") for one in by_api().values() for text in one)


def test_what_an_error_means_to_some_apis_is_on_its_page(run):
    """A card names the error and the API, and leads to this page."""
    for (name, api), meaning in by_api().items():
        if api != "-":
            text = f"{meaning.means} {meaning.action}"
            (line,) = (one for one in run("explain", name).stdout.splitlines() if text in one)
            assert re.match(rf"To (\w+, )*{api}[,:]", line)


def test_an_error_without_a_check_says_so(run):
    assert run("explain", "INVALID_RECORD").stdout.endswith("\nNo check names it.\n")


@pytest.mark.parametrize(
    ("said", "close"), [("INCONSISTENT_TOPIC_I", "INCONSISTENT_TOPIC_ID, "), ("0", ""), ("4711", "")]
)
def test_what_is_no_error_is_refused_with_those_like_it(run, said, close):
    result = run("explain", said)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(
        f"wirecheck: {said}: no such check or error; {'close to it: ' * bool(close)}{close}"
    )


def test_errors_that_are_seen_most_have_three_usual_causes(run):
    causes = error_causes()
    assert len(causes) >= 40
    assert {*causes} <= {error.name for error in schemas.errors().values()} & {*error_meanings()}
    assert all(len(three) == len(set(three)) == 3 for three in causes.values())
    assert all(cause.endswith(".") for three in causes.values() for cause in three)
    printed = run("explain", "UNKNOWN_TOPIC_ID").stdout
    numbered = [f"{place}. {cause}" for place, cause in enumerate(causes["UNKNOWN_TOPIC_ID"], 1)]
    assert "\n".join(["Usual causes:", "", *numbered]) in printed
    assert "Usual causes" not in run("explain", "DUPLICATE_RESOURCE").stdout
