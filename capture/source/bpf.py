"""Classic BPF for TCP of some ports, written here so that an agent needs no libpcap.

It is a sieve: what it cannot decide without a loop passes (later fragments, IPv6 extension headers, more than TAGS
tags). The kernel removes VLAN tags into metadata, so the ether type alone decides. Source: linux/filter.h,
linux/bpf_common.h, Documentation/networking/filter.rst.
"""

from __future__ import annotations

import ctypes
import re
import socket
import struct
from typing import TYPE_CHECKING

from wirecheck.capture.link import link_type as link
from wirecheck.capture.refusal import ListenError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Instruction = tuple[int, int, int, int]  # struct sock_filter: code, jump if true, jump if false, k

WHOLE = 1 << 20  # how much of a packet is wanted: more than any that offload joins
TAGS = 3  # 802.1Q in 802.1ad is two, and one of them is mostly taken off
PORTS = 1000  # the kernel takes 4096 instructions (BPF_MAXINSNS), a port is four
_ATTACH_FILTER = 26

# What an instruction is called by bpf_asm, and its operand without numbers -> its code.
_CODES = {
    ("ldb", "[]"): 0x30,
    ("ldb", "[x+]"): 0x50,
    ("ldh", "[]"): 0x28,
    ("ldh", "[x+]"): 0x48,
    ("ld", "#"): 0x00,
    ("ldx", "#"): 0x01,
    ("and", "#"): 0x54,
    ("lsh", "#"): 0x64,
    ("add", "#"): 0x04,
    ("add", "x"): 0x0C,
    ("tax", ""): 0x07,
    ("ja", ""): 0x05,
    ("jeq", "#"): 0x15,
    ("jneq", "#"): 0x15,  # the same, with its jumps exchanged
    ("jset", "#"): 0x45,
    ("ret", "#"): 0x06,
}
_LINE = re.compile(r"(?:(\w+):)?\s*(?:(\w+)\s*([^,;]*)(?:,\s*(\w+))?(?:,\s*(\w+))?)?\s*(?:;.*)?")
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")

_RAW = """
        ldx #0
        ldb [0]
        and #0xf0
        jeq #0x40, ipv4
        jeq #0x60, ipv6, drop
"""
# From an IP header at x on. The extension headers are those that packet.py walks over (RFC 8200 section 4.1).
_IP = f"""
ipv4:   ldb [x + 9]
        jneq #6, drop
        ldh [x + 6]
        jset #0x1fff, take    ; a later fragment
        ldb [x + 0]
        and #0xf
        lsh #2
        ja plain
ipv6:   ldb [x + 6]
        jeq #6, fixed
{{chain}}
behind: ldb [x + 40]          ; every extension header begins with what follows it
        jeq #6, take
{{chained}}
drop:   ret #0
take:   ret #{WHOLE}
fixed:  ld #40
plain:  add x
        tax
"""
_EXTENSIONS = (0, 43, 44, 51, 60, 135, 139, 140)
_TAG_TYPES = (0x8100, 0x88A8, 0x9100)


def program(link_type: int, ports: Sequence[int]) -> list[Instruction]:
    """TCP over IPv4 and IPv6 from or to one of the ports, or of any port where none is given."""
    if len(ports) > PORTS:
        raise ListenError(f"{len(ports):,} ports: the limit is {PORTS:,}; without --port, all are captured")
    chains = {"chain": _one_of(_EXTENSIONS, "behind"), "chained": _one_of(_EXTENSIONS, "take")}
    begin = _ethernet() if link_type == link.LINK_ETHERNET else _RAW
    return assemble((begin + _IP.format(**chains) + "\n".join(_ports(sorted(set(ports))))).splitlines())


def _one_of(numbers: Sequence[int], label: str) -> str:
    *others, last = numbers
    return "\n".join([f"jeq #{number}, {label}" for number in others] + [f"jeq #{last}, {label}, drop"])


def _ethernet() -> str:
    """The ether type behind no tag, behind one, and so on; x is where the IP header would begin."""
    steps = ""
    for tags in range(TAGS + 1):
        more = f"tag{tags + 1}" if tags < TAGS else "take"
        steps += f"""
tag{tags}:  ldx #{14 + 4 * tags}
        ldh [{12 + 4 * tags}]
        jeq #0x800, ipv4
        jeq #0x86dd, ipv6
{_one_of(_TAG_TYPES, more)}
"""
    return steps


def _ports(ports: Sequence[int]) -> Iterator[str]:
    """From a TCP header at x on. Each port answers on the spot: a jump reaches no further than 255."""
    for at in (0, 2) if ports else ():
        yield f"ldh [x + {at}]"
        for port in ports:
            yield f"jneq #{port}, not{at}_{port}"
            yield f"ret #{WHOLE}"
            yield f"not{at}_{port}:"
    yield f"ret #{0 if ports else WHOLE}"


def assemble(lines: Iterable[str]) -> list[Instruction]:
    """`label: ldh [x + 2]`, `jeq #k, if true, if false` (forward only, the next one where it is left out)."""
    steps: list[tuple[str, str, str, str]] = []
    labels: dict[str, int] = {}
    for line in lines:
        found = _LINE.fullmatch(line.strip())
        assert found, line
        label, name, operand, *targets = (part or "" for part in found.groups())
        if label:
            labels[label] = len(steps)
        if name:
            steps.append((name, operand.replace(" ", ""), targets[0], targets[1]))
    return [_instruction(step, at, labels) for at, step in enumerate(steps)]


def _instruction(step: tuple[str, str, str, str], at: int, labels: dict[str, int]) -> Instruction:
    name, operand, *targets = step
    true, false = (labels[target] - at - 1 if target else 0 for target in targets)
    assert 0 <= min(true, false) <= max(true, false) <= 255, step
    if name == "ja":  # the only one whose jump is its operand
        return _CODES[name, ""], 0, 0, labels[operand] - at - 1
    if name == "jneq":
        true, false = false, true
    number = _NUMBER.search(operand)
    return _CODES[name, _NUMBER.sub("", operand)], true, false, int(number[0], 0) if number else 0


def attach(opened: socket.socket, instructions: Sequence[Instruction]) -> None:
    """SO_ATTACH_FILTER: from now on the kernel shows only what they ask for."""
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
    steps = ctypes.create_string_buffer(code, len(code))
    opened.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("@HP", len(instructions), ctypes.addressof(steps)))
