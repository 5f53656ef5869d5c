"""Traffic that merely goes on costs little: subjects that are checked again, and rows that are emitted, are counted."""

from statistics import median

import pytest

from tests.judge.busy_cluster import BEGIN_NS
from tests.judge.steady import FLEET_STEP_NS, STEP_NS, Fleet, Speaking, Step

MINUTE = 30
"""Batches of speaking connections."""


@pytest.fixture(scope="module")
def speaking():
    step, cluster = Step(), Speaking(40)
    return [step.batch(cluster.batch(n), BEGIN_NS + (n + 1) * STEP_NS) for n in range(3 + MINUTE)]


def test_a_connection_that_goes_on_is_checked_again_about_once_a_minute(speaking):
    first, minute = speaking[0], speaking[3:]
    assert first.checked > 40  # clients; no check looks at a connection
    assert sum(batch.checked for batch in minute) <= 3 * 40


def test_its_rows_are_emitted_once_a_minute(speaking):
    minute = speaking[3:]
    assert 40 <= sum(batch.rows for batch in minute) <= 14 * 40


def test_a_fleet_in_which_nothing_is_new_is_checked_again_in_part():
    step, cluster = Step(), Fleet(4, 60, 40)
    first, *steady = [step.batch(cluster.batch(n), BEGIN_NS + (n + 1) * FLEET_STEP_NS) for n in range(6)]
    assert first.checked > 60 + 60 + 40
    assert median(batch.checked for batch in steady[1:]) <= first.checked / 2
    assert max(batch.rows for batch in steady[1:]) < first.rows
