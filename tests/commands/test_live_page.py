"""The monitor's page: commands that run as printed, a range of time, how old it is."""

import re
import shlex
from html import unescape
from pathlib import Path

import pytest

from tests.commands.conftest import EXAMPLE
from tests.laws.test_new_checks import capture
from wirecheck.commands.live_page import live_cards, live_page
from wirecheck.streaming import checkpoint
from wirecheck.streaming.run.metrics_page import JudgedAgent
from wirecheck.streaming.run.plan import Plan
from wirecheck.streaming.run.web_server import AGE
from wirecheck.streaming.store import result_folder
from wirecheck.streaming.store.batches import Folders
from wirecheck.streaming.store.result_tables import from_ipc, to_ipc
from wirecheck.streaming.store.run_result import SPANNED, Result
from wirecheck.wording import DAY_NS

TAG = re.compile(r"<[^>]+>")


@pytest.fixture
def plan(frames_folder, verdict, monkeypatch):
    """Of a monitor that judged the example."""
    monkeypatch.setattr(checkpoint, "run_of", lambda _: result_folder.latest_run(verdict))
    monkeypatch.setattr(checkpoint, "committed", lambda _: 0)
    return Plan(str(frames_folder), str(verdict), "checkpoint")


def commands(page):
    return [unescape(TAG.sub("", text)) for text in re.findall(r'<pre class="copied">(.*?)</pre>', page, re.DOTALL)]


def agent(plan, days):
    """One that went on for so long after what was seen last."""
    rows = Result.latest(Path(plan.out)).rows
    last_ns = max(row["last_seen"] for name in SPANNED for row in rows[name])
    return JudgedAgent("default", "a", last_ns + days * DAY_NS)


def test_every_command_of_the_page_runs_as_printed(plan, run, tmp_path, monkeypatch):
    shown = commands(live_page(plan, [], "all"))
    monkeypatch.chdir(tmp_path)
    assert any(plan.frames in command for command in shown)
    assert any(f"--from {plan.out}" in command for command in shown)
    assert "FILE" not in shlex.split(" ".join(shown))
    monkeypatch.chdir(EXAMPLE.parents[2])  # frames of captures are named as they were given
    for command in {line for line in shown if line.startswith("wirecheck ")}:
        words = shlex.split(command)[1:]
        words[-1] = str(tmp_path / words[-1]) if words[0] == "evidence" else words[-1]
        result = run(*words)
        assert result.exit_code == 0, (command, result.stderr)
        assert result.stdout or result.stderr


def test_folders_that_are_elsewhere_are_in_no_command(plan):
    page = live_page(Plan("s3a://frames/", plan.out, plan.checkpoint), [], "all")
    assert "s3a://" not in page
    assert any(" FILE " in command for command in commands(page))


@pytest.mark.parametrize(("days", "name", "listed"), [(0, "hour", True), (2, "day", False), (2, "all", True)])
def test_a_range_lists_what_was_seen_in_it_and_counts_the_rest(plan, days, name, listed):
    page = live_page(plan, [agent(plan, days)], name)
    assert ("TID002</a>" in page) == listed
    assert ("1 finding not listed" in page) == (not listed)
    assert f'<a href="?range={name}" aria-current="true">' in page


def test_a_range_is_the_axis_of_its_page(plan):
    """Five days of results, and an hour of them fills the page."""
    spans = [re.search(r"Captured (.*?)</p>", live_page(plan, [agent(plan, 5)], name))[1] for name in ("hour", "all")]
    assert spans[0] != spans[1]


@pytest.mark.parametrize(("days", "name", "listed"), [(2, "all", True), (2, "day", False)])
def test_a_page_has_the_table_of_agreement_of_its_range(plan, days, name, listed):
    """Servers have what they advertise whatever the range."""
    tables = re.search(r'<section id="agreement".*?</section>', live_page(plan, [agent(plan, days)], name), re.DOTALL)[
        0
    ]
    assert "Versions by server" in tables
    assert ("LeaderAndIsr" in TAG.sub("", tables).partition("Versions by server")[0]) == listed


def test_a_page_has_the_lanes_of_a_report(plan, run, tmp_path, monkeypatch):
    """By the minute, of the tables: no frame is read."""
    run("replay", capture(tmp_path), "--out", tmp_path / "out", "--engine", "local", "-q")
    monkeypatch.setattr(checkpoint, "run_of", lambda _: result_folder.latest_run(tmp_path / "out"))
    plan = Plan(plan.frames, str(tmp_path / "out"), plan.checkpoint)
    picture = re.search(r'<figure class="picture".*?</figure>', live_page(plan, [], "all"), re.DOTALL)[0]
    assert re.search(r'aria-label="Captured: [0-9.]+ [KM]iB, at most ', picture)
    assert "app: OFFSET_OUT_OF_RANGE, 50 times" in picture


def test_a_page_has_the_place_of_its_age(plan):
    assert f"updated {AGE} ago" in live_page(plan, [], "all")


def test_before_the_first_batch_there_is_no_page(plan, monkeypatch):
    monkeypatch.setattr(checkpoint, "committed", lambda _: -1)
    with pytest.raises(LookupError):
        live_page(plan, [], "all")


def test_the_table_of_cards_is_what_the_page_shows_now(plan):
    run = result_folder.latest_run(Path(plan.out))
    place = Folders(f"{plan.out}/cards/run={run}")
    old = [{"id": "gone", "revision": 0, "label": "default", "headline": "it was so"}]
    place.put(from_ipc(to_ipc("cards", old)), 0)
    live_cards(plan)
    rows, page = place.rows(0).to_pylist(), unescape(TAG.sub("", live_page(plan, [], "all")))
    assert rows
    assert [row for row in rows if row["headline"] not in page] == [], "what was there before is gone"
    assert [row["id"] for row in rows] == [one.findings[0] for one in Result.latest(Path(plan.out)).verdict().entries]
