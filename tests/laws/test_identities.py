"""Laws of the checks about identities that change hands: neither the order in which claims come, nor how batches cut
them up, nor a restart between two batches changes what is open in the end. Each check's own cases are the stories.
"""

import random

import pytest

from tests.depth import some
from tests.judge.lab import Lab, ns, open_rows
from tests.judge.test_checks import CASES
from wirecheck.judge.revisions.judge import Judge

CODES = (
    "CLU001",
    "CLU002",
    "CLU003",
    "CLU004",
    "CTL012",
    "CTL013",
    "CTL014",
    "LOG004",
    "LOG005",
    "VER001",
    "VER007",
    "VIS008",
)
STORIES = sorted((code, case) for code, case in CASES if code in CODES)
TIDS = sorted((code, case) for code, case in CASES if code == "TID017" and "taken_back" in case)
AGENTS = ("one", "other")


def claims_of_case(code, case):
    lab = Lab()
    CASES[code, case](lab)
    return lab.claims(), ns(lab.until)


def ends(batches, until_ns, store=None):
    """What is open after all batches, of two agents in turn; with a store, each batch has a judge of its own."""
    rows, judge = [], Judge("lab")
    for number, batch in enumerate(batches):
        if store is not None and number:
            judge = Judge("lab", store.get)
        judge.absorb(part.copy() for part in batch)
        seen_ns = max([part.first.ts_ns for part in batch], default=0)
        last = number >= len(batches) - len(AGENTS)
        judge.progress(AGENTS[number % 2], until_ns if last else min(seen_ns, until_ns), ended=last)
        rows += judge.rows()
        if store is not None:
            store.update(judge.shards())
    return open_rows(rows)


def cut(claims, dice):
    """Batches of shuffled claims; those that one ApiVersions answer makes stay in one batch, as its bytes do."""
    of_ranges = [claim for claim in claims if claim.kind in {"advertised", "connection_ranges"}]
    units = [[claim] for claim in claims if claim not in of_ranges] + [of_ranges] * bool(of_ranges)
    units = dice.sample(units, len(units))
    places = sorted(dice.sample(range(len(units) + 1), min(4, len(units))))
    parts = [units[a:b] for a, b in zip([0, *places], [*places, len(units)], strict=True)]
    return [*([claim for unit in part for claim in unit] for part in parts), [], []]


@pytest.mark.parametrize(("code", "case"), some([*STORIES, *TIDS], each=5), ids=lambda part: part)
def test_order_cuts_and_restarts_change_nothing(code, case):
    claims, until_ns = claims_of_case(code, case)
    expected = ends([claims, [], []], until_ns)
    if case.startswith("fires"):
        assert code in {finding["code"] for finding in expected["findings"].values()}
    dice = random.Random(code + case)
    for _ in range(4):
        batches = cut(claims, dice)
        assert ends(batches, until_ns) == expected
        assert ends(batches, until_ns, store={}) == expected
