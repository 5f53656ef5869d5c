"""Both engines of a replay give what the plain loop gives, and none cares how the frames were cut up."""

import random

import pytest

from tests.depth import some
from tests.scenarios import engines
from tests.scenarios.engines import Scenario, frames, plain

BY_SPARK = (
    "kip516-draft-contradiction", "kraft-clients-zoo",
    "kraft4-healthy", "two-clusters-one-wire", "zk27-to-28-ids-appear", "zk28-lossy-network",
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
@pytest.mark.parametrize("name", some(BY_SPARK, each=8))
def test_both_engines_lead_to_the_same_result(name, spark, tmp_path):
    scenario = Scenario(name)
    files = frames([scenario.pcap], tmp_path / "frames", roll_bytes=1 << 20)
    settings = scenario.settings  # of a draft: its dialect
    assert engines.spark(spark, tmp_path / "frames", tmp_path, settings) == engines.local(files, settings)


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
