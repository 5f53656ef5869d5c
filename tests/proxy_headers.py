"""PROXY protocol headers, built by the specification (haproxy.org, proxy-protocol.txt 2.1 and 2.2).

Refuses to know: anything of ours; it shares no line and no constant with what it tests.
"""

import ipaddress
import struct
from typing import Any

SYN, ACK = 2, 16
SIGNATURE = b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a"
NAMED = {4: "203.0.113.7", 6: "2001:db8::7"}
SERVER = {4: "198.51.100.1", 6: "2001:db8::1"}
TLV = b"\x02\x00\x11tlv-not-to-be-kep"  # PP2_TYPE_AUTHORITY


def v1(version: int = 4, port: int = 51234) -> bytes:
    return f"PROXY TCP{version} {NAMED[version]} {SERVER[version]} {port} 9092\r\n".encode()


def v2(version: int = 4, port: int = 51234, more: bytes = b"") -> bytes:
    hosts = b"".join(ipaddress.ip_address(host[version]).packed for host in (NAMED, SERVER))
    return v2_of(0x21, 0x11 if version == 4 else 0x21, hosts + struct.pack(">HH", port, 9092) + more)


def v2_of(command: int, family: int, rest: bytes, length: int | None = None) -> bytes:
    return SIGNATURE + struct.pack(">BBH", command, family, len(rest) if length is None else length) + rest


NAMING = {
    "v1": (v1(), NAMED[4]),
    "v1 IPv6": (v1(6), NAMED[6]),
    "v2": (v2(), NAMED[4]),
    "v2 IPv6": (v2(6), NAMED[6]),
    "v2 with TLVs": (v2(more=TLV), NAMED[4]),
    "v2 IPv6 with many TLVs": (v2(6, more=TLV * 500), NAMED[6]),
}
"""Headers that name a client, and whom."""
NAMELESS = {
    "v1 UNKNOWN": b"PROXY UNKNOWN\r\n",
    "v1 UNKNOWN, longest": b"PROXY UNKNOWN " + b"f" * 91 + b"\r\n",
    "v2 LOCAL": v2_of(0x20, 0x00, b""),
    "v2 LOCAL with an address": v2_of(0x20, 0x11, bytes(12)),
    "v2 LOCAL with TLVs": v2_of(0x20, 0x00, TLV),
    "v2 unspecified": v2_of(0x21, 0x00, TLV),
    "v2 UNIX": v2_of(0x21, 0x31, bytes(216)),
}
INVALID = {
    "v1 without an address": b"PROXY TCP4 \r\n",
    "v1 too long": b"PROXY UNKNOWN " + b"f" * 92 + b"\r\n",
    "v1 without an end": b"PROXY TCP4 " + b"1" * 200,
    "v1 with another family's address": b"PROXY TCP4 2001:db8::7 2001:db8::1 1 2\r\n",
    "v1 with a wrong address": b"PROXY TCP4 1.2.3.256 1.2.3.4 1 2\r\n",
    "v1 with a wrong port": b"PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n",
    "v1 in lower case": b"proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n",
    "v1 with a name": b"PROXY TCP4 client.example 1.2.3.4 1 2\r\n",
    "v1 with control characters": b"PROXY UNKNOWN \x1b[31m\r\n",
    "v2 of version 3": v2_of(0x31, 0x11, bytes(12)),
    "v2 with another command": v2_of(0x22, 0x11, bytes(12)),
    "v2 of an unknown family": v2_of(0x21, 0x41, bytes(12)),
    "v2 of an unknown transport": v2_of(0x21, 0x13, bytes(12)),
    "v2 too short for IPv4": v2_of(0x21, 0x11, bytes(11)),
    "v2 too short for IPv6": v2_of(0x21, 0x21, bytes(35)),
    "v2 too short for UNIX": v2_of(0x21, 0x31, bytes(215)),
    "v2 without its length": v2_of(0x21, 0x11, bytes(12), 0),
}
"""What no receiver takes."""


def prefixed(rows: list[dict[str, Any]], header: bytes) -> list[dict[str, Any]]:
    """Rows of a frames table, the client's first payload of each connection that begins here behind this header."""
    begins: dict[Any, int] = {}
    found = []
    for row in map(dict, rows):
        found.append(row)
        src, dst = (row["src_ip"], row["src_port"]), (row["dst_ip"], row["dst_port"])
        if row["kind"] != 0:
            continue
        if row["tcp_flags"] & (SYN | ACK) == SYN:
            begins[src, dst] = (row["tcp_seq"] + 1) % 2**32
        elif (src, dst) in begins:
            if row["tcp_seq"] != begins[src, dst]:
                row["tcp_seq"] = (row["tcp_seq"] + len(header)) % 2**32
            elif row["payload_len"]:
                row["payload"] = header + row["payload"]
                row["payload_len"] += len(header)
                row["left_out"] = [span | {"offset": span["offset"] + len(header)} for span in row["left_out"]]
        elif (dst, src) in begins and row["tcp_ack"] not in {0, begins[dst, src]}:
            row["tcp_ack"] = (row["tcp_ack"] + len(header)) % 2**32
    return found
