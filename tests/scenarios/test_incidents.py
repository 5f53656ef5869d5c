"""The hall of incidents: each page has what it promises. What it shows of a verdict, tests/test_pages.py compares."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scenarios.engines import ROOT

PAGES = sorted(path for path in (ROOT / "docs/incidents").glob("*.md") if path.name != "README.md")
SAID = re.compile(
    r"```\nwirecheck replay (?P<capture>\S+)\n(?: IDs and versions)? [\u2713\u2717!?] (?P<verdict>[^\n]+?)"
    r"(?:   since [^\n]+)?(?:\n work [^\n]+)?\n```"
)
SCRIPTS = sorted(p for p in (ROOT / "examples/incidents").glob("*.py") if p.read_text().endswith('")\n'))
HEADINGS = ("What happened", "On the wire", "What wirecheck reports", "What to do", "Reproduced")


def names(path):
    return path.stem


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_a_page_says_who_was_hit_where_from_and_what_to_do(page):
    text = page.read_text()
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(HEADINGS)
    assert text.startswith("# ")
    assert "**Who was hit.**" in text
    sources = text.partition("**Sources.**")[2].partition("\n## ")[0]
    assert re.findall(r"\]\((https://[^)\s]+)\)", sources)


def test_twelve_incidents_and_more_have_a_page_and_most_a_capture():
    undated = [page for page in PAGES if SAID.search(page.read_text())]
    assert len(PAGES) >= 12
    assert len(undated) >= 8
    silent = {page.stem for page in PAGES} - {page.stem for page in undated}
    assert silent == {"kafka-13132"}


def test_the_index_lists_every_page_and_every_capture_has_one():
    index = (ROOT / "docs/incidents/README.md").read_text()
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == {page.name for page in PAGES}
    named = {Path(found["capture"]).name for page in PAGES if (found := SAID.search(page.read_text()))}
    assert {path.name for path in (ROOT / "docs/incidents/captures").iterdir()} <= named


@pytest.mark.parametrize("script", SCRIPTS, ids=names)
def test_a_script_looks_for_the_cause_that_the_hall_names(script):
    (code,) = re.findall(r'reproduce\(incident, "(\w+)"\)', script.read_text())
    page = f"{script.stem.replace('_', '-')}.md"
    (cause,) = re.findall(rf"\({page}\).*\|([^|]+)\|$", (ROOT / "docs/incidents/README.md").read_text(), re.MULTILINE)
    assert code in cause
    assert f"examples/incidents/{script.name}" in (ROOT / "docs/incidents" / page).read_text()
    assert f"| `{script.name}` |" in (ROOT / "examples/incidents/README.md").read_text()


def test_every_incident_that_was_reproduced_has_its_script():
    reproduced = {page.stem for page in PAGES if re.search(r"## Reproduced\n(?!No)", page.read_text())}
    assert len(reproduced) >= 8
    assert reproduced - {script.stem.replace("_", "-") for script in SCRIPTS} == set()


def test_a_script_explains_itself_without_a_cluster():
    for script in SCRIPTS:
        command = [sys.executable, str(script), "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={"WIRECHECK_KAFKA": "."})
        assert "Needs the jars of Kafka" in " ".join(done.stdout.split()), done.stderr
