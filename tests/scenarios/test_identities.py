"""Identities that change hands, from bytes on the wire to both engines' results; beside them, more connections without
an answer than have rows.
"""

import pytest

from tests.depth import some
from tests.judge.lab import Lab, ns
from tests.judge.test_checks import CASES
from tests.scenarios import engines
from tests.scenarios.engines import frames, plain
from tests.traffic import Packet, Talk, ethernet, ip, pcap, size_prefixed
from wirecheck.decode.peer import Peer
from wirecheck.decode.wire import REQUEST
from wirecheck.streaming.steps.settings import Settings

PROBES = 1500
STORIES = ("CLU003", "CLU004", "CTL012", "LOG004", "LOG005", "VIS008")


def segments(talk):
    """A connection of a story as TCP segments."""
    client, server = (Peer.of(end) for end in (talk.client, talk.server))
    began = ns(min(at for *_, at in talk.messages))
    wire = Talk(tuple(client), tuple(server), ts_ns=began - 3_000, step_ns=1_000).open()
    for data, side, *_, at in talk.messages:
        wire.ts_ns = max(wire.ts_ns, ns(at))
        (wire.request if side == REQUEST else wire.response)(size_prefixed(data))
    if talk.closed is not None:
        wire.reset()
    return wire.segments


def captured(code, folder):
    lab = Lab()
    CASES[code, "fires"](lab)
    said = [segment for talk in lab.talks for segment in segments(talk)]
    for number in range(PROBES):
        said += Talk(("10.0.0.50", 1024 + number), ("10.0.0.1", 9092), ts_ns=ns(number / 50)).open().segments
    folder.mkdir(exist_ok=True)
    file = folder / f"{code}.pcap"
    said.sort(key=lambda segment: segment.ts_ns)
    file.write_bytes(pcap(Packet(segment.ts_ns, ethernet(ip(segment))) for segment in said))
    return frames([file], folder / "frames")


@pytest.mark.parametrize("code", some([*STORIES], each=6))
def test_the_number_of_buckets_changes_nothing(code, tmp_path):
    files = captured(code, tmp_path)
    expected = plain([files], Settings(buckets=8))
    assert code in {finding["code"] for finding in expected["findings"]}
    assert expected["coverage"]["unlisted_connections"] > PROBES // 4
    assert plain([files], Settings(buckets=3)) == expected
    assert engines.local(files) == expected


@pytest.mark.spark
def test_both_engines_lead_to_the_same_result(spark, tmp_path):
    files = captured("CLU004", tmp_path)
    result = engines.local(files)
    assert "CLU004" in {finding["code"] for finding in result["findings"]}
    assert engines.spark(spark, tmp_path / "frames", tmp_path) == result
