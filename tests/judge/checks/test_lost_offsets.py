"""GRP004 dates from the answer without offsets, after the recreation, whatever was committed under older IDs."""

from tests.judge.cases_offsets import commits, offsets_of, recreated
from tests.judge.lab import ID_1, ID_2, ID_3, Lab, ns


def test_after_two_recreations_offsets_of_the_id_before_the_last_are_lost():
    lab = Lab()
    recreated(lab)
    commits(lab, 20, 500, 10, ID_1)
    commits(lab, 50, 100, 10, ID_2)
    lab.deleted(60, "orders", ID_2)
    lab.metadata(65, [("orders", ID_3)])
    offsets_of(lab, 70, ID_3, -1)
    (finding,) = lab.findings("GRP004")
    assert ns(70) <= finding["first_seen"] < ns(71)
    committed = [side["claim"] for side in finding["sides"] if "commits" in side["claim"]]
    assert len(committed) == 1
    assert ID_2 in committed[0]
