"""Capture: how fast a capture file becomes frames, in memory and on disk, and in how much memory.

Knows: synthesised captures of both mixes (bench/traffic.py), a warm file cache, one process.
Refuses to know: what other machines reach; there is no peer that writes such a table. Live capture is in live.py.
Rule: the best of three runs counts, every run is a process of its own with all compiled loops loaded (the warm-up has
many windows: some loops run from the second one on only), and processor time is what "per core" means: Arrow may use a
second thread.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import live
from bench.traffic import write_capture

SIZE = 300_000_000
BAR = 1_000_000
_RUN = """
import json, resource, sys, time
from pathlib import Path
from wirecheck.capture.agent.offline_agent import read_frames, write_frames
warm, path, out = map(Path, sys.argv[1:4])
sum(rows.num_rows for rows in read_frames([warm], batch_bytes=1 << 18))
if sys.argv[4] != "rows":
    write_frames([warm], Path(str(out) + "-warm"), "bench", batch_bytes=1 << 18)
begin = time.process_time()
if sys.argv[4] == "rows":
    frames = sum(rows.num_rows for rows in read_frames([path]))
else:
    frames = write_frames([path], out, "bench", keep_records=sys.argv[4] == "files").frames
spent = time.process_time() - begin
peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([frames / spent, peak_mb, path.stat().st_size / spent / 1e6]))
"""


def measure() -> list[dict]:
    found = []
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as name:
        folder = Path(name)
        warm = folder / "warm.pcap"
        write_capture(warm, 5_000_000)
        for mix in ("records", "small"):
            path = folder / f"{mix}.pcap"
            write_capture(path, SIZE, mix)
            rates = [run(warm, path, folder / f"{mix}-{i}", "rows") for i in range(3)]
            found.append(row(f"pcap to frames, in memory, {mix}", max(r[0] for r in rates), "frames/s/core", BAR))
            rates = [run(warm, path, folder / f"{mix}-{i}", "files") for i in range(3)]
            found.append(row(f"pcap to frames, files, {mix}", max(r[0] for r in rates), "frames/s/core", None))
            found.append(row(f"pcap to frames, peak memory, {mix}", max(r[1] for r in rates), "MB", None))
            rates = [run(warm, path, folder / f"{mix}-{i}", "trimmed") for i in range(3)]
            rate, peak_mb = max(r[0] for r in rates), max(r[1] for r in rates)
            found.append(row(f"pcap to frames, files, trimmed, {mix}", rate, "frames/s/core", BAR))
            found.append(row(f"pcap to frames, peak memory, trimmed, {mix}", peak_mb, "MB", None))
            found.append(
                row(f"pcap to frames, files, trimmed, {mix}, bytes", max(r[2] for r in rates), "MB/s/core", None)
            )
            path.unlink()
    return found + live.measure()


def run(warm: Path, path: Path, out: Path, what: str) -> tuple[float, float, float]:
    """(frames a second of processor time, peak MB, MB of capture file a second of it)."""
    arguments = [sys.executable, "-c", _RUN, str(warm), str(path), str(out), what]
    rate, peak_mb, mb_s = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)
    for folder in (out, Path(f"{out}-warm")):
        shutil.rmtree(folder, ignore_errors=True)
    return rate, peak_mb, mb_s


def row(name: str, value: float, unit: str, bar: float | None) -> dict:
    met = None if bar is None else value >= bar
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": None,
        "peer_value": None,
        "ratio": None,
        "bar": bar,
        "met": met,
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
