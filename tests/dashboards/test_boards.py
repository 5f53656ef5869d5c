"""Boards: Grafana takes them, every panel asks a question, and every metric they use exists."""

import ast
import json
import re
from pathlib import Path

import jsonschema
import promql_parser
import pytest
import yaml

from tests.dashboards.expressions import plain
from tools.boards.grafana import BOARDS, FOLDER, documents, text
from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.streaming.run.metric_catalogue import METRICS, PREFIX

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((Path(__file__).parent / "grafana_schema.json").read_text())
PANELS = [(board, panel) for board in BOARDS for row in board.rows for panel in row.panels]
QUERIES = [(board, panel, query) for board, panel in PANELS for query in panel.queries]
UNITS = {"short", "percentunit", "s", "bytes", "Bps", "pps", "cps", "reqps"}
AGENT_METRICS = {  # made by capture/agent/agent_metrics.py, which a monitor's environment may lack
    "frames_total": ("interface",),
    "bytes_total": ("interface",),
    "kept_frames_total": (),
    "left_out_bytes_total": ("reason",),
    "lost_frames_total": ("interface", "reason"),
    "skipped_frames_total": ("reason",),
    "file_roll_seconds": (),
    "files_total": (),
    "ring_fill_ratio": ("interface",),
    "backlog_oldest_timestamp_seconds": (),
    "connections": (),
    "disk_bytes": (),
    "last_frame_timestamp_seconds": (),
    "build_info": ("version",),
    "compiled": (),
}
OF_THE_SOURCE = ("expr", "step", "titleFormat")
"""What an event says to its data source: read by its plugin in Grafana (annotations.ts), not in the core schema."""
TARGET = {"job", "instance"}
"""Labels that Prometheus puts on every series."""


def known():
    """Every series with its labels."""
    found = {}
    tables = [(PREFIX + m.name, m.labels, m.kind) for m in METRICS]
    tables += [
        ("wirecheck_agent_" + name, labels, "histogram" if name == "file_roll_seconds" else "")
        for name, labels in AGENT_METRICS.items()
    ]
    for name, labels, kind in tables:
        extra = {"version"} if kind == "info" else set()
        found[name] = {*labels, *extra, *TARGET}
        if kind == "histogram":
            found |= {name + end: {*labels, *TARGET, "le"} for end in ("_bucket", "_sum", "_count")}
    return found


KNOWN = known()


def selectors(expr):
    """(metric, labels it is selected by) of every selector, from the parsed expression."""
    parsed = promql_parser.parse(plain(expr)).prettify()
    for name, inside in re.findall(r"(?<![\w:])([a-z_:]*wirecheck_[a-z0-9_:]+)(?:\s*\{([^}]*)\})?", parsed):
        yield name, set(re.findall(r"(\w+)\s*[=!]~?", inside))


