"""The scripts of findings/ have the form of findings/README.md, and `make findings` says how each ended."""

import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.awaited import await_that
from tools import findings

SCRIPTS = sorted(findings.FOLDER.glob("*.sh"))
PERSONAL = re.compile(
    r"/(?:home|root|Users|work)/|@[\w-]+\.(?:com|org|net)\b|(?<!127\.)\b(?!127\.)\d+\.\d+\.\d+\.\d+\b"
)
INSTALLED = re.compile(
    r"pip install (?:-\S+ |\"\$T\S*\" |--target )*(.*?)(?: 2>|;|$)|npm install ([^)]*)|go get (\S+)", re.MULTILINE
)
EXACT = re.compile(r"\S+(?:==|@v?)\d+\.\d+\.\d+\S*")


def head(script):
    """The comment that it begins with, without its first line (`#!`)."""
    lines = script.read_text().splitlines()[1:]
    return lines[: next(at for at, line in enumerate(lines) if not line.startswith("#"))]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_has_the_form(script):
    text, comment = script.read_text(), head(script)
    assert re.fullmatch(r"[a-z0-9.-]+", script.stem)
    assert len(comment) <= 20
    assert re.search(r"\d+\.\d+", comment[0]), "the software has a version"
    for part in ("What one would guess:", "What happens:", "Seen: 20", "Source:", "Needs "):
        assert part in "\n".join(comment), part
    assert {"set -euo pipefail", "T=$(mktemp -d)"} <= set(text.splitlines())
    assert re.search(r"^trap .* EXIT$", text, re.MULTILINE)
    assert text.splitlines()[-1].startswith(f'echo "{findings.AS_DESCRIBED}')
    assert f'echo "{findings.CHANGED}' in text.splitlines()[-2]
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_has_exact_versions_and_no_personal_details(script):
    text = script.read_text()
    packages = [word for found in INSTALLED.findall(text) for word in "".join(found).split() if word[0] != "-"]
    assert packages
    assert [word for word in packages if not EXACT.fullmatch(word)] == []
    assert PERSONAL.findall(text) == []
    assert "wirecheck" not in text


ENDS = {
    "still-so": 'echo seen; echo "as described: it is so"',
    "changed": 'echo seen 7; echo "not as described: it is not"; exit 1',
    "broken": "set -e; false; echo as described",
    "silent": "exit 0",
    "wrong-status": 'echo "as described"; exit 1',
}


@pytest.fixture
def folder(tmp_path):
    def made(*names):
        for name in names:
            (tmp_path / f"{name}.sh").write_text(f"#!/usr/bin/env bash\n{ENDS[name]}\n")
        return tmp_path

    return made


@pytest.mark.parametrize(
    ("names", "status", "last"),
    [
        (["still-so"], 0, "1 script: 1 as described, 0 not as described, 0 could not be run"),
        (["still-so", "changed", "broken"], 1, "3 scripts: 1 as described, 1 not as described, 1 could not be run"),
        (["still-so", "broken"], 2, "2 scripts: 1 as described, 0 not as described, 1 could not be run"),
        (["silent", "wrong-status"], 2, "2 scripts: 0 as described, 0 not as described, 2 could not be run"),
    ],
)
def test_what_changed_is_printed_and_the_status_says_so(folder, capsys, names, status, last):
    assert findings.main([], folder(*names)) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == last
    if "changed" in names:
        assert lines[lines.index("changed: not as described, 0 s") + 1] == "    seen 7"
    if "still-so" in names:
        assert "    as described: it is so" in lines


def test_only_scripts_with_the_word_run(folder, capsys):
    assert findings.main(["still"], folder("still-so", "changed")) == 0
    assert "changed:" not in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        findings.main(["else"], folder())
    assert ended.value.code == 2


def test_a_script_without_an_end_is_stopped_and_cleans_up(tmp_path, monkeypatch):
    monkeypatch.setattr(findings, "STOPPING_S", 1)
    script = tmp_path / "endless.sh"
    mark, child = tmp_path / "mark", tmp_path / "child"
    script.write_text(
        f'trap "rm {mark}" EXIT\ntouch {mark}\n(trap "" TERM; echo $BASHPID > {child}; sleep 300) &\nsleep 300\n'
    )
    began = time.monotonic()
    how, output = findings.ended(script, longest_s=1)
    assert how == findings.NOT_RUN
    assert output.endswith("no end after 1 s")
    assert time.monotonic() - began < 20
    assert not mark.exists()
    await_that(lambda: is_over(child.read_text().strip()), None, "its child ends", patience_s=10)


def is_over(process):
    """Of a machine that may have no ps."""
    try:
        return Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
