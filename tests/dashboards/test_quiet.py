"""A panel that may be empty in a healthy chain speaks when there is something to say: proven by promtool."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.dashboards.expressions import plain
from tests.dashboards.quiet import QUIET
from tools import boards
from tools.boards.grafana import BOARDS
from wirecheck.streaming.run.metric_catalogue import METRICS

SOURCES = "".join(path.read_text() for path in Path(boards.__file__).parent.glob("*.py"))
LABELS = {metric.name: set(metric.labels) for metric in METRICS}
PROMTOOL = shutil.which("promtool")
PANELS = {panel.title: panel for board in BOARDS for row in board.rows for panel in row.panels}


def asked(queries, series, expected):
    checks = [
        {
            "expr": plain(query.expr),
            "eval_time": "2h",
            "exp_samples": [{"labels": labels, "value": value} for labels, value in samples.items()],
        }
        for query, samples in zip(queries, expected, strict=True)
    ]
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "1m", "input_series": inputs, "promql_expr_test": checks}


TOLD = 'wirecheck_finding_revisions_total{cluster="prod",code="TID002",kind="violation",instance="%s"}'
MONITOR = 'wirecheck_build_info{version="1",instance="%s"}'
GAINED = {
    "born with its first finding": ({MONITOR % "a": "1x180", TOLD % "a": "_x100 3x80"}, 3),
    "born with its first finding and growing": ({MONITOR % "a": "1x180", TOLD % "a": "_x100 3+1x80"}, 23),
    "of a monitor that is younger than the hour": ({MONITOR % "a": "_x90 1x90", TOLD % "a": "_x100 2x80"}, 2),
    "older than Prometheus' first look": ({MONITOR % "a": "_x100 1x80", TOLD % "a": "_x100 50x80"}, None),
    "old, of a monitor that was started anew": ({MONITOR % "a": "1x180", TOLD % "a": "50x100 _x3 50x80"}, None),
    "old, of a monitor that moved": (
        {MONITOR % "a": "1x100", TOLD % "a": "50x100", MONITOR % "b": "_x101 1x80", TOLD % "b": "_x104 50x80"},
        None,
    ),
    "long there and still": ({MONITOR % "a": "1x180", TOLD % "a": "3x180"}, None),
    "growing": ({MONITOR % "a": "1x180", TOLD % "a": "0+1x180"}, 60),
}
"""A counter's series and its monitor's, and what it gained in the hour before the end of the second."""


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
@pytest.mark.parametrize("what", GAINED)
def test_what_a_counter_is_born_with_is_gained_once(tmp_path, what):
    series, gain = GAINED[what]
    said = {} if gain is None else {'{code="TID002"}': gain}
    promtool(tmp_path, [asked(PANELS["New and changed findings per hour"].queries, series, [said])])


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
def test_each_speaks_of_what_it_is_for_and_of_nothing_else(tmp_path):
    tests = []
    for title, quiet in QUIET.items():
        queries = PANELS[title].queries
        tests.append(asked(queries, quiet.speaks | quiet.silent, quiet.says))
        tests.append(asked(queries, quiet.silent, [{}] * len(queries)))
    promtool(tmp_path, tests)


def promtool(folder, tests):
    (folder / "quiet.yml").write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": tests}))
    command = [PROMTOOL, "test", "rules", str(folder / "quiet.yml")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_labels_that_are_named_are_all_of_a_counter():
    """`gained` looks a counter up by them: of two series with the same it would be one."""
    for panel, metric, by in re.findall(r'(?s)Panel\(\s*"([^"]+)|gained\("(\w+)", "([^"]+)"', SOURCES):
        if metric:
            labels = LABELS[metric.removeprefix("wirecheck_")] - {"cluster", "kind"}
            assert labels <= set(by.split(", ")), (panel, metric)


def test_a_title_names_one_panel():
    titles = [panel.title for board in BOARDS for row in board.rows for panel in row.panels]
    assert [title for title in QUIET if titles.count(title) != 1] == []
