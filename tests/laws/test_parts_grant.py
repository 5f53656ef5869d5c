"""An answer grants something if the lowest parts of it do: what is above them grants nothing by itself."""

from hypothesis import given
from hypothesis import strategies as st

from tests.judge.lab import Lab
from wirecheck.judge.claims.outcomes import SUCCESS

ERRORS = st.sampled_from([0, 0, 88, 15])
GROUPS = st.lists(st.tuples(ERRORS, st.lists(ERRORS, max_size=3)), min_size=1, max_size=3)
"""Of each group of an OffsetFetch answer: its own error, and those of its partitions."""


def grants(groups):
    partitions = [error for _, errors in groups for error in errors]
    return 0 in (partitions or [error for error, _ in groups])


@given(GROUPS)
def test_a_group_without_an_error_grants_only_what_its_partitions_do(groups):
    rows = [
        {"groupId": f"g{number}", "errorCode": error, "topics": [{"name": "songs", "partitions": [
            {"partitionIndex": index, "errorCode": code} for index, code in enumerate(errors)]}]}
        for number, (error, errors) in enumerate(groups)
    ]  # fmt: skip
    lab = Lab()
    lab.talk().ask(1, "OffsetFetch", 9, {"groups": []}, {"groups": rows})
    (one,) = (claim for claim in lab.claims() if claim.kind == "activity")
    assert (SUCCESS in one.outcomes) == grants(groups)
