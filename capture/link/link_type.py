"""Where the innermost IP header of a packet begins: link types, tags, and the tunnels that mirrors and clouds use.

Knows: link types, VLAN and MPLS tags, PPPoE, and IP-in-IP, GRE (with ERSPAN), VXLAN and Geneve around a packet.
Refuses to know: what is in the innermost packet (packet.py), and through which tunnel it came.
Rule: every read stands behind a comparison with the end of what was captured; at most TUNNELS are taken off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from wirecheck.decode.compiled import borrowing_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

Number: TypeAlias = Any  # int64: an int where jitted, np.int64 under NUMBA_DISABLE_JIT

# Why a packet is not a frame; the number indexes the counters, the name goes into the table.
TCP, NON_TCP, IPV4_FRAGMENT, IPV6_FRAGMENT, UNSUPPORTED_LINK_TYPE, NOT_IP, BAD_HEADER, SNAPLEN_HEADER, NO_PACKET = (
    range(9)
)
REASONS = (
    "",
    "non-tcp",
    "ipv4-fragment",
    "ipv6-fragment",
    "unsupported-link-type",
    "not-ip",
    "bad-header",
    "snaplen-header",
    "not-a-packet",
)
# https://www.tcpdump.org/linktypes.html; 12 and 14 are what some BSDs write for raw IP.
LINK_NULL, LINK_ETHERNET, LINK_LOOP, LINK_SLL, LINK_SLL2 = 0, 1, 108, 113, 276
LINK_RAW, LINK_RAW_BSD, LINK_RAW_OPENBSD, LINK_IPV4, LINK_IPV6 = 101, 12, 14, 228, 229

TUNNELS = 3  # one inside the other; a mirror of an overlay network is two
_IPV4, _IPV6, _ETHERNET = 0x0800, 0x86DD, 0x6558  # the last as GRE and Geneve call a bridged frame
_GRE, _UDP = 47, 17
_VXLAN_PORTS = (4789, 8472)  # IANA's, and what Linux took before there was one
_GENEVE_PORT = 6081


@borrowing_njit
def u16(data: NDArray[np.uint8], at: int) -> Number:
    i = np.uint64(at)  # an index that cannot be negative: neighbouring bytes become one load
    return (np.int64(data[i]) << 8) | np.int64(data[i + np.uint64(1)])


@borrowing_njit
def u32(data: NDArray[np.uint8], at: int) -> Number:
    return (u16(data, at) << 16) | u16(data, at + 2)


@borrowing_njit
def _outermost(data: NDArray[np.uint8], at: int, end: int, link_type: int) -> Number:
    """Where the first IP header begins, or minus the reason."""
    ether_type, start = _IPV4, at
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


@borrowing_njit
def _untagged(data: NDArray[np.uint8], at: int, end: int, ether_type: int) -> Number:
    """Where the IP header begins behind tags and labels, or minus the reason."""
    start, kind = at, ether_type
    while kind in (0x8100, 0x88A8, 0x9100):  # VLAN tags, stacked (802.1Q, 802.1ad, and its older number)
        if start + 4 > end:
            return -SNAPLEN_HEADER
        kind = u16(data, start + 2)
        start += 4
    if kind in (0x8847, 0x8848):  # MPLS: what the last label carries is not said, an IP header shows itself (RFC 4928)
        last = False
        while not last:
            if start + 5 > end:
                return -SNAPLEN_HEADER
            last = (data[start + 2] & 1) != 0
            start += 4
        return start if (data[start] >> 4) in (4, 6) else -NOT_IP
    if kind == 0x8864:  # PPPoE session (RFC 2516), then PPP's own number for IP
        if start + 8 > end:
            return -SNAPLEN_HEADER
        kind = _IPV4 if u16(data, start + 6) == 0x0021 else _IPV6 if u16(data, start + 6) == 0x0057 else 0
        start += 8
    return start if kind in (_IPV4, _IPV6) else -NOT_IP


@borrowing_njit
def ip_start(data: NDArray[np.uint8], at: int, end: int, link_type: int) -> Number:
    """Where the innermost IP header begins, or minus the reason why there is none."""
    ip = _outermost(data, at, end, link_type)
    for _ in range(TUNNELS):
        if ip < 0:
            return ip
        inner = _inside(data, ip, end)
        if inner == 0:
            return ip
        ip = inner
    return ip


@borrowing_njit
def _inside(data: NDArray[np.uint8], ip: int, end: int) -> Number:
    """Where the IP header inside this one's tunnel begins, minus the reason, or 0: it is no tunnel."""
    if ip + 20 > end:
        return 0
    protocol: Number = np.int64(data[ip + 9])
    body: Number = ip + (np.int64(data[ip]) & 15) * 4
    if data[ip] >> 4 == 6:
        if ip + 40 > end:
            return 0
        protocol, body = np.int64(data[ip + 6]), ip + 40
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


@borrowing_njit
def _inside_gre(data: NDArray[np.uint8], at: int, end: int) -> Number:
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
    elif kind == 0x22EB:  # ERSPAN type III; the lowest bit says that a subheader follows
        if body + 12 > end:
            return -SNAPLEN_HEADER
        body += 20 if data[body + 11] & 1 else 12
        kind = _ETHERNET
    return _carried(data, body, end, kind)


@borrowing_njit
def _inside_udp(data: NDArray[np.uint8], at: int, end: int) -> Number:
    """VXLAN (RFC 7348) and Geneve (RFC 8926), by their ports."""
    if at + 16 > end:
        return 0
    port = u16(data, at + 2)
    if port in _VXLAN_PORTS and data[at + 8] & 0x08:  # the network's number is valid
        return _carried(data, at + 16, end, _ETHERNET)
    if port == _GENEVE_PORT and data[at + 8] >> 6 == 0:
        return _carried(data, at + 16 + (np.int64(data[at + 8]) & 63) * 4, end, u16(data, at + 10))
    return 0


@borrowing_njit
def _carried(data: NDArray[np.uint8], at: int, end: int, kind: int) -> Number:
    if kind == _ETHERNET:
        return _outermost(data, at, end, LINK_ETHERNET)
    return _untagged(data, at, end, kind)
