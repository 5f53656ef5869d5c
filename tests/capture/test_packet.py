"""One packet of each shape: (link type, bytes) and what they mean."""

import struct

import pytest

from tests import traffic as t
from tests.capture.reading import frames_of, skipped

V4 = t.Segment(("10.0.0.1", 40000), ("10.0.0.9", 9092), 4_294_967_295, 7, t.PSH | t.ACK, b"kafka")
V6 = t.Segment(("fd00::1", 65535), ("2001:db8::9", 1), 1, 4_000_000_000, t.ACK, b"kafka6")


def v4(**changes):
    return t.ipv4("10.0.0.1", "10.0.0.9", t.tcp(V4), **changes)


def v6(*chain, **changes):
    return t.ipv6("fd00::1", "2001:db8::9", t.tcp(V6), chain=chain, **changes)


def extension(size=0):
    return bytes([size]) + bytes(6 + 8 * size)


def meaning(row):
    ends = (row["src_ip"], row["src_port"], row["dst_ip"], row["dst_port"])
    return (*ends, row["tcp_seq"], row["tcp_ack"], row["tcp_flags"], row["payload"])


def said(segment):
    return (*segment.src, *segment.dst, segment.seq, segment.ack, segment.flags, segment.payload)


ATOMIC_FRAGMENT = (44, struct.pack(">BHI", 0, 0, 9))
READABLE = {
    "ethernet and IPv4": (t.ETHERNET, t.ethernet(t.ip(V4)), V4),
    "ethernet and IPv6": (t.ETHERNET, t.ethernet(t.ip(V6)), V6),
    "one VLAN tag": (t.ETHERNET, t.ethernet(t.ip(V4), vlans=[(0x8100, 12)]), V4),
    "QinQ": (t.ETHERNET, t.ethernet(t.ip(V6), vlans=[(0x88A8, 1), (0x8100, 12)]), V6),
    "QinQ by its older number": (t.ETHERNET, t.ethernet(t.ip(V4), vlans=[(0x9100, 1), (0x8100, 12)]), V4),
    "ethernet padding after a short packet": (t.ETHERNET, t.ethernet(t.ip(V4)) + bytes(12), V4),
    "Linux cooked": (t.SLL, t.sll(t.ip(V4)), V4),
    "Linux cooked with IPv6": (t.SLL, t.sll(t.ip(V6)), V6),
    "Linux cooked v2": (t.SLL2, t.sll2(t.ip(V4)), V4),
    "Linux cooked v2 with IPv6": (t.SLL2, t.sll2(t.ip(V6)), V6),
    "null, little endian": (t.NULL, t.loopback(t.ip(V4), 2, "<"), V4),
    "null, big endian": (t.NULL, t.loopback(t.ip(V4), 2, ">"), V4),
    "null with IPv6 of a Mac": (t.NULL, t.loopback(t.ip(V6), 30, "<"), V6),
    "OpenBSD loop": (t.LOOP, t.loopback(t.ip(V6), 24, ">"), V6),
    "raw IPv4": (t.RAW, t.ip(V4), V4),
    "raw IPv6": (t.RAW, t.ip(V6), V6),
    "raw IP as some BSDs number it": (12, t.ip(V4), V4),
    "raw IP as OpenBSD numbers it": (14, t.ip(V6), V6),
    "IPv4 only": (t.IPV4, t.ip(V4), V4),
    "IPv6 only": (t.IPV6, t.ip(V6), V6),
    "IPv4 options": (t.RAW, v4(options=b"\x94\x04\x00\x00"), V4),
    "don't fragment": (t.RAW, v4(fragment=0x4000), V4),
    "IPv4 total length 0, as offloading leaves it": (t.RAW, v4(total=0), V4),
    "IPv6 payload length 0": (t.RAW, v6(length=0), V6),
    "IPv6 hop by hop": (t.RAW, v6((0, extension())), V6),
    "IPv6 routing, destination and authentication": (
        t.RAW,
        v6((0, extension(1)), (43, extension(2)), (60, extension()), (51, bytes([4]) + bytes(22))),
        V6,
    ),
    "IPv6 atomic fragment": (t.RAW, v6(ATOMIC_FRAGMENT), V6),
    "TCP options": (t.RAW, t.ipv4("10.0.0.1", "10.0.0.9", t.tcp(V4, options=bytes(10))), V4),
}


@pytest.mark.parametrize(("link_type", "data", "segment"), READABLE.values(), ids=READABLE)
def test_a_segment_is_found_behind(link_type, data, segment, written):
    found = frames_of(written(t.pcap([t.Packet(0, data)], link_type=link_type)))
    assert [said(segment)] == [meaning(row) for row in found]
    assert found[0]["payload_len"] == len(segment.payload)
    assert found[0]["left_out"] == []


