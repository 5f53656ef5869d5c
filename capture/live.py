"""Interfaces in, frames out: scapy opens the socket and sets the kernel's filter, a ring on it carries the packets.

Knows: how to listen to one interface without a Python call per packet, what the kernel lost, which right is missing.
Refuses to know: files (spool.py), the loop over several interfaces (listen.py), connections.
Rule: the kernel counts what we were too slow for, and that number is always asked for. Loopback carries every packet
twice, sent and received; there the sent copy is ignored, elsewhere it is the only one. Promiscuous only on request.
"""

from __future__ import annotations

import ctypes
import logging
import mmap
import os
import socket
import struct
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from capture import link, ring
from capture.refusal import ListenError
from capture.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from capture import frames

logging.getLogger("scapy").setLevel(logging.ERROR)  # it warns that it has no layers loaded: we ask for none

# Hardware type of the interface (linux/if_arp.h) -> what its packets begin with.
_LINK_TYPES = {1: link.LINK_ETHERNET, 772: link.LINK_ETHERNET, 65534: link.LINK_RAW, 778: link.LINK_RAW}
_LOOPBACK = 772

BUFFER_BYTES = 128 << 20  # a trimming pass and a busy machine keep us away for some 0.3 s; at 150 MB/s twice that fits

# linux/filter.h, linux/bpf_common.h: a filter's answer is how many bytes of the packet it wants.
_ATTACH_FILTER, _RETURN, _WHOLE = 26, 0x06, 1 << 20


RIGHT_FIX = (
    f"setcap cap_net_raw+ep {os.path.realpath(sys.executable)}, or in a systemd unit AmbientCapabilities=CAP_NET_RAW"
)


class Interface:
    """One interface with its ring. Close it."""

    def __init__(self, name: str, bpf: str, *, promiscuous: bool = False, buffer_bytes: int = BUFFER_BYTES) -> None:
        self.name = name
        self._index = _index(name)
        self._opened = _open(name, bpf, promiscuous)
        self._socket: socket.socket = self._opened.ins
        hardware = self._socket.getsockname()[3]
        if hardware not in _LINK_TYPES:
            self._opened.close()
            raise ListenError(f"{name}: interface of hardware type {hardware}: its packets cannot be read")
        self._link_type = _LINK_TYPES[hardware]
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
        self._data = np.frombuffer(self._memory, np.uint8)
        self._status = self._data.view(np.uint32)
        self._next = 0
        self.rows = Rows(ring.BLOCK_BYTES)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        del self._data, self._status
        self._memory.close()
        self._opened.close()

    def batches(self, stamp: frames.Stamp) -> Iterator[pa.RecordBatch]:
        """Rows of all blocks that are ready; each block goes back to the kernel once its rows are made."""
        for _ in range(self._blocks):
            block = self._next * ring.BLOCK_BYTES
            status = (block + ring.STATUS_AT) // 4
            if not self._status[status] & ring.OURS:
                return
            left = ring.begin_block(self._data, block, self.rows.state)
            while left:
                self.rows.begin()
                left = ring.walk_block(self._data, left, self._link_type, self.rows.state)
                self.rows.keep(self._data)
                if self.rows.count:
                    yield self.rows.batch(self.name, stamp)
            self._status[status] = 0
            self._next = (self._next + 1) % self._blocks

    def fill(self) -> float:
        """How much of the ring waits for us, 0 to 1."""
        ours = self._status[ring.STATUS_AT // 4 :: ring.BLOCK_BYTES // 4] & ring.OURS
        return float(np.count_nonzero(ours)) / self._blocks

    def dropped(self) -> int:
        """Packets the kernel had no room for since this was last asked."""
        return ring.drops(self._socket.getsockopt(ring.SOL_PACKET, ring.STATISTICS, 12))

    def take_error(self) -> str | None:
        """What happened to the socket since this was last asked. An interface that went down may come up again."""
        number = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return f"interface {self.name}: {os.strerror(number).lower()}" if number else None

    def is_there(self) -> bool:
        """Is it still the interface we opened? One that was removed and made again is another one."""
        try:
            return socket.if_nametoindex(self.name) == self._index
        except OSError:
            return False


def is_there(name: str) -> bool:
    return any(name == known for _, known in socket.if_nameindex())


def _index(name: str) -> int:
    try:
        return socket.if_nametoindex(name)
    except OSError as error:
        names = ", ".join(known for _, known in socket.if_nameindex())
        raise ListenError(f"{name}: no such interface; there are {names}") from error


def _open(name: str, bpf: str, promiscuous: bool) -> Any:
    # scapy reads the system's interfaces and routes while it is imported: only who listens pays for it
    from scapy.arch.common import compile_filter
    from scapy.arch.linux import L2ListenSocket
    from scapy.error import Scapy_Exception

    try:
        opened = L2ListenSocket(iface=name, filter=bpf, promisc=promiscuous)  # closes its socket when it is forgotten
        _keep_whole_packets(opened.ins, compile_filter(bpf, name))
    except PermissionError as error:
        raise ListenError(f"{name}: listening needs the right CAP_NET_RAW: {RIGHT_FIX}") from error
    except Scapy_Exception as error:
        raise ListenError(f"{name}: filter {bpf!r} not accepted: {error}") from error
    except OSError as error:
        if error.strerror is None:  # scapy's own: it found no libpcap
            raise ListenError(f"{name}: filters need libpcap: apt-get install libpcap0.8") from error
        raise ListenError(f"{name}: {error.strerror.lower()}") from error
    return opened


def _keep_whole_packets(opened: socket.socket, program: Any) -> None:
    """The same filter again, without the 65535 bytes scapy compiles in: offloaded packets are longer."""
    code = b""
    for i in range(program.bf_len):
        step = program.bf_insns[i]
        k = _WHOLE if step.code == _RETURN and step.k else step.k
        code += struct.pack("=HBBI", step.code, step.jt, step.jf, k & 0xFFFFFFFF)
    steps = ctypes.create_string_buffer(code, len(code))
    opened.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("@HP", program.bf_len, ctypes.addressof(steps)))
