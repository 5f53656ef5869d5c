"""Commands in the pages: the command line takes each; those that need no live interface work on the example."""

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from wirecheck import cli
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.capture.evidence import minimal_subset
from wirecheck.commands import replay
from wirecheck.session.local_check import judged_files
from wirecheck.session.session import Session

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLE = ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz"
SCENARIOS = ROOT / "tests/scenarios/captures"
LIVE = {"monitor", "doctor", "run"}
"""They wait for agents, look at the machine, or capture."""
FOUND = {"replay", "clients", "diff"}
"""They may end with 1, which says that they found something."""


def fenced(page):
    """Lines of fenced blocks that call wirecheck, also with a prompt; continued lines joined, without comments."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    found = (re.match(r"(?:\$ )?(?:sudo )?wirecheck (\w.*)", line) for line in lines)
    return [shlex.split(one[1], comments=True) for one in found if one]


def shown(page):
    """Commands, and the lines that the page shows of what they print; ... stands for others."""
    blocks = re.findall(r"^```\n((?:\$ )?wirecheck .*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    each = (part for block in blocks for part in re.split(r"^(?:\$ )?(?=wirecheck )", block, flags=re.MULTILINE)[1:])
    parts = (part.partition("\n") for part in each)
    return [
        (shlex.split(command), [line for line in text.splitlines() if line not in {"", "..."}])
        for command, _, text in parts
    ]


def is_live(words):
    return (
        words[0] in LIVE
        or "-i" in words
        or "--follow" in words
        or any("\u2026" in word or word.startswith("$") for word in words)
    )


def with_capture(page):
    """Of `shown` only captures that are in this repository, or what was written of them."""
    for words, lines in shown(page):
        captures = [word for word in words if ".pcap" in word]
        if all((ROOT / word).is_file() for word in captures):
            yield words, lines


COMMANDS = [(page, words) for page in PAGES for words in fenced(page)]


def name(value):
    return value.name if isinstance(value, Path) else " ".join(value)


def test_there_are_commands_in_the_pages():
    assert len([1 for _, words in COMMANDS if not is_live(words)]) > 20


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=name)
def test_every_command_is_one_that_the_door_takes(page, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        Path("monitor.toml").write_text(block)
    Path("expected.txt").touch()
    until = next((at for at, word in enumerate(words) if word in {"|", "&&", ">", "&"}), len(words))
    command = cli.main.get_command(click.Context(cli.main), words[0])
    assert command is not None
    command.make_context(words[0], words[1:until], parent=click.Context(cli.main)).close()


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with what the pages speak of: a capture under several names, its frames, a replay's tables."""
    folder = tmp_path_factory.mktemp("desk")
    for named in ("incident.pcapng", "a.pcap.gz", "b.pcap.zst", "broker-1.pcap.gz", "broker-2.pcap.gz"):
        shutil.copy(EXAMPLE, folder / named)
    for shared in ("examples", "docs", "tests"):
        (folder / shared).symlink_to(ROOT / shared)
    (folder / "draft.pcap").symlink_to(SCENARIOS / "kip516-draft/capture.pcap.gz")
    (folder / "after.pcap").symlink_to(SCENARIOS / "kraft4-healthy/capture.pcap.gz")
    for named in ("keys.log", "broker-1.keys", "broker-2.keys"):
        (folder / named).write_text(f"CLIENT_RANDOM {'00' * 32} {'00' * 48}\n")
    (folder / "expected.txt").write_text("TID001 * * - a topic that a test recreates\n")
    return folder


def plainly(settings, files, tables):
    """A replay by the plain loop: that the query says the same is tested elsewhere, and takes Java a while to start."""
    run = judged_files(Session(), files, settings)
    run.write(tables)
    return run.result()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_that_needs_no_live_interface_works(page, desk, monkeypatch):
    """In the order of the page: what one command writes, a later one reads."""
    monkeypatch.chdir(desk)
    monkeypatch.setattr(replay, "spark_query", lambda work, settings: settings)
    monkeypatch.setattr(replay, "by_spark", plainly)
    monkeypatch.setattr(minimal_subset, "TRIES", 0)  # evidence that is enough, not the least there is
    for leftover in ("frames", "verdict"):
        shutil.rmtree(desk / leftover, ignore_errors=True)
    for words in fenced(page):
        if is_live(words) or "|" in words:
            continue
        if words[0] == "replay" and "frames/" in words and not (desk / "frames").exists():
            write_frames([EXAMPLE], desk / "frames", "default")
        result = CliRunner().invoke(cli.main, words)
        assert result.exit_code in ({0, 1} if words[0] in FOUND else {0}), (words, result.stderr, result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs/quickstart.md"], ids=name)
def test_the_result_that_a_page_shows_is_the_one_that_comes(page, desk, monkeypatch):
    monkeypatch.chdir(desk)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "dumb")  # a terminal of 80 columns without colors, whatever runs the test
    monkeypatch.setattr(replay, "spark_query", lambda work, settings: settings)
    monkeypatch.setattr(replay, "by_spark", plainly)
    result = CliRunner().invoke(cli.main, ["replay", "incident.pcapng"])
    (shown,) = re.findall(r"^```\n( IDs and versions .*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert [line.rstrip() for line in result.stdout.splitlines()] == shown.splitlines()


INCIDENTS = sorted((ROOT / "docs/incidents").glob("*.md"))
OF_THE_REPOSITORY = [
    *(ROOT / f"docs/{name}.md" for name in ("changes", "clients", "diff", "errors", "timeline", "why")),
    *(page for page in INCIDENTS if any(with_capture(page))),
]


@pytest.mark.parametrize("page", OF_THE_REPOSITORY, ids=name)
def test_what_a_page_shows_of_an_output_is_in_it(page, desk, monkeypatch):
    """Of captures that are in this repository; the lines stand in their order."""
    monkeypatch.chdir(desk)
    monkeypatch.delenv("COLUMNS", raising=False)  # as in a pipe, whatever a worker of pytest has
    for words, lines in with_capture(page):
        result = CliRunner().invoke(cli.main, [*words[1:]])
        assert result.exit_code in {0, 1}, (words, result.stderr)
        printed = iter([line.rstrip() for line in result.output.splitlines()])
        for line in lines:
            assert line.rstrip() in printed, (words, line)


def test_the_card_in_the_page_about_a_stale_broker_is_the_one_that_comes(monkeypatch):
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/stale-broker.md").read_text()
    (card,) = re.findall(r"^```\n( IDs and versions .*?)^```", page, re.MULTILINE | re.DOTALL)
    words = next(one for one in fenced(ROOT / "docs/stale-broker.md") if one[0] == "replay")
    assert CliRunner().invoke(cli.main, words).stdout == card
