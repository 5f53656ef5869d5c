"""Laws of containment: no check raises over what real clusters say, however it is cut; whatever raises ends nothing.

Claims are taken from the shipped captures. A cut is a prefix, a suffix, or an endpoint that another cluster takes over
in the middle, which cuts the claims themselves in two.
"""

import random
from functools import cache
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.depth import examples, some
from tests.judge.lab import open_rows, raising
from tests.scenarios.engines import NAMES, Scenario, frames
from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.judge.claims.claim import Claim, Sighting, unpack
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.revisions.judge import Judge
from wirecheck.judge.thresholds import Settings as JudgeSettings
from wirecheck.streaming.steps.cells import from_cell
from wirecheck.streaming.steps.decode_step import Claimed, decode_row
from wirecheck.streaming.steps.follow_step import Bucket
from wirecheck.streaming.steps.pack_step import pack_files
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.tagged import CLAIMS

CUTS = 5
SECOND_NS = 1_000_000_000


@cache
def claims_of(name, folder):
    """What a capture claims, in the order in which it is told: one list per cell of exchanges."""
    settings = Settings(buckets=1)
    files = frames([Scenario(name).pcap], folder / name)
    cells = [row.cell for rows in pack_files(map(str, files), settings) for row in rows]
    decoded = (decode_row(row, settings) for row in Bucket("default", 0, settings).receive(cells))
    return [claim for row in decoded if row.route == CLAIMS for claim in unpack(from_cell(row.cell, Claimed).claims)]


@pytest.fixture(autouse=True)
def nothing_was_contained():
    """Claims are bent here until checks raise. Which may be contained, each test says."""


@pytest.fixture(scope="session")
def claims_of_capture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims")
    return lambda name: [claim.copy() for claim in claims_of(name, folder)]


def span(claims):
    return min(claim.first.ts_ns for claim in claims), max(claim.last.ts_ns for claim in claims)


def judged(claims, parts=1):
    """The rows that stand after so many batches, and what raised. At the end every subject is judged once more: what is
    judged anew at which change is another law's affair (test_judge.py), and claims out of context break that one.
    """
    judge, rows, raised = Judge("default", settings=JudgeSettings(horizon_s=10**9)), [], []
    size = -(-len(claims) // parts)
    for at in range(0, len(claims), size):
        part = claims[at : at + size]
        judge.absorb(part)
        judge.progress("agent", max(one.last.ts_ns for one in part) + 400 * SECOND_NS, ended=at + size >= len(claims))
        rows += judge.rows()
        raised += judge.failures.new_ones()
    judge.ledger.touched |= judge.every_subject()
    rows += judge.rows()
    raised += judge.failures.new_ones()
    return open_rows(rows), raised


@pytest.mark.parametrize("name", some(NAMES, each=4))
def test_no_check_raises_over_any_cut_of_a_real_capture(name, claims_of_capture):
    claims = claims_of_capture(name)
    _, raised = judged(claims, CUTS)
    _, late = judged(claims_of_capture(name)[len(claims) // 2 :])
    _, taken_over = judged([*claims_of_capture(name), *foreign(claims)], 2)
    assert [(one.check, one.error) for one in (*raised, *late, *taken_over)] == []


def foreign(claims):
    """Each server is said to be another cluster's for a moment, as by whoever may send it a Fetch."""
    first, last = span(claims)
    middle = (first + last) // 2
    for endpoint in sorted({claim["endpoint"] for claim in claims if claim.kind == "server"}):
        seen = Sighting(middle, f"10.66.6.6:5000>{endpoint}", "Fetch", 12, 1, "", 1, 1)
        yield Claim("cluster_id", (endpoint, "EVIL-CLUSTER-ID-000000", "accepted"), seen)


ODD = st.sampled_from([None, -1, -(1 << 63), (1 << 63) - 1, 1 << 40, 0, "", "-", "x", "99999999999", "\u00b2", "é\n|"])


def bent(claims, dice, values):
    """Some of them dropped, of another kind, or with other values in their key, counters and peaks."""
    kinds = sorted(KINDS)
    for claim in claims:
        what = dice.random()
        if what < 0.05:
            continue
        if what < 0.10:
            claim.kind = dice.choice(kinds)
        elif what < 0.3 and claim.key:
            at = dice.randrange(len(claim.key))
            claim.key = (*claim.key[:at], dice.choice(values), *claim.key[at + 1 :])
        elif what < 0.4:
            for part in (claim.tally, claim.peak):
                for name in list(islice(part, 2)):
                    part[name] = dice.choice(values)
        elif what < 0.45:
            claim.tally, claim.peak = {}, {}
        yield claim


@pytest.fixture(scope="session")
def few(claims_of_capture):
    """Of a capture with a recreation, so many claims that a judgement takes no second."""
    dice = random.Random(1)
    claims = claims_of_capture("zk28-recreate")
    keep = {id(claim) for claim in dice.sample(claims, min(700, len(claims)))}
    chosen = [claim for claim in claims if id(claim) in keep]
    return lambda: [claim.copy() for claim in chosen]


@examples(6, deep=12)
@given(seed=st.integers(0, 1 << 32), values=st.lists(ODD, min_size=1, max_size=4), code=st.sampled_from(sorted(CHECKS)))
def test_whatever_claims_say_is_judged_and_a_check_that_raises_changes_no_other_row(few, seed, values, code):
    rows, _ = judged(list(bent(few(), random.Random(seed), values)), 2)
    with raising(code):
        again, raised = judged(list(bent(few(), random.Random(seed), values)), 2)
    assert rest(again, code) == rest(rows, code)
    said = {finding["code"] for finding in again.get("findings", {}).values()}
    assert code not in said
    assert "VIS006" in said or code == "VIS006" or code not in {one.check for one in raised}


def rest(rows, code):
    found = {route: dict(claims_of_capture) for route, claims_of_capture in rows.items()}
    found["findings"] = {
        name: body for name, body in found.get("findings", {}).items() if body["code"] not in {code, "VIS006"}
    }
    return found
