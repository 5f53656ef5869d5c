"""A segment that its receiver drops by its checksum is no frame; what offloading leaves unfinished is one."""

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import traffic as t
from tests.capture.reading import frames_of, skipped
from tests.depth import examples
from wirecheck.capture.link.packet import FEW, KNOWN, LONGEST

SEGMENT = t.Segment(("10.0.0.1", 40000), ("10.0.0.9", 9092), 1000, 7, t.PSH | t.ACK, b"kafka")
OVER_IPV6 = t.Segment(("fd00::1", 40000), ("fd00::9", 9092), 1000, 7, t.PSH | t.ACK, b"kafka")


def folded(total):
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def words(data):
    return sum(struct.unpack(f">{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))


def with_checksum(segment, kind):
    """RFC 9293 3.1 in plain words: valid, wrong, or as offloading leaves it."""
    packet = bytearray(t.ip(segment))
    is_v6 = packet[0] >> 4 == 6
    header, addresses = (40, slice(8, 40)) if is_v6 else (20, slice(12, 20))
    packet[header + 16 : header + 18] = bytes(2)
    pseudo = words(bytes(packet[addresses])) + 6
    length = len(packet) - header
    valid = 0xFFFF ^ folded(pseudo + length + words(bytes(packet[header:])))
    known = {"valid": valid, "partial": folded(pseudo + length), "partial without length": folded(pseudo), "none": 0}
    known["wrong"] = next(one for one in range(7, 99) if one not in known.values())
    packet[header + 16 : header + 18] = struct.pack(">H", known[kind])
    return t.Packet(segment.ts_ns, bytes(packet))


def read(tmp_path, packets):
    path = tmp_path / "x.pcap"
    path.write_bytes(t.pcap(packets, link_type=t.RAW))
    return len(frames_of(path)), skipped(path)


RIGHT = ("valid", "partial", "partial without length", "none")


@pytest.mark.parametrize("segment", [SEGMENT, OVER_IPV6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("kind", RIGHT)
def test_one_wrong_checksum_among_right_ones_is_ignored_and_counted(tmp_path, segment, kind):
    packets = [with_checksum(segment, kind)] * KNOWN + [with_checksum(segment, "wrong")]
    assert read(tmp_path, packets) == (KNOWN, {"bad-checksum": 1})


def test_before_a_host_is_known_nothing_is_ignored(tmp_path):
    packets = [with_checksum(SEGMENT, "valid")] * (KNOWN - 1) + [with_checksum(SEGMENT, "wrong")]
    assert read(tmp_path, packets) == (KNOWN, {})


def test_a_host_whose_checksums_mean_nothing_is_not_checked(tmp_path):
    packets = [with_checksum(SEGMENT, kind) for kind in ["wrong"] * 5 + ["valid"] * (FEW * 5 - 1) + ["wrong"] * 3]
    assert read(tmp_path, packets) == (len(packets), {})


def test_what_a_card_may_have_merged_is_not_checked(tmp_path):
    for size, ignored in ((LONGEST, {"bad-checksum": 1}), (LONGEST + 1, {})):
        long = replace(SEGMENT, payload=b"x" * size)
        _, reasons = read(tmp_path, [with_checksum(SEGMENT, "valid")] * KNOWN + [with_checksum(long, "wrong")])
        assert reasons == ignored


@examples(25, deep=60)
@given(payload=st.binary(max_size=64))
def test_every_length_of_payload_sums_as_the_plain_words_do(tmp_path_factory, payload):
    segment = replace(SEGMENT, payload=payload)
    packets = [with_checksum(segment, "valid")] * KNOWN + [with_checksum(segment, "wrong")]
    assert read(tmp_path_factory.mktemp("sums"), packets) == (KNOWN, {"bad-checksum": 1})
