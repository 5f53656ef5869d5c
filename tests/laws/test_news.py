"""The law of news: checking again only what is new gives, at the end, the rows that checking everything again gives.

Claims are taken from the shipped captures, and from mutations of them in which endpoints change clusters. Each is
stated in pieces, in the order of time, so that later ones only repeat it. Both judges are given the same batches, cut
anywhere, and are made anew from their state for every batch.
"""

import random

import pytest

from tests.depth import some
from tests.judge.lab import open_rows
from tests.judge.recorded_reads import outspoken
from tests.laws.test_judge_stands import claims_of_capture, foreign  # noqa: F401 - a fixture
from tests.scenarios.engines import NAMES
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.revisions.judge import Judge


class News(Judge):
    """It counts the subjects that it checks."""

    checked = 0

    def re_evaluate(self, *about, **how):
        self.checked += 1
        yield from super().re_evaluate(*about, **how)


class Everything(News):
    """All that is known is checked again with every batch."""

    def rows(self):
        self.ledger.touched |= self.every_subject() | {*self.ledger.subjects("connection")}
        return super().rows()


def last_rows(kind, batches):
    state, rows, checked = {}, [], 0
    for number, claims in enumerate(batches):
        judge = kind("default", state.get)
        judge.absorb(claim.copy() for claim in claims)
        judge.progress("agent", max(claim.last.ts_ns for claim in claims), ended=number == len(batches) - 1)
        rows += judge.rows()
        checked += judge.checked
        assert judge.failures.new_ones() == []
        state |= judge.shards()
    return open_rows(rows), checked


def pieces(claims):
    """The same claims, each as it was seen first and as it was seen last."""
    for claim in claims:
        if claim.count < 2 or claim.first == claim.last:
            yield claim
            continue
        early = {name: count // 2 for name, count in claim.tally.items() if count > 1}
        late = {name: count - early.get(name, 0) for name, count in claim.tally.items()}
        peak = {name: grown(name, value, claim.kind) for name, value in claim.peak.items()}
        yield Claim(claim.kind, claim.key, claim.first, tally=early, peak=peak)
        yield Claim(
            claim.kind,
            claim.key,
            claim.last,
            count=claim.count - 1,
            tally=late,
            peak=claim.peak,
            outcomes=claim.outcomes,
        )


def in_time(claims):
    return sorted(pieces(claims), key=lambda claim: claim.last)


def grown(name, value, kind):
    """A value before it had grown."""
    return value // 2 if isinstance(value, int) and value > 1 and name in KINDS[kind].growing else value


def cut(claims, chance, most=8):
    """Batches of unequal length; what is claimed in one stays in its order."""
    places = sorted(chance.sample(range(1, len(claims)), min(chance.randint(2, most), len(claims) - 1)))
    return [claims[a:b] for a, b in zip([0, *places], [*places, len(claims)], strict=True)]


WAYS = {False: "as captured", True: "endpoints change clusters"}
BOTH = [(name, shared) for name in NAMES for shared in WAYS]


@pytest.mark.parametrize(("name", "shared"), some(BOTH, each=4), ids=lambda part: WAYS.get(part, part))
def test_only_what_is_new_has_to_be_checked_again(name, shared, claims_of_capture):  # noqa: F811 - a fixture
    claims = in_time(claims_of_capture(name))
    if shared:
        claims[len(claims) // 2 : len(claims) // 2] = foreign(claims)
    batches = cut(claims, random.Random(f"{name}{shared}"))
    expected, everything = last_rows(Everything, batches)
    found, checked = last_rows(News, batches)
    assert found == expected
    assert checked <= everything


@pytest.mark.parametrize("name", some(NAMES[2:], each=3))
def test_a_check_that_is_not_asked_finds_nothing(name, claims_of_capture):  # noqa: F811 - a fixture
    claims = in_time(claims_of_capture(name))
    judge = Judge("default")
    judge.absorb([*claims, *foreign(claims)])
    judge.progress("agent", max(claim.last.ts_ns for claim in claims), ended=True)
    judge.rows()
    assert [*outspoken(judge)] == []


def test_where_repeated_subjects_do_not_wait_for_their_slot_the_law_fails(claims_of_capture, monkeypatch):  # noqa: F811 - a fixture
    cuts = [cut(in_time(claims_of_capture("zk28-recreate")), random.Random(seed)) for seed in (1, 2)]
    expected = [last_rows(Everything, batches)[0] for batches in cuts]
    schedule_repeated = Judge.schedule_repeated

    def forgetful(judge):
        judge.ledger.repeated.clear()
        schedule_repeated(judge)

    monkeypatch.setattr(Judge, "schedule_repeated", forgetful)
    assert [last_rows(News, batches)[0] for batches in cuts] != expected
