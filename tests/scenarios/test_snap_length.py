"""Captures of which each packet's beginning alone was kept: what is not seen is in no tick."""

import gzip
import struct
from pathlib import Path

import pytest

from wirecheck import library

CAPTURE = Path(__file__).parents[2] / "examples/kraft4-stale-broker/capture.pcap.gz"
"""Two of its clients are hurt."""
HEAD, RECORD = 24, 16


def cut(capture, length):
    """A pcap as a capture with this snap length has it."""
    yield capture[:16] + struct.pack("<I", length) + capture[20:HEAD]
    at = HEAD
    while at < len(capture):
        seconds, fraction, kept, size = struct.unpack_from("<IIII", capture, at)
        body = capture[at + RECORD : at + RECORD + kept]
        yield struct.pack("<IIII", seconds, fraction, min(kept, length), size) + body[:length]
        at += RECORD + kept


@pytest.mark.filterwarnings("ignore:.*snap length")
@pytest.mark.parametrize("length", [96, 128, 200, 500])
def test_hurt_clients_are_under_no_tick_however_little_was_kept(length, tmp_path):
    path = tmp_path / "cut.pcap"
    path.write_bytes(b"".join(cut(gzip.decompress(CAPTURE.read_bytes()), length)))
    assert library.replay(path).marks.work.mark != "clear"


@pytest.mark.filterwarnings("ignore:.*snap length")
def test_a_client_whose_answers_were_cut_is_not_known_to_work(tmp_path):
    path = tmp_path / "cut.pcap"
    path.write_bytes(b"".join(cut(gzip.decompress(CAPTURE.read_bytes()), 96)))
    found = library.replay(path)
    assert {one.work.state for one in found.clients if one.is_counted} == {"not captured"}
    assert found.marks.ids_and_versions.mark == "visibility"
