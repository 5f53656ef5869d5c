"""Packets of one interface: scapy opens the socket, the kernel filters, a ring carries the packets.

What the kernel dropped is always asked for. On loopback every packet appears twice; the sent copy is ignored there.
Promiscuous mode only on request.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import mmap
import os
import socket
import struct
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.capture.link import link_type
from wirecheck.capture.refusal import ListenError
from wirecheck.capture.source import bpf, ring
from wirecheck.capture.source.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from wirecheck.capture import frames

logging.getLogger("scapy").setLevel(logging.ERROR)  # it warns that it has no layers loaded: we ask for none

_ETHERNET, _LOOPBACK = 1, 772  # linux/if_arp.h
_LAYER_3 = frozenset({519, 768, 769, 776, 778, 823, 65534})
"""Hardware types whose packets begin with IP: RAWIP (wwan), TUNNEL (IP in IP), TUNNEL6, SIT, IPGRE, IP6GRE, NONE (tun).
All others but Ethernet are opened as cooked sockets (packet(7)), which leave the link header out: PPP, IPoIB and so on.
"""
_DLT_RAW = 12  # libpcap's number for packets that begin with IP
_NAME_BYTES = 15
_SIOCGIFINDEX = 0x8933  # linux/sockios.h

BUFFER_BYTES = 128 << 20  # a trimming pass and a busy machine keep us away for some 0.3 s; at 150 MB/s twice that fits
_BATCH_BYTES = 2 << 20  # of payload: blocks that are ready become rows together, for a batch has a price of its own
_RETURN = 0x06  # linux/bpf_common.h: its answer is how many bytes of the packet are wanted

RIGHT_FIX = (
    f"setcap cap_net_raw+ep {os.path.realpath(sys.executable)}, or in a systemd unit AmbientCapabilities=CAP_NET_RAW"
)


class Interface:
    """One interface with its ring. Close it."""

    def __init__(
        self,
        name: str,
        ports: Sequence[int] = (),
        expression: str | None = None,
        *,
        promiscuous: bool = False,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        """Captures all TCP, or TCP of these ports, or what a tcpdump expression selects instead."""
        self.name = name
        self._index = _index(name)
        self._ports = np.array(sorted(ports), np.int32)
        self._opened = _open(name, promiscuous)
        self._socket: socket.socket = self._opened.ins
        hardware = self._socket.getsockname()[3]
        if hardware not in {_ETHERNET, _LOOPBACK, *_LAYER_3}:
            self._opened.close()
            self._opened = _Cooked(name)
            self._socket = self._opened.ins
        self._link_type = link_type.LINK_ETHERNET if hardware in {_ETHERNET, _LOOPBACK} else link_type.LINK_RAW
        try:
            self._filter(ports, expression)
        except ListenError:
            self._opened.close()
            raise
        self._blocks = max(2, buffer_bytes // ring.BLOCK_BYTES)
        if hardware == _LOOPBACK:
            self._socket.setsockopt(ring.SOL_PACKET, ring.IGNORE_OUTGOING, 1)
        self._socket.setsockopt(ring.SOL_PACKET, ring.VERSION, ring.V3)
        try:
            self._socket.setsockopt(ring.SOL_PACKET, ring.RX_RING, ring.ring_request(self._blocks))
        except OSError as error:
            self._opened.close()
            why = f"{str(error.strerror).lower()}; lower --buffer-mb"
            raise ListenError(f"{name}: no memory for a ring of {buffer_bytes >> 20} MB: {why}") from error
        self.dropped()  # counted before the ring was there, and before the filter: not of this capture
        self._memory = mmap.mmap(self._socket.fileno(), self._blocks * ring.BLOCK_BYTES)
        self._status = np.frombuffer(self._memory, np.uint32)
        self._next = 0
        self.rows = Rows(_BATCH_BYTES)

    def _filter(self, ports: Sequence[int], expression: str | None) -> None:
        if expression is None:
            program = bpf.program(self._link_type, ports)
        else:
            program = _compiled(expression, self.name, begins_with_ip=self._link_type == link_type.LINK_RAW)
        try:
            bpf.attach(self._socket, program)
        except OSError as error:
            why = f"{len(program):,} instructions of a filter: {str(error.strerror).lower()}"
            raise ListenError(f"{self.name}: {why}; name fewer ports, or raise net.core.optmem_max") from error

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        del self._status
        self._memory.close()
        self._opened.close()

    def batches(self, stamp: frames.Stamp) -> Iterator[pa.RecordBatch]:
        """Rows of all blocks that are ready, some together; each block goes back to the kernel once it is copied."""
        rows = self.rows
        rows.begin()
        for _ in range(self._blocks):
            block = self._next * ring.BLOCK_BYTES
            status = (block + ring.STATUS_AT) // 4
            if not self._status[status] & ring.OURS:
                break
            filled = ring.filled_bytes(self._memory[block : block + ring.HEAD_BYTES])
            data = self._memory[block : block + filled]
            self._status[status] = 0
            self._next = (self._next + 1) % self._blocks
            left = ring.begin_block(data, rows.headers)
            while left:
                left = ring.walk_block(data, left, self._link_type, rows.headers)
                rows.keep(data)
                if left or not rows.has_space:
                    yield self._of_ports(rows.batch(self.name, stamp))
                    rows.begin()
        if rows.count:
            yield self._of_ports(rows.batch(self.name, stamp))
            rows.begin()

    def _of_ports(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Without what the kernel could not decide, and is of other ports: IPv6 with extension headers."""
        if not self._ports.size:
            return rows
        asked = np.isin(rows["src_port"], self._ports) | np.isin(rows["dst_port"], self._ports)
        return rows if asked.all() else rows.filter(asked)

    def fill(self) -> float:
        """How much of the ring waits for us, 0 to 1."""
        ours = self._status[ring.STATUS_AT // 4 :: ring.BLOCK_BYTES // 4] & ring.OURS
        return float(np.count_nonzero(ours)) / self._blocks

    def dropped(self) -> int:
        """Packets that the kernel dropped, because the ring was full, since the last call."""
        return ring.drops(self._socket.getsockopt(ring.SOL_PACKET, ring.STATISTICS, 12))

    def take_error(self) -> str | None:
        """What happened to the socket since this was last asked. An interface that went down may come up again."""
        number = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return f"interface {self.name}: {os.strerror(number).lower()}" if number else None

    def is_there(self) -> bool:
        """Is it still the interface we opened? One that was removed and made again is another one."""
        return _asked(self._socket, self.name) == self._index


def index_of(name: str) -> int | None:
    """The interface's number; None where there is none. Raises OSError where that cannot be found out, as without a
    free file descriptor.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        return _asked(any_socket, name)


def _asked(through: socket.socket, name: str) -> int | None:
    """socket.if_nametoindex would open a socket, and does not report why it fails."""
    if len(os.fsencode(name)) > _NAME_BYTES:
        return None
    try:
        answer = fcntl.ioctl(through, _SIOCGIFINDEX, struct.pack("16si20x", os.fsencode(name), 0))
    except OSError as error:
        if error.errno in {errno.ENODEV, errno.ENXIO}:
            return None
        raise
    return int(struct.unpack("16si20x", answer)[1])


def _index(name: str) -> int:
    try:
        index = index_of(name)
    except OSError as error:
        raise ListenError(f"{name}: {str(error.strerror).lower()}") from error
    if index is None:
        names = ", ".join(known for _, known in socket.if_nameindex())
        raise ListenError(f"{name}: no such interface; there are {names}")
    return index


def _open(name: str, promiscuous: bool) -> Any:
    # scapy reads the system's interfaces and routes while it is imported: only who listens pays for it
    from scapy.arch.linux import L2ListenSocket

    try:
        return L2ListenSocket(iface=name, promisc=promiscuous)  # closes its socket when it is forgotten
    except PermissionError as error:
        raise ListenError(f"{name}: capturing needs the capability CAP_NET_RAW: {RIGHT_FIX}") from error
    except OSError as error:
        raise ListenError(f"{name}: {str(error.strerror or error).lower()}") from error


class _Cooked:
    """A socket whose packets begin with IP, whatever the link header of the interface is."""

    def __init__(self, name: str) -> None:
        try:
            self.ins = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_EVERY_PROTOCOL))
            self.ins.bind((name, _EVERY_PROTOCOL))
        except OSError as error:
            raise ListenError(f"{name}: {str(error.strerror or error).lower()}") from error

    def close(self) -> None:
        self.ins.close()


_EVERY_PROTOCOL = 3  # ETH_P_ALL, linux/if_ether.h


def need_libpcap() -> None:
    """Nothing but tcpdump's own words for a filter needs it."""
    try:
        import_module("scapy.libs.winpcapy")  # loads libpcap, whatever it is called
    except OSError as error:
        raise ListenError("--filter needs libpcap: apt-get install libpcap0.8 (--port works without it)") from error


def _compiled(expression: str, name: str, *, begins_with_ip: bool) -> list[bpf.Instruction]:
    """What libpcap makes of it, without the 65535 bytes scapy compiles in: offloaded packets are longer."""
    need_libpcap()
    from scapy.arch.common import compile_filter, free_filter
    from scapy.error import Scapy_Exception

    try:
        compiled = compile_filter(expression, linktype=_DLT_RAW) if begins_with_ip else compile_filter(expression, name)
    except Scapy_Exception as error:
        raise ListenError(f"{name}: filter {expression!r} is not valid: {error}") from error
    steps = [compiled.bf_insns[i] for i in range(compiled.bf_len)]
    program = [(s.code, s.jt, s.jf, bpf.WHOLE if s.code == _RETURN and s.k else s.k & 0xFFFFFFFF) for s in steps]
    free_filter(compiled)
    return program
