"""`wirecheck topics`: the same description from tables, frames and pcaps; clear words where there is none."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.commands.conftest import EXAMPLE, ROOT
from tests.depth import some
from tests.story.values import NOON_NS, client
from wirecheck.story.seen import TopicDescription

SHIPMENTS = "da2uCyqPT-6vP4yDIMcDSw"
WITHOUT_SPARK = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("pandas", "py4j", "pyspark"):
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, Missing())
from wirecheck import cli
cli.main(sys.argv[1:])
"""


def topics(listing):
    assert listing.exit_code == 0, listing.stderr
    return json.loads(listing.stdout)["topics"]


def test_tables_frames_and_pcaps_give_one_description(run, verdict, frames_folder):
    found = [
        topics(run("topics", *named, "--format", "json"))
        for named in ([verdict], ["--from", verdict], [frames_folder], [EXAMPLE])
    ]
    assert found[0] == found[1] == found[2] == found[3]
    assert [topic["name"] for topic in found[0]] == ["__consumer_offsets", "pallets", "parcels", "shipments"]


@pytest.mark.parametrize("named", [SHIPMENTS, f"{SHIPMENTS}==", "75adae0b-2a8f-4fee-af3f-8c8320c7034b"])
def test_a_topic_by_its_id(run, verdict, named):
    (topic,) = topics(run("topics", verdict, "--topic-id", named, "--format", "json"))
    assert (topic["name"], topic["internal"], topic["authorized_operations"]) == ("shipments", False, None)
    assert topic["internal_claim"]["source"] == "metadata"
    assert [(p["partition"], p["leader"], p["leader_epoch"], p["replicas"], p["isr"]) for p in topic["partitions"]] == [
        (0, 3, 4, [3, 1, 2], [1, 2, 3]),
        (1, 1, 1, [1, 2, 3], [1, 2, 3]),
        (2, 2, 2, [2, 3, 1], [2, 1, 3]),
    ]


def test_as_it_was_while_a_broker_was_down(run, verdict):
    result = run("topics", verdict, "--topic", "shipments", "--at", "2026-11-21T00:20:00Z", "--format", "json")
    (topic,) = topics(result)
    assert [(p["isr"], p["offline_replicas"]) for p in topic["partitions"]] == [
        ([1, 2], [3]),
        ([1, 2], [3]),
        ([2, 1], [3]),
    ]
    assert topics(run("topics", verdict, "--at", "2026-11-21T00:00", "--format", "json")) == []


def test_text_shows_both_forms_of_the_id_and_fits(run, verdict, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = run("topics", verdict, "--topic", "shipments")
    assert SHIPMENTS in result.stdout
    assert "75adae0b-2a8f-4fee-af3f-8c8320c7034b" in result.stdout
    assert max(map(len, run("topics", verdict).stdout.splitlines())) <= 80


def test_a_long_name_is_whole_where_nobody_says_how_wide_a_line_is(run, verdict, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert "__consumer_offsets" in run("topics", verdict).stdout


def test_csv_has_one_row_per_partition(run, verdict):
    rows = list(csv.DictReader(io.StringIO(run("topics", verdict, "--topic", "shipments", "--format", "csv").stdout)))
    assert [(row["partition"], row["isr"]) for row in rows] == [("0", "1 2 3"), ("1", "1 2 3"), ("2", "2 1 3")]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (["--topic", "shipmant"], "no topic shipmant was seen; close to it: shipments"),
        (["--topic", "zzz"], "no topic zzz was seen; 4 topics were seen"),
        (
            ["--topic-id", "-a2uCyqPT-6vP4yDIMcDSw"],
            f"no topic -a2uCyqPT-6vP4yDIMcDSw was seen; close to it: {SHIPMENTS}",
        ),
    ],
)
def test_an_unknown_topic_is_one_line_with_what_comes_close(run, verdict, wanted, said):
    result = run("topics", verdict, *wanted)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"wirecheck: {said}\n")


def test_a_time_that_is_none_is_a_usage_error(run, verdict):
    result = run("topics", verdict, "--at", "yesterday")
    assert (result.exit_code, "2026-11-21T00:20:03Z" in result.stderr) == (2, True)


def test_a_time_of_day_is_of_the_day_of_the_capture(run, verdict):
    texts = ("2026-11-21T00:20:03Z", "00:20:03", "00:20:30")
    whole, of_day, later = (run("topics", verdict, "--at", text, "--format", "json").stdout for text in texts)
    assert whole == of_day != later


@pytest.mark.parametrize("named", [[], ["{verdict}", "{verdict}"], ["{verdict}", "--from", "{verdict}"]])
def test_inputs_that_do_not_go_together_are_a_usage_error(run, verdict, named):
    result = run("topics", *(part.format(verdict=verdict) for part in named))
    assert (result.exit_code, "--out folder of a replay" in result.stderr or "not both" in result.stderr) == (2, True)


def test_a_folder_without_tables_or_frames_is_one_line(run, tmp_path):
    result = run("topics", tmp_path)
    line = f"wirecheck: {tmp_path}: holds no capture and no frames (AGENT-NNNNNNNNNN.parquet)\n"
    assert (result.exit_code, result.stderr) == (2, line)
    result = run("topics", "--from", tmp_path)
    assert (result.exit_code, "holds no tables of a replay or a monitor" in result.stderr) == (2, True)


@pytest.mark.parametrize("command", some(["topics", "clients"]))
def test_a_file_that_lies_is_named_and_the_rest_is_read(run, frames_folder, lying_folder, command):
    lying, honest = run(command, lying_folder), run(command, frames_folder)
    assert (lying.exit_code, lying.stdout) == (0, honest.stdout)
    assert "wirecheck: liar-0000000001.parquet: payload of row 1: 0 bytes kept" in lying.stderr


