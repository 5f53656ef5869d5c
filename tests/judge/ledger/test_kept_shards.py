"""Shards that stay in the process are what their bytes make, and no more of them stay than there is room for."""

import pytest

from tests.judge.busy_cluster import BEGIN_NS
from tests.judge.steady import FLEET_STEP_NS, Fleet, Step
from wirecheck.judge.ledger import kept_shards
from wirecheck.judge.ledger.kept_shards import KeptShards, digest
from wirecheck.judge.ledger.shard import Shard

BATCHES, REPEATED = 8, 3


@pytest.fixture
def kept(monkeypatch):
    """As many as a test says are kept."""

    def put(most_bytes):
        monkeypatch.setattr(kept_shards, "KEPT", KeptShards(most_bytes))
        return kept_shards.KEPT

    return put


def states(batches):
    """After each batch; one is repeated as a query repeats it after a crash, from the state before."""
    step, found = Step(), []
    for number, claims in enumerate(batches):
        before = dict(step.shards)
        for _ in range(2 if number == REPEATED else 1):
            step.shards = dict(before)
            batch = step.batch([claim.copy() for claim in claims], BEGIN_NS + (number + 1) * FLEET_STEP_NS)
            found.append((step.shards, batch.rows, batch.checked))
    return found


def test_rows_and_bytes_are_those_of_a_judge_that_reads_its_state_anew(kept):
    fleet = Fleet(4, 20, 10)
    batches = [[*fleet.batch(number)] for number in range(BATCHES)]
    kept(0)
    expected = states(batches)
    kept(10_000_000)
    assert states(batches) == expected
    assert expected[REPEATED] == expected[REPEATED + 1]
    assert kept_shards.KEPT.shards


def test_what_is_too_much_is_not_kept_the_oldest_first(kept):
    shards = kept(30)
    for name in (b"a", b"b", b"c"):
        shards.keep(name, Shard())
    assert [*shards.shards] == [*map(digest, (b"a", b"b", b"c"))]
    shards.most_bytes = len(b"[[],[]]") * 2
    shards.keep(b"d", Shard())
    assert [*shards.shards] == [*map(digest, (b"c", b"d"))]
    assert shards.taken(b"a") is None
    assert isinstance(shards.taken(b"c"), Shard)
    assert shards.taken(b"c") is None
    assert shards.bytes == len(b"[[],[]]")
