"""Finds the innermost IP header: link types, VLAN and MPLS tags, PPPoE, and the tunnels of mirrors and clouds.

Every read is checked against the end of what was captured; at most TUNNELS are removed.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64

# Why a packet is not a frame; the number indexes the counters, the name goes into the table.
TCP: Final = 0
NON_TCP: Final = 1
IPV4_FRAGMENT: Final = 2
IPV6_FRAGMENT: Final = 3
UNSUPPORTED_LINK_TYPE: Final = 4
NOT_IP: Final = 5
BAD_HEADER: Final = 6
SNAPLEN_HEADER: Final = 7
TUNNELS_TOO_DEEP: Final = 8
NO_PACKET: Final = 9
BAD_CHECKSUM: Final = 10
TZSP: Final = 11
GTP_U: Final = 12
L2TP: Final = 13
REASONS = (
    "",
    "non-tcp",
    "ipv4-fragment",
    "ipv6-fragment",
    "unsupported-link-type",
    "not-ip",
    "bad-header",
    "snaplen-header",
    "tunnels-too-deep",
    "not-a-packet",
    "bad-checksum",
    "tzsp-tunnel",
    "gtp-u-tunnel",
    "l2tp-tunnel",
)
# https://www.tcpdump.org/linktypes.html; 12 and 14 are what some BSDs write for raw IP.
LINK_NULL: Final = 0
LINK_ETHERNET: Final = 1
LINK_LOOP: Final = 108
LINK_SLL: Final = 113
LINK_SLL2: Final = 276
LINK_RAW: Final = 101
LINK_RAW_BSD: Final = 12
LINK_RAW_OPENBSD: Final = 14
LINK_IPV4: Final = 228
LINK_IPV6: Final = 229
LINK_EXPORTED_PDU: Final = 252  # no packets: exported_pdu.py

TUNNELS: Final = 3  # one inside the other; a mirror of an overlay network is two
_IPV4: Final = 0x0800
_IPV6: Final = 0x86DD
_ETHERNET: Final = 0x6558  # a bridged frame, as GRE and Geneve call it
_GRE: Final = 47
_UDP: Final = 17
_VXLAN: Final = 4789  # IANA's port
_VXLAN_OF_LINUX: Final = 8472  # what Linux took before there was one
_GENEVE: Final = 6081
_L2TP_V3: Final = 115  # directly on IP (RFC 3931)
_TZSP_PORT: Final = 37008
_GTP_U_PORT: Final = 2152
_L2TP_PORT: Final = 1701


def u16(data: bytes, at: i64) -> i64:
    return i64(read_i16_be(data, at)) & 0xFFFF


def u32(data: bytes, at: i64) -> i64:
    return i64(read_i32_be(data, at)) & 0xFFFFFFFF


def _outermost(data: bytes, at: i64, end: i64, link_type: i64) -> i64:
    """Where the first IP header begins, or minus the reason."""
    ether_type: i64 = _IPV4
    start = at
    if link_type == LINK_ETHERNET:
        start = at + 14
        if start > end:
            return -SNAPLEN_HEADER
        ether_type = u16(data, at + 12)
    elif link_type == LINK_SLL:
        start = at + 16
        if start > end:
            return -SNAPLEN_HEADER
        ether_type = u16(data, at + 14)
    elif link_type == LINK_SLL2:
        start = at + 20
        if start > end:
            return -SNAPLEN_HEADER
        ether_type = u16(data, at)
    elif link_type in (LINK_NULL, LINK_LOOP):
        # Address family in the order of the capturing host (null) or the network (loop). Its one non-zero byte is
        # 2 for IPv4; 10, 24, 28 or 30 for IPv6, by system.
        start = at + 4
        if start > end:
            return -SNAPLEN_HEADER
        family = u32(data, at)
        if family >= 1 << 24:
            family >>= 24
        if family not in (2, 10, 24, 28, 30):
            return -NOT_IP
    elif link_type not in (LINK_RAW, LINK_RAW_BSD, LINK_RAW_OPENBSD, LINK_IPV4, LINK_IPV6):
        return -UNSUPPORTED_LINK_TYPE
    return _untagged(data, start, end, ether_type)


def _untagged(data: bytes, at: i64, end: i64, ether_type: i64) -> i64:
    """Where the IP header begins behind tags and labels, or minus the reason."""
    start, kind = at, ether_type
    while kind in (0x8100, 0x88A8, 0x9100):  # VLAN tags, stacked (802.1Q, 802.1ad, and its older number)
        if start + 4 > end:
            return -SNAPLEN_HEADER
        kind = u16(data, start + 2)
        start += 4
    if kind in (
        0x8847,
        0x8848,
    ):  # MPLS: labels do not name their content; an IP header is recognized by its first bits (RFC 4928)
        last = False
        while not last:
            if start + 5 > end:
                return -SNAPLEN_HEADER
            last = (i64(data[start + 2]) & 1) != 0
            start += 4
        return start if (i64(data[start]) >> 4) in (4, 6) else -NOT_IP
    if kind == 0x8864:  # PPPoE session (RFC 2516), then PPP's own number for IP
        if start + 8 > end:
            return -SNAPLEN_HEADER
        kind = _IPV4 if u16(data, start + 6) == 0x0021 else _IPV6 if u16(data, start + 6) == 0x0057 else 0
        start += 8
    return start if kind in (_IPV4, _IPV6) else -NOT_IP


def not_tcp(data: bytes, protocol: i64, at: i64, end: i64) -> i64:
    """Why a packet whose innermost IP carries this protocol, from `at` on, is no frame: it is in a tunnel that is not
    removed, by its port, or just not TCP.
    """
    if protocol == _L2TP_V3:
        return L2TP
    if protocol == _UDP and at + 8 <= end:
        port = u16(data, at + 2)
        if port == _TZSP_PORT:
            return TZSP
        if port == _GTP_U_PORT:
            return GTP_U
        if port == _L2TP_PORT or u16(data, at) == _L2TP_PORT:
            return L2TP
    return NON_TCP


def is_supported(link_type: i64) -> bool:
    return link_type == LINK_EXPORTED_PDU or _outermost(b"", 0, 0, link_type) != -UNSUPPORTED_LINK_TYPE


def ip_start(data: bytes, at: i64, end: i64, link_type: i64) -> i64:
    """Where the innermost IP header begins, or minus the reason why there is none."""
    ip = _outermost(data, at, end, link_type)
    for _ in range(TUNNELS):
        if ip < 0:
            return ip
        inner = _inside(data, ip, end)
        if inner == 0:
            return ip
        ip = inner
    return -TUNNELS_TOO_DEEP if ip > 0 and _inside(data, ip, end) != 0 else ip


def _inside(data: bytes, ip: i64, end: i64) -> i64:
    """Where the IP header inside this one's tunnel begins, minus the reason, or 0: it is no tunnel."""
    if ip + 20 > end:
        return 0
    protocol: i64 = i64(data[ip + 9])
    body: i64 = ip + (i64(data[ip]) & 15) * 4
    if i64(data[ip]) >> 4 == 6:
        if ip + 40 > end:
            return 0
        protocol, body = i64(data[ip + 6]), ip + 40
    elif protocol != 6 and u16(data, ip + 6) & 0x1FFF:  # a later fragment begins in the middle of something
        return 0
    if protocol == 6 or body < ip + 20:
        return 0
    if protocol in (4, 41):  # IP in IP (RFC 2003), IPv6 in IP (RFC 4213)
        return body if body < end else -SNAPLEN_HEADER
    if protocol == _GRE:
        return _inside_gre(data, body, end)
    if protocol == _UDP:
        return _inside_udp(data, body, end)
    return 0


