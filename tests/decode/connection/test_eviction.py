"""Who makes room when too much waits, and when too many are open."""

from wirecheck.decode.connection.connection import KAFKA, OTHER, UNDECIDED
from wirecheck.decode.connection.lifetime import to_evict, to_let_go


def test_those_that_keep_most_give_way_until_a_quarter_is_free():
    assert to_evict([(1, 100, KAFKA), (2, 5000, KAFKA), (3, 300, KAFKA)], 5400, 5000) == [2]
    assert to_evict([(number, 1000, KAFKA) for number in range(6)], 6000, 5000) == [0, 1, 2, 3, 4, 5]


def test_one_that_never_showed_kafka_gives_way_sixteen_times_sooner():
    assert to_evict([(1, 4000, KAFKA), (2, 1000, UNDECIDED)], 5000, 5500) == [2]


def test_who_keeps_nothing_gives_up_nothing():
    assert to_evict([(1, 0, UNDECIDED), (2, 10, KAFKA)], 10, 8) == [2]


def test_those_over_are_let_go_first_and_kafka_never():
    found = [
        (1, False, KAFKA, 1),
        (2, False, OTHER, 1),
        (3, False, UNDECIDED, 9),
        (4, False, UNDECIDED, 5),
        (5, True, KAFKA, 99),
    ]
    assert to_let_go(found, 10) == [5, 4, 3, 2]
    assert to_let_go(found, 2) == [5, 4]
