"""The picture of the overview dashboard, from the answers of a real Prometheus, which are kept beside the boards:
`make docs` draws it again from them, `make board` (python -m tools.board_picture) asks a Prometheus again.

Knows: a monitor and a Prometheus as an operator starts them, captures that arrive while both run, as fast as they were
captured, and what Grafana asks for a panel: its expressions with the board's variables set, over the range that is
shown, at its step.
Refuses to know how a panel looks: `board_svg.py` draws.
Rule: no value is made up or retouched; the picture says under itself that Grafana did not draw it.
"""

import gzip
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from tools import board_svg
from wirecheck.capture import frames_file
from wirecheck.capture.agent.offline_agent import write_frames

ROOT = Path(__file__).resolve().parent.parent
BOARD = ROOT / "dashboards/grafana/wirecheck/wirecheck-overview.json"
PICTURE = ROOT / "docs/pictures/board.svg"
ANSWERS = ROOT / "tools/boards/answers.json"
"""What Prometheus answered: the last second that is shown, and of each panel its series."""
RULES = ROOT / "dashboards/prometheus"
CAPTURES = (
    "tests/scenarios/captures/zk28-healthy",
    "tests/scenarios/captures/kraft-clients-zoo",
    "examples/zk39-inconsistent-id",
    "tests/scenarios/captures/zk28-recreate",
    "examples/kraft4-stale-broker",
)
"""Each as a cluster of its own, at the speed at which it was captured: all end with the minutes that are shown."""
FILE_BYTES = 60_000
"""Of a file of frames, as many came in a few seconds."""
SCRAPED_EVERY_S = 5
SHOWN_S = 180
PORT = {"prometheus": 19890, "monitor": 19891}
WAIT_S = 300
JUDGED_S = 30
"""Whose last packet was checked has a lag of a few seconds: its capture has ended."""
EVERY_SERIES = ".*"
"""What Grafana puts in place of a variable whose "All" is chosen, as these boards have it."""


def main() -> None:
    if shutil.which("prometheus") is None:
        sys.exit("prometheus is not installed (Debian: prometheus): the picture of the board stays as it was")
    with tempfile.TemporaryDirectory(prefix="wirecheck-") as scratch:
        answers, end_s = lived(Path(scratch), json.loads(BOARD.read_text()))
    ANSWERS.write_text(as_json(answers, end_s))
    PICTURE.write_text(picture())


def as_json(answers: board_svg.Answers, end_s: int) -> str:
    """A line a series."""
    lines = ",\n".join(
        json.dumps([panel, one.labels, one.name, one.values], separators=(",", ":"))
        for panel, every in answers.items()
        for one in every
    )
    return f'{{"end_s": {end_s}, "panels": {json.dumps([*answers])}, "series": [\n{lines}\n]}}\n'


def picture() -> str:
    """Drawn from the answers that are kept, by the board's JSON as it is now."""
    kept = json.loads(ANSWERS.read_text())
    answers: dict[int, list[board_svg.Series]] = {panel: [] for panel in kept["panels"]}
    for panel, labels, name, values in kept["series"]:
        answers[panel].append(board_svg.Series(labels, name, [(at_s, value) for at_s, value in values]))
    return board_svg.drawn(json.loads(BOARD.read_text()), answers, kept["end_s"] - SHOWN_S, kept["end_s"])


def lived(folder: Path, board: board_svg.Document) -> tuple[board_svg.Answers, int]:
    """What every panel would show at the end of the minutes in which the captures arrived."""
    frames = folder / "frames"
    frames.mkdir()
    listens = (f"--web.listen-address=127.0.0.1:{PORT['prometheus']}", f"--storage.tsdb.path={folder / 'tsdb'}")
    command = ("--frames", frames, "--out", folder / "out", "--metrics-port", PORT["monitor"])
    running = [
        started(sys.executable, "-m", "wirecheck", "monitor", *command),
        started("prometheus", f"--config.file={configured(folder)}", *listens),
    ]
    try:
        until("up == 1", running)
        last_s = time.time() + SHOWN_S  # noqa: TID251 - Prometheus's clock
        files = [each for capture in CAPTURES for each in frames_of(ROOT / capture, folder, int(last_s))]
        for at_s, file in sorted(files):
            time.sleep(max(0.0, at_s - time.time()))  # noqa: TID251 - Prometheus's clock
            file.rename(frames / file.name)
        until(f"count(wirecheck_judged_lag_seconds < {JUDGED_S}) == {len(CAPTURES)}", running)
        end_s = int(float(get("query", query="time()")[1])) // SCRAPED_EVERY_S * SCRAPED_EVERY_S
        return {panel["id"]: asked(panel, end_s) for panel in board_svg.shown(board)}, end_s
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(timeout=120)


