"""What to do next: every check has its line, and what a line names exists."""

import re

import click
import pytest

from wirecheck import cli
from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.story.remedies import remedies, remedies_of, remedy


def test_every_check_has_its_line_in_the_catalogue_s_order():
    assert list(remedies()) == list(CHECKS)


@pytest.mark.parametrize("code", CHECKS)
def test_a_line_is_whole_sentences(code):
    assert re.fullmatch(r"[A-Z].{5,240}\.", remedy(code))


@pytest.mark.parametrize("code", CHECKS)
def test_a_line_names_only_checks_and_options_that_exist(code):
    named = set(re.findall(r"\b[A-Z]{3}\d{3}\b", remedy(code)))
    assert named <= CHECKS.keys() - {code}
    for command, rest in re.findall(r"wirecheck (replay|topics|clients|evidence|capture)\b([^.;:]*)", remedy(code)):
        found = cli.main.get_command(click.Context(cli.main), command)
        known = {name for parameter in found.params for name in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known


def test_a_code_that_is_none_has_none():
    assert remedy("XYZ001") == ""


def test_a_consequence_has_the_remedy_of_the_cause_that_ends_it():
    """While a twin lives, nothing advises to restart the broker."""
    twin, stale = ({"id": code, "code": code, "cause": None} for code in ("CTL012", "CTL004"))
    assert remedies_of([twin, stale | {"cause": "CTL012"}])["CTL004"] == remedy("CTL012")
    assert remedies_of([stale | {"cause": "CTL012"}])["CTL004"] == remedy("CTL004")
    assert remedies_of([stale])["CTL004"] == remedy("CTL004")
    recreated, stuck = {"id": "a", "code": "TID001", "cause": None}, {"id": "b", "code": "FET001", "cause": "a"}
    assert remedies_of([recreated, stuck])["b"] == remedy("FET001")
