"""What to do next: every check has its line, and what a line names exists."""

import re

import click
import pytest

from wirecheck import cli
from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.story.remedies import remedies, remedy


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