def started(*command: object) -> "subprocess.Popen[bytes]":
    nowhere = subprocess.DEVNULL
    return subprocess.Popen([*map(str, command)], cwd=ROOT, stdout=nowhere, stderr=nowhere)


def configured(folder: Path) -> Path:
    every = f"{SCRAPED_EVERY_S}s"
    job = {"job_name": "wirecheck-monitor", "static_configs": [{"targets": [f"127.0.0.1:{PORT['monitor']}"]}]}
    path = folder / "prometheus.yml"
    rules = [str(RULES / "rules.yml"), str(RULES / "alerts.yml")]
    how = {"scrape_interval": every, "evaluation_interval": every}
    path.write_text(yaml.safe_dump({"global": how, "rule_files": rules, "scrape_configs": [job]}))
    return path


def frames_of(capture: Path, folder: Path, last_s: int) -> Iterator[tuple[float, Path]]:
    """The files of frames of an agent and a cluster of the capture's name, and when each comes; the last packet is of
    that second.
    """
    name = capture.name
    recent = folder / f"{name}.pcap"
    recent.write_bytes(ending_at(gzip.decompress((capture / "capture.pcap.gz").read_bytes()), last_s))
    for file in write_frames([recent], folder / name, name, agent=name, roll_bytes=FILE_BYTES).files:
        yield max(frames_file.read(file)["ts_ns"].to_numpy()) / 1e9, file


def ending_at(pcap: bytes, last_s: int) -> bytes:
    """A little-endian pcap, with all its times moved by one number of seconds."""
    moved, at, places = bytearray(pcap), 24, []
    while at < len(pcap):
        places.append(at)
        at += 16 + struct.unpack_from("<I", pcap, at + 8)[0]
    seconds = [struct.unpack_from("<I", pcap, place)[0] for place in places]
    by_s = last_s - max(seconds)
    for place, second in zip(places, seconds, strict=True):
        struct.pack_into("<I", moved, place, second + by_s)
    return bytes(moved)


def until(expr: str, running: "list[subprocess.Popen[bytes]]") -> None:
    """Prometheus answers this with something."""
    end_s = time.monotonic() + WAIT_S
    while time.monotonic() < end_s:
        if ended := [str(process.args) for process in running if process.poll() is not None]:
            sys.exit(f"ended: {', '.join(ended)}")
        with suppress(OSError):  # Prometheus is not up yet
            if get("query", query=expr):
                return
        time.sleep(1)
    sys.exit(f"waited {WAIT_S} s in vain for {expr}")


def asked(panel: board_svg.Document, end_s: int) -> list[board_svg.Series]:
    """The series of a panel, each with its name and its values as (second, value)."""
    found = []
    for target in panel["targets"]:
        expr = target["expr"].replace("$__rate_interval", f"{4 * SCRAPED_EVERY_S}s").replace("$cluster", EVERY_SERIES)
        if target.get("instant"):
            rows = get("query", query=expr, time=end_s)
            found += [(row["metric"], target["legendFormat"], [row["value"]]) for row in rows]
        else:
            rows = get("query_range", query=expr, start=end_s - SHOWN_S, end=end_s, step=SCRAPED_EVERY_S)
            found += [(row["metric"], target["legendFormat"], row["values"]) for row in rows]
    return [
        board_svg.Series(
            labels, board_svg.named(legend, labels), [(float(at_s), float(value)) for at_s, value in values]
        )
        for labels, legend, values in found
    ]


def get(path: str, **words: object) -> list[Any]:
    url = f"http://127.0.0.1:{PORT['prometheus']}/api/v1/{path}?{urllib.parse.urlencode(words)}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.loads(answer.read())["data"]["result"]  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
