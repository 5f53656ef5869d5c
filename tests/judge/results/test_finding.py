"""Sentences of findings: numbers with their nouns."""

import pytest

from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.judge.results.finding import Evidence, Number, words_of


@pytest.mark.parametrize(("count", "said"), [(0, "0 times"), (1, "1 time"), (2, "2 times"), (12345, "12,345 times")])
def test_one_is_singular(count, said):
    assert f"{Number(count):time}" == said


@pytest.mark.parametrize("code", CHECKS)
def test_no_sentence_gives_a_plural_to_one(code):
    class Words(dict):
        def __missing__(self, name):
            return Number(1)

    said = CHECKS[code].summary.format_map(Words())
    plurals = ("times", "connections", "messages", "bytes", "gaps", "requests", "responses", "partitions")
    assert [noun for noun in plurals if f"1 {noun}" in said] == []


def test_numbers_of_a_sentence_know_their_nouns_and_words_stay_words():
    found = words_of(CHECKS["VIS001"], Evidence((), (), count=1, words={"bytes": 300, "why": "late"}), [])
    template = "{count:time}, {bytes:byte}, {why}"
    assert template.format(**found) == "1 time, 300 bytes, late"
