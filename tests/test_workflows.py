"""The workflows of a hosted CI: every action by its hash, nothing published but by a tag, and on what is promised."""

import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

from tools import release
from wirecheck.session.score import folders_in

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".github/workflows"
FILES = sorted(FOLDER.glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PUBLISHES = re.compile(r"docker push|gh release|pypi-publish|imagetools create|attest-build")


def workflow(name):
    return yaml.safe_load((FOLDER / f"{name}.yml").read_text())


def steps(jobs):
    return [(name, step) for name, job in jobs.items() for step in job.get("steps", [])]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_action_is_named_by_its_hash_and_version(file):
    used = [line.split("uses: ")[1] for line in file.read_text().splitlines() if "uses: " in line]
    strange = [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", one)]
    assert strange == (["./.github/workflows/ci.yml"] if file.stem == "release" else [])
    by_action = {}
    for one in used:
        by_action.setdefault(one.split("@")[0], set()).add(one)
    assert [versions for versions in by_action.values() if len(versions) > 1] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_a_step_runs_exists(file):
    text = file.read_text()
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)", text)) <= verbs
    named = [
        name for name in re.findall(r"(?<![\w/])(?:tools|examples|deploy)/[\w./-]+", text) if "capture.pcap" not in name
    ]
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert [
        name for name in re.findall(r"python -m tools\.(\w+)", text) if not (ROOT / f"tools/{name}.py").exists()
    ] == []
    stages = re.findall(r" AS (\w+)$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE)
    assert {target for line in re.findall(r"for target in ([\w ]+);", text) for target in line.split()} <= set(stages)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_a_step_runs_is_a_shells(file):
    jobs = yaml.safe_load(file.read_text())["jobs"]
    for _, step in steps(jobs):
        script = re.sub(r"\$\{\{.*?\}\}", "x", step.get("run", ":"))
        assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0, script


def test_nothing_is_published_but_by_a_tag_and_behind_all_tests():
    found = workflow("release")
    jobs = found["jobs"]
    assert found["permissions"] == {"contents": "read"}
    for name, step in steps(jobs):
        if PUBLISHES.search(step.get("run", "") + step.get("uses", "")):
            conditions = [str(jobs[name].get("if")), str(step.get("if"))]
            assert "github.ref_type == 'tag'" in conditions, step
    assert jobs["publish"]["environment"] == "release"
    assert set(jobs["publish"]["needs"]) >= {"test", "wheels", "rest", "images"}
    assert [name for name, job in jobs.items() if name != "may" and "may" not in job["needs"]] == ["publish"]


def test_wheels_and_tests_are_of_the_versions_that_are_promised():
    built = PROJECT["tool"]["cibuildwheel"]
    pythons = [f"3.{minor}" for minor in re.findall(r"cp3(\d+)-", built["build"])]
    assert f">={pythons[0]}" == PROJECT["project"]["requires-python"]
    tested = workflow("ci")["jobs"]["test"]["strategy"]["matrix"]["include"]
    assert [row["python"] for row in tested if not row["pure"]] == pythons
    for job in ("wheels", "images"):
        matrix = workflow("release")["jobs"][job]["strategy"]["matrix"]["include"]
        assert [row["arch"] for row in matrix] == built["linux"]["archs"]


def test_a_tag_is_published_only_if_it_is_the_version_with_addresses_and_a_date(monkeypatch, tmp_path):
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (2026-12-01)\n\n## 1.2.2 (2026-11-01)\n")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    urls = {"Documentation": "https://example.com", "Source": "https://example.com"}
    monkeypatch.setattr(release, "PROJECT", {"version": "1.2.3", "urls": urls})
    assert release.hindrances("v1.2.3") == []
    assert [line.split(",")[0] for line in release.hindrances("v1.2.4")] == ["tag v1.2.4"]
    monkeypatch.setattr(release, "PROJECT", {"version": "1.2.3"})
    assert release.hindrances("v1.2.3") == ["pyproject.toml: [project.urls] needs Documentation and Source"]
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (unreleased)\n")
    monkeypatch.setattr(release, "PROJECT", {"version": "1.2.3", "urls": urls})
    assert [line.split(" begins")[0] for line in release.hindrances("v1.2.3")] == ["CHANGELOG.md"]
    words = [sys.executable, "-m", "tools.release", "--tag", "v0.0.0"]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "v0.0.0" in ended.stderr


def as_it_is(member, _):
    return member


def test_the_corpus_is_the_same_wherever_it_is_packed_and_is_scored(tmp_path):
    (tmp_path / "other").mkdir()
    one, two = release.corpus(tmp_path, 1), release.corpus(tmp_path / "other", 1)
    assert one.read_bytes() == two.read_bytes()
    with tarfile.open(one) as packed:
        packed.extraction_filter = as_it_is  # as an argument Python 3.11.2 does not know it
        packed.extractall(tmp_path / "unpacked")
    (top,) = (tmp_path / "unpacked").iterdir()
    assert {path.name for path in top.iterdir() if path.is_file()} == {"README.md", "LICENSE"}
    names = [folder.name for folder in folders_in([top])]
    assert names == sorted(folder.name for root in release.TRUTHS for folder in folders_in([root]))
    assert [name for name in names if not list((top / name).glob("capture.*"))] == []
