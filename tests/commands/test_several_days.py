"""What spans days has dates, and what is of several clusters names them, on every screen that people read."""

import gzip
import json

import pytest

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


def test_cards_and_the_last_line_have_dates_and_clusters(run, captures):
    screen = run("replay", *captures, "--fail-on", "never").stdout
    heads = [line for line in screen.splitlines() if line.startswith((" ✗", " !"))]
    assert heads
    assert all(any(f"since {day} " in head for day in DAYS) for head in heads if "since" in head)
    clusters = {line.split()[1] for line in screen.splitlines() if line.startswith("   cluster ")}
    rows = json.loads(run("replay", *captures, "--fail-on", "never", "--format", "json").stdout)
    assert clusters == {card["cluster"] for card in rows["cards"]}
    assert len(clusters) == 2
    last = screen.splitlines()[-1]
    assert "2 clusters" in last
    assert f"{DAYS[0]} " in last
    assert f" to {DAYS[1]} 12:00:0" in last


def test_a_card_counts_the_clients_of_its_cluster(run, captures):
    both, alone = (json.loads(run("replay", *some, "--fail-on", "never", "--format", "json").stdout)
                   for some in (captures, captures[1:]))  # fmt: skip
    of_it = {card["cluster"] for card in alone["cards"]}
    impacts = [[card["impact"] for card in one["cards"] if card["cluster"] in of_it] for one in (both, alone)]
    assert impacts[0] == impacts[1]


def test_of_one_day_and_cluster_neither_is_named(run, captures):
    screen = run("replay", captures[1], "--fail-on", "never").stdout
    assert not [line for line in screen.splitlines() if line.startswith("   cluster ")]
    assert DAYS[1] not in screen


@pytest.mark.parametrize("command", ["errors", "groups", "latency", "changes", "timeline"])
def test_lists_end_with_the_days(run, captures, command):
    ended = run(command, *captures)
    assert f"{DAYS[0]} " in (ended.stdout + ended.stderr).splitlines()[-1]
    assert DAYS[1] in (ended.stdout + ended.stderr).splitlines()[-1]


def test_a_timeline_names_clusters_where_there_are_several(run, captures):
    many, one = (run("timeline", *some).stdout.splitlines()[0].split() for some in (captures, captures[1:]))
    assert many == ["TIME", "KIND", "CLUSTER", "ABOUT", "EVENT"]
    assert one == ["TIME", "KIND", "ABOUT", "EVENT"]
