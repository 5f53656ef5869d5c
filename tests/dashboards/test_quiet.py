"""A panel that may be empty in a healthy chain speaks when there is something to say: proven by promtool."""

import shutil
import subprocess

import pytest
import yaml

from tests.dashboards.expressions import plain
from tests.dashboards.quiet import QUIET
from wirecheck.dashboards.boards.grafana import BOARDS

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


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
def test_each_speaks_of_what_it_is_for_and_of_nothing_else(tmp_path):
    tests = []
    for title, quiet in QUIET.items():
        queries = PANELS[title].queries
        tests.append(asked(queries, quiet.speaks | quiet.silent, quiet.says))
        tests.append(asked(queries, quiet.silent, [{}] * len(queries)))
    (tmp_path / "quiet.yml").write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": tests}))
    command = [PROMTOOL, "test", "rules", str(tmp_path / "quiet.yml")]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr


def test_a_title_names_one_panel():
    titles = [panel.title for board in BOARDS for row in board.rows for panel in row.panels]
    assert [title for title in QUIET if titles.count(title) != 1] == []