def rules(name):
    groups = yaml.safe_load((ROOT / "dashboards/prometheus" / name).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


RECORDED = {rule["record"] for rule in rules("rules.yml")}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_grafanas_own_schema_takes_the_board(board):
    made = json.loads(text(board))
    for event in made["annotations"]["list"]:
        for name in OF_THE_SOURCE:
            assert event.pop(name)
    errors = jsonschema.Draft7Validator(SCHEMA).iter_errors(made)
    assert [(list(error.path), error.message) for error in errors] == []


def test_the_schema_refuses_a_slip():
    board = json.loads(text(BOARDS[0]))
    board["refresh"] = 30
    assert not jsonschema.Draft7Validator(SCHEMA).is_valid(board)


def test_the_committed_boards_are_those_of_the_sources():
    assert {path: path.read_text() for path in sorted(FOLDER.glob("*.json"))} == documents()


def test_a_board_can_be_found_and_linked_for_ever():
    uids = [board.uid for board in BOARDS]
    assert uids == ["wirecheck-overview", "wirecheck-topic-identity", "wirecheck-versions", "wirecheck-health"]
    for board in BOARDS:
        made = json.loads(text(board))
        ids = [panel["id"] for panel in drawn(board)]
        assert len(ids) == len(board.rows) + sum(len(row.panels) for row in board.rows)
        assert len(ids) == len(set(ids))
        assert (made["editable"], made["tags"], made["refresh"]) == (False, ["wirecheck", "kafka"], "30s")
        assert made["templating"]["list"][0]["type"] == "datasource"
        assert board.question in (ROOT / "dashboards/README.md").read_text()


@pytest.mark.parametrize(("board", "panel"), PANELS, ids=lambda it: getattr(it, "title", it))
def test_every_panel_asks_a_question_and_has_a_unit(board, panel):
    assert "?" in panel.question
    assert panel.unit in UNITS
    assert panel.title
    assert panel.title not in {other.title for one, other in PANELS if one is board and other is not panel}
    assert panel.upto == 1 or panel.unit != "percentunit" or panel.title == "Packets lost at capture"


@pytest.mark.parametrize(("board", "panel", "query"), QUERIES, ids=lambda it: getattr(it, "title", ""))
def test_every_query_parses_and_its_metrics_exist(board, panel, query):
    used = list(selectors(query.expr))
    assert used
    for name, labels in used:
        assert name in KNOWN
        assert labels <= KNOWN[name]
        declared = {variable.name for variable in board.variables}
        assert ("$cluster" in query.expr) <= ("cluster" in declared)
        assert "cluster" in labels or "cluster" not in KNOWN[name], "the cluster chosen above is not asked for"


EVENTS = [(board, event) for board in BOARDS for event in board.events]


@pytest.mark.parametrize(("board", "event"), EVENTS, ids=lambda it: getattr(it, "name", ""))
def test_every_event_parses_its_metrics_exist_and_its_title_has_only_their_labels(board, event):
    used = list(selectors(event.expr))
    assert used or event.expr.startswith("ALERTS{")
    for name, labels in used:
        assert labels <= KNOWN[name]
    outermost = re.match(r"sum by \(([^)]+)\)", event.expr)
    by = outermost[1] if outermost else "alertname, cluster, code"
    assert outermost or event.expr.startswith("ALERTS{")
    assert set(re.findall(r"\{\{(\w+)\}\}", event.title)) <= set(by.split(", "))
    (made,) = [one for one in json.loads(text(board))["annotations"]["list"] if one["name"] == event.name]
    assert (made["expr"], made["datasource"]["uid"]) == (event.expr, "${datasource}")


LINKED = [(board, panel) for board, panel in PANELS if panel.links or panel.runbook]


@pytest.mark.parametrize(("board", "panel"), LINKED, ids=lambda it: getattr(it, "title", ""))
def test_every_link_leads_to_a_board_a_runbook_or_the_page_of_a_monitor(board, panel):
    declared = {one["name"] for one in json.loads(text(board))["templating"]["list"]}
    if panel.runbook:
        assert (ROOT / f"dashboards/runbooks/{panel.runbook}.md").is_file()
        assert "runbooks" in declared
    for link in panel.links:
        fields = set(re.findall(r"__data\.fields\.(\w+)", link.url))
        assert fields <= {*panel.columns}
        assert fields <= KNOWN["wirecheck_finding_info"]
        assert fields or re.match(r"/d/(.+?)\?", link.url)[1] in {one.uid for one in BOARDS}


def test_counters_are_drawn_by_what_they_gain():
    """`or_zero` multiplies one by nothing, to be silent with the monitor. A number may say all there were."""
    for _, panel, query in QUERIES:
        if panel.shape == "number":
            continue
        asked = query.expr.partition(" or sum(")[0]
        if re.search(r"_(total|bucket)\{|_(total|bucket)\[", asked):
            assert re.search(r"(rate|increase)\(", asked), panel.title


def series(panel):
    """Names of series that a panel of findings can show: legends over every check that its selectors take."""
    for query in panel.queries:
        wanted = {name: re.findall(rf'\b{name}=~?"([^"]+)"', query.expr) or [".*"] for name in ("code", "kind")}
        for check in CHECKS.values():
            labels = {"code": check.code, "kind": check.kind}
            if all(re.fullmatch(wanted[name][0], labels[name]) for name in wanted):
                yield re.sub(r"\{\{(\w+)\}\}", lambda found: labels[found[1]], query.legend)  # noqa: B023 - at once


def drawn(board):
    """All of its panels; those of a folded row stand in it."""
    for panel in json.loads(text(board))["panels"]:
        yield panel
        yield from panel.get("panels", [])


def overrides(board, panel):
    made = next(one for one in drawn(board) if one["title"] == panel.title)
    for override in made["fieldConfig"].get("overrides", []):
        matcher = override["matcher"]
        assert matcher["id"] in {"byName", "byRegexp"}
        yield matcher["options"].strip("/") if matcher["id"] == "byRegexp" else re.escape(matcher["options"]) + "$"


@pytest.mark.parametrize(("board", "panel"), PANELS, ids=lambda it: getattr(it, "title", it))
def test_every_override_matches_a_series_and_every_kind_in_a_legend_has_its_colour(board, panel):
    patterns = list(overrides(board, panel))
    if panel.columns:
        assert all(any(re.match(pattern, name) for name in panel.columns) for pattern in patterns)
    elif patterns or (any("{{kind}}" in query.legend for query in panel.queries) and panel.shape != "bars"):
        names = set(series(panel))
        assert [pattern for pattern in patterns if not any(re.search(pattern, name) for name in names)] == []
        assert [name for name in names if not any(re.search(pattern, name) for pattern in patterns)] == []


@pytest.mark.parametrize(
    "rule", [*rules("rules.yml"), *rules("alerts.yml")], ids=lambda r: r.get("alert", r.get("record"))
)
def test_every_rule_parses_and_its_metrics_exist(rule):
    used = [(name, labels) for name, labels in selectors(rule["expr"]) if name not in RECORDED]
    assert all(labels <= KNOWN[name] for name, labels in used)
    assert used or rule.get("alert")


def test_rates_are_asked_over_the_interval_that_fits_the_screen():
    fixed = [panel.title for _, panel, q in QUERIES if "rate(" in q.expr and "[$__rate_interval]" not in q.expr]
    assert fixed == ["Packets lost at capture"]  # a share over five minutes, as its alert asks


def test_the_agents_table_is_that_of_its_source():
    source = ROOT / "capture/agent/agent_metrics.py"
    if not source.exists():
        pytest.skip("the agent has no metrics yet")
    names = {node.value for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Constant)}
    bases = {name.removesuffix("_total") for name in AGENT_METRICS}
    assert bases - {str(name).removeprefix("{PREFIX}") for name in names} == set()


def test_a_verdict_is_behind_by_what_the_worst_cluster_is():
    lags = [query.expr for _, _, query in QUERIES if "judged_lag" in query.expr]
    assert len(lags) == 3
    assert all(expr.startswith("max") for expr in lags)
