"""Checks of this machine before an agent relies on it.

A check never raises and changes nothing. Lines are (name, "ok" | "warn" | "fail", what, fix).
"""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Line = tuple[str, str, str, str]
OK, WARN, FAIL = "ok", "warn", "fail"

_NET_RAW = 13  # linux/capability.h
_UNSYNCHRONISED, _TIMEX_BYTES, _STATUS_AT = 0x40, 512, 40  # linux/timex.h: STA_UNSYNC, more than a struct timex
_UP = 1  # linux/if.h: IFF_UP
_LOW_BYTES = 1 << 30
_PACKET_BYTES = 1 << 19  # what Linux joins at most so far, and half of a block of the ring


def checks(out: Path | None = None, interfaces: tuple[str, ...] = ()) -> list[Line]:
    """`out` and `interfaces` as the agent will be given; without them this folder and all that there are."""
    return [
        _python(),
        _scapy(),
        _libpcap(),
        _capability(),
        *_interfaces(interfaces),
        _ring(),
        _disk(out or Path.cwd()),
        _clock(),
        *_offload(interfaces),
        _reverse_path(),
    ]


def _python() -> Line:
    return "python", OK, f"{platform.python_version()} at {sys.executable}", ""


def _scapy() -> Line:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return "scapy", OK, version("scapy"), ""
    except PackageNotFoundError:
        return "scapy", FAIL, "not installed", "install wirecheck's wheel with [capture]"


def _libpcap() -> Line:
    found = ctypes.util.find_library("pcap")
    if found:
        return "libpcap", OK, found, ""
    return "libpcap", WARN, "not found: capture --filter needs it (--port does not)", "apt-get install libpcap0.8"


def _capability() -> Line:
    name = "capability"
    try:
        status = Path("/proc/self/status").read_text().splitlines()
        effective = int(next(line.split()[1] for line in status if line.startswith("CapEff")), 16)
    except (OSError, StopIteration, ValueError):
        return name, WARN, "unknown on this system", ""
    if effective >> _NET_RAW & 1:
        return name, OK, "CAP_NET_RAW", ""
    fix = f"setcap cap_net_raw+ep {os.path.realpath(sys.executable)}, or AmbientCapabilities=CAP_NET_RAW in a unit"
    return name, FAIL, "CAP_NET_RAW is missing", fix


def _names() -> list[str]:
    return [name for _, name in socket.if_nameindex()]


def _is_up(name: str) -> bool:
    try:
        return bool(int(Path(f"/sys/class/net/{name}/flags").read_text(), 16) & _UP)
    except (OSError, ValueError):
        return False


def _interfaces(asked: tuple[str, ...]) -> Iterator[Line]:
    there = _names()
    for name in asked:
        if name not in there:
            yield "interface", FAIL, f"{name} does not exist", f"choose one of {', '.join(there)}"
        elif not _is_up(name):
            yield "interface", WARN, f"{name} is down", f"ip link set {name} up"
        else:
            yield "interface", OK, f"{name} is up", ""
    if not asked:
        up = [name for name in there if _is_up(name)]
        yield "interfaces", OK if up else FAIL, f"up: {', '.join(up) or 'none'}", "" if up else "ip link set IFACE up"


def _ring() -> Line:
    """A small ring on a socket that is bound to nothing."""
    name = "packet ring"
    try:
        from wirecheck.capture.source import ring

        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as probe:
            probe.setsockopt(ring.SOL_PACKET, ring.VERSION, ring.V3)
            probe.setsockopt(ring.SOL_PACKET, ring.RX_RING, ring.ring_request(2))
            probe.setsockopt(ring.SOL_PACKET, ring.IGNORE_OUTGOING, 1)
    except PermissionError:
        return name, FAIL, "not tried: the capability is missing", "see capability"
    except (OSError, AttributeError, RuntimeError) as error:
        return name, FAIL, f"TPACKET_V3 is not available: {error}", "use Linux 4.20 or newer"
    return name, OK, f"TPACKET_V3, Linux {platform.release()}", ""


def _disk(out: Path) -> Line:
    where = next((path for path in (out, *out.absolute().parents) if path.is_dir()), Path("/"))
    if not os.access(where, os.W_OK | os.X_OK):
        return "disk", FAIL, f"{where} is not writable", f"install -d -o USER {out}"
    try:
        free = shutil.disk_usage(where).free
    except OSError as error:
        return "disk", WARN, f"{where}: {error.strerror}", ""
    free_text = f"{free / 2**30:.1f} GiB free under {where}"
    if free < _LOW_BYTES:
        return "disk", WARN, free_text, "free disk space, or limit the agent with --max-disk and --retain"
    return "disk", OK, free_text, ""


def _clock() -> Line:
    """adjtimex(2) without changing anything: agents on several hosts are compared by their clocks."""
    timex = ctypes.create_string_buffer(_TIMEX_BYTES)  # modes 0: only asked
    try:
        state = ctypes.CDLL(None).adjtimex(timex)
    except (AttributeError, OSError):
        state = -1
    if state < 0 or ctypes.sizeof(ctypes.c_long) != 8:
        return "clock", WARN, "unknown whether it is synchronized", ""
    if int.from_bytes(timex.raw[_STATUS_AT : _STATUS_AT + 4], sys.byteorder) & _UNSYNCHRONISED:
        return (
            "clock",
            WARN,
            "not synchronized: times of agents on several hosts do not match",
            "timedatectl set-ntp true",
        )
    return "clock", OK, "synchronized", ""


def _offload(asked: tuple[str, ...]) -> Iterator[Line]:
    """The kernel joins packets before it shows them (GRO, BIG TCP); a block of the ring has to take the longest."""
    name = "offload"
    try:
        found = subprocess.run(
            ["ip", "-d", "-j", "link"],  # noqa: S607 - wherever it is installed
            capture_output=True,
            check=True,
            timeout=10,
        )
        links = json.loads(found.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        yield name, WARN, "unknown: iproute2 is not installed", "apt-get install iproute2"
        return
    keys = ("gro_max_size", "gso_max_size", "gro_ipv4_max_size", "gso_ipv4_max_size")
    largest = {link["ifname"]: max(link.get(key, 0) for key in keys) for link in links}
    large = [link for link, size in largest.items() if size > _PACKET_BYTES and (not asked or link in asked)]
    for link in large:
        fix = f"ip link set dev {link} " + " ".join(f"{key} {_PACKET_BYTES}" for key in keys)
        yield name, WARN, f"{link} joins packets up to {largest[link]} bytes, more than the ring takes", fix
    if not large:
        yield name, OK, f"packets are joined up to {max(largest.values(), default=0)} bytes", ""


def _reverse_path() -> Line:
    """Strict reverse path filtering (RFC 3704) drops packets after the agent has seen them."""
    folder = Path("/proc/sys/net/ipv4/conf")
    try:
        every = int((folder / "all/rp_filter").read_text())
        names = [name for name in _names() if name != "lo" and _is_up(name)]
        modes = {name: max(every, int((folder / name / "rp_filter").read_text())) for name in names}
    except (OSError, ValueError):
        return "rp_filter", OK, "not on this system", ""
    strict = [name for name, mode in modes.items() if mode == 1]
    if strict and len(names) > 1:
        fix = "sysctl -w " + " ".join(f"net.ipv4.conf.{name}.rp_filter=2" for name in strict)
        return "rp_filter", WARN, f"strict on {', '.join(strict)}: packets the agent sees may not reach Kafka", fix
    return "rp_filter", OK, f"{'strict, one interface' if strict else 'not strict'}", ""
