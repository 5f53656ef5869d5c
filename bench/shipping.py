"""Three agents that ship what they capture, through an outage of the store and a kill -9 each.

    python -m bench.shipping [--rate 10000] [--seconds 24] [--away 10] [--store PROGRAM] [--pcap FILE]

Knows: a generator of Kafka's packets (bench/generator.py) that all agents hear, an S3 server that stops answering for a
while, which packets are in the store in the end, and what agents cost beside others that do not ship. Refuses to know:
how files are brought there.
Rule: what one agent lacks is told by what the others have. It may lack what passed between the last file that it had
finished when it was killed and its next start, and nothing else; nothing may be there twice, or out of order. It needs
root.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from pyarrow import fs

from bench import generator
from bench.live import PORT, cpu_seconds
from bench.s3_store import KEYS, Store
from bench.traffic import write_capture

AGENTS = ("a", "b", "c")
CAPTURE_BYTES, PATIENCE_S = 60_000_000, 120
COLUMNS = ["kind", "ts_ns", "src_ip", "src_port", "dst_ip", "dst_port", "tcp_seq", "tcp_ack", "payload_len"]
PACKET = COLUMNS[2:]
FRAME = 0


class Agent:
    """`wirecheck capture`, and what it has cost in all its lives."""

    def __init__(self, folder: Path, name: str, *more: str) -> None:
        self.name, self.spool, self.words = name, folder / f"spool-{name}", folder / f"words-{name}"
        self.command = [sys.executable, "-m", "wirecheck", "capture", "-i", generator.RECEIVES, "--port", str(PORT)]
        self.command += ["--agent", name, "--cluster", "bench", "--out", str(self.spool), *more]
        self.cpu_s, self.most_mb = 0.0, 0.0
        self.start()

    def start(self) -> None:
        with self.words.open("ab") as words:
            before = words.tell()
            self.process = subprocess.Popen(self.command, stdout=words, stderr=words)
        until = time.monotonic() + PATIENCE_S
        while b"capturing" not in self.words.read_bytes()[before:]:
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the agent does not start:\n{self.words.read_text()[-1000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        self.look()
        self.process.kill()
        self.process.wait()

    def look(self) -> None:
        """What this life has cost so far; asked for once at its end."""
        self.cpu_s += cpu_seconds(self.process.pid)
        said = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        self.most_mb = max(self.most_mb, *(int(line.split()[1]) / 1e3 for line in said if line.startswith("VmHWM")))

    def end(self) -> str:
        """Once nothing waits in the spool; its last line."""
        until = time.monotonic() + PATIENCE_S
        while "--ship" in self.command and any(self.spool.glob(f"{self.name}-*.parquet")) and time.monotonic() < until:
            time.sleep(0.2)
        self.look()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)
        return self.words.read_text().splitlines()[-1]


class Traffic:
    """The generator, at a rate."""

    def __init__(self, pcap: Path, rate: int, seconds: float) -> None:
        command = [sys.executable, "-m", "bench.generator", str(pcap), "0", str(rate), str(seconds)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def begin(self) -> None:
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.began_s = time.monotonic()

    def until(self, seconds: float) -> None:
        time.sleep(max(0.0, self.began_s + seconds - time.monotonic()))

    def end(self) -> float:
        return float(self.process.communicate()[0])


def shipped(folder: Path, pcap: Path, given: argparse.Namespace, store: Store) -> dict:
    """Three agents through an outage; each is killed while the store is away."""
    agents = [Agent(folder, name, "--ship", "s3://bucket/frames") for name in AGENTS]
    traffic, before, down = Traffic(pcap, given.rate, given.seconds), generator.offered(), {}
    traffic.begin()
    traffic.until(given.seconds / 6)
    os.killpg(store.process.pid, signal.SIGSTOP)
    for number, agent in enumerate(agents):
        traffic.until(given.seconds / 6 + (number + 1) * given.away / 4)
        killed_ns = time.time_ns()
        agent.kill()
        agent.start()
        down[agent.name] = killed_ns, time.time_ns()
    traffic.until(given.seconds / 6 + given.away)
    os.killpg(store.process.pid, signal.SIGCONT)
    sent_s = traffic.end()
    time.sleep(1)
    offered = generator.offered() - before
    last = {agent.name: agent.end() for agent in agents}
    return {
        "offered": offered, "packets a second": round(offered / sent_s), "last lines": last,
        **found(agents, down), "cost": cost(agents),
    }  # fmt: skip


def found(agents: list[Agent], down: dict[str, tuple[int, int]]) -> dict:
    """What is in the store, held against what any of the agents has there."""
    files = {agent.name: files_of(agent.name) for agent in agents}
    held = {name: [keys for _, rows in mine for keys in rows] for name, mine in files.items()}
    seen: dict[tuple, int] = {}
    for rows in held.values():
        for ts_ns, packet in rows:
            seen.setdefault(packet, ts_ns)
    told = {}
    for name, mine in files.items():
        counts = Counter(packet for _, packet in held[name])
        lacks = np.array(sorted(ts_ns for packet, ts_ns in seen.items() if packet not in counts), np.int64)
        times = [ts_ns for ts_ns, _ in held[name]]
        killed_ns, again_ns = down[name]
        outside = int(np.sum((lacks < last_before(mine, killed_ns)) | (lacks > again_ns)))
        told[name] = {
            "files": len(mine),
            "numbers without a hole": [number for number, _ in mine] == list(range(1, len(mine) + 1)),
            "packets": len(times), "twice": sum(counts.values()) - len(counts), "lacks": len(lacks),
            "of them not while it was down": outside, "out of order": int(np.sum(np.diff(times) < 0)),
            "down s": round((again_ns - killed_ns) / 1e9, 2), "in its unfinished file": round(
                (killed_ns - last_before(mine, killed_ns)) / 1e9, 2),
            "left in the spool": len(list(next(a for a in agents if a.name == name).spool.glob("*.parquet"))),
        }  # fmt: skip
    return {"packets of any": len(seen), "agents": told}


def last_before(files: list[tuple[int, list]], killed_ns: int) -> int:
    """The last packet of the last file that was finished before the kill."""
    return max((rows[-1][0] for _, rows in files if rows and rows[-1][0] <= killed_ns), default=0)


def files_of(name: str) -> list[tuple[int, list]]:
    """Per file its number, and time and identity of each packet, as they stand in it."""
    system, folder = fs.FileSystem.from_uri("s3://bucket/frames")
    told = sorted(one.path for one in system.get_file_info(fs.FileSelector(folder)) if f"/{name}-" in one.path)
    found = []
    for path in told:
        table = pq.read_table(path, filesystem=system, columns=COLUMNS)
        columns = {column: table[column].to_pylist() for column in COLUMNS}
        packets = zip(*(columns[column] for column in PACKET), strict=True)
        rows = [
            (ts_ns, packet)
            for kind, ts_ns, packet in zip(columns["kind"], columns["ts_ns"], packets, strict=True)
            if kind == FRAME
        ]
        found.append((int(path[-len("0000000001.parquet") : -len(".parquet")]), rows))
    return found


def cost(agents: list[Agent]) -> dict:
    return {agent.name: {"CPU s": round(agent.cpu_s, 2), "most MB": round(agent.most_mb)} for agent in agents}


def undisturbed(folder: Path, pcap: Path, rate: int, seconds: float, *more: str) -> dict:
    """What three agents cost that nothing happens to."""
    agents = [Agent(folder, name, *more) for name in AGENTS]
    traffic, before = Traffic(pcap, rate, seconds), generator.offered()
    traffic.begin()
    sent_s = traffic.end()
    time.sleep(1)
    offered = generator.offered() - before
    last = [agent.end() for agent in agents]
    return {"packets a second": round(offered / sent_s), "offered": offered, "cost": cost(agents), "last lines": last}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=24)
    parser.add_argument("--away", type=float, default=10)
    parser.add_argument("--store", type=Path, help="gunicorn with moto beside it; both are installed otherwise")
    parser.add_argument("--pcap", type=Path, help="made by an earlier run; made anew otherwise")
    parser.add_argument("--parts", default="outage,ship,folder", help="which of them")
    given = parser.parse_args()
    os.environ.update(KEYS)
    with tempfile.TemporaryDirectory(prefix="wirecheck-shipping-") as name:
        folder = Path(name)
        pcap = given.pcap or folder / "packets.pcap"
        if not pcap.exists():
            write_capture(pcap, CAPTURE_BYTES, "small")
        store = Store(folder, given.store)
        try:
            for number, part in enumerate(given.parts.split(",")):
                inside = folder / f"{number}-{part}"
                inside.mkdir()
                with generator.wire():
                    if part == "outage":
                        told = shipped(inside, pcap, given, store)
                    else:
                        more = ("--ship", f"s3://bucket/beside-{number}") if part == "ship" else ()
                        told = undisturbed(inside, pcap, given.rate, given.seconds / 2, *more)
                print(json.dumps({part: told}, indent=1), flush=True)
        finally:
            store.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
