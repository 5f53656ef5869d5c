"""Our filter in three places: an interpreter of classic BPF below, the kernel on a datagram socket, a live interface.

A Unix datagram socket runs its filter over the bytes of each message, and needs no right for it: so the kernel itself
is asked about every packet that the interpreter is asked about.
"""

import itertools
import socket
import struct
import time

import pytest

from tests import traffic as t
from tests.capture.agent.test_live_agent import may_listen
from wirecheck.capture.frames import Stamp
from wirecheck.capture.link import link_type as link
from wirecheck.capture.refusal import ListenError
from wirecheck.capture.source import bpf
from wirecheck.capture.source.interface import Interface

PORTS = (9092, 19092)
V4, V6 = ("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")
HOPS, DESTINATION = (0, bytes([0, 5, 2, 0, 0, 1, 0])), (60, bytes([0, 1, 4, 0, 0, 0, 0]))
ROUTING, FIRST, LATER = (
    (43, bytes([0, 4]) + bytes(5)),
    (44, bytes([0, 0, 1]) + bytes(4)),
    (44, bytes([0, 0, 9]) + bytes(4)),
)


def interpret(program, data):
    """How much of a packet a program wants (Documentation/networking/filter.rst); a read beyond its end is 0."""
    a = x = at = 0
    while True:
        code, true, false, k = program[at]
        at += 1
        if code in {0x30, 0x50, 0x28, 0x48}:
            begin, size = k + (x if code & 0x40 else 0), 1 if code & 0x10 else 2
            if begin + size > len(data):
                return 0
            a = int.from_bytes(data[begin : begin + size])
        elif code == 0x00:
            a = k
        elif code == 0x01:
            x = k
        elif code == 0x07:
            x = a
        elif code in {0x54, 0x64, 0x0C}:
            a = {0x54: a & k, 0x64: a << k, 0x0C: a + x}[code] & 0xFFFFFFFF
        elif code == 0x05:
            at += k
        elif code in {0x15, 0x45}:
            at += true if (a == k if code == 0x15 else a & k) else false
        else:
            assert code == 0x06, hex(code)
            return k