ICMP = t.ipv4("10.0.0.1", "10.0.0.9", bytes(8), protocol=1)
SHORT_OFFSET = bytearray(t.tcp(V4))
SHORT_OFFSET[12] = 0x40
UNREADABLE = {
    "UDP": (t.RAW, t.ipv4("10.0.0.1", "10.0.0.9", bytes(8), protocol=17), "non-tcp"),
    "ICMPv6": (t.RAW, t.ipv6("fd00::1", "fd00::2", bytes(8), protocol=58), "non-tcp"),
    "encrypted IPv6": (t.RAW, v6((0, extension()), protocol=50), "non-tcp"),
    "first IPv4 fragment": (t.RAW, v4(fragment=0x2000), "ipv4-fragment"),
    "later IPv4 fragment": (t.RAW, v4(fragment=0x0010), "ipv4-fragment"),
    "fragment of a datagram that is no TCP": (
        t.RAW,
        t.ipv4("1.1.1.1", "2.2.2.2", bytes(8), protocol=17, fragment=1),
        "non-tcp",
    ),
    "first IPv6 fragment": (t.RAW, v6((44, struct.pack(">BHI", 0, 1, 9))), "ipv6-fragment"),
    "later IPv6 fragment": (t.RAW, v6((44, struct.pack(">BHI", 0, 8, 9))), "ipv6-fragment"),
    "IPv6 fragment of UDP": (t.RAW, v6((44, struct.pack(">BHI", 0, 8, 9)), protocol=17), "non-tcp"),
    "ARP": (t.ETHERNET, t.ethernet(bytes(28), kind=0x0806), "not-ip"),
    "802.3 with a length": (t.ETHERNET, t.ethernet(bytes(38), kind=38), "not-ip"),
    "ARP in a VLAN": (t.ETHERNET, t.ethernet(bytes(28), vlans=[(0x8100, 1)], kind=0x0806), "not-ip"),
    "another family on loopback": (t.NULL, t.loopback(t.ip(V4), 7, "<"), "not-ip"),
    "wireless": (105, bytes(80), "unsupported-link-type"),
    "IP version 5": (t.RAW, b"\x55" + bytes(60), "bad-header"),
    "IPv4 header of 16 bytes": (t.RAW, b"\x44" + t.ip(V4)[1:], "bad-header"),
    "IPv4 shorter than its header": (t.RAW, v4(total=19), "bad-header"),
    "IPv4 that ends inside TCP": (t.RAW, v4(total=39), "bad-header"),
    "TCP header of 16 bytes": (t.RAW, t.ipv4("10.0.0.1", "10.0.0.9", bytes(SHORT_OFFSET)), "bad-header"),
    "nothing at all": (t.ETHERNET, b"", "bad-header"),
    "ethernet of 13 bytes": (t.ETHERNET, bytes(13), "bad-header"),
    "a VLAN tag that ends": (t.ETHERNET, t.ethernet(b"", vlans=[(0x8100, 1)], kind=0x0800)[:16], "bad-header"),
    "an IPv6 chain that runs out": (
        t.RAW,
        t.ipv6("fd00::1", "fd00::2", b"", chain=[(0, b"\xff" + bytes(6))]),
        "bad-header",
    ),
}


@pytest.mark.parametrize(("link_type", "data", "reason"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_segment_is_counted_by_reason(link_type, data, reason, written):
    path = written(t.pcap([t.Packet(0, data)], link_type=link_type))
    assert skipped(path) == {reason: 1}
    assert frames_of(path) == []


@pytest.mark.parametrize("snaplen", range(len(t.ethernet(t.ip(V6)))))
@pytest.mark.parametrize("segment", [V4, V6], ids=["IPv4", "IPv6"])
def test_a_snaplen_leaves_a_span_out_or_a_header_short(segment, snaplen, written):
    whole = t.Packet(0, t.ethernet(t.ip(segment)))
    path = written(t.pcap([t.cut(whole, snaplen)]))
    headers = len(whole.data) - len(segment.payload)
    if snaplen >= len(whole.data):
        return
    if snaplen < headers:
        assert skipped(path) == {"snaplen-header": 1}
        return
    (row,) = frames_of(path)
    kept = snaplen - headers
    assert (row["payload"], row["payload_len"]) == (segment.payload[:kept], len(segment.payload))
    assert row["left_out"] == [{"offset": kept, "length": len(segment.payload) - kept}]


def test_a_snaplen_may_cut_tcp_options(written):
    whole = t.Packet(0, t.ipv4("10.0.0.1", "10.0.0.9", t.tcp(V4, options=bytes(12))))
    (row,) = frames_of(written(t.pcap([t.cut(whole, 45)], link_type=t.RAW)))
    assert (row["payload"], row["payload_len"]) == (b"", 5)
    assert row["left_out"] == [{"offset": 0, "length": 5}]


def test_an_offloaded_packet_that_a_snaplen_cut_has_the_length_of_the_wire(written):
    whole = t.Packet(0, v4(total=0))
    (row,) = frames_of(written(t.pcap([t.cut(whole, 42)], link_type=t.RAW)))
    assert (row["payload"], row["payload_len"], row["left_out"]) == (b"ka", 5, [{"offset": 2, "length": 3}])


def test_bytes_that_the_ip_length_promises_and_the_capture_lacks_are_left_out(written):
    (row,) = frames_of(written(t.pcap([t.Packet(0, v4(total=50))], link_type=t.RAW)))
    assert (row["payload"], row["payload_len"], row["left_out"]) == (b"kafka", 10, [{"offset": 5, "length": 5}])


def test_all_nine_flags_are_kept(written):
    segments = [t.Segment(("1.1.1.1", 1), ("2.2.2.2", 2), 0, 0, flags) for flags in (0, 1, 2, 4, 255, 256, 511)]
    found = frames_of(written(t.pcap(t.packets(segments))))
    assert [row["tcp_flags"] for row in found] == [segment.flags for segment in segments]


def test_more_addresses_than_a_batch_can_name_end_the_batch_and_nothing_else(written):
    segments = [t.Segment((f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}", 1), ("10.9.9.9", 2), i, 0, 0) for i in range(9000)]
    found = frames_of(written(t.pcap(t.packets(segments))))
    assert [row["src_ip"] for row in found] == [segment.src[0] for segment in segments]
