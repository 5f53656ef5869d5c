"""A measurement or a test that rests on a contained exception fails."""

import pytest

from bench.contained import ContainedError, nothing_contained, nothing_contained_in
from tests.judge.busy_cluster import Cluster, batch
from tests.judge.lab import raising
from wirecheck.judge.checks.catalogue import CHECKS


def test_what_a_judge_contains_is_an_error():
    claims = list(Cluster(20, 2).batch(0))
    with nothing_contained():
        batch(claims, 0, {})
    with raising(*CHECKS), nothing_contained(planted="in lab.py"):
        batch(claims, 0, {})
    shown = "contained, the first in [A-Z0-9]+: LookupError in lab"
    with pytest.raises(ContainedError, match=shown), raising(*CHECKS), nothing_contained():
        batch(claims, 0, {})


def test_so_is_what_another_process_reports():
    nothing_contained_in([{"code": "TID001", "summary": "x"}])
    with pytest.raises(ContainedError, match="could not be judged"):
        nothing_contained_in([{"code": "VIS006", "summary": "TID001 could not be judged"}])


def test_claims_of_an_outdated_shape_are_noticed():
    """A key without its last field: checks raise, and the judge continues."""
    claims = list(Cluster(20, 2).batch(0))
    for claim in claims:
        if claim.kind == "use":
            claim.key = claim.key[:-1]
    with pytest.raises(ContainedError, match=r"\d+ contained"), nothing_contained():
        batch(claims, 0, {})
