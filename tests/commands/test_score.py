"""`wirecheck score`: truths beside captures, and the figure of this repository's own."""

import json
import shutil
from types import SimpleNamespace

import pytest

from tests.commands.conftest import EXAMPLE, ROOT
from wirecheck.session.score import application, by_kind, score

OWN = (ROOT / "tests/scenarios", ROOT / "examples")
BY_KIND = {
    "hurt clients": (33, 26, 7), "CLU001": (1, 1, 0), "CTL001": (1, 1, 0), "CTL014": (1, 1, 0), "DRF001": (2, 2, 0),
    "FET001": (2, 2, 0), "GRP004": (1, 1, 0), "LOG003": (1, 1, 0), "TID001": (8, 8, 0), "TID002": (2, 2, 0),
    "TID006": (1, 1, 0), "TID007": (1, 1, 0), "TID016": (1, 1, 0), "TID018": (1, 1, 0), "VER001": (1, 1, 0),
    "VER005": (1, 1, 0),
}  # fmt: skip
"""Expected, found, in doubt."""


def test_of_our_captures_nothing_is_missed_and_nothing_false(run):
    ended = run("score", *OWN, "--by", "kind", "--format", "json")
    assert ended.exit_code == 0, ended.stdout
    rows = {row["kind"]: row for row in map(json.loads, ended.stdout.splitlines())}
    assert {kind: (row["expected"], row["found"], row["in_doubt"]) for kind, row in rows.items()} == BY_KIND
    assert [row["missed"] + row["false"] for row in rows.values() if row["missed"] or row["false"]] == []
    figure = "of 40 captures with the truth beside them, 25 of 25 expected findings are there and none is false"
    page = " ".join((ROOT / "README.md").read_text().split())
    assert figure in page
    assert "Of 33 hurt clients, 26 are found and 7 left in doubt; no healthy client is accused" in page


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
        ({"expect": {"must": ["TID002"]}}, 0, ""),
        ({"expect": {"may": ["CTL003"]}}, 1, "TID002"),
        ({"expect": {"must": ["TID002"], "may": []}}, 0, ""),
        ({"expect": {"may": ["*"]}}, 0, ""),
    ],
)
def test_what_is_missed_is_named(run, folder, truth, status, wrong):
    written(folder, **truth)
    ended = run("score", folder, "--format", "json")
    row = json.loads(ended.stdout)
    assert ended.exit_code == status
    assert "".join(row["missed"] + row["codes_missed"] + row["codes_false"]) == wrong
    assert row["false"] == []


def test_a_finding_that_names_a_hurt_client_is_not_false():
    def verdict(*clients):
        finding = SimpleNamespace(code="GRP009", kind="anomaly", client_ids=clients)
        return SimpleNamespace(clients=(), findings=(finding,))

    truth = {"hurt_clients": ["billing"], "expect": {"may": []}}
    named = [score("one", truth, verdict(*clients)) for clients in (("billing",), ("billing-1", "a"), ("a",), ())]
    assert [one.codes_false for one in named] == [(), (), ("GRP009",), ("GRP009",)]
    assert [one.is_right for one in named] == [False] * 4  # billing is missed
    rows = by_kind(named)
    assert [(row.kind, row.expected, len(row.missed), row.false) for row in rows] == [
        ("hurt clients", 4, 4, ()),
        ("GRP009", 0, 0, ("one", "one")),
    ]


def test_without_hurt_clients_no_client_is_compared():
    stalled = SimpleNamespace(client_id="billing", work=SimpleNamespace(state="stalled"))
    verdict = SimpleNamespace(clients=(stalled,), findings=())
    assert score("one", {"expect": {"must": []}}, verdict).is_right
    assert score("one", {"hurt_clients": []}, verdict).false == ("billing",)


def test_kinds_as_text(run, folder):
    written(folder, hurt_clients=["billing"], expect={"must": ["TID002", "TID003"], "may": ["CTL003"]})
    ended = run("score", folder, "--by", "kind")
    assert ended.exit_code == 1
    rows = [line.split() for line in ended.stdout.splitlines()]
    assert [row[0] for row in rows] == ["KIND", "hurt", "TID002", "TID003"]
    assert rows[2][1:] == ["1", "1", "0", "0", "0", "0"]
    assert rows[3][1:] == ["1", "0", "0", "1", "0", "0", folder.name]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "Expecting property name"),
        ("[]", "hurt_clients is no list of client IDs"),
        ('{"hurt_clients": [1]}', "no list of client"),
        ('{"expect": []}', "expect is no object"),
        ('{"expect": {"must": [1]}}', "expect.must is no list of codes"),
        ('{"expect": {"may": "TID001"}}', "expect.may is no list of codes"),
        ('{"expect": {}, "dialects": "kip516-draft"}', "dialects is no list of drafts"),
    ],
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
