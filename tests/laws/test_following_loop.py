"""Laws of following in the job: batches, buckets, the order of files, restarts and trimming change no exchange.

By the plain loop, which calls what the Spark operators call; tests/streaming/spark/test_query.py restarts
Spark.
"""

import gzip
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.damage import DAMAGE, Capture
from tests.depth import examples, some
from tests.scenarios.engines import Scenario
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings

STORY = "two-clusters-one-wire"  # small, and both of its clusters look the same
SHIPPED = ("two-clusters-one-wire", "kraft4-snapshot", "zk28-lossy-network", "zk28-sasl-tls")


def judged(batches, *, buckets=8, restarts=()):
    """(rows of all exchanges, result); a restart hands what a checkpoint keeps to a loop that knows nothing."""
    given_settings = Settings(buckets=buckets, exchanges=True)
    loop = Loop(given_settings)
    for number, batch in enumerate(batches):
        loop.batch(batch)
        if number in restarts:
            after = Loop(given_settings)
            after.buckets, after.shards, after.emitted = dict(loop.buckets), dict(loop.shards), loop.emitted
            loop = after
    return exchanges(loop), loop.result().json()


def exchanges(loop):
    shown = (
        {name: value for name, value in row.items() if name not in {"id", "revision"}} for row in loop.rows("exchanges")
    )
    return sorted(tuple(map(str, row.values())) for row in shown)


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    folder = tmp_path_factory.mktemp("story")
    files = write_frames([Scenario(STORY).pcap], folder / "frames", "default", roll_bytes=12_000).files
    assert len(files) >= 5
    return files, judged([files])


@examples(6, deep=12)
@given(st.data())
def test_batches_buckets_order_and_restarts_change_nothing(story, data):
    files, whole = story
    files = data.draw(st.permutations(files))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(files) - 1))))
    batches = [files[start:stop] for start, stop in itertools.pairwise([0, *cuts, len(files)])]
    restarts = data.draw(st.sets(st.integers(0, len(batches))))
    assert judged(batches, buckets=data.draw(st.sampled_from([1, 3, 8])), restarts=restarts) == whole


def both_ways(pcap, folder):
    """What is judged of trimmed frames, and of whole ones."""
    return [
        judged([write_frames([pcap], folder / str(keep), "default", keep_records=keep).files]) for keep in (False, True)
    ]


@pytest.mark.parametrize("name", some(SHIPPED, each=4))
def test_trimmed_frames_give_what_whole_ones_give(name, tmp_path):
    trimmed, whole = both_ways(Scenario(name).pcap, tmp_path)
    assert trimmed == whole


@pytest.mark.parametrize("damage", some([*DAMAGE], each=2))
def test_so_they_do_when_the_capture_is_damaged(damage, tmp_path):
    """Trimming cannot wait as long as following can: at a loss of a tenth it may miss a few, and may invent none."""
    whole = tmp_path / "whole.pcap"
    whole.write_bytes(gzip.decompress(Scenario(STORY).pcap.read_bytes()))
    Capture.read(whole).damaged(*DAMAGE[damage], bursts="bursts" in damage).write(tmp_path / "damaged.pcap")
    trimmed, kept = both_ways(tmp_path / "damaged.pcap", tmp_path)
    assert trimmed[1]["findings"] == kept[1]["findings"]
    if "10%" not in damage and "bursts" not in damage:
        assert trimmed[0] == kept[0]
    answered = [{row for row in exchanges if "answered" in row} for exchanges, _ in (trimmed, kept)]
    assert answered[0] <= answered[1]
    assert len(answered[0]) >= 0.99 * len(answered[1])
