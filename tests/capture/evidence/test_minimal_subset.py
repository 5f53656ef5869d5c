"""What is given back was agreed to, holds what was asked for, and is small."""

from hypothesis import given
from hypothesis import strategies as st

from wirecheck.capture.evidence.minimal_subset import around, enough
from wirecheck.capture.evidence.pcapng_export import Pair
from wirecheck.decode.peer import Peer


def pair(client, server="10.0.0.9:9092"):
    return between(f"10.0.0.1:{client}", server)


def between(one, other):
    return Pair.of(Peer.of(one), Peer.of(other))


EVERY = {pair(port): port for port in range(40000, 40012)}
FAR = {between("10.9.9.1:50000", "10.9.9.9:9092"): 1, between("10.0.0.1:7", "10.0.0.9:9093"): 1}
ASKED = {pair(40003)}


@given(st.sets(st.sampled_from(sorted({**EVERY, **FAR})), min_size=1))
def test_it_holds_what_is_needed_and_what_was_asked_for(needed):
    asked_about = []

    def proves(connections):
        asked_about.append(set(connections))
        return needed <= connections

    found = enough(ASKED, {**EVERY, **FAR}, proves)
    assert found is not None
    assert found >= needed | ASKED
    assert found in asked_about


def test_one_that_is_needed_beside_is_found_alone():
    needed = pair(40007)
    assert enough(ASKED, EVERY, lambda connections: needed in connections) == {*ASKED, needed}


def test_nothing_is_claimed_when_nobody_agrees():
    assert enough(ASKED, EVERY, lambda _: False) is None


def test_near_ones_come_first_and_small_ones_before_large_ones():
    asked, same_server, same_hosts, far = around(ASKED, {**EVERY, **FAR})
    assert asked == [pair(40003)]
    assert same_server[:2] == [pair(40000), pair(40001)]
    assert (same_hosts, far) == ([between("10.0.0.1:7", "10.0.0.9:9093")], [between("10.9.9.1:50000", "10.9.9.9:9092")])
