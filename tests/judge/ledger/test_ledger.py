"""The ledger is a pure function of the set of claims; it survives being stored and loaded in pieces."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.depth import examples
from tests.judge.made import ID_1, S, bound, claim, outcomes, seen
from wirecheck.judge.claims.claim import Claim, Sighting, merged, pack, unpack
from wirecheck.judge.claims.outcomes import MOST_SLOTS, OTHERS, SUCCESS, Run
from wirecheck.judge.ledger.ledger import COMPRESSED, MAGIC, Ledger, StateVersionError

sightings = st.builds(
    Sighting,
    st.integers(0, 10**12),
    st.sampled_from(["1.1.1.1:5>2.2.2.2:9", "1.1.1.1:6>2.2.2.2:9"]),
    st.just("Fetch"),
    st.integers(0, 18),
    st.integers(0, 9),
    st.sampled_from(["a", "b"]),
    st.integers(1, 9),
    st.integers(1, 9),
)
claims = st.builds(
    Claim,
    st.just("use"),
    st.tuples(st.sampled_from([ID_1, "x"]), st.just("Fetch"), st.sampled_from(["c", None]), st.just("h"), st.just("e")),
    sightings,
    count=st.integers(1, 5),
    tally=st.dictionaries(st.sampled_from("abc"), st.integers(1, 9), max_size=3),
    peak=st.dictionaries(st.sampled_from("xy"), st.integers(-9, 9), max_size=2),
    outcomes=st.lists(st.tuples(st.integers(0, 9000), st.sampled_from([0, 3, 100])), max_size=3).map(
        lambda s: outcomes(*s)
    ),
)


def ledger_of(parts):
    ledger = Ledger(lambda _name: None)
    for one in parts:
        ledger.absorb(one)
    return ledger


def content(ledger):
    return {
        (name, subject): {identity: claim.state() for identity, claim in shard[subject].items()}
        for name, shard in ledger.loaded.items()
        for subject in shard
    }


@examples(40)
@given(st.lists(claims, max_size=20), st.randoms(use_true_random=False))
def test_any_order_and_any_reduction_before_gives_the_same_ledger(parts, rng: random.Random):
    expected = content(ledger_of(parts))
    shuffled = [claim.copy() for claim in parts]
    rng.shuffle(shuffled)
    cut = rng.randint(0, len(shuffled))
    assert expected == content(ledger_of(merged(shuffled[:cut]) + merged(shuffled[cut:])))


@examples(40)
@given(st.lists(claims, max_size=10))
def test_packed_claims_come_back_as_they_were(parts):
    assert [claim.state() for claim in parts] == [claim.state() for claim in unpack(pack(parts))]


def test_a_ledger_loaded_from_its_shards_goes_on_as_if_never_stopped():
    store = {}
    first = ledger_of([bound("orders", ID_1, 1)])
    store.update(first.shards())
    again = Ledger(store.get)
    again.absorb(bound("orders", ID_1, 9))
    assert content(ledger_of([bound("orders", ID_1, 1), bound("orders", ID_1, 9)])) == content(again)
    assert len(again.shards()) == 2  # the name's and the id's


def test_only_the_shards_of_touched_cells_are_loaded():
    asked = []
    ledger = Ledger(asked.append)
    ledger.absorb(bound("orders", ID_1, 1))
    assert [name.split("-")[0] for name in asked] == ["name", "id"]


@pytest.mark.parametrize(
    "head", [b"9\n", b"9 zstd 9\n", b"wirecheck ledger 4 zlib\n", b"wirecheck ledger 3\n", b"\n", b""]
)
def test_state_of_another_version_is_refused(head):
    """As former versions wrote it, by hand, and as a later one may."""
    name, blob = next(iter(ledger_of([bound("orders", ID_1, 1)]).shards().items()))
    assert blob.startswith(MAGIC + COMPRESSED)
    with pytest.raises(StateVersionError, match=r"^the checkpoint holds no ledger of state version 4$"):
        Ledger({name: head + blob.partition(b"\n")[2]}.get).shard(name)


def test_the_first_sighting_is_the_least_and_the_last_the_greatest():
    claim = bound("orders", ID_1, 5)
    claim.merge(bound("orders", ID_1, 2, until=3))
    assert (claim.first, claim.last, claim.count) == (seen(2), seen(5), 2)


@pytest.mark.parametrize("seed", range(5))
def test_of_more_slots_than_are_kept_the_newest_stay_whatever_comes_when(seed):
    slots = [180_000_000 + slot for slot in range(MOST_SLOTS + 40)]
    said = [claim("deletions", "e", tally={str(slot): 1, "asked": 1}, peak={f"at:{slot}": slot}) for slot in slots]
    random.Random(seed).shuffle(said)
    cut = len(said) // 3
    ledger = ledger_of(merged(one.copy() for one in said[:cut]) + merged(one.copy() for one in said[cut:]))
    (kept,) = ledger.claims("deletions", "server")
    newest = slots[-MOST_SLOTS:]
    assert {*kept.peak} == {f"at:{slot}" for slot in newest}
    assert {*kept.tally} == {"asked", *map(str, newest)}
    assert kept.tally["asked"] == len(said)


@pytest.mark.parametrize("seed", range(5))
def test_answers_over_time_are_kept_for_two_hours_and_of_few_ports_whatever_comes_when(seed):
    """Also where one error is rarer than another: what is older than two hours before the newest goes with it."""
    answers = [(10 * slot + 1, (0, 100)[slot % 9 == 0]) for slot in range(MOST_SLOTS + 40)]
    said = [claim("use", ID_1, "Fetch", "c", "h", "e", outcomes=outcomes(one)) for one in answers]
    crowd = [
        claim("use", ID_1, "Fetch", "c", "h", "e", outcomes=outcomes((7595, 0), port=p)) for p in range(50_000, 50_040)
    ]
    said += crowd
    random.Random(seed).shuffle(said)
    cut = len(said) // 3
    ledger = ledger_of(merged(one.copy() for one in said[:cut]) + merged(one.copy() for one in said[cut:]))
    (kept,) = ledger.claims("use", "id", ID_1)
    expected = outcomes(*answers[40:])
    for port in range(50_000, 50_015):
        expected.add(SUCCESS, 759, port, Run(1, 7595 * S, 7595 * S))
    expected.add(SUCCESS, 759, OTHERS, Run(25, 7595 * S, 7595 * S))
    assert kept.outcomes == expected