@pytest.mark.parametrize(
    ("columns", "of_topics", "of_clients"),
    [
        ("20", "last seen remarks", "state how"),
        ("60", "last seen remarks", "last seen state since how"),
        ("80", "leaders least ISR", "software requests last seen state since how"),
        ("200", "leaders least ISR written read last seen remarks",
         "software requests bytes security last seen state since how"),
    ],
)  # fmt: skip
def test_a_narrow_terminal_keeps_what_is_wrong_and_since_when(
    run, verdict, monkeypatch, columns, of_topics, of_clients
):
    """Leaders and ISR go after bytes and when a topic was last seen; since when a client does not work goes last."""
    monkeypatch.setenv("COLUMNS", columns)
    listing = run("topics", verdict).stdout
    assert listing.splitlines()[0].split() == f"topic topic ID state parts {of_topics}".split()
    assert listing.count("internal") == int("remarks" in of_topics)
    heads = run("clients", "--from", verdict).stdout.splitlines()[0]
    assert heads.split() == f"client ID address {of_clients}".split()


def test_at_80_columns_no_name_is_broken_and_nothing_runs_over(run, verdict, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for words in (["topics", verdict], ["clients", verdict, "--brokers"]):
        listing = run(*words).stdout
        assert max(map(len, listing.splitlines())) <= 80
        assert "__consumer_offsets  " in listing or "broker-1-fetcher-0  " in listing
    assert "11-21 00:20:25Z" not in run("topics", verdict).stdout  # the day is in the heading


def test_at_80_columns_topics_without_remarks_have_leaders_and_isr(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    listing = run("topics", ROOT / "examples/kraft4-stale-broker/capture.pcap.gz").stdout.splitlines()
    assert listing[0].split() == ["topic", "topic", "ID", "state", "parts", "leaders", "least", "ISR"]
    assert "too narrow for: written, read, last seen; --format json has them" in listing


def test_what_is_said_of_one_topic_goes_on_below_itself_on_a_terminal(capsys):
    from rich.console import Console
    from rich.text import Text

    from wirecheck.dashboards.terminal_tables import show_line

    said = "no  (metadata, 11-21 00:36:17Z, 127.0.0.1:50286>127.0.2.2:20602)"
    show_line("internal", Text(said), Console(width=60, force_terminal=True, color_system=None))
    shown = capsys.readouterr().out.splitlines()
    assert [line.rstrip() for line in shown] == [
        "  internal       no  (metadata, 11-21 00:36:17Z,",
        "                 127.0.0.1:50286>127.0.2.2:20602)",
    ]
    show_line("internal", Text(said), Console(width=60))
    assert capsys.readouterr().out == f"  internal       {said}\n"


@pytest.mark.parametrize("command", [["topics"], ["decode", "--limit", "9"]], ids=lambda words: words[0])
def test_where_an_agent_runs_neither_spark_nor_pandas_is_needed(command, frames_folder):
    words = [sys.executable, "-c", WITHOUT_SPARK, *command, str(frames_folder)]
    result = subprocess.run(words, cwd=EXAMPLE.parents[2], capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_two_clusters_are_told_apart(capsys):
    from rich.console import Console

    from wirecheck.dashboards import terminal_tables

    topic = TopicDescription(
        cluster="east", name="orders", topic_id=SHIPMENTS, topic_id_hex="", state="current", earlier_ids=(),
        first_ns=NOON_NS, last_ns=NOON_NS, internal=None, internal_claim=None, authorized_operations=None,
        authorized_operations_claim=None, partitions=(),
    )  # fmt: skip
    for one, show in (
        (topic, terminal_tables.list_topics),
        (client(cluster="east", between_brokers=False), terminal_tables.list_clients),
    ):
        show([one, replace(one, cluster="west")], Console(width=160))
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines if line.startswith(("cluster", "east", "west"))] == [
            "cluster", "east", "west",
        ]  # fmt: skip
        show([one, one], Console(width=160))
        assert "cluster" not in capsys.readouterr().out
        show([one, replace(one, cluster=None)], Console(width=160))  # of none that is known
        assert "unknown cluster" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("columns", "missing"),
    [("75", "leaders, least ISR, written, read"), ("80", "written, read, last seen"), ("200", None)],
)
def test_what_a_narrow_terminal_has_no_room_for_is_named(run, monkeypatch, columns, missing):
    monkeypatch.setenv("COLUMNS", columns)
    stale = ROOT / "examples/kraft4-stale-broker/capture.pcap.gz"
    said = [line for line in run("topics", stale).stdout.splitlines() if line.startswith("too narrow")]
    assert said == [f"too narrow for: {missing}; --format json has them"][: missing is not None]


def test_a_map_of_ids_for_other_tools(run):
    stale = ROOT / "examples/kraft4-stale-broker/capture.pcap.gz"
    lines = run("topics", stale, "--ids", "--format", "json").stdout.splitlines()
    names = {row["topic_id"]: (row["name"], row["state"]) for row in map(json.loads, lines)}
    assert names["KHrEQJ4WSduMdJpyMZSmXg"] == ("tickets", "current")
    assert names["qC48IeRqScOXv2y8GPXuKw"][0] == "tickets"
    rows = list(csv.DictReader(io.StringIO(run("topics", stale, "--ids", "--format", "csv").stdout)))
    assert {row["topic_id"]: row["name"] for row in rows} == {key: name for key, (name, _) in names.items()}
