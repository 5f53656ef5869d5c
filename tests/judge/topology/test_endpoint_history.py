"""One address, two clusters after each other: each has its own time, its brokers, its part of what both said."""

from tests.judge.made import EAST, S, claim, outcomes
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.controllers import silent_since
from wirecheck.judge.claims.claim import Claim, Sighting
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.thresholds import Settings
from wirecheck.judge.topology.clusters import Clusters
from wirecheck.judge.topology.endpoint_history import cut

OTHER = "10.0.0.2:9092"


def stated(cluster_id, at, until, server=EAST):
    return claim("cluster_id", server, cluster_id, "metadata", at=at, until=until, server=server)


def made(*claims, connections=()):
    served = [claim("server", endpoint, at=0, until=200, server=endpoint) for endpoint in (EAST, OTHER)]
    spans = [(int(start * S), int(last * S)) for start, last in connections]
    return Clusters("lab", [*served, *claims], lambda _endpoint: spans)


def cluster_by_second(clusters, endpoint=EAST):
    return {at: clusters.of(endpoint, at * S).key for at in range(0, 200, 10)}


def test_a_cluster_takes_over_with_the_first_connection_after_the_longest_silence():
    seen = [(0, 60), (45, 50), (61, 70), (90, 190), (110, 120)]
    clusters = made(stated("A", 1, 40), stated("B", 115, 190), connections=seen)
    assert {at for at, key in cluster_by_second(clusters).items() if key == "B"} == set(range(90, 200, 10))


def test_without_connections_it_takes_over_when_it_is_told():
    clusters = made(stated("A", 1, 40), stated("B", 115, 190))
    assert {at for at, key in cluster_by_second(clusters).items() if key == "B"} == set(range(120, 200, 10))


def test_an_endpoint_that_says_nothing_itself_goes_with_those_that_hand_out_its_address():
    listed = claim("address", EAST, OTHER, 2, at=1, until=190)
    clusters = made(stated("A", 1, 40), stated("B", 95, 190), listed, connections=[(0, 70), (90, 190)])
    assert cluster_by_second(clusters, OTHER) == cluster_by_second(clusters)
    assert (clusters.broker(OTHER, 10 * S), clusters.broker(OTHER, 100 * S)) == (2, 2)


def test_one_that_both_hand_out_at_a_time_stays_where_it_says_it_is():
    listed = [claim("address", EAST, OTHER, 2, at=1), claim("address", "10.0.0.3:9092", OTHER, 7, at=120)]
    elsewhere = stated("B", 100, 190, "10.0.0.3:9092")
    clusters = made(stated("A", 1, 150), elsewhere, stated("A", 1, 150, OTHER), *listed, connections=[(0, 190)])
    assert set(cluster_by_second(clusters, OTHER).values()) == {"A"}


def test_two_that_are_told_side_by_side_begin_when_they_are_told():
    clusters = made(stated("A", 1, 120), stated("B", 95, 190), connections=[(0, 70), (90, 190)])
    assert {at for at, key in cluster_by_second(clusters).items() if key == "B"} == set(range(100, 200, 10))


def in_phases(*times, step=5):
    """A and B in turn, by what their answers over time say: (first, last) seconds of each phase."""
    found = {}
    for number, (first, last) in enumerate(times):
        found.setdefault("AB"[number % 2], []).extend(range(first, last + 1, step))
    return [
        claim("cluster_id", EAST, key, "metadata", at=at[0], until=at[-1], outcomes=outcomes(*((one, 0) for one in at)))
        for key, at in found.items()
    ]


def test_an_address_that_is_switched_there_and_back_is_each_clusters_in_its_time():
    clusters = made(*in_phases((0, 40), (60, 90), (110, 160)))
    assert [cluster_by_second(clusters)[at] for at in (0, 40, 60, 90, 110, 190)] == ["A", "A", "B", "B", "A", "A"]
    assert clusters.disputed == set()
    assert len({id(clusters.of(EAST, at * S)) for at in (0, 190)}) == 1
    assert [(before.group.key, after.group.key) for _, before, after in clusters.handovers_of(EAST)] == [
        ("A", "B"),
        ("B", "A"),
    ]


def test_an_address_that_leads_to_two_clusters_in_turn_is_neithers():
    assert made(*in_phases((0, 40), (45, 50), (55, 90))).disputed == {EAST}
    assert made(*in_phases((0, 90), (52, 140))).disputed == {EAST}


def test_clusters_change_in_turn_where_one_surely_had_the_address_too_briefly_or_where_they_change_too_often():
    assert made(*in_phases((0, 90), (52, 140))).in_turn == {EAST}
    assert made(*in_phases((0, 40), (42, 42), (45, 90))).in_turn == {EAST}
    five_times = in_phases((0, 2), (30, 32), (60, 62), (90, 92), (120, 122), step=2)
    assert made(*five_times).in_turn == {EAST}


