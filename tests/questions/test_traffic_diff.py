"""What is otherwise in a second capture: each kind with a case, and near misses that are no difference."""

from tests.questions.test_subject import NEW, metadata
from tests.questions.test_traffic import SECOND, capture, produce, talking
from wirecheck.questions.traffic import Traffic
from wirecheck.questions.traffic_diff import KINDS, MATTERS, differences


def writes(errors, every_ms=1000, wait_ms=5, client_id="billing-7"):
    talk = talking()
    for number, error in enumerate(errors):
        produce(talk, number, error, wait_ms=wait_ms, client_id=client_id)
        talk.ts_ns += every_ms * SECOND // 1000
    return talk.close()


def found(before, after):
    sides = [Traffic().read([capture(*talks)]) for talks in (before, after)]
    return [(one.kind, one.subject) for one in differences(*sides)]


def test_the_same_capture_twice_has_no_differences():
    talk = writes([0, 6, 6, 0])
    assert found([talk], [talk]) == []


def test_an_error_that_lasts_matters_and_one_that_ended_does_not():
    healthy, lasting, ended = writes([0] * 6), writes([0, 6, 6, 6]), writes([6, 0, 0, 0, 0, 0])
    subject = "NOT_LEADER_OR_FOLLOWER billing-7 Produce orders"
    assert found([healthy], [lasting]) == [("error-new", subject)]
    assert found([healthy], [ended]) == [("error-recovered", subject)]
    assert found([lasting], [healthy]) == [("error-gone", subject)]


def test_counts_that_only_grow_with_the_capture_are_no_difference():
    assert found([writes([6] * 30)], [writes([6] * 90)]) == []


def test_an_error_that_is_twice_as_frequent():
    kinds = [kind for kind, _ in found([writes([6, 0, 0, 0] * 10)], [writes([6, 6, 6, 0] * 10)])]
    assert kinds == ["error-worse"]


def test_clients_that_are_gone_or_new():
    assert found([writes([0])], [writes([0], client_id="shop")]) == [
        ("client-gone", "billing-7"), ("client-new", "shop"),
    ]  # fmt: skip


def test_slower_answers_and_fewer_requests():
    quick, slow = writes([0] * 40, every_ms=100), writes([0] * 40, every_ms=20, wait_ms=85)
    assert found([quick], [slow]) == [("latency-higher", "Produce at 10.0.1.3:9092")]
    seldom = writes([0] * 40, every_ms=1000)
    assert found([quick], [seldom]) == [("rate-lower", "Produce")]
    assert found([seldom], [quick]) == [("rate-higher", "Produce")]


def test_few_requests_are_no_measure_of_latency():
    assert found([writes([0] * 5, wait_ms=5)], [writes([0] * 5, wait_ms=900)]) == []


def test_another_topic_id():
    first, second = talking(), talking()
    metadata(first, 1)
    metadata(second, 1, NEW)
    assert found([first.close()], [second.close()]) == [("topic-id", "orders")]


def test_a_topic_that_was_recreated_before_has_no_other_id_after():
    first, second = talking(), talking()
    metadata(first, 1)
    metadata(first, 2, NEW)
    metadata(second, 1, NEW)
    assert found([first.close()], [second.close()]) == []


def test_a_topic_without_an_id_is_no_difference():
    first, second = talking(), talking()
    metadata(first, 1)
    metadata(second, 1, "A" * 22)
    metadata(second, 2)
    assert found([first.close()], [second.close()]) == []


def test_what_matters_comes_first():
    assert [kind in MATTERS for kind in KINDS] == sorted((kind in MATTERS for kind in KINDS), reverse=True)


def test_a_difference_of_a_broker_has_its_client_id_and_its_name_in_words():
    """By the client ID `diff` separates brokers' own requests from those of clients."""
    before, after = (Traffic().read([capture(writes(errors, client_id="3"))]) for errors in ([0] * 6, [0, 6, 6, 6]))
    (one,) = differences(before, after)
    assert (one.client_id, one.subject) == ("3", "NOT_LEADER_OR_FOLLOWER node 3 Produce orders")
