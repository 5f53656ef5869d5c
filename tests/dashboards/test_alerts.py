"""Alerts: each is proven to fire and to stay quiet, says how loud it is, and has a page for three in the morning."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from wirecheck import cli

ROOM = Path(__file__).resolve().parents[2] / "dashboards"
GROUPS = yaml.safe_load((ROOM / "prometheus/alerts.yml").read_text())["groups"]
ALERTS = [rule for group in GROUPS for rule in group["rules"]]
TESTS = yaml.safe_load((ROOM / "prometheus/test_rules.yml").read_text())["tests"]
PAGES = sorted((ROOM / "runbooks").glob("*.md"))
HEADINGS = ("What it means", "Look here first", "Commands", "False positives", "What to do")
AT_ONCE = {"WirecheckTopicRecreated", "WirecheckFileSetAside"}
"""Events: they are over when they are seen, and have nothing to wait for."""
OF_SERIES = "{{ $labels.severity }}"
"""As loud as what it is about."""
PROMTOOL = shutil.which("promtool")


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
@pytest.mark.parametrize(
    "command", [("check", "rules", "rules.yml", "alerts.yml"), ("test", "rules", "test_rules.yml")]
)
def test_promtool_agrees(command):
    result = subprocess.run([PROMTOOL, *command], cwd=ROOM / "prometheus", capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_alert_is_proven_to_fire_and_to_stay_quiet():
    checks = [check for test in TESTS for check in test["alert_rule_test"]]
    names = {alert["alert"] for alert in ALERTS}
    assert {check["alertname"] for check in checks if check["exp_alerts"]} == names
    silent = {check["alertname"] for check in checks if not check["exp_alerts"]}
    assert names - silent == {"WirecheckRingNearlyFull"}  # its test holds a second agent that must stay out


def test_every_alert_has_a_page_and_every_page_an_alert():
    assert [page.stem for page in PAGES] == sorted(alert["alert"] for alert in ALERTS)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_says_how_loud_it_is_and_where_to_read_on(alert):
    assert alert["labels"]["severity"] in {"critical", "warning", "info", OF_SERIES}
    url = '{{ with query `last_over_time(wirecheck_build_info{url!=""}[30d])` }}{{ . | first | label `url` }}'
    folder = f"{{{{ with $externalLabels.runbooks }}}}{{{{ . }}}}{{{{ else }}}}{url}{{{{ else }}}}http://127.0.0.1:9108"
    folder += "{{ end }}/runbooks{{ end }}"
    assert alert["annotations"]["runbook_url"] == f"{folder}/{alert['alert']}.md"
    named = ("sum by (cluster, code) (wirecheck_findings", "wirecheck_clients_affected")
    of_findings = {"findings"} if any(word in alert["expr"] for word in named) else set()
    assert alert["annotations"].keys() == {"summary", "description", "runbook_url"} | of_findings
    assert ("for" in alert) != (alert["alert"] in AT_ONCE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_runbook_has_its_five_parts_in_order(page):
    lines = page.read_text().splitlines()
    assert lines[0] == f"# {page.stem}"
    assert [line[3:] for line in lines if line.startswith("## ")] == list(HEADINGS)
    severity = next(alert["labels"]["severity"] for alert in ALERTS if alert["alert"] == page.stem)
    severity = "critical or warning" if severity == OF_SERIES else severity
    assert lines[2].endswith(f"Severity: {severity}.")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_runbook_begins_with_a_command_and_defines_its_placeholders(page):
    text = page.read_text()
    before, *commands = re.findall(r"```\n(.*?)```", text, re.DOTALL)
    assert before.startswith("wirecheck findings OUT")
    assert text.index(before) < text.index("\n## ")
    assert CliRunner().invoke(cli.main, [*before.split()[1:2], "--help", *before.split()[3:]]).exit_code == 0
    used = {name.rstrip("-") for block in (before, *commands) for name in re.findall(r"\b[A-Z][A-Z_-]+\b", block)}
    assert used == set(re.findall(r"^\* `([A-Z]+)`: .*\.$", text, re.MULTILINE))
