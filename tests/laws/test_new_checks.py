"""The law of new checks: one that is made by CONTRIBUTING.md, of a function and a page, is one story.

Each process adds a check of clients that ask for offsets beyond the log to an unchanged wirecheck, and replays a client
that does. Whatever its page declares, these agree: the finding, its card with an impact line, the client's state, the
mark of work, the first screen, and the exit status.
"""

import json
import subprocess
import sys

import pytest

from tests.judge.lab import ID_1, Lab

CODE, ERROR = "FET999", "OFFSET_OUT_OF_RANGE"
PARAGRAPHS = "".join(
    f"\n**{heading}.** Of a check that a test made for itself.\n"
    for heading in ("Detects", "Why it matters", "False positives", "Source", "What to do")
)
ADDED = """
import sys
from wirecheck.judge.checks import page

code, name, block, paragraphs, words, *lines = sys.argv[1:]
written = page.written()
page.written = lambda: {**written, code: page.Page(code, name, block, paragraphs)}

from wirecheck.judge.checks import fetching, shapes
from wirecheck.judge.checks.shapes import stuck_client
from wirecheck.judge.streaks import longest_of, streaks

def asks_beyond_the_log(subject, group, context):
    for claim in context.claims("activity", group, *subject):
        streak = longest_of(streaks(claim.outcomes, {1})) if claim["api"] == "Fetch" else None
        if streak is not None and streak.is_long(context.settings):
            about = {"error": "OFFSET_OUT_OF_RANGE (1)", "api": "Fetch", "hurt_host": subject[2]}
            kept = {word: about[word] for word in words.split()}
            yield stuck_client(claim, streak, *subject[1:], context=context, words=kept)

fetching.asks_beyond_the_log = asks_beyond_the_log

from wirecheck.cli import main
for line in lines:
    try:
        main(line.split(), prog_name="wirecheck")
    except SystemExit as end:
        status = end.code
    print("\f")
sys.exit(status)
"""
BLOCK = """kind: {kind}
status: preview
question: {question}
looks at: client
reads: client:activity!
one per: client ID, client host
says: {says}
{more}"""
NAMED = "{client} has got {error} since {since}, {count:time}."
CHECKS = {
    "names the error": ("anomaly", "agreement", NAMED, "", "error"),
    "of work": ("anomaly", "work", NAMED, "", "error"),
    "of a violation": ("violation", "agreement", NAMED, "", "error"),
    "an event that hurts": ("information", "work", NAMED, "", "error"),
    "in doubt": ("information", "work in doubt", NAMED, "line: beyond", "error"),
    "names no error": ("anomaly", "work", "{client} has fetched nothing since {since}, {count:time}.", "", ""),
    "states the harm itself": (
        "information", "work", "{client} has fetched nothing since {since}.", "hurts: nothing delivered",
        "api hurt_host",
    ),
    "states that nothing is granted": (
        "information", "work", "{client} has fetched nothing since {since}.",
        "hurts (all its clients): nothing granted", "api hurt_host",
    ),
}  # fmt: skip
"""By what it is like: kind, question, sentence, further lines of the block, and the words of its findings."""


def capture(folder):
    lab = Lab()
    for at in range(0, 120, 10):
        lab.metadata(at, [("orders", ID_1)])
    talk = lab.talk(client_id="app")
    lab.fetches(range(1, 20, 2), ID_1, talk=talk)
    lab.fetches(range(21, 120, 2), ID_1, 1, talk=talk)
    path = folder / "capture.pcap"
    path.write_bytes(lab.pcap())
    return path


REPLAY = ("replay", "--engine", "local")


def replayed(check, path):
    """As JSON, and as the screen has it."""
    kind, question, says, more, words = check
    block = BLOCK.format(kind=kind, question=question, says=says, more=more).rstrip()
    lines = [" ".join((*REPLAY, *options, str(path))) for options in (("--format", "json"), ())]
    command = [sys.executable, "-c", ADDED, CODE, "asks-beyond-the-log", block, PARAGRAPHS, words, *lines]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (*done.stdout.split("\f\n")[:-1], done)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return capture(tmp_path_factory.mktemp("new-check"))


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_of_a_function_and_a_page_tells_one_story(name, path):
    written, screen, done = replayed(CHECKS[name], path)
    assert done.stderr == ""
    document = json.loads(written)
    assert [finding["code"] for finding in document["findings"]] == [CODE]
    (entry,) = document["entries"]
    (hurt,) = entry["card"]["harm"]["clients"]
    assert (hurt["client_id"], hurt["ongoing"], done.returncode) == ("app", True, 1)
    assert entry["card"]["headline"].startswith("app (10.0.0.99) ")
    (client,) = (one for one in document["clients"] if one["client_id"] == "app")
    assert client["state"] == "stalled"
    work = document["marks"]["work"]
    assert (work["mark"], work["sentence"].split(" · ")[0]) == ("violation", "1 stalled of 1 client")
    assert "1 of 1 client" in screen
    assert "still failing" in screen
    assert "no finding explains" not in screen
