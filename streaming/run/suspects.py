"""Which frames files kill whoever reads them: each tried on its own, in a process that may die of it.

Knows: that a signal ends a process without a word, so that only whoever started it can say over which file it was.
Knows nothing of Spark.
Rule: this is asked once a worker has died, and of the files of its batch alone; a file that only kills beside others is
not found, and the batch is then repeated as it was.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import wirecheck
from wirecheck.streaming.steps.settings import Settings

PACKAGES = Path(wirecheck.__file__).resolve().parent.parent
PATIENCE_S = 600
"""One file, alone: a hang is no death, and is left to whoever looks at the monitor's health."""


def killers(paths: Iterable[str], settings: Settings) -> dict[str, str]:
    """The names of those that kill, and of what."""
    found: dict[str, str] = {}
    for path in paths:
        name = path.rpartition("/")[2]
        if name not in settings.set_aside and (number := death(path, settings)):
            found[name] = f"whoever reads it dies of {signal.Signals(number).name}"
    return found


def death(path: str, settings: Settings) -> int:
    """The number of the signal that ends a process which follows and judges this file alone; 0 for none."""
    alone = replace(settings, agents={}, held_files=0)  # nothing is waited for
    paths = os.pathsep.join([str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "wirecheck.streaming.run.suspects"],
            input=pickle.dumps((path, alone)), env={**os.environ, "PYTHONPATH": paths}, timeout=PATIENCE_S,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 0
    return max(0, -ended.returncode)


def main() -> None:
    from wirecheck.streaming.steps.plain_loop import Loop

    path, settings = pickle.load(sys.stdin.buffer)  # noqa: S301 - from `death`
    Loop(settings).batch([path])


if __name__ == "__main__":
    main()
