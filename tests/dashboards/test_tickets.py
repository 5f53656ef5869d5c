"""Verdicts for tickets and CI: each form holds what the verdict says, and nothing from the wire breaks out of it."""

import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from tests.commands.conftest import EXAMPLE
from tests.dashboards.results import FINDING, RESULT, changed, replayed
from tests.story.values import card, card_entry, hurt
from wirecheck import cli
from wirecheck.commands.screen import legible
from wirecheck.dashboards.tickets import FORMS, junit, markdown, plain, sarif

EVIL = 'a"><b>|`*x*`\n# heading\n\x1b[2J]]>&'


@pytest.fixture(scope="module")
def verdict():
    return replayed(EXAMPLE)


def spoilt(verdict):
    """As the commands hand it over: what a terminal would obey is written out."""
    (finding,) = verdict.findings
    findings = (changed(finding, {"summary": EVIL, "name": EVIL}),)
    cards = tuple(replace(one, headline=EVIL, cause=EVIL) for one in verdict.cards)
    return legible(replace(verdict, about=replace(verdict.about, verdict=EVIL), findings=findings, cards=cards))


def test_markdown_says_what_who_next_and_how_to_see_it(verdict):
    text = markdown(verdict)
    assert text.startswith("**Broker 3 did not replicate shipments partition 1")
    assert "### TID002 leader-and-isr-inconsistent-topic-id (violation, x2, `yuqnnqvukzik2vec`)" in text
    assert text.count("\n* 2026-11-21T00:20:") == 4
    assert "\n**Next** On that broker, compare topic\\_id" in text
    assert "\n    wirecheck explain TID002" in text


def test_a_failure_of_junit_is_what_somebody_has_to_look_into(verdict):
    suite = ET.fromstring(junit(verdict))
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    failure = suite.find("testcase/failure")
    assert failure.get("message") == verdict.cards[0].headline
    assert failure.text.startswith(f"cause: {verdict.cards[0].cause}\nimpact: ")
    note = changed(verdict.findings[0], {"kind": "information"})
    assert ET.fromstring(junit(replace(verdict, findings=(note,), entries=()))).get("failures") == "0"
    assert ET.fromstring(junit(replace(verdict, findings=()))).find("testcase").get("name") == verdict.about.verdict


def test_sarif_has_a_rule_a_level_and_a_place(verdict):
    (run,) = json.loads(sarif(verdict))["runs"]
    (found,) = run["results"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [found["ruleId"]] == ["TID002"]
    assert found["level"] == "error"
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("capture.pcap.gz")


def test_nothing_breaks_out(verdict):
    hostile = spoilt(verdict)
    lines = markdown(hostile).splitlines()
    assert not any(line.startswith("# ") for line in lines)
    assert not any("<b>" in line for line in lines)
    assert ET.fromstring(junit(hostile)).find("testcase/failure").get("message") == hostile.cards[0].headline
    text = json.loads(sarif(hostile))["runs"][0]["results"][0]["message"]["text"]
    assert text.startswith(f"{hostile.cards[0].headline}\nimpact: ")
    assert all("\x1b" not in FORMS[form](hostile) for form in FORMS)


@pytest.mark.parametrize("form", FORMS)
def test_a_replay_prints_it(form):
    result = CliRunner().invoke(cli.main, ["replay", str(EXAMPLE), "--engine", "local", "--format", form])
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout == FORMS[form](legible(replayed(EXAMPLE))) + "\n"


def test_markdown_has_no_mention_and_no_bare_link():
    ticket = plain("@everyone see https://evil.example/x or WWW.evil.example, a@b.example")
    assert ticket == (
        "@<!-- -->everyone see https:<!-- -->//evil.example/x or WWW<!-- -->.evil.example, a@<!-- -->b.example"
    )


def test_junit_is_xml_whatever_a_client_is_called():
    finding = changed(FINDING, {"id": "i", "summary": "a\ufffe\uffffb"})
    entry = card_entry(card(), findings=["i"], kind="violation")
    ticket = junit(legible(changed(RESULT, {"findings": [finding], "entries": [entry]})))
    assert ET.fromstring(ticket).find("testcase/failure").get("message") == r"a\ufffe\uffffb"


@pytest.mark.parametrize(
    ("kind", "clients", "failures"),
    [("violation", [], 1), ("anomaly", [], 0), ("anomaly", ["a"], 1), ("information", ["a"], 1)],
)
def test_what_fails_is_a_violation_or_hurts_a_client(kind, clients, failures):
    finding = changed(FINDING, {"id": "i", "kind": kind})
    entry = card_entry(card(*map(hurt, clients)), findings=["i"], kind=kind)
    suite = ET.fromstring(junit(changed(RESULT, {"findings": [finding], "entries": [entry]})))
    assert suite.get("failures") == str(failures)
