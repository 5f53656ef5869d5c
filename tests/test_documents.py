"""Sentences that could go stale are generated from, or tested against, the code."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from tools import language
from tools.documents import documents
from wirecheck import cli

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("[a-z]*/README.md"))]


def test_generated_pages_are_in_step_with_the_code():
    assert {path: path.read_text() for path in documents()} == documents()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_and_file_a_page_names_exists(page):
    text = page.read_text()
    named = re.findall(r"\]\(([^)#]+)\)", text) + re.findall(r"^\| `([\w/.]+\.\w+)`", text, re.MULTILINE)
    missing = [name for name in named if not (page.parent / name).exists() and not (ROOT / name).exists()]
    assert missing == []


FOLDERS = [folder for folder in ROOT.glob("[a-z]*") if folder.is_dir() and folder.name not in {"build", "dist"}]
SOURCES = [*(path for folder in FOLDERS for path in folder.rglob("*.py")), ROOT / "setup.py"]
MODULES = {path.relative_to(ROOT).as_posix() for path in SOURCES}
TEXTS = [*SOURCES, *ROOT.glob("*.md"), *(path for folder in FOLDERS for path in folder.rglob("*.md"))]


def test_every_module_that_a_docstring_or_page_names_exists():
    ends = {name[at:] for name in MODULES for at in (0, *(m.end() for m in re.finditer("/", name)))}
    stale = []
    for path in TEXTS:
        text = path.read_text()
        prose = text if path.suffix == ".md" else "\n".join(re.findall(r'"""(.*?)"""', text, re.DOTALL))
        named = re.findall(r"(?<![\w./*-])(?:wirecheck/)?((?:\w+/)*[a-z]\w+\.py)\b", prose)
        stale += [f"{path.relative_to(ROOT)}: {name}" for name in named if name not in ends]
    assert stale == []


def test_contributing_has_every_folder_in_one_line():
    listing = (ROOT / "CONTRIBUTING.md").read_text().split("Every folder in one line:\n```\n")[1].split("```")[0]
    listed, above = [], []
    for line in listing.splitlines():
        depth, name = (len(line) - len(line.lstrip())) // 2, line.split()[0]
        above[depth:] = [name]
        listed.append("".join(above).rstrip("/"))
    packages = {name.split("/")[0] for name in listed}
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for package in packages - {"tests"}
        for path in (ROOT / package).rglob("*.py")
    }
    assert sorted(folders - set(listed)) == []
    assert [name for name in listed if not (ROOT / name).is_dir()] == []
    assert {path.parent.name for path in ROOT.glob("[a-z]*/README.md")} | {"wirecheck"} <= packages


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_says_what_it_does_with_an_example(command):
    help_text = CliRunner().invoke(cli.main, [command, "--help"]).output
    assert f"wirecheck {command}" in help_text
    assert command in (ROOT / "README.md").read_text()


def test_the_makefile_describes_every_verb():
    makefile = (ROOT / "Makefile").read_text()
    phony = set(" ".join(re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)).split())
    assert set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE)) == phony


def test_no_tracked_file_carries_a_path_of_somebodys_machine():
    import subprocess

    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout.split(b"\0")
    texts = [ROOT / name.decode() for name in names if name.endswith((b".py", b".md", b".toml", b".txt", b".tsv"))]
    if not texts:
        pytest.skip("not a git checkout")
    pattern = re.compile("/" + r"(?:home|root|work|Users)/\w+")
    assert [path.name for path in texts if path.is_file() and pattern.search(path.read_text())] == []


def test_no_name_in_code_brings_an_old_word_back():
    listed = (language.LISTS / "old_names.txt").read_text("ascii").split()
    assert sorted(set(language.old_names()) - set(listed)) == []


def test_private_words_are_found_and_kafkas_own_names_are_not():
    def found(text: str) -> list[str]:
        return [word[0] for word in language.PRIVATE.finditer(language.KNOWN.sub(" ", text))]

    assert found("a stranger is told the topic id anew") == ["stranger", "told", "id", "anew"]
    assert found("the group.id and topic_id of both sides, side by side: an ID, a grace period, broker.id=3") == []


HOW = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")


def test_how_it_works_names_modules_that_are_there():
    named = re.findall(r"`([a-z_]+/[a-z_/]*(?:\w+\.(?:py|tsv))?)`", HOW)
    assert len(named) > 40
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


ROW = r"^\| `([A-Z_]+)` \| (stream|framing) \|.*\| (`[^|]*`) \|$"


def test_the_states_of_a_direction_are_those_of_the_code():
    """Each assignment of a state stands in a method, and in the row of that state."""
    module = ast.parse((ROOT / "decode/connection/stream/direction.py").read_text(encoding="utf-8"))
    entered = defaultdict(set)
    for method in (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(method):
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if isinstance(target, ast.Attribute) and target.attr in {"stream", "mode"}:
                kind = {"stream": "stream", "mode": "framing"}[target.attr]
                entered[ast.unparse(node.value).removeprefix("modes."), kind].add(method.name)
    shown = {
        (state, kind): set(re.findall(r"`(\w+)`", methods))
        for state, kind, methods in re.findall(
            r"^\| `([A-Z_]+)` \| (stream|framing) \|.*\| (`[^|]*`) \|$", HOW, re.MULTILINE
        )
    }
    assert shown == dict(entered)
