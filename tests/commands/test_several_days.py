"""What spans days has dates, and what is of several clusters names them, on every screen that people read."""

import gzip
import json

import pytest

import wirecheck
from tests.commands.conftest import ROOT
from tools.board_picture import ending_at

EXAMPLES = ("zk39-inconsistent-id", "kraft4-stale-broker")
NOON = 1_795_435_200
"""2026-11-23 12:00:00 UTC: a packet of the last second is the last one of a capture."""
DAYS = ("2026-11-23", "2026-11-25")


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    """Of two clusters, two days apart."""
    folder, found = tmp_path_factory.mktemp("days"), []
    for number, name in enumerate(EXAMPLES):
        pcap = gzip.decompress((ROOT / "examples" / name / "capture.pcap.gz").read_bytes())
        found.append(folder / f"{name}.pcap")
        found[-1].write_bytes(ending_at(pcap, NOON + number * 2 * 86_400))
    return found


@pytest.fixture(scope="module")
def folders(run, captures, tmp_path_factory):
    """Results of each, and of both."""
    out = tmp_path_factory.mktemp("results")
    for number, some in enumerate(([captures[0]], [captures[1]], captures)):
        run("replay", *some, "--out", out / str(number), "--fail-on", "never")
    return [out / str(number) for number in range(3)]


@pytest.fixture(scope="module")
def verdicts(run, captures):
    """The screens of both, and of the second alone; and their cards."""
    found = [run("replay", *some, "--fail-on", "never").stdout.splitlines() for some in (captures, captures[1:])]
    return [*found, *(wirecheck.replay(*some).json["cards"] for some in (captures, captures[1:]))]


def test_cards_and_the_last_line_have_dates_and_clusters(verdicts):
    both, _, cards, _ = verdicts
    heads = [line for line in both if line.startswith((" ✗", " !"))]
    assert heads
    assert all(any(f"since {day} " in head for day in DAYS) for head in heads if "since" in head)
    clusters = {line.split()[1] for line in both if line.startswith("   cluster ")}
    assert clusters == {card["cluster"] for card in cards}
    assert len(clusters) == 2
    assert "2 clusters" in both[-1]
    assert f"{DAYS[0]} " in both[-1]
    assert f" to {DAYS[1]} 12:00:0" in both[-1]


def test_a_card_counts_the_clients_of_its_cluster(verdicts):
    *_, both, alone = verdicts
    of_it = {card["cluster"] for card in alone}
    assert [card["impact"] for card in both if card["cluster"] in of_it] == [card["impact"] for card in alone]


def test_of_one_day_and_cluster_neither_is_named(verdicts):
    alone = verdicts[1]
    assert not [line for line in alone if line.startswith("   cluster ")]
    assert not [line for line in alone if DAYS[1] in line]


def test_a_list_ends_with_the_days(run, captures):
    ended = run("errors", *captures)
    last = (ended.stdout + ended.stderr).splitlines()[-1]
    assert f"{DAYS[0]} " in last
    assert DAYS[1] in last


@pytest.mark.parametrize("command", ["errors", "timeline", "groups", "topics"])
def test_each_row_of_a_list_has_the_cluster_that_its_capture_has(run, folders, command):
    def clusters(folder):
        found = run(command, folder, "--format", "json").stdout
        rows = json.loads(found)[command] if command in {"topics", "clients"} else map(json.loads, found.splitlines())
        return {row["cluster"] for row in rows} - {None}

    *each, both = map(clusters, folders)
    assert [len(one) for one in (*each, both)] == ([0, 0, 2] if command == "groups" else [1, 1, 2])
    assert both >= each[0] | each[1]


@pytest.mark.parametrize("command", ["errors", "latency", "timeline"])
def test_results_name_the_clusters_that_their_captures_do(run, captures, folders, command):
    seen, kept = (
        {(row.get("client_id"), row["cluster"]) for row in map(json.loads, ended.stdout.splitlines())}
        for ended in (run(command, *some, "--format", "json") for some in (captures, folders[2:]))
    )
    assert {cluster for _, cluster in seen} - {None} == {cluster for _, cluster in kept} - {None}
    assert {name for name, cluster in kept if not {(name, cluster), (name, None)} & seen} <= {None}


@pytest.mark.parametrize(("command", "rows"), [("errors", 1), ("latency", 1), ("timeline", 1), ("agreement", 3)])
def test_a_list_has_a_column_of_clusters_where_there_are_several(run, captures, folders, command, rows):
    many, one = (run(command, *some).stdout.splitlines() for some in (captures, folders[1:2]))
    assert sum("CLUSTER" in line.split() for line in many) == rows
    assert not any("CLUSTER" in line.split() for line in one)


def test_a_list_of_cards_names_clusters_where_there_are_several(run, folders):
    one, many = (run("findings", folder).stdout.splitlines()[0].split() for folder in folders[1:])
    assert many[:2] == ["age", "cluster"]
    assert "cluster" not in one


@pytest.mark.parametrize("wide", [80, 110, 120, 140, 160])
def test_a_list_of_clients_has_client_ids_and_clusters_at_each_width(run, folders, monkeypatch, wide):
    monkeypatch.setenv("COLUMNS", str(wide))
    head, *rows = run("clients", folders[2]).stdout.splitlines()
    assert head.split()[:3] == ["cluster", "client", "ID"]
    assert any("p-lost" in row for row in rows)


def test_a_difference_of_two_clusters_says_so(run, captures, folders):
    for some in (captures, folders[:2]):
        assert "different clusters (" in run("diff", *some).stderr
        assert "different clusters" not in run("diff", some[0], some[0]).stderr
