"""Live capture beside dumpcap: the same packets at the same rates, one after the other.

    python -m bench.live [--rates 25,50,100,150] [--seconds 30] [--mixes small,small-tls] [--subjects dumpcap,trimmed]

Knows: a generator of Kafka's packets (bench/generator.py) pinned to one core, a subject pinned to another, what each
says it lost; the agent with trimming and without; the same traffic inside TLS, with its key log at hand. Refuses to
know: what packets mean.
Rule: what the kernel's counters say came over and is in no file is lost, whatever the subject reports; a generator that
could not keep its rate says the rate it had. Needs root; without it there are no rows. A dumpcap that is not installed
is a peer that is missing. The copy into a ring is paid for by the core that delivers the packet: here the generator's,
on a host the one that serves the card. On a machine that does other things too, `chrt -r 1` before it lets both have
their cores, or the rates are not reached.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench import generator
from bench.inside_tls import wrap
from bench.traffic import write_capture

PORT = 9092
RATES = (25_000, 50_000, 100_000, 150_000)
SECONDS = 30.0
CAPTURE_BYTES = {"small": 60_000_000, "records": 200_000_000}
INSIDE_TLS = "-tls"
MIXES = (*CAPTURE_BYTES, *(mix + INSIDE_TLS for mix in CAPTURE_BYTES))
BUFFER_MB = 128  # of the peer: as the agent's
PEER, SUBJECTS = "dumpcap", ("dumpcap", "trimmed", "whole")
_AGENT = """
import os, sys
from pathlib import Path
from wirecheck.capture.agent.spool_folder import Limits
from wirecheck.capture.frames import Stamp
from wirecheck.capture.agent.live_agent import Listening, listen
os.sched_setaffinity(0, {int(sys.argv[2])})
limits = Limits(retain_s=5)
keys = tuple(map(Path, sys.argv[6:]))
what = Listening(
    (sys.argv[3],), ports=(int(sys.argv[4]),), keep_records=sys.argv[5] == "whole", limits=limits, key_logs=keys
)
counts = listen(what, Path(sys.argv[1]), Stamp("bench", "agent"), lambda line: print(line, flush=True))
print(counts.tls, counts.kept_frames, counts.lost_by("kernel"))
"""


@dataclass(frozen=True)
class Run:
    offered: int
    captured: int
    dropped: int  # in the kernel, as the subject says
    cpu_s: float
    seconds: float

    @property
    def lost(self) -> float:
        return 100 * (self.offered - self.captured) / self.offered

    @property
    def cpu(self) -> float:
        return 100 * self.cpu_s / self.seconds

    def __str__(self) -> str:
        per_packet = 1e6 * self.cpu_s / max(self.captured, 1)
        return (
            f"offered {self.offered:,} ({self.offered / self.seconds:,.0f}/s), captured {self.captured:,}, "
            f"kernel drops {self.dropped:,}, {self.cpu:.0f} % of a core, {per_packet:.1f} us/packet"
        )


Started = tuple[subprocess.Popen, Callable[[str], tuple[int, int]]]
"""The process, and how its output says what it captured and what the kernel dropped."""


def measure() -> list[dict]:
    return list(measured(RATES, SECONDS, MIXES, SUBJECTS))


def measured(rates: Iterable[int], seconds: float, mixes: Iterable[str], subjects: Iterable[str]) -> Iterable[dict]:
    """Rows of all that can be measured here; each run is told as it ends."""
    starts = {"dumpcap": dumpcap, "trimmed": agent("trimmed"), "whole": agent("whole")}
    chosen = [name for name in subjects if name != PEER or shutil.which(PEER)]
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as folder:
        for mix in mixes:
            pcap = traffic(Path(folder), mix)
            for rate in rates:
                runs: dict[str, Run] = {}
                for name in chosen:
                    try:
                        runs[name] = run(pcap, rate, seconds, starts[name])
                    except OSError as error:
                        print(f"bench.live: no interfaces here: {error}", file=sys.stderr)
                        return
                    print(f"{mix}, {rate // 1000} k/s, {name}: {runs[name]}", file=sys.stderr, flush=True)
                for name in runs.keys() - {PEER}:
                    yield from compared(f"live, {mix}, {rate // 1000} k packets/s, {name}", runs[name], runs.get(PEER))


def traffic(folder: Path, mix: str) -> Path:
    """The capture; inside TLS, its key log lies beside it."""
    plain, name = folder / "plain.pcap", mix.removesuffix(INSIDE_TLS)
    write_capture(plain, CAPTURE_BYTES[name], name)
    if name == mix:
        return plain.rename(folder / f"{mix}.pcap")
    wrap(plain, folder / f"{mix}.pcap", folder / f"{mix}.keys")
    return folder / f"{mix}.pcap"


def compared(name: str, ours: Run, theirs: Run | None) -> list[dict]:
    def row(what: str, unit: str, value: Callable[[Run], float]) -> dict:
        mine, its = value(ours), value(theirs) if theirs else None
        found = {"name": f"{name}: {what}", "value": mine, "unit": unit, "peer": PEER, "peer_value": its}
        return found | {"ratio": mine / its if its else None, "bar": None, "met": None}

    lost = row("lost", "% of packets", lambda run: run.lost)
    met = None if theirs is None else ours.lost <= theirs.lost
    return [
        row("offered", "packets/s", lambda run: run.offered / run.seconds),
        lost | {"bar": "none where dumpcap has none", "met": met},
        row("kernel drops", "packets", lambda run: run.dropped),
        row("processor", "% of a core", lambda run: run.cpu),
    ]


def run(pcap: Path, rate: int, seconds: float, start: Callable[[Path, Path], Started]) -> Run:
    """One subject at one rate. Raises OSError where the interfaces cannot be made."""
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as folder, generator.wire():
        command = [sys.executable, "-m", "bench.generator", str(pcap), str(cores()[0]), str(rate), str(seconds)]
        source = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        source.stdout.readline()
        process, count = start(Path(folder), pcap.with_suffix(".keys"))
        spent, before = cpu_seconds(process.pid), generator.offered()
        sent_s = float(source.communicate("go\n")[0])
        time.sleep(2)
        spent, offered = cpu_seconds(process.pid) - spent, generator.offered() - before
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        return Run(offered, *count(out + err), spent, sent_s)


def agent(what: str) -> Callable[[Path, Path], Started]:
    def start(folder: Path, keys: Path) -> Started:
        where = [str(folder / "frames"), str(cores()[-1]), generator.RECEIVES, str(PORT), what]
        where += [str(keys)] if keys.exists() else []
        command = [sys.executable, "-c", _AGENT, *where]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not any("capturing" in line for line in iter(process.stdout.readline, "")):
            raise RuntimeError(f"the agent ended: {process.communicate()[1]}")

        def count(text: str) -> tuple[int, int]:
            print(text.splitlines()[-1], file=sys.stderr)
            kept, lost = map(int, text.split()[-2:])
            return kept, lost

        return process, count

    return start


def dumpcap(folder: Path, _: Path) -> Started:
    options = ["-q", "-i", generator.RECEIVES, "-f", f"tcp port {PORT}", "-B", str(BUFFER_MB), "-p"]
    files = ["-b", "filesize:200000", "-b", "files:4", "-w", str(folder / "out.pcapng")]
    process = subprocess.Popen(["dumpcap", *options, *files], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    os.sched_setaffinity(process.pid, {cores()[-1]})
    time.sleep(2)

    def count(text: str) -> tuple[int, int]:
        received, dropped = re.search(r"Packets received/dropped on interface '.*': (\d+)/(\d+)", text).groups()
        return int(received), int(dropped)

    return process, count


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=names, default=[str(rate // 1000) for rate in RATES], help="thousands a second")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--mixes", type=names, default=list(CAPTURE_BYTES))
    parser.add_argument("--subjects", type=names, default=list(SUBJECTS))
    given = parser.parse_args()
    rates = [1000 * int(rate) for rate in given.rates]
    for row in measured(rates, given.seconds, given.mixes, given.subjects):
        Console().print(row)


if __name__ == "__main__":
    main()
