"""Kafka's packets over a pair of virtual interfaces, at a rate, as many as the kernel takes from one core.

Knows: packets of bench/traffic.py laid out once in memory, handed to the kernel in batches by sendmmsg (a Python call
per packet ends at some 90 k packets/s), round after round from other addresses, so that every round is new connections.
Refuses to know: who captures, and what packets mean.
Rule: what was offered is what the kernel's counters of the receiving interface say, never what was meant. The packets
are addressed to another host, so that no TCP stack answers them; a packet socket sees them all the same. Needs root.
"""

import contextlib
import ctypes
import errno
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

WIRE = os.environ.get("BENCH_WIRE", "wcbench")
"""Another name lets two runs be on one machine."""
SENDS, RECEIVES = f"{WIRE}0", f"{WIRE}1"
TICK_S = 0.0005
MOST_AT_ONCE = 256
SECOND_OCTETS = 14 + 12 + 1, 14 + 16 + 1  # of both addresses: what makes a round's connections new
_SOL_PACKET, _PACKET_QDISC_BYPASS = 263, 20  # linux/if_packet.h
_HEADER_WORDS = 8  # struct mmsghdr is a struct msghdr of 56 bytes and a length, on 64 bits


@contextlib.contextmanager
def wire() -> Iterator[None]:
    """The pair of interfaces, up; removed afterwards. Raises OSError where they cannot be made."""

    def ip(*arguments: str) -> None:
        done = subprocess.run(["ip", "link", *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(done.stderr.strip())

    ip("add", SENDS, "type", "veth", "peer", "name", RECEIVES)
    try:
        for name in (SENDS, RECEIVES):
            ip("set", name, "addrgenmode", "none", "arp", "off", "up")
        yield
    finally:
        ip("del", SENDS)


def offered() -> int:
    """Packets that came over since the interfaces were made."""
    counters = Path(f"/sys/class/net/{RECEIVES}/statistics")
    received, dropped = (int((counters / name).read_text()) for name in ("rx_packets", "rx_dropped"))
    return received - dropped


class Packets:
    """One capture's packets where sendmmsg finds them."""

    def __init__(self, path: Path) -> None:
        self._data = np.fromfile(path, np.uint8)
        begin, size = self._walk()
        self._octets = np.concatenate([begin + octet for octet in SECOND_OCTETS])
        self._parts = np.stack([begin + self._data.ctypes.data, size], axis=1).astype(np.uint64)
        self._headers = np.zeros((len(begin), _HEADER_WORDS), np.uint64)
        self._headers[:, 2] = self._parts.ctypes.data + 16 * np.arange(len(begin), dtype=np.uint64)
        self._headers[:, 3] = 1
        self._send = ctypes.CDLL(None, use_errno=True).sendmmsg
        self._send.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int]

    def __len__(self) -> int:
        return len(self._headers)

    def _walk(self) -> tuple[np.ndarray, np.ndarray]:
        data, at, found = self._data.tobytes(), 24, []
        while at + 16 <= len(data):
            size = struct.unpack_from("<I", data, at + 8)[0]
            found.append((at + 16, size))
            at += 16 + size
        table = np.array(found, np.int64)
        return table[:, 0], table[:, 1]

    def renew(self, number: int) -> None:
        """All packets from addresses of this round."""
        self._data[self._octets] = number & 0xFF

    def send(self, out: int, first: int, count: int) -> int:
        """Packets from `first` on, at most `count`; how many the kernel took."""
        count = min(count, MOST_AT_ONCE, len(self) - first)
        address = self._headers.ctypes.data + 8 * _HEADER_WORDS * first
        taken: int = self._send(out, address, count, 0)
        if taken < 0 and ctypes.get_errno() not in {errno.ENOBUFS, errno.EAGAIN}:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), SENDS)
        return max(0, taken)


def send(packets: Packets, rate: int, seconds: float) -> None:
    """A few packets at a time, so that the mean rate holds; what is late is sent as soon as it can be."""
    total, sent = int(rate * seconds), 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((SENDS, 0))
        out.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
        begin = time.perf_counter()
        while sent < total:
            elapsed = time.perf_counter() - begin
            if elapsed > 2 * seconds:
                return
            due = min(total, int(elapsed * rate) + 1)
            while sent < due:
                number, first = divmod(sent, len(packets))
                if first == 0:
                    packets.renew(number)
                sent += packets.send(out.fileno(), first, due - sent)
            time.sleep(TICK_S)


def main(path: str, core: str, rate: str, seconds: str) -> None:
    """Prepare, say so, wait for a line, send; says in how many seconds."""
    os.sched_setaffinity(0, {int(core)})
    packets = Packets(Path(path))
    print("ready", flush=True)
    sys.stdin.readline()
    begin = time.perf_counter()
    send(packets, int(rate), float(seconds))
    print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