def test_an_address_of_which_little_was_seen_may_have_been_switched_there_and_back():
    clusters = made(*in_phases((0, 27), (38, 42), (64, 64), step=3))
    assert (clusters.disputed, clusters.in_turn) == ({EAST}, set())


def test_what_was_answered_by_three_in_turn_is_cut_where_they_changed():
    clusters = made(*in_phases((0, 40), (60, 90), (110, 160)))
    said = outcomes((10, 0, 3), (70, 100, 5), (80, 100, 2), (150, 0, 4))
    use = claim("use", "x", "Fetch", "reader", "h", EAST, at=10, until=150, count=14, outcomes=said)
    keys, parts = zip(*((group.key, part) for group, part in clusters.parts(use)), strict=True)
    assert keys == ("A", "B", "A")
    assert [part.outcomes for part in parts] == [
        outcomes((10, 0, 3)),
        outcomes((70, 100, 5), (80, 100, 2)),
        outcomes((150, 0, 4)),
    ]
    assert (parts[1].first.ts_ns, parts[1].last.ts_ns) == (70 * S, 80 * S)
    assert sum(part.count for part in parts) == 14


def test_what_was_not_counted_over_time_stays_with_the_cluster_that_it_was_said_of():
    clusters = made(*in_phases((0, 40), (60, 90), (110, 160)))
    once = claim("use", "x", "Fetch", "reader", "h", EAST, at=10, until=150, count=2)
    assert [(group.key, part.count) for group, part in clusters.parts(once)] == [("A", 2)]


def test_what_both_said_is_cut_in_two():
    order = claim("control", EAST, 1, 1, False, "LeaderAndIsr", 4, 0, "10.0.0.99", at=10, until=150, count=9)
    clusters = made(stated("A", 1, 40), stated("B", 95, 190), connections=[(0, 70), (90, 190)])
    parts = [(group.key, part.first, part.last, part.count) for group, part in clusters.parts(order)]
    assert parts == [("A", order.first, order.first, 1), ("B", order.last, order.last, 8)]
    mine = claim("control", EAST, 1, 2, False, "LeaderAndIsr", 4, 0, "10.0.0.99", at=100, until=150)
    assert [(group.key, part) for group, part in clusters.parts(mine)] == [("B", mine)]


def test_what_is_said_of_a_name_by_one_server_first_and_another_last_is_cut_too():
    state = claim("unnumbered", "orders", 0, "metadata", 1, 1, "1", "1", at=10)
    state.last = claim("server", OTHER, at=150, server=OTHER).last
    clusters = made(stated("A", 1, 40), stated("B", 95, 190, OTHER), stated("A", 1, 40, OTHER))
    assert [(group.key, part.first == part.last) for group, part in clusters.parts(state)] == [("A", True), ("B", True)]


def test_tallies_by_time_go_with_their_time():
    slots = {f"{at * S // SLOT_NS}:100": at for at in (10, 80, 90, 150)}
    whole = claim("activity", "c", "h", EAST, "Fetch", at=10, until=150, tally={**slots, "is_new": 1})
    first, last = cut(whole, 90 * S)
    assert list(first.tally.values()) == [10, 80, 1]
    assert list(last.tally.values()) == [90, 150, 1]


def test_answers_over_time_go_with_their_time():
    said = outcomes((10, 100, 3), (81, 100), (89, 0), (91, 0), (150, 100))
    first, last = cut(claim("activity", "c", "h", EAST, "Fetch", at=10, until=150, outcomes=said), 90 * S)
    assert first.outcomes == outcomes((10, 100, 3), (81, 100), (89, 0))
    assert last.outcomes == outcomes((91, 0), (150, 100))


def test_a_session_that_was_cut_in_two_began_nobody_knows_when():
    """A full fetch is the latest there was: of the part before an address was taken over it may be none."""
    begun, last = sighting(10, "1"), sighting(100, "1")
    session = Claim("follower", (2, "10.0.0.1:9092", "broker-2-fetcher-0"), begun, last, peak={"full": 90})
    early, late = cut(session, 50)
    state = Claim("partition", ("id", 0, "metadata", 1, 1, "1,2", "1"), begun, last)
    assert silent_since(state, [], [early], CheckContext(None, None, Settings(), 200)) is None
    assert silent_since(state, [], [early, late], CheckContext(None, None, Settings(), 200)) is None


def sighting(ts_ns, client):
    return Sighting(ts_ns, f"{client}>10.0.0.1:9092", "Fetch", 12, 1, "x", 1, 1)


def test_volumes_stay_with_the_later_part_and_other_counters_are_of_both():
    tally = {"written_bytes": 9, "payload_bytes": 5}
    first, last = cut(claim("activity", "c", "h", EAST, "Fetch", at=10, until=150, tally=tally), 90 * S)
    assert (first.tally, last.tally) == ({"payload_bytes": 5}, tally)
