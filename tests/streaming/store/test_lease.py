"""Of two monitors on one checkpoint in a store one writes: refused, taken over when dead, nothing by who lost it."""

import json
import threading
import time
from contextlib import ExitStack

import pytest

from tests import object_store
from wirecheck.streaming.store import lease as leases
from wirecheck.streaming.store.lease import NAME, Lease, LeaseLost, LeaseRefused, LeaseTerms, leased, store_of

CHECKPOINT = "s3a://bucket/checkpoint"
KEY = f"bucket/checkpoint/{NAME}"
QUICK = LeaseTerms(renew_s=0.1, stale_s=1.0, patience_s=0.5, look_s=0.05)
DEAD = LeaseTerms(renew_s=60, stale_s=1.0, patience_s=0.5, look_s=0.05)
"""Who holds it by these terms renews it as one that was killed does."""


@pytest.fixture
def store(monkeypatch):
    with object_store.running() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        yield store


def held(terms, said=None):
    return leased(CHECKPOINT, (said if said is not None else []).append, terms)


def stands(store):
    return json.loads(store.objects[KEY])


def test_a_second_monitor_is_refused_in_one_line_while_the_first_renews(store):
    said = []
    with held(QUICK) as first, pytest.raises(LeaseRefused) as refused, held(QUICK, said):
        pass
    assert str(refused.value) == (f"{CHECKPOINT}: another monitor ({first.holder}) is using it; stop that one first")
    assert said == [f"{CHECKPOINT}: {first.holder} holds the lease; it is taken over if it is not renewed"]
    assert stands(store)["fence"] == 1


def test_one_that_was_given_back_is_had_at_once_under_the_next_number(store):
    with held(QUICK) as first:
        assert first.confirm() == {"fence": 1}
    assert stands(store)["released"]
    began_s = time.monotonic()
    with held(QUICK) as second:
        assert second.confirm() == {"fence": 2}
        assert time.monotonic() - began_s < QUICK.stale_s


def test_one_that_nobody_renews_is_taken_over_and_who_lost_it_commits_nothing_more(store):
    with held(DEAD) as first, held(QUICK) as second:
        assert (second.fence, stands(store)["token"]) == (2, second.token)
        first.check()  # it does not know yet
        for _ in range(2):
            with pytest.raises(LeaseLost, match="another monitor has taken it over; this one commits nothing more"):
                first.confirm()
        assert second.confirm() == {"fence": 2}
    assert stands(store)["token"] == second.token


def test_without_an_answer_of_the_store_nothing_is_committed(store):
    with held(QUICK) as lease:
        store.away = True
        with pytest.raises(LeaseLost, match="could not be renewed; nothing is committed without it"):
            lease.confirm()
        store.away = False
        lease.check()
        assert lease.confirm() == {"fence": 1}  # nobody took it over meanwhile


def test_a_store_that_was_away_for_less_costs_nothing(store):
    with held(QUICK) as lease:
        store.away = True
        threading.Timer(0.2, setattr, (store, "away", False)).start()
        assert lease.confirm() == {"fence": 1}


def test_of_many_that_begin_at_once_one_has_it(store):
    found, refused = [], []
    with ExitStack() as stack:

        def begin():
            try:
                found.append(stack.enter_context(held(QUICK)))
            except LeaseRefused as words:
                refused.append(words)

        threads = [threading.Thread(target=begin) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(found), len(refused)) == (1, 5)
        assert found[0].confirm() == {"fence": 1}


def test_of_many_that_find_it_stale_one_takes_it_over(store):
    with held(DEAD):
        waiting = [Lease(store_of(CHECKPOINT, print), CHECKPOINT, QUICK) for _ in range(4)]
        found = waiting[0]._replaceable(lambda _: None)
        assert [lease.replace(found) for lease in waiting].count(True) == 1


def test_an_answer_that_was_lost_is_asked_for(store, monkeypatch):
    """The store took the PUT; its answer never came, and asked again it says that the condition fails."""
    with held(DEAD) as lease:
        put = lease.store.put
        lease.store = Forgetful(lease.store, put)
        assert lease.confirm() == {"fence": 1}
        assert lease.store.forgotten == 1


def test_a_renewal_that_got_there_without_an_answer_does_not_lose_it(store):
    with held(DEAD) as lease:
        known = lease._version
        assert lease._put(known, 1)
        lease._version = known  # it was never heard
        assert lease.confirm() == {"fence": 1}
        assert (stands(store)["renewals"], lease.lost) == (lease.renewals, False)


class Forgetful:
    def __init__(self, store, put):
        self.get, self._put, self.forgotten = store.get, put, 0

    def put(self, *args, **mode):
        self._put(*args, **mode)
        self.forgotten += 1
        self.put = self._put
        return self._put(*args, **mode)


def test_a_store_without_conditions_is_said_to_be_without_this_safety(store):
    store.conditional, said = False, []
    with held(QUICK, said) as lease:
        assert lease is None
    assert said == [f"{CHECKPOINT}: its store does not support conditional PUTs: {leases.ALONE}"]


def test_without_the_extra_that_is_said(store, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "obstore.store", None)
    said = []
    with held(QUICK, said) as lease:
        assert lease is None
    assert said == [f"{CHECKPOINT}: no lease without wirecheck[objectstore]: {leases.ALONE}"]
    assert store.objects == {}


def test_on_a_disk_there_is_none_and_elsewhere_it_is_said(tmp_path):
    said = []
    with leased(str(tmp_path), said.append) as lease:
        assert (lease, said) == (None, [])
    with leased("hdfs://namenode/checkpoint", said.append) as lease:
        assert lease is None
    assert said == [f"hdfs://namenode/checkpoint: no lease on this file system: {leases.ALONE}"]


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"released": false, "holder": 1}'])
def test_a_damaged_lease_is_refused_in_one_line(store, content):
    store.objects[KEY] = content
    with pytest.raises(LeaseRefused, match=f"{NAME} is damaged; remove it if no monitor is running"), held(QUICK):
        pass


def test_a_store_that_cannot_be_reached_is_one_line(store):
    store.away = True
    with pytest.raises(LeaseRefused, match="no lease: ") as refused, held(QUICK):
        pass
    assert "\n" not in str(refused.value)


def test_a_commit_costs_one_request_more(store):
    with held(DEAD) as lease:
        store.count()
        lease.confirm()
        assert store.count() == {"PUT": 1}
