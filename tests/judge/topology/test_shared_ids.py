"""Endpoints of one broker number that name a topic by different IDs."""

from tests.judge.made import claim
from wirecheck.judge.topology.membership import MOST_ENDS, contradictions


def named(ends):
    """Claims, in the order of their times: each lists broker 1 at itself and names one topic by an ID of its own."""
    lists = [claim("address", end, end, 1, at=at) for at, end in enumerate(ends)]
    names = [claim("names", end, at=at, peak={f"least:t:{at:022}": 0}) for at, end in enumerate(ends)]
    return {"address": lists, "names": names}


def test_two_endpoints_of_a_broker_contradict_each_other():
    ((number, ends, ids), *again) = contradictions(named(["10.0.0.1:9092", "10.9.0.1:9092"]))
    assert (number, ends, ids) == (1, ("10.0.0.1:9092", "10.9.0.1:9092"), (f"{0:022}", f"{1:022}"))
    assert all(other[1] == ends for other in again)


def test_a_host_that_claims_thousands_is_compared_a_bounded_number_of_times_and_displaces_nobody():
    """2,000 took minutes. Those named first stay: an attacker's addresses come later, whatever they are."""
    true = ["66.0.0.1:9092", "66.0.0.2:9092"]
    found = list(contradictions(named([*true, *(f"10.{i >> 8}.{i & 255}.1:9092" for i in range(2000))])))
    assert len({ends for _, ends, _ in found}) == MOST_ENDS * (MOST_ENDS - 1) // 2
    assert tuple(true) in {ends for _, ends, _ in found}
