"""The views of docs/tables.md, by DuckDB, show what the commands show of the same tables: of the current run alone."""

import json
import re
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from wirecheck.cli import main

ROOT = Path(__file__).parents[3]
SECTION = (ROOT / "tools/reading_tables.md").read_text(encoding="utf-8").partition("### Views without")[2]
VIEWS, ASKED = re.findall(r"```sql\n(.*?)```", SECTION.partition("\n### ")[0], re.DOTALL)
EXAMPLE, OTHER = (ROOT / f"examples/{name}/capture.pcap.gz" for name in ("zk39-inconsistent-id", "kraft4-stale-broker"))


def printed(*words):
    return CliRunner().invoke(main, list(map(str, words))).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of the example, and of an earlier run that read another capture."""
    folder = tmp_path_factory.mktemp("views")
    for out, capture in (("earlier", OTHER), ("verdicts", EXAMPLE)):
        printed("replay", capture, "--out", folder / out)
    for run in (folder / "earlier").glob("*/run=*"):
        run.rename(folder / "verdicts" / run.parent.name / run.name)
    return folder


@pytest.fixture(scope="module")
def made(folder):
    database = duckdb.connect()
    database.execute(f"SET TimeZone = 'UTC'; SET file_search_path = '{folder}'")
    database.execute(VIEWS)
    return database


def rows(made, asked):
    found = made.execute(asked)
    names = [column[0] for column in found.description]
    return [dict(zip(names, cells, strict=True)) for cells in found.fetchall()]


def test_views_hide_runs_and_revisions(made, folder):
    (run,) = rows(made, "FROM current_run")
    assert run["inputs"] == [str(EXAMPLE)]
    views = {row["view_name"] for row in rows(made, "SELECT view_name FROM duckdb_views() WHERE NOT internal")}
    assert len(views - {"current_run"}) == 10
    for name in views:
        assert {"run", "batch_id", "revision"} & {*rows(made, f"DESCRIBE {name}")[0]} == set(), name
    assert len(list((folder / "verdicts/findings").glob("run=*"))) == 2


def test_views_show_what_commands_do(made, folder):
    whole = json.loads(printed("replay", EXAMPLE, "--format", "json"))
    for view, name in (("findings_now", "findings"), ("clients_now", "clients"), ("topics_now", "topics")):
        assert len(rows(made, f"FROM {view}")) == len(whole[name]) > 0, view
    assert [row["headline"] for row in rows(made, "FROM cards_now")] == [card["headline"] for card in whole["cards"]]
    errors = [json.loads(line) for line in printed("errors", EXAMPLE, "--format", "json").splitlines()]
    dock = sum(row["count"] for row in errors if row["client_id"] == "dock")
    assert sum(row["errors"] for row in rows(made, "FROM errors_per_minute WHERE client_id = 'dock'")) == dock > 0
    changes = printed("changes", EXAMPLE, "--format", "json").splitlines()
    assert len(rows(made, "FROM changes_now")) == len(changes) > 0


def test_latency_and_lag_by_minute(made):
    found = rows(made, "FROM latency_per_minute WHERE client_id = 'gate' AND api = 'Heartbeat'")
    latencies = [json.loads(line) for line in printed("latency", EXAMPLE, "--format", "json").splitlines()]
    (whole,) = [row for row in latencies if (row["client_id"], row["api"]) == ("gate", "Heartbeat")]
    assert sum(row["answers"] for row in found) == whole["count"]
    assert all(0 < row["p50_ms"] <= row["p99_ms"] for row in found)
    lag = rows(made, "FROM lag_per_minute WHERE group_id = 'gate-group'")
    assert {row["topic"] for row in lag} == {"parcels", "shipments"}
    assert all(row["lag"] >= 0 for row in lag)


def test_what_the_page_asks_is_answered(made):
    for asked in filter(str.strip, ASKED.split(";")):
        assert rows(made, asked), asked
