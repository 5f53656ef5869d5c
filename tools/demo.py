"""`make demo`: one shipped capture, checked by the local engine at once and then by the Spark query; both compared.

What can be compiled is, once the verdict stands; WIRECHECK_PURE=1 compiles nothing.

Knows: which capture is shown, and that two verdicts are one if their JSON is, apart from the engine's name. Refuses to
know how anything is checked (wirecheck replay) or compiled (setup.py, which puts its work in place by one rename: what
runs meanwhile imports all of it or none).
Exit status: 0 where both engines say the same, or Spark could not finish on this machine; 1 where they differ.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CAPTURE = "examples/zk39-inconsistent-id/capture.pcap.gz"
REPLAY = [sys.executable, "-m", "wirecheck", "replay", CAPTURE, "--fail-on", "never", "--engine"]
COMPILE = ["make", "--no-print-directory", "compiled"]


def say(line: str) -> None:
    print(f"demo: {line}", flush=True)  # make writes to the same place


def verdict(engine: str, ending: ExitStack) -> dict[str, Any]:
    """As it is printed. The command may have more to do (Java writes what makes its next start faster)."""
    process = subprocess.Popen([*REPLAY, engine, "--format", "json"], cwd=ROOT, stdout=subprocess.PIPE)
    ending.enter_context(process)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise subprocess.CalledProcessError(process.wait(), process.args)
    found: dict[str, Any] = json.loads(line)
    return found


def compare(local: dict[str, Any], spark: dict[str, Any], seconds: float) -> int:
    if spark["engine"] != "spark":
        say("Spark did not finish on this machine (the line above says why): that verdict is the local engine's")
        return 0
    if apart := [key for key in local if key != "engine" and local[key] != spark.get(key)]:
        say(f"Spark query, {seconds:.0f} s: ANOTHER verdict: {', '.join(apart)} differ; please report this")
        return 1
    count = len(spark["findings"])
    counted = f"{count} finding{'s' if count != 1 else ''}, {spark['coverage']['messages']:,} messages"
    say(f"Spark query, {seconds:.0f} s: the same verdict, to the last field ({counted})")
    return 0


def main() -> int:
    began_s = time.monotonic()
    subprocess.run([*REPLAY, "local"], cwd=ROOT, check=True)
    say(f"local engine, {time.monotonic() - began_s:.0f} s; the Spark query follows: it is what a monitor runs")
    with ExitStack() as ending:
        began_s = time.monotonic()
        spark = verdict("spark", ending)
        ended = compare(verdict("local", ending), spark, time.monotonic() - began_s)
        if os.environ.get("WIRECHECK_PURE") != "1":
            say("the verdict stands; compiling what can be compiled (Ctrl-C: the plain source runs)")
            environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}  # no job of ours
            subprocess.run(COMPILE, cwd=ROOT, env=environment, check=True)
    return ended


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