def kernel(program, data):
    """The same, as the kernel sees it: a message that is not wanted does not arrive."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        theirs.setblocking(False)
        bpf.attach(theirs, program)
        ours.send(data)
        try:
            return len(theirs.recv(1 << 16))
        except BlockingIOError:
            return 0


def wanted(data, link_type=link.LINK_ETHERNET, ports=PORTS):
    program = bpf.program(link_type, ports)
    interpreted, seen = interpret(program, data), kernel(program, data)
    assert seen == min(interpreted, len(data))
    return bool(interpreted)


def segment(src_port, dst_port, body=b"abc"):
    return t.tcp(t.Segment(("", src_port), ("", dst_port), 1, 1, t.PSH | t.ACK, body, 0))


def v4(src_port=9092, dst_port=40000, **how):
    return t.ipv4(*V4, segment(src_port, dst_port), **how)


def v6(src_port=9092, dst_port=40000, chain=(), body=None, **how):
    return t.ipv6(*V6, segment(src_port, dst_port) if body is None else body, chain=chain, **how)


UDP = struct.pack(">HHHH", 9092, 9092, 8, 0)
OURS = {
    "from-a-port": v4(),
    "to-a-port": v4(40000, 9092),
    "the-other-port": v4(40000, 19092),
    "options": v4(options=bytes(40)),
    "first-fragment": v4(fragment=0x2000),
    "later-fragment": t.ipv4(*V4, b"no header", fragment=0x20B9),
    "last-fragment": t.ipv4(*V4, b"no header", fragment=0x00B9),
    "v6": v6(),
    "v6-to-a-port": v6(40000, 19092),
    "v6-hop-by-hop": v6(chain=[HOPS]),
    "v6-routing": v6(chain=[ROUTING]),
    "v6-three": v6(chain=[HOPS, ROUTING, DESTINATION]),
    "v6-first-fragment": v6(chain=[FIRST]),
    "v6-later-fragment": v6(chain=[DESTINATION, LATER], body=b"no header"),
    "v6-extension-of-another-port": v6(1, 2, chain=[HOPS]),  # userspace decides
}
THEIRS = {
    "another-port": v4(9093, 40000),
    "a-port-in-the-payload": t.ipv4(*V4, segment(1, 2, struct.pack(">HH", 9092, 9092) * 20)),
    "a-port-in-the-options": v4(1, 2, options=struct.pack(">HH", 9092, 9092) * 10),
    "udp": t.ipv4(*V4, UDP, protocol=17),
    "udp-fragment": t.ipv4(*V4, b"no header", protocol=17, fragment=0x20B9),
    "first-fragment-of-another-port": v4(1, 2, fragment=0x2000),
    "cut-before-its-ports": v4()[:21],
    "v6-another-port": v6(1, 2),
    "v6-udp": t.ipv6(*V6, UDP, protocol=17),
    "v6-mld": t.ipv6(*V6, bytes(24), chain=[HOPS], protocol=58),
    "v6-udp-fragment": t.ipv6(*V6, bytes(24), chain=[LATER], protocol=17),
    "v6-cut": v6()[:41],
}
TAGS = {
    "untagged": (),
    "vlan": ((0x8100, 100),),
    "priority": ((0x8100, 0xE000),),
    "qinq": ((0x88A8, 7), (0x8100, 100)),
    "old-qinq": ((0x9100, 7), (0x8100, 100)),
    "three": ((0x88A8, 7), (0x8100, 8), (0x8100, 9)),
}


@pytest.mark.parametrize("tags", TAGS)
@pytest.mark.parametrize("name", [*OURS, *THEIRS])
def test_what_is_ours_is_seen_behind_any_tags_and_what_is_not_is_not(name, tags):
    packet = (OURS | THEIRS)[name]
    assert wanted(t.ethernet(packet, vlans=TAGS[tags])) == (name in OURS)


@pytest.mark.parametrize("name", [*OURS, *THEIRS])
def test_an_interface_without_a_link_header(name):
    assert wanted((OURS | THEIRS)[name], link.LINK_RAW) == (name in OURS)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (t.ethernet(v4(), vlans=((0x8100, 1),) * (bpf.TAGS + 1)), True),  # more than it walks: userspace decides
        (t.ethernet(v4(), kind=0x0806), False),
        (t.ethernet(v4(), kind=0x86DD), False),
        (t.ethernet(b""), False),
        (t.ethernet(v4())[:13], False),
        (b"", False),
    ],
)
def test_the_ether_type_says_what_follows(data, expected):
    assert wanted(data + (b"" if data else b"\0")) == expected


@pytest.mark.parametrize("name", [*OURS, *THEIRS])
def test_without_ports_all_tcp_is_ours(name):
    is_tcp = "udp" not in name and "mld" not in name
    assert wanted(t.ethernet((OURS | THEIRS)[name]), ports=()) == is_tcp


@pytest.mark.parametrize("version", [v4, v6])
def test_each_of_many_ports_counts_and_no_other(version):
    ports = range(9000, 9000 + bpf.PORTS)
    program = bpf.program(link.LINK_ETHERNET, ports)
    assert len(program) <= 4096  # BPF_MAXINSNS
    for src, dst in itertools.product((8999, 9000, 9000 + bpf.PORTS - 1, 9000 + bpf.PORTS), repeat=2):
        assert bool(interpret(program, t.ethernet(version(src, dst)))) == (src in ports or dst in ports)


def test_more_ports_than_a_program_holds_say_so():
    with pytest.raises(ListenError, match="1,001 ports: the limit is 1,000"):
        bpf.program(link.LINK_ETHERNET, range(1, bpf.PORTS + 2))


def test_a_jump_that_the_kernel_does_not_have_is_a_mistake_of_ours():
    with pytest.raises(AssertionError, match="jeq"):
        bpf.assemble(["jeq #1, far", *["tax"] * 256, "far: ret #0"])


def test_offloaded_packets_are_wanted_whole():
    assert interpret(bpf.program(link.LINK_ETHERNET, PORTS), t.ethernet(v4())) >= 1 << 19


FRAMES = {name for name in OURS if "fragment" not in name and name != "v6-extension-of-another-port"}


@pytest.mark.skipif(not may_listen(), reason="needs CAP_NET_RAW")
def test_the_kernel_s_own_view_of_tags_on_a_live_interface():
    """Loopback takes the outermost tag off, as an interface without offload does, and delivers none of these."""
    interface = Interface("lo", PORTS, buffer_bytes=4 << 20)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind(("lo", 0))
        for tags, packet in itertools.product(TAGS.values(), (OURS | THEIRS).values()):
            wire.send(t.ethernet(packet, vlans=tags))
    seen, skipped = drain(interface)
    interface.close()
    assert len(seen) == len(TAGS) * len(FRAMES)
    assert all(PORTS[0] in ports or PORTS[1] in ports for ports in seen)
    assert skipped == {"ipv4-fragment": 3 * len(TAGS), "ipv6-fragment": 2 * len(TAGS)}


def drain(interface):
    seen, until_s = [], time.monotonic() + 5
    while len(seen) < len(TAGS) * len(FRAMES) and time.monotonic() < until_s:
        time.sleep(0.3)  # a block that is not full is handed over after 0.1 s
        for rows in interface.batches(Stamp("c", "a")):
            seen += [(row["src_port"], row["dst_port"]) for row in rows.to_pylist() if row["src_ip"] in {V4[0], V6[0]}]
    return seen, {mark.reason: mark.count for mark in interface.rows.skipped_marks("lo", 0)}
