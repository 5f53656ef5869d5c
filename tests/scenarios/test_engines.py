"""Both engines of a replay give what the plain loop gives, and none cares how the frames were cut up."""

import random

import pytest

from tests.depth import some
from tests.scenarios import engines
from tests.scenarios.engines import Scenario, frames, plain
from wirecheck.streaming.steps.settings import Settings

BY_SPARK = (
    "kraft-clients-zoo", "kraft4-healthy", "two-clusters-one-wire", "zk27-to-28-ids-appear", "zk28-lossy-network",
    "zk28-recreate", "zk39-inconsistent-id",
)  # fmt: skip
"""Each takes a query of several seconds; all captures take the plain loop (test_captures.py)."""
STORY = "zk28-recreate"  # a finding, ids that change twice, several connections


def without_frames(result):
    """Evidence names frames of files; everything else must not depend on how the capture was cut into files."""
    findings = [{**finding, "sides": None} for finding in result["findings"]]
    entries = [{**entry, "card": without_evidence(entry["card"])} for entry in result["entries"]]
    return {**result, "findings": sorted(findings, key=lambda finding: finding["id"]), "entries": entries}


def without_evidence(card):
    """The command stays: it names the finding."""
    return {**card, "evidence": {**card["evidence"], "frames": None}}


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    folder = tmp_path_factory.mktemp("story")
    return plain([frames([Scenario(STORY).pcap], folder)])


@pytest.mark.spark
@pytest.mark.parametrize("name", some(BY_SPARK))
def test_both_engines_lead_to_the_same_result(name, spark, tmp_path):
    files = frames([Scenario(name).pcap], tmp_path / "frames", roll_bytes=1 << 20)
    assert engines.spark(spark, tmp_path / "frames", tmp_path) == engines.local(files)


@pytest.mark.spark
def test_one_file_per_batch_is_as_good_as_all_at_once(story, spark, tmp_path):
    files = frames([Scenario(STORY).pcap], tmp_path / "frames", roll_bytes=300_000)
    assert len(files) > 3
    assert engines.spark(spark, tmp_path / "frames", tmp_path, batch_bytes=1) == story


def test_files_judged_as_they_appear_give_what_all_give_at_once(story, tmp_path):
    files = frames([Scenario(STORY).pcap], tmp_path, roll_bytes=100_000)
    assert len(files) > 9
    assert engines.local(files) == story


@pytest.mark.parametrize("buckets", some([3, 1, 32]))
def test_buckets_change_nothing(buckets, story, tmp_path):
    files = frames([Scenario(STORY).pcap], tmp_path)
    assert plain([files], Settings(buckets=buckets)) == story


@pytest.mark.parametrize("roll_bytes", some([200_000, 50_000]))
def test_batches_change_nothing(roll_bytes, story, tmp_path):
    files = frames([Scenario(STORY).pcap], tmp_path, roll_bytes=roll_bytes)
    assert plain([[file] for file in files]) == story


def test_files_in_a_strange_order_change_nothing(story, tmp_path):
    files = frames([Scenario(STORY).pcap], tmp_path, roll_bytes=100_000)
    random.Random(4).shuffle(files)
    assert plain([[file] for file in files]) == story


def test_a_pcap_in_ten_pieces_in_any_order_is_one_capture(story, tmp_path):
    pieces = cut(engines.packets(Scenario(STORY)), 10, tmp_path)
    random.Random(7).shuffle(pieces)
    assert without_frames(plain([frames(pieces, tmp_path / "frames")])) == without_frames(story)


def cut(packets, count, folder):
    """The packets of a classic pcap in `count` files."""
    head, *rest = packets
    each = -(-len(rest) // count)
    paths = []
    for n in range(count):
        paths.append(folder / f"piece-{n}.pcap")
        paths[-1].write_bytes(head + b"".join(rest[n * each : (n + 1) * each]))
    return paths
