"""The generator of live capture: what it sends is what comes over, at the rate it was asked for."""

import socket

import pytest

from bench import generator
from bench.traffic import write_capture

SO_RCVBUFFORCE = 33  # asm-generic/socket.h


@pytest.fixture
def packets(tmp_path):
    written = write_capture(tmp_path / "small.pcap", 100_000, "small")
    packets = generator.Packets(tmp_path / "small.pcap")
    assert len(packets) == written.frames
    return packets


@pytest.fixture
def listener():
    """A socket that sees what comes over."""
    try:
        with generator.wire(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as opened:
            opened.bind((generator.RECEIVES, 3))
            opened.settimeout(5)
            opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
            yield opened
    except (OSError, AttributeError) as error:
        pytest.skip(f"needs the right to make interfaces: {error}")


def test_every_packet_comes_over_and_each_round_has_its_own_addresses(packets, listener):
    before, rounds = generator.offered(), 2
    generator.send(packets, 100_000, rounds * len(packets) / 100_000)
    assert generator.offered() - before == rounds * len(packets)
    first, second = (came[generator.SECOND_OCTETS[0]] for came in (listener.recv(2048), newest(listener)))
    assert (first, second) == (0, 1)


def newest(listener):
    """The last packet that waits."""
    came = b""
    listener.setblocking(False)
    while True:
        try:
            came = listener.recv(2048)
        except BlockingIOError:
            return came


def test_an_interface_that_is_not_there_is_said(packets):
    with socket.socket() as other, pytest.raises(OSError, match=generator.SENDS):
        packets.send(other.fileno(), 0, 1)
