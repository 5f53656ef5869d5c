"""One packet of each shape: (link type, bytes) and what they mean."""

import struct
from dataclasses import replace

import pytest

from tests import traffic as t
from tests.capture.reading import frames_of, marks_of, skipped
from wirecheck.capture import frames

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
MIRRORED = t.ethernet(t.ip(V4), vlans=[(0x8100, 12)])
VXLAN = struct.pack(">BxxxI", 8, 77 << 8) + MIRRORED


def outer(protocol, body, **changes):
    return t.ethernet(t.ipv4("192.0.2.1", "192.0.2.2", body, protocol=protocol, **changes))


def udp(port, body):
    return struct.pack(">HHHH", 50000, port, 8 + len(body), 0) + body


def mpls(packet):
    return struct.pack(">II", 16 << 12 | 64, 17 << 12 | 1 << 8 | 64) + packet


def pppoe(packet, kind):
    return struct.pack(">BBHHH", 0x11, 0, 5, len(packet) + 2, kind) + packet


TUNNELLED = {
    "VXLAN": (t.ETHERNET, outer(17, udp(4789, VXLAN)), V4),
    "VXLAN on Linux's old port": (t.ETHERNET, outer(17, udp(8472, VXLAN)), V4),
    "VXLAN over IPv6": (t.RAW, t.ipv6("fd00::1", "fd00::2", udp(4789, VXLAN), protocol=17), V4),
    "VXLAN in VXLAN": (
        t.ETHERNET,
        outer(17, udp(4789, struct.pack(">BxxxI", 8, 1 << 8) + outer(17, udp(4789, VXLAN)))),
        V4,
    ),
    "Geneve with options": (
        t.ETHERNET,
        outer(17, udp(6081, struct.pack(">BBHI", 2, 0, 0x6558, 5 << 8) + bytes(8) + MIRRORED)),
        V4,
    ),
    "Geneve with IPv6 itself": (t.ETHERNET, outer(17, udp(6081, struct.pack(">BBHI", 0, 0, 0x86DD, 0) + t.ip(V6))), V6),
    "GRE": (t.ETHERNET, outer(47, struct.pack(">HH", 0, 0x0800) + t.ip(V4)), V4),
    "GRE with checksum, key and number": (
        t.ETHERNET,
        outer(47, struct.pack(">HH", 0xB000, 0x86DD) + bytes(12) + t.ip(V6)),
        V6,
    ),
    "GRE of a bridge": (t.ETHERNET, outer(47, struct.pack(">HH", 0, 0x6558) + MIRRORED), V4),
    "ERSPAN I": (t.ETHERNET, outer(47, struct.pack(">HH", 0, 0x88BE) + MIRRORED), V4),
    "ERSPAN II": (t.ETHERNET, outer(47, struct.pack(">HHI", 0x1000, 0x88BE, 1) + bytes(8) + MIRRORED), V4),
    "ERSPAN III": (t.ETHERNET, outer(47, struct.pack(">HHI", 0x1000, 0x22EB, 1) + bytes(12) + MIRRORED), V4),
    "ERSPAN III with a subheader": (
        t.ETHERNET,
        outer(47, struct.pack(">HHI", 0x1000, 0x22EB, 1) + bytes(11) + b"\x01" + bytes(8) + MIRRORED),
        V4,
    ),
    "IP in IP": (t.ETHERNET, outer(4, t.ip(V4)), V4),
    "IPv6 in IP": (t.ETHERNET, outer(41, t.ip(V6)), V6),
    "MPLS": (t.ETHERNET, t.ethernet(mpls(t.ip(V4)), kind=0x8847), V4),
    "MPLS with IPv6 in a VLAN": (t.ETHERNET, t.ethernet(mpls(t.ip(V6)), vlans=[(0x8100, 3)], kind=0x8847), V6),
    "PPPoE": (t.ETHERNET, t.ethernet(pppoe(t.ip(V4), 0x0021), kind=0x8864), V4),
    "PPPoE with IPv6": (t.ETHERNET, t.ethernet(pppoe(t.ip(V6), 0x0057), kind=0x8864), V6),
}
READABLE = {
    **TUNNELLED,
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


SHORT_OFFSET = bytearray(t.tcp(V4))
SHORT_OFFSET[12] = 0x40
UNREADABLE = {
    "UDP": (t.RAW, t.ipv4("10.0.0.1", "10.0.0.9", bytes(8), protocol=17), "non-tcp"),
    "ICMP": (t.RAW, t.ipv4("10.0.0.1", "10.0.0.9", bytes(8), protocol=1), "non-tcp"),
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
    "UDP to a tunnel's port without a tunnel's header": (t.ETHERNET, outer(17, udp(4789, bytes(60))), "non-tcp"),
    "TZSP": (t.ETHERNET, outer(17, udp(37008, b"\1\0\0\1\1" + t.ethernet(t.ip(V4)))), "tzsp-tunnel"),
    "GTP-U": (t.ETHERNET, outer(17, udp(2152, b"\x30\xff\0\x40\0\0\0\1" + t.ip(V4))), "gtp-u-tunnel"),
    "L2TP": (t.ETHERNET, outer(17, udp(1701, b"\0\2\0\1\0\1\xff\3\0\x21" + t.ip(V4))), "l2tp-tunnel"),
    "L2TP on IP": (t.ETHERNET, outer(115, bytes(8) + t.ethernet(t.ip(V4))), "l2tp-tunnel"),
    "a later fragment of UDP": (t.ETHERNET, outer(17, udp(2152, t.ip(V4)), fragment=3), "non-tcp"),
    "GTP's control messages": (t.ETHERNET, outer(17, udp(2123, bytes(40))), "non-tcp"),
    "a Geneve of another version": (t.ETHERNET, outer(17, udp(6081, b"\x40" + bytes(60))), "non-tcp"),
    "ARP in VXLAN": (
        t.ETHERNET,
        outer(17, udp(4789, struct.pack(">BxxxI", 8, 1 << 8) + t.ethernet(bytes(28), kind=0x0806))),
        "not-ip",
    ),
    "PPTP": (t.ETHERNET, outer(47, struct.pack(">HH", 0x3001, 0x880B) + bytes(40)), "non-tcp"),
    "GRE of something else": (t.ETHERNET, outer(47, struct.pack(">HH", 0, 0x9000) + bytes(40)), "not-ip"),
    "a pseudo-wire in MPLS": (t.ETHERNET, t.ethernet(mpls(bytes(40)), kind=0x8847), "not-ip"),
    "PPPoE's own talk": (t.ETHERNET, t.ethernet(pppoe(bytes(20), 0xC021), kind=0x8864), "not-ip"),
    "a later fragment of IP in IP": (t.ETHERNET, outer(4, t.ip(V4), fragment=3), "non-tcp"),
    "more tunnels than anybody builds": (
        t.RAW,
        t.ipv4(
            "1.1.1.1",
            "1.1.1.2",
            t.ipv4(
                "1.1.1.1",
                "1.1.1.2",
                t.ipv4("1.1.1.1", "1.1.1.2", t.ipv4("1.1.1.1", "1.1.1.2", t.ip(V4), protocol=4), protocol=4),
                protocol=4,
            ),
            protocol=4,
        ),
        "tunnels-too-deep",
    ),
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


@pytest.mark.parametrize(("link_type", "data", "segment"), TUNNELLED.values(), ids=TUNNELLED)
def test_a_tunnel_that_a_snaplen_cut_is_a_span_left_out_or_a_header_short(link_type, data, segment, written):
    """At every byte: neither a read beyond the end nor a payload that is not there."""
    cuts = [t.cut(t.Packet(0, data), snaplen) for snaplen in range(len(data))]
    path = written(t.pcap(cuts, link_type=link_type))
    found = frames_of(path)
    assert len({row["frame_no"] for row in found}) == len(found)
    assert len(found) + sum(skipped(path).values()) == len(cuts)
    assert all(row["payload_len"] == len(segment.payload) for row in found)


def test_packets_that_a_snaplen_cut_are_said(written):
    whole = t.ethernet(t.ip(V4))
    path = written(t.pcap([t.Packet(0, whole), t.cut(t.Packet(1, whole), len(whole) - 2)]))
    note = f"1 packet is cut to at most {len(whole) - 2} bytes (snap length); capture whole packets"
    assert marks_of(path) == [(frames.INPUT_ERROR, 0, note)]


@pytest.mark.parametrize("overhead", [0, 134])
def test_of_a_packet_that_tcpdump_cannot_keep_whole_it_is_said_what_can(written, overhead):
    """BIG TCP: it cuts at 262,144 bytes with its own headers."""
    kept = 262_144 - overhead
    big = t.ethernet(t.ipv4("10.0.0.1", "10.0.0.9", t.tcp(replace(V4, payload=bytes(270_000))), total=0))
    path = written(t.pcap([t.cut(t.Packet(0, big), kept)]))
    ((_, _, note),) = (mark for mark in marks_of(path) if "cut to at most" in mark[2])
    assert note.startswith(f"1 packet is cut to at most {kept} bytes (snap length); tcpdump keeps no more of a packet")


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
