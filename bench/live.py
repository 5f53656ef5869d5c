"""Live capture on loopback beside dumpcap: the same packets at the same rates, one after the other.

Knows: a generator of TCP packets pinned to one core, a subject pinned to another, what each says it lost.
Refuses to know: what packets mean; they are of one connection that nobody follows.
Rule: what was sent and not captured is lost, whatever the subject reports. Needs CAP_NET_RAW; without it there are no
rows. A dumpcap that is not installed is a peer that is missing.
"""

import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PORT = 19092
RATES = (50_000, 100_000, 150_000)
SECONDS = 10
PAYLOAD_BYTES = 900
_AGENT = """
import os, sys
from collections.abc import Callable
from pathlib import Path
from capture.frames import Stamp
from capture.listen import Listening, listen
os.sched_setaffinity(0, {int(sys.argv[2])})
what = Listening(("lo",), ports=(int(sys.argv[3]),), keep_records=True)
print(listen(what, Path(sys.argv[1]), Stamp("bench", "agent"), lambda line: print(line, flush=True)).kept_frames)
"""


def packet() -> bytes:
    tcp = struct.pack(">HHIIHHHH", 40000, PORT, 1, 1, 5 << 12 | 16, 4096, 0, 0) + os.urandom(PAYLOAD_BYTES)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0, b"\x7f\0\0\x01", b"\x7f\0\0\x01")
    return bytes(12) + b"\x08\x00" + ip + tcp


def send(rate: int, seconds: float) -> int:
    """Packets to loopback, a few at a time so that the mean rate holds."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    data, total, sent = packet(), int(rate * seconds), 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind(("lo", 0))
        begin = time.perf_counter()
        while sent < total:
            due = min(total, int((time.perf_counter() - begin) * rate) + 1)
            for _ in range(due - sent):
                out.send(data)
            sent = max(sent, due)
    return sent


def measure() -> list[dict]:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except (OSError, AttributeError):
        return []
    rows = []
    for rate in RATES:
        ours, our_cpu = subject(rate, agent)
        theirs, their_cpu = subject(rate, dumpcap) if shutil.which("dumpcap") else (None, None)
        name = f"live, {rate // 1000} k packets/s"
        lost = row(f"{name}: lost", ours, theirs, "% of packets")
        met = None if theirs is None else ours <= theirs
        rows += [lost | {"bar": "none where dumpcap has none", "met": met}]
        rows += [row(f"{name}: processor", our_cpu, their_cpu, "% of a core")]
    return rows


Started = tuple[subprocess.Popen, Callable[[str], int]]  # the process, and how its output says what it captured


def subject(rate: int, start: Callable[[Path], Started]) -> tuple[float, float]:
    """(percent of the packets lost, percent of a core used) of one subject at one rate."""
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as folder:
        process, count = start(Path(folder))
        spent = cpu_seconds(process.pid)
        generator = [sys.executable, "-c", f"from bench.live import send; send({rate}, {SECONDS})"]
        subprocess.run(generator, check=True)
        time.sleep(1)
        spent = cpu_seconds(process.pid) - spent
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        sent = rate * SECONDS
        return 100 * (sent - count(out + err)) / sent, 100 * spent / SECONDS


def agent(folder: Path) -> Started:
    arguments = [sys.executable, "-c", _AGENT, str(folder / "frames"), str(core()), str(PORT)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    return process, lambda text: int(text.split()[-1])


def dumpcap(folder: Path) -> Started:
    arguments = ["dumpcap", "-q", "-i", "lo", "-f", f"tcp port {PORT}", "-B", "64", "-w", str(folder / "out.pcapng")]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.sched_setaffinity(process.pid, {core()})
    time.sleep(2)
    return process, lambda text: int(re.search(r"Packets captured: (\d+)", text).group(1))


def core() -> int:
    return max(os.sched_getaffinity(0))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def row(name: str, value: float, peer_value: float | None, unit: str) -> dict:
    ratio = value / peer_value if peer_value else None
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": "dumpcap",
        "peer_value": peer_value,
        "ratio": ratio,
        "bar": None,
        "met": None,
    }
