"""From a capture to its result: by the plain loop, and by the two engines of a replay.

Knows where the captures and their truths are and how to run one by each engine. Refuses to know what is expected.
"""

import gzip
import json
import struct
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.streaming.run import replay
from wirecheck.streaming.run.local_replay import LocalReplay
from wirecheck.streaming.steps.frames_folder import frames_files
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store.run_result import Result

ROOT = Path(__file__).resolve().parents[2]
HOMES = (ROOT / "tests/scenarios/captures", ROOT / "examples")
NAMES = sorted(folder.parent.name for home in HOMES for folder in home.glob("*/truth.json"))
SERIAL = count()


@dataclass(frozen=True)
class Scenario:
    """One capture of a real cluster, with what is true about it."""

    name: str

    @property
    def folder(self) -> Path:
        return next(home / self.name for home in HOMES if (home / self.name).is_dir())

    @property
    def pcap(self) -> Path:
        return self.folder / "capture.pcap.gz"

    @property
    def settings(self) -> Settings:
        """With the dialect that its bytes are in."""
        return Settings(dialects=("kip516-draft",) if self.name.startswith("kip516-draft") else ())

    @cached_property
    def truth(self) -> dict[str, Any]:
        return json.loads((self.folder / "truth.json").read_text())


def frames(pcaps: list[Path], folder: Path, *, roll_bytes: int = 64 << 20) -> list[Path]:
    return write_frames(pcaps, folder, "default", roll_bytes=roll_bytes).files


def packets(scenario: Scenario) -> list[bytes]:
    """A classic pcap's head, and its packets with the head of each."""
    pcap = gzip.decompress(scenario.pcap.read_bytes())
    at, found = 24, [pcap[:24]]
    while at < len(pcap):
        size = struct.unpack_from("<I", pcap, at + 8)[0]
        found.append(pcap[at : at + 16 + size])
        at += 16 + size
    return found


def looped(batches: list[list[Path]], settings: Settings = Settings()) -> Result:
    """Result of a plain loop that is given these batches of frames files."""
    loop = Loop(settings)
    for batch in batches:
        loop.batch(batch)
    return loop.result()


def plain(batches: list[list[Path]], settings: Settings = Settings()) -> dict[str, Any]:
    """The same as JSON."""
    return looped(batches, settings).json()


def local(files: list[Path], settings: Settings = Settings()) -> dict[str, Any]:
    """Result of a replay without Spark, which judges each file as it appears."""
    run = LocalReplay(settings)
    for file in files:
        run.judge([file])
    return run.result().json()


def spark(session: Any, folder: Path, scratch: Path, settings: Settings = Settings(), **how: Any) -> dict[str, Any]:
    """Result of the query over a folder of frames."""
    work = scratch / f"query-{next(SERIAL)}"
    judged = replay.judge(session, frames_files([folder]), settings, work=work, out=work / "tables", **how)
    return Result.read(work / "tables", judged.run).json()
