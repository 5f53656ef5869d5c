"""The catalogue is complete, final, and every page says what it must."""

import re

import pytest

from wirecheck.judge.checks import catalogue
from wirecheck.judge.claims.kinds import SPACES

BUILT = [*catalogue.CHECKS]


def test_all_codes_of_the_catalogue_are_there_and_in_a_family():
    codes = {family: [code for code in catalogue.CHECKS if code.startswith(family)] for family in catalogue.FAMILIES}
    assert {code for found in codes.values() for code in found} == set(catalogue.CHECKS)
    assert all(found == [f"{family}{n:03d}" for n in range(1, len(found) + 1)] for family, found in codes.items())
    assert {check.kind for check in catalogue.CHECKS.values()} == set(catalogue.KINDS)


@pytest.mark.parametrize("code", BUILT)
def test_a_page_has_its_four_headings_in_order_and_words_under_each(code):
    page = catalogue.page(code)
    parts = re.split(r"\*\*(?:Detects|Why it matters|False positives|Source)\.\*\*", page)
    assert len(parts) == 5
    assert all(len(part.strip()) > 7 for part in parts)
    assert catalogue.CHECKS[code].summary
    assert set(catalogue.CHECKS[code].spaces) <= set(SPACES)


def test_every_status_is_explained():
    assert {catalogue.CHECKS[code].status for code in BUILT} == set(catalogue.STATUSES)


def test_an_unknown_code_is_a_key_error():
    with pytest.raises(KeyError):
        catalogue.page("XXX999")


def test_the_document_counts_what_is_built():
    text = catalogue.document({})
    assert f"wirecheck has {len(BUILT)} checks." in text
    assert all(f"### {code} " in text for code in BUILT)
