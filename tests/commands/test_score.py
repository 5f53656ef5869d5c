"""`wirecheck score`: truths beside captures, and the figure of this repository's own."""

import json
import shutil

import pytest

from tests.commands.conftest import EXAMPLE, ROOT
from wirecheck.session.score import application

OWN = (ROOT / "tests/scenarios/work", ROOT / "tests/scenarios/recreations")


def test_no_hurt_client_of_our_captures_is_missed_and_no_healthy_one_accused(run):
    ended = run("score", *OWN)
    assert ended.exit_code == 0, ended.stdout
    assert ended.stderr.endswith(
        "18 captures: 17 of 24 hurt clients found, 7 in doubt, 0 missed; 0 healthy ones accused, 0 in doubt; "
        "1 of 1 expected findings\n"
    )
    figure = "17 of 24 hurt clients are found and 7 left in doubt; no healthy client is accused"
    assert figure in " ".join((ROOT / "README.md").read_text().split())


@pytest.fixture
def folder(tmp_path):
    shutil.copy(EXAMPLE, tmp_path / "capture.pcap.gz")
    return tmp_path


def written(folder, **truth):
    (folder / "truth.json").write_text(json.dumps({"brokers": [{"id": 1}], **truth}))


@pytest.mark.parametrize(
    ("truth", "status", "wrong"),
    [
        ({"hurt_clients": []}, 0, ""),
        ({"hurt_clients": [], "expect": {"must": ["TID002"]}}, 0, ""),
        ({"hurt_clients": [], "expect": {"must": [{"code": "TID003"}, "TID002"]}}, 1, "TID003"),
        ({"hurt_clients": ["billing"]}, 1, "billing"),
    ],
)
def test_what_is_missed_is_named(run, folder, truth, status, wrong):
    written(folder, **truth)
    ended = run("score", folder, "--format", "json")
    row = json.loads(ended.stdout)
    assert ended.exit_code == status
    assert "".join(row["missed"] + row["codes_missed"]) == wrong
    assert row["false"] == []


@pytest.mark.parametrize(
    ("text", "line"),
    [("{", "Expecting property name"), ("[]", "no list of client IDs"), ('{"hurt_clients": [1]}', "no list of client")],
)
def test_a_truth_of_another_form_is_one_line(run, folder, text, line):
    (folder / "truth.json").write_text(text)
    ended = run("score", folder)
    assert ended.exit_code == 2
    assert line in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_folder_without_truths_is_an_error(run, folder, tmp_path):
    ended = run("score", folder)
    assert (ended.exit_code, ended.stderr) == (2, f"wirecheck: {folder}: no folder with a truth.json\n")
    (tmp_path / "other").mkdir()
    written(tmp_path / "other", hurt_clients=[])
    ended = run("score", tmp_path / "other")
    assert ended.stderr == f"wirecheck: {tmp_path / 'other'}: has a truth.json, and no capture\n"


def test_of_names_that_begin_alike_the_longest_is_meant():
    named = {"app", "app-two", "app-two-three"}
    assert [application(one, named) for one in ("app", "app-two", "app-two-4", "app-9", "other")] == [
        "app", "app-two", "app-two", "app", "other",
    ]  # fmt: skip
