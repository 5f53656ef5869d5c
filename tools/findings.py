"""Runs the scripts of findings/ one after the other: `python -m tools.findings [WORD]` (make findings).

Each script installs other software and shows what it does (findings/README.md). Prints whether that is still so, and of
a script that is not as described the end of its output.

Knows: the last line by which a script says how it ended, and how long it may take. Refuses to know what a script is
about.
Exit status: 0 all are as described, 1 one has changed, 2 one could not be run (no network, no Java).
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "findings"
AS_DESCRIBED, CHANGED = "as described", "not as described"
"""What the last line of a script begins with; it exits with 0 or 1."""
NOT_RUN = "could not be run"
STATUS = {AS_DESCRIBED: 0, CHANGED: 1, NOT_RUN: 2}
LONGEST_S = 900
STOPPING_S = 20
"""Between the signals by which one without an end is stopped."""
SHOWN_LINES = 12


def ended(script: Path, longest_s: float = LONGEST_S) -> tuple[str, str]:
    """How it ended, a key of STATUS, and what it printed. A script without an end is stopped with all that it started:
    it gets a signal first, so that it removes its folder.
    """
    words = ["bash", str(script)]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(words, **streams, text=True, errors="replace", start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=longest_s)
        except subprocess.TimeoutExpired:
            output = stopped(process) + f"\nno end after {longest_s:g} s"
    last = (output.strip().splitlines() or [""])[-1]
    for how, status in ((AS_DESCRIBED, 0), (CHANGED, 1)):
        if last.startswith(how) and process.returncode == status:
            return how, output
    return NOT_RUN, output


def stopped(process: "subprocess.Popen[str]") -> str:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=STOPPING_S)[0]
    return ""


def main(words: list[str], folder: Path = FOLDER) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("word", nargs="?", default="", help="only scripts with this word in their name")
    word = parser.parse_args(words).word
    scripts = sorted(path for path in folder.glob("*.sh") if word in path.name)
    if not scripts:
        parser.error(f"no script in {folder.name}/ has {word!r} in its name")
    found = []
    for script in scripts:
        began = time.monotonic()
        how, output = ended(script)
        found.append(how)
        print(f"{script.stem}: {how}, {time.monotonic() - began:.0f} s", flush=True)
        shown = output.strip().splitlines()
        print("".join(f"    {line}\n" for line in shown[-1 if how == AS_DESCRIBED else -SHOWN_LINES :]), end="")
    worst = CHANGED if CHANGED in found else max(found, key=STATUS.__getitem__)
    print(f"{len(found)} script{'s' * (len(found) != 1)}: " + ", ".join(f"{found.count(how)} {how}" for how in STATUS))
    return STATUS[worst]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
