"""What a month of a busy cluster leaves behind does not grow with the days."""

from tests.judge.busy_cluster import BATCHES, Cluster, judged

SETTLED = 2
"""The first batch that says nothing for the first time."""


def test_the_state_of_a_judge_is_as_large_after_a_month_as_in_its_first_days():
    sizes = [size for _, _, size in judged(Cluster(topics=50, clients=6), BATCHES)][SETTLED:]
    assert sizes[0] > 100_000
    assert sizes[-1] < 1.2 * sizes[0]
