"""PDUs that Wireshark exported (link type 252): what a connection carried, without its packets.

Tags name addresses and ports; nothing has sequence numbers (Wireshark's wsutil/exported_pdu_tlvs.h, its tshark -U).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from wirecheck.capture.link.link_type import NON_TCP, NOT_IP, SNAPLEN_HEADER, TCP, u16, u32

_END: Final = 0
_IPV4_SRC: Final = 20
_IPV4_DST: Final = 21
_IPV6_SRC: Final = 22
_IPV6_DST: Final = 23
_PORT_TYPE: Final = 24
_SRC_PORT: Final = 25
_DST_PORT: Final = 26
_TCP_PORTS: Final = 2
_WRAP: Final = 0xFFFFFFFF
MOST_ENDS: Final = 1 << 17  # of connections; of more, the one that was silent longest begins at 1 again


@final
class ExportedPdu:
    """The tags of the PDU at hand, and how much each end of each connection has sent so far: it stands for TCP's
    sequence numbers, as PDUs of one end follow each other.
    """

    def __init__(self) -> None:
        self.src: i64 = 0  # where its bytes begin
        self.dst: i64 = 0
        self.address_bytes: i64 = 0
        self.src_port: i64 = 0
        self.dst_port: i64 = 0
        self.payload: i64 = 0
        self.seq: i64 = 0
        self.ack: i64 = 0
        self._sent: dict[bytes, i64] = {}

    def read(self, data: bytes, start: i64, end: i64) -> i64:
        """TCP, or the reason why it is no frame."""
        self.src = self.dst = self.address_bytes = 0
        self.src_port = self.dst_port = -1
        ports: i64 = 0
        at, tag = start, i64(-1)
        while tag != _END:
            if at + 4 > end:
                return SNAPLEN_HEADER
            tag, size = u16(data, at), u16(data, at + 2)
            value, at = at + 4, at + 4 + size
            if at > end:
                return SNAPLEN_HEADER
            if tag in (_IPV4_SRC, _IPV6_SRC) and size == (4 if tag == _IPV4_SRC else 16):
                self.src, self.address_bytes = value, size
            elif tag in (_IPV4_DST, _IPV6_DST) and size == (4 if tag == _IPV4_DST else 16):
                self.dst = value
            elif tag == _PORT_TYPE and size == 4:
                ports = u32(data, value)
            elif tag == _SRC_PORT and size == 4:
                self.src_port = u32(data, value)
            elif tag == _DST_PORT and size == 4:
                self.dst_port = u32(data, value)
        self.payload = at
        if self.src == 0 or self.dst == 0:
            return NOT_IP
        of_tcp = ports == _TCP_PORTS and 0 <= self.src_port <= 0xFFFF and 0 <= self.dst_port <= 0xFFFF
        return TCP if of_tcp else NON_TCP

    def count(self, data: bytes, length: i64) -> None:
        """The PDU at hand, of so many bytes, is the next of its end: sets `seq` and `ack`."""
        size = self.address_bytes
        src = data[self.src : self.src + size] + int(self.src_port).to_bytes(2, "big")
        dst = data[self.dst : self.dst + size] + int(self.dst_port).to_bytes(2, "big")
        sent = self._sent.pop(src + dst, 1)
        if len(self._sent) == MOST_ENDS:
            del self._sent[next(iter(self._sent))]
        self._sent[src + dst] = sent + length
        self.seq, self.ack = sent & _WRAP, self._sent.get(dst + src, 1) & _WRAP
