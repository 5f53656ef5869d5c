"""Interfaces of each hardware type: what they deliver is read, whatever stands before IP, or does not."""

import fcntl
import os
import socket
import struct
import time

import pytest

from tests.capture.source.test_bpf import may_listen, v4
from wirecheck.capture.frames import Stamp
from wirecheck.capture.source.interface import Interface

TUNSETIFF, TUNSETLINK, SIOCSIFFLAGS = 0x400454CA, 0x400454CD, 0x8914  # linux/if_tun.h, linux/sockios.h
IFF_UP, IFF_TUN, IFF_NO_PI = 1, 1, 0x1000
TYPES = {
    "ipoib": 32, "ppp": 512, "wwan": 519, "ipip": 768, "ip6tnl": 769, "sit": 776, "ipgre": 778, "ip6gre": 823,
    "tun": 65534, "hippi": 780,
}  # fmt: skip


def may_make_devices():
    return may_listen() and os.access("/dev/net/tun", os.R_OK | os.W_OK)


@pytest.fixture
def device(request):
    """A tun device of this hardware type, that is up; what is written into it arrives on it."""
    name = f"wc{TYPES[request.param]}"
    handle = os.open("/dev/net/tun", os.O_RDWR)
    try:
        fcntl.ioctl(handle, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
        fcntl.ioctl(handle, TUNSETLINK, TYPES[request.param])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", name.encode(), IFF_UP))
        yield name, handle
    finally:
        os.close(handle)


@pytest.mark.skipif(not may_make_devices(), reason="needs CAP_NET_RAW, CAP_NET_ADMIN and /dev/net/tun")
@pytest.mark.parametrize("device", TYPES, indirect=True)
@pytest.mark.parametrize("expression", [None, "tcp port 9092"])
def test_packets_are_read_whatever_the_hardware_type(device, expression):
    name, handle = device
    if expression is not None:
        pytest.importorskip("scapy.libs.winpcapy", exc_type=OSError)
    interface = Interface(name, () if expression else (9092,), expression, buffer_bytes=4 << 20)
    try:
        for number in range(3):
            os.write(handle, v4(9092, 40000 + number))
        os.write(handle, v4(9093, 40009))
        assert ports(interface) == [40000, 40001, 40002]
    finally:
        interface.close()


def ports(interface):
    found, until_s = [], time.monotonic() + 3
    while len(found) < 3 and time.monotonic() < until_s:
        time.sleep(0.15)  # a block that is not full is handed over after 0.1 s
        for rows in interface.batches(Stamp("c", "a")):
            found += [row["dst_port"] for row in rows.to_pylist()]
    return sorted(found)
