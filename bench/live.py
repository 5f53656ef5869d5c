"""Live capture on loopback beside dumpcap: the same packets at the same rates, one after the other.

Knows: a generator of Kafka's packets (bench/traffic.py) pinned to one core, a subject pinned to another, what each
says it lost; the agent with trimming and without. Refuses to know: what packets mean. The same capture is sent round
and round, each time from other addresses, so that every round is new connections.
Rule: what was sent and not captured is lost, whatever the subject reports; a generator that could not keep its rate
says the rate it had. Needs CAP_NET_RAW; without it there are no rows. A dumpcap that is not installed is a peer that
is missing.
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
from dataclasses import dataclass
from pathlib import Path

from bench.traffic import write_capture

PORT = 9092
RATES = (50_000, 100_000, 150_000)
SECONDS = 30
MIX, CAPTURE_BYTES = "small", 20_000_000
SECOND_OCTETS = 14 + 12 + 1, 14 + 16 + 1  # of both addresses: what makes a round's connections new
_AGENT = """
import os, sys
from collections.abc import Callable
from pathlib import Path
from capture.frames import Stamp
from capture.listen import Listening, listen
os.sched_setaffinity(0, {int(sys.argv[2])})
what = Listening(("lo",), ports=(int(sys.argv[3]),), keep_records=sys.argv[4] == "whole")
print(listen(what, Path(sys.argv[1]), Stamp("bench", "agent"), lambda line: print(line, flush=True)).kept_frames)
"""


def packets(folder: Path) -> list[bytearray]:
    path = folder / "traffic.pcap"
    write_capture(path, CAPTURE_BYTES, MIX)
    data, at, found = path.read_bytes(), 24, []
    while at + 16 <= len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        found.append(bytearray(data[at + 16 : at + 16 + size]))
        at += 16 + size
    return found


def send(rate: int, seconds: float) -> int:
    """Packets to loopback, a few at a time so that the mean rate holds; says how many, and in how many seconds."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as folder:
        data = packets(Path(folder))
    total, sent, count = int(rate * seconds), 0, len(data)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind(("lo", 0))
        begin = time.perf_counter()
        while sent < total:
            due = min(total, int((time.perf_counter() - begin) * rate) + 1)
            for k in range(sent, due):
                one = data[k % count]
                for octet in SECOND_OCTETS:
                    one[octet] = k // count & 0xFF
                out.send(one)
            sent = max(sent, due)
    print(sent, time.perf_counter() - begin)
    return sent


def measure() -> list[dict]:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except (OSError, AttributeError):
        return []
    rows = []
    peer = dumpcap if shutil.which("dumpcap") else None
    for rate in RATES:
        theirs = subject(rate, peer) if peer else None
        for what in ("whole", "trimmed"):
            rows += compared(rate, what, subject(rate, agent(what)), theirs)
    return rows


def compared(rate: int, what: str, ours: "Run", theirs: "Run | None") -> list[dict]:
    name = f"live, {rate // 1000} k packets/s, {what}"
    met = None if theirs is None else ours.lost <= theirs.lost
    lost = row(f"{name}: lost", ours.lost, theirs and theirs.lost, "% of packets")
    return [
        row(f"{name}: sent in fact", ours.sent_per_s, theirs and theirs.sent_per_s, "packets/s"),
        lost | {"bar": "none where dumpcap has none", "met": met},
        row(f"{name}: processor", ours.cpu, theirs and theirs.cpu, "% of a core"),
    ]


@dataclass(frozen=True)
class Run:
    lost: float
    cpu: float
    sent_per_s: float


Started = tuple[subprocess.Popen, Callable[[str], int]]  # the process, and how its output says what it captured


def subject(rate: int, start: Callable[[Path], Started]) -> Run:
    """Percent of the packets lost, percent of a core used, and what the generator did, of one subject at one rate."""
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as folder:
        process, count = start(Path(folder))
        spent = cpu_seconds(process.pid)
        generator = [sys.executable, "-c", f"from bench.live import send; send({rate}, {SECONDS})"]
        said = subprocess.run(generator, check=True, capture_output=True, text=True).stdout.split()
        time.sleep(1)
        spent = cpu_seconds(process.pid) - spent
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        sent, seconds = int(said[0]), float(said[1])
        return Run(100 * (sent - count(out + err)) / sent, 100 * spent / seconds, sent / seconds)


def agent(what: str) -> Callable[[Path], Started]:
    def start(folder: Path) -> Started:
        arguments = [sys.executable, "-c", _AGENT, str(folder / "frames"), str(core()), str(PORT), what]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.readline()
        return process, lambda text: int(text.split()[-1])

    return start


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
