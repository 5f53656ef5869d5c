"""The catalogue is complete, final, and every page says what it must."""

import re
from pathlib import Path

import click
import pytest

from wirecheck import cli
from wirecheck.judge.checks import catalogue, listed_checks, page
from wirecheck.judge.claims.kinds import SPACES

BUILT = [*catalogue.CHECKS]


def test_all_codes_of_the_catalogue_are_there_and_in_a_family():
    codes = {family: [code for code in catalogue.CHECKS if code.startswith(family)] for family in page.FAMILIES}
    assert {code for found in codes.values() for code in found} == set(catalogue.CHECKS)
    assert all(found == sorted({*found}) for found in codes.values())  # a code that is given and not built leaves a gap
    assert all(re.fullmatch(rf"{family}\d{{3}}", code) for family, found in codes.items() for code in found)
    assert {check.kind for check in catalogue.CHECKS.values()} == set(listed_checks.KINDS)


@pytest.mark.parametrize("code", BUILT)
def test_a_page_has_its_headings_in_order_and_words_under_each(code):
    written = page.pages()[code]
    assert tuple(written) == page.HEADINGS
    assert all(len(words) > 4 for words in written.values())
    shown = re.findall(r"^\*\*(.+?)\.\*\*", listed_checks.page(code), re.MULTILINE)
    assert [heading for heading in shown if heading in page.HEADINGS] == list(page.HEADINGS)
    assert catalogue.CHECKS[code].summary
    assert set(catalogue.CHECKS[code].spaces) <= set(SPACES)


def test_the_files_of_pages_have_every_check_under_its_family_and_nothing_else():
    """Every line of a file is a heading or of a paragraph that a page shows."""
    files = {path.stem: path.read_text() for path in sorted(Path(page.__file__).with_name("pages").iterdir())}
    assert list(files) == sorted(page.FAMILIES)
    for family, title in page.FAMILIES.items():
        head, *sections = files[family].split("\n\n## ")
        assert head == f"# {title}"
        codes = [code for code in catalogue.CHECKS if code.startswith(family)]
        assert [section.splitlines()[0] for section in sections] == [
            f"{code} {catalogue.CHECKS[code].name}" for code in codes
        ]
        for code, section in zip(codes, sections, strict=True):
            shown = [f"**{heading}.** {words}" for heading, words in page.pages()[code].items()]
            _, block, *paragraphs = section.split("\n\n")
            assert re.fullmatch(r"```check\n.*\n```", block, re.DOTALL)
            assert [" ".join(part.split()) for part in paragraphs] == shown


@pytest.mark.parametrize("code", BUILT)
def test_what_to_do_is_whole_sentences(code):
    assert re.fullmatch(r"[A-Z].{5,240}\.", page.remedy(code))


@pytest.mark.parametrize("code", BUILT)
def test_what_to_do_names_only_checks_and_options_that_exist(code):
    named = set(re.findall(r"\b[A-Z]{3}\d{3}\b", page.remedy(code)))
    assert named <= catalogue.CHECKS.keys() - {code}
    commands = r"wirecheck (replay|topics|clients|evidence|capture)\b([^.;:]*)"
    for command, rest in re.findall(commands, page.remedy(code)):
        found = cli.main.get_command(click.Context(cli.main), command)
        known = {name for parameter in found.params for name in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known


def test_a_code_that_is_none_has_nothing_to_do():
    assert page.remedy("XYZ001") == ""


def test_every_status_is_explained():
    assert {catalogue.CHECKS[code].status for code in BUILT} == set(listed_checks.STATUSES)


def test_an_unknown_code_is_a_key_error():
    with pytest.raises(KeyError):
        listed_checks.page("XXX999")


def test_the_document_counts_what_is_built():
    text = listed_checks.document()
    assert f"wirecheck has {len(BUILT)} checks." in text
    assert all(text.count(f"| [{code}](") == 1 for code in BUILT)
