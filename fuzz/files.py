"""python -m fuzz.files captures --minutes 20: files that lie or are damaged, against what reads them.

Knows: how inputs are made again from their numbers, and that whoever reads them runs in a process of its own, where
memory is bounded. Compiled code checks every index: one outside is an IndexError there, and a breach here.
Refuses to know: what the files are (capture_files.py, frames_files.py, whole_path.py).
Rule: a signal, an exception that is not the reader's own word, or an input that takes longer than a minute is a breach:
its file is kept under build/fuzz, the run goes on behind it, and ends with 1.
"""

# ruff: noqa: T201 -- a report on the terminal is what it is for

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fuzz.bound import Bound, add_minutes

if TYPE_CHECKING:
    from types import ModuleType

KINDS = ("captures", "frames", "traffic")
BUILD = Path(__file__).resolve().parent.parent / "build"
INPUTS_PER_PROCESS = 5_000
HANGS_S, COMPILES_S = 60, 1800
MEMORY_BYTES = 8 << 30  # of addresses: compiled code, Arrow and numpy take 2 GB before the first input
MOST_BREACHES = 20


class Options(Protocol):
    """What was said on the command line."""

    kind: str
    seed: int
    first: int
    inputs: int
    minutes: float | None
    child: Path | None


@dataclass
class Run:
    """What has become of the inputs."""

    outcomes: Counter[str] = field(default_factory=Counter)
    breaches: list[str] = field(default_factory=list)


def subject(kind: str) -> ModuleType:
    from fuzz import capture_files, frames_files, whole_path

    return {"captures": capture_files, "frames": frames_files, "traffic": whole_path}[kind]


def made(kind: str, seed: int, number: int) -> tuple[bytes, np.random.Generator]:
    rng = np.random.default_rng([seed, number])
    return subject(kind).make(rng), rng


def read_all(options: Options) -> int:
    """In the process of its own: every input of a range, until one is a breach or the minutes are over."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    assert options.child is not None
    kind, outcomes, bound = subject(options.kind), Counter[str](), Bound(options.inputs, options.minutes)
    path = options.child / f"a-0000000001.{kind.SUFFIX}"
    with (options.child / "number").open("r+b", buffering=0) as progress:
        for number in range(options.first, options.first + options.inputs):
            data, rng = made(options.kind, options.seed, number)
            os.pwrite(progress.fileno(), b"%12d" % number, 0)
            path.write_bytes(data)
            try:
                outcomes[kind.read(path, rng)] += 1
            except Exception as error:  # noqa: BLE001 -- whatever it is, it is the finding
                last = traceback.extract_tb(error.__traceback__)[-1]
                said = f"{type(error).__name__} {str(error)[:200]} at {Path(last.filename).name}:{last.lineno}"
                (options.child / "breach").write_text(said)
                break
            if bound.over(number + 1 - options.first):
                break
    (options.child / "outcomes").write_text(json.dumps(outcomes))
    return 0


def in_a_process(options: Options, first: int, bound: Bound, run: Run) -> int:
    """Read a range there; the number of the first input that is not read yet."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "number").write_text(f"{first:12}")
        inputs = bound.next(first - options.first, INPUTS_PER_PROCESS)
        words = ["--seed", options.seed, "--first", first, "--inputs", inputs, "--child", folder]
        words += [] if bound.minutes is None else ["--minutes", bound.left_minutes()]
        command = [sys.executable, "-m", "fuzz.files", options.kind, *map(str, words)]
        process = subprocess.Popen(command)  # noqa: S603 -- ourselves
        hung = not ends(process, folder / "number")
        number = int((folder / "number").read_text())
        if (folder / "outcomes").exists():
            run.outcomes.update(json.loads((folder / "outcomes").read_text()))
        breach = (folder / "breach").read_text() if (folder / "breach").exists() else None
        if hung:
            breach = f"no end after {HANGS_S} s"
        elif process.returncode:
            code = process.returncode
            breach = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        if breach is None:
            return number + 1
        kept = keep(options, number)
        print(f"BREACH input {number}: {breach}; {kept}", flush=True)
        run.breaches.append(breach)
        return number + 1


def ends(process: subprocess.Popen[bytes], progress: Path) -> bool:
    """Whether it ends by itself; one that stands at one input for too long is killed. The first one may compile."""
    seen, since_s, patience_s = "", time.monotonic(), COMPILES_S
    while process.poll() is None:
        time.sleep(0.2)
        now = progress.read_text()
        if now != seen:
            patience_s = HANGS_S if seen else COMPILES_S
            seen, since_s = now, time.monotonic()
        elif time.monotonic() - since_s > patience_s:
            process.kill()
            process.wait()
            return False
    return True


def keep(options: Options, number: int) -> Path:
    folder = BUILD / "fuzz"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{options.kind}-{options.seed}-{number}.{subject(options.kind).SUFFIX}"
    path.write_bytes(made(options.kind, options.seed, number)[0])
    return path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="files that lie or are damaged against their readers")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seed", type=int, default=1)
    add_minutes(parser)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if options.child is not None:
        return read_all(options)
    run, begin, number = Run(), time.monotonic(), options.first
    bound = Bound(options.inputs, options.minutes)
    print(f"{options.kind}: inputs of seed {options.seed}, every index checked", flush=True)
    while not bound.over(number - options.first) and len(run.breaches) < MOST_BREACHES:
        number = in_a_process(options, number, bound, run)
    minutes = (time.monotonic() - begin) / 60
    print(f"  {number - options.first} inputs in {minutes:.1f} minutes, {len(run.breaches)} breaches", flush=True)
    print("  " + ", ".join(f"{name} {count}" for name, count in run.outcomes.most_common()))
    return 1 if run.breaches else 0


if __name__ == "__main__":
    sys.exit(main())
