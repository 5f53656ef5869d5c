"""What clients list in their fetches, as claims of several batches."""

from itertools import permutations

from tests.judge.cases_unserved import in_session
from tests.judge.lab import ID_1, Lab
from wirecheck.judge.claims.claim import merged


def test_fetches_in_a_session_and_without_one_at_the_same_time_merge_in_any_order():
    """Two connections of one client, in two batches, by a clock of seconds: neither is later."""
    with_session, without = Lab(), Lab()
    in_session(with_session, [3], asks=[(0, (0,))])
    without.fetches([3], ID_1, client_id="reader", host="10.0.0.7", partition=0)
    found = []
    for labs in permutations([with_session, without]):
        asks = [claim for lab in labs for claim in lab.claims() if claim.kind == "fetch_asks"]
        assert len({claim.identity for claim in asks}) == 1
        assert len({claim.first.ts_ns for claim in asks}) == 1
        found += [one.peak for one in merged(asks)]
    assert found[0] == found[1] != {}
