"""Shards that stay in the process are what their bytes make, and no more of them stay than there is room for."""

import pytest

from tests.judge.busy_cluster import BEGIN_NS
from tests.judge.steady import FLEET_STEP_NS, Fleet, Step
from wirecheck.judge.ledger import kept_shards
from wirecheck.judge.ledger.kept_shards import KeptShards
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
    a, b, c, d = (("label", name) for name in "abcd")
    for place in (a, b, c):
        shards.keep(place, b"bytes", Shard())
    assert [*shards.shards] == [a, b, c]
    shards.most_bytes = len(b"[[],[]]") * 2
    shards.keep(d, b"bytes", Shard())
    assert [*shards.shards] == [c, d]
    assert shards.taken(a, b"bytes") is None
    assert isinstance(shards.taken(c, b"bytes"), Shard)
    assert shards.taken(c, b"bytes") is None
    assert shards.bytes == len(b"[[],[]]")


def test_of_each_shard_the_newest_is_kept_and_no_older_one_stays(kept):
    """Where workers take turns, each gives back a shard that the others go on from."""
    shards, place = kept(1_000), ("label", "topic-01")
    for number in range(100):
        shards.keep(place, b"%d" % number, Shard())
    assert [*shards.shards] == [place]
    assert shards.taken(place, b"98") is None
    assert (len(shards.shards), shards.bytes) == (0, 0)
