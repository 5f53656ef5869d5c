"""Buckets are dealt to tasks evenly, by Spark's own hash, whatever their number and the number of tasks."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirecheck.streaming.spark import placement
from wirecheck.streaming.spark.operators import spread
from wirecheck.streaming.steps.tagged import EXCHANGES, PROGRESS, Tagged

# What SELECT hash(label, bucket) of Spark 4.3 gives.
SPARK_SAID = {
    ("default", 0): 977840917,
    ("default", 7): -782591795,
    ("prod", 3): -1962292459,
    ("K\u00f6ln", -5): 1043765617,
    ("", 2147483647): -1376410642,
}


@given(st.text(max_size=40), st.integers(1, 200), st.integers(1, 500))
def test_no_task_has_two_buckets_more_than_another(label, buckets, partitions):
    keys = placement.keys(label, buckets)
    tasks = Counter(placement.task(label, key, partitions) for key in keys)
    counts = [tasks[number] for number in range(partitions)]
    assert max(counts) - min(counts) <= 1


@given(st.text(max_size=40), st.integers(1, 200))
def test_every_bucket_has_a_key_of_its_own(label, buckets):
    keys = placement.keys(label, buckets)
    assert len(set(keys)) == buckets
    assert all(-(1 << 31) <= key < 1 << 31 for key in keys)


@given(st.text(max_size=40), st.integers(1, 50))
def test_a_key_does_not_depend_on_how_many_buckets_there_are(label, buckets):
    assert placement.keys(label, buckets + 1)[:buckets] == placement.keys(label, buckets)


@given(st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 32) - 1))
def test_the_hash_of_a_number_can_be_undone(wanted, seed):
    assert placement.hash_of_int(placement.hashed_to(wanted, seed), seed) == wanted


def test_without_keys_eight_buckets_would_not_be_even():
    """What was before, and would be again if a key were the bucket's own number."""
    tasks = Counter(placement.task("default", bucket, 4) for bucket in range(8))
    assert sorted(tasks[number] for number in range(4)) != [2, 2, 2, 2]


@pytest.mark.parametrize(("label", "value"), SPARK_SAID)
def test_the_hash_is_sparks(label, value):
    found = placement.signed(placement.hash_of_int(value, placement.hash_of_text(label)))
    assert found == SPARK_SAID[label, value]


@pytest.mark.parametrize("partitions", [1, 2, 3, 4, 8, 64])
def test_cells_of_one_bucket_are_decoded_by_all_tasks_alike(partitions):
    """One hot connection is one bucket. What is not to be decoded keeps its bucket."""
    progress = Tagged("lab", 5, PROGRESS, b"")
    rows = [*spread([*[Tagged("lab", 5, EXCHANGES, b"")] * 200, progress], "lab", 5)]
    assert rows[-1] == progress
    tasks = Counter(placement.task("lab", row.bucket, partitions) for row in rows[:-1])
    counts = [tasks[number] for number in range(partitions)]
    assert max(counts) <= 200 / partitions + 4


def test_cells_of_several_buckets_begin_at_different_tasks():
    first = {next(spread([Tagged("lab", bucket, EXCHANGES, b"")], "lab", bucket)).bucket for bucket in range(8)}
    assert len({placement.task("lab", key, 8) for key in first}) == 8