def _inside_gre(data: bytes, at: i64, end: i64) -> i64:
    """GRE (RFC 2784, 2890): checksum, key and number are there if their bit is; ERSPAN has a header of its own."""
    if at + 4 > end:
        return -SNAPLEN_HEADER
    flags, kind = u16(data, at), u16(data, at + 2)
    if flags & 7:  # version 1 is PPTP
        return 0
    body = at + 4 + 4 * ((flags >> 15 & 1) + (flags >> 13 & 1) + (flags >> 12 & 1))
    if kind == 0x88BE:  # ERSPAN: type I has neither a sequence number nor a header
        body += 8 if flags & 0x1000 else 0
        kind = _ETHERNET
    elif kind == 0x22EB:  # ERSPAN type III; the lowest bit is set if a subheader follows
        if body + 12 > end:
            return -SNAPLEN_HEADER
        body += 20 if i64(data[body + 11]) & 1 else 12
        kind = _ETHERNET
    return _carried(data, body, end, kind)


def _inside_udp(data: bytes, at: i64, end: i64) -> i64:
    """VXLAN (RFC 7348) and Geneve (RFC 8926), by their ports."""
    if at + 16 > end:
        return 0
    port = u16(data, at + 2)
    if port in (_VXLAN, _VXLAN_OF_LINUX) and i64(data[at + 8]) & 0x08:  # the network's number is valid
        return _carried(data, at + 16, end, _ETHERNET)
    if port == _GENEVE and i64(data[at + 8]) >> 6 == 0:
        return _carried(data, at + 16 + (i64(data[at + 8]) & 63) * 4, end, u16(data, at + 10))
    return 0


def _carried(data: bytes, at: i64, end: i64, kind: i64) -> i64:
    if kind == _ETHERNET:
        return _outermost(data, at, end, LINK_ETHERNET)
    return _untagged(data, at, end, kind)
