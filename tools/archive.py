"""One file with all that a Spark cluster's Pythons need: wirecheck's wheel, compiled here, and what it depends on.

    python -m tools.archive [FILE.tar.gz] [--extras monitor,objectstore,delta]

Knows: how an environment is made from the pins (requirements.lock), how it becomes one archive that may be
unpacked anywhere (venv-pack), and what would tie compiled code to this machine's CPU. Refuses to know how Spark is told
of it (docs/monitor.md).
Rule: nothing in it was compiled for this machine's CPU in particular, and nothing is compiled where it is unpacked. It
fits executors of this system, architecture and Python minor version, which has to be at the same path there.
"""

import argparse
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from tools import lock

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = "monitor,objectstore,delta"
FOR_ONE_CPU = re.compile(r"-m(?:arch|tune|cpu)=\S+|-mavx\S*")
PACKER = "venv-pack==0.2.0"
JARS = "*/pyspark/jars/*"
"""Executors and the driver have Spark's own."""


def run(*command: object, **more: str) -> str:
    words = [str(word) for word in command]
    result = subprocess.run(words, env={**os.environ, **more}, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{' '.join(words)} ended with {result.returncode}:\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
    return result.stdout


def tied() -> str:
    """What would make code for one kind of CPU only: how this Python's own extensions are compiled, or what is asked
    for beside; empty where there is nothing.
    """
    asked = [sysconfig.get_config_var("CFLAGS"), *(os.environ.get(name) for name in ("CFLAGS", "CPPFLAGS", "CC"))]
    return " ".join(FOR_ONE_CPU.findall(" ".join(filter(None, asked))))


def packed(scratch: Path, archive: Path, extras: str = EXTRAS) -> Path:
    """The archive, of this checkout as it is."""
    if found := tied():
        sys.exit(f"{found}: code for one kind of CPU; unset that, or take a Python that is not made with it")
    python = scratch / "env" / "bin" / "python"
    run(sys.executable, "-m", "venv", scratch / "env")
    pip = ["-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(sys.executable, *pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", scratch, ROOT,
        WIRECHECK_COMPILED="1")  # fmt: skip
    wheel = next(scratch.glob("wirecheck-*.whl"))
    pins = lock.constraints(scratch / "pins.txt", "build", "demo", "work")
    run(python, *pip, "install", "--constraint", pins, f"{wheel}[{extras}]", PACKER)
    run(scratch / "env/bin/venv-pack", "-q", "-f", "-p", scratch / "env", "-o", archive,
        "--compress-level", "1", "--exclude", JARS)  # fmt: skip
    return archive


def tried(archive: Path, folder: Path) -> str:
    """What the unpacked one says of itself, with nothing of this checkout in sight."""
    with tarfile.open(archive) as opened:
        opened.extraction_filter = lambda member, _: member  # as an argument Python 3.11.2 does not know it
        opened.extractall(folder)
    return run(folder / "bin/python", "-P", "-m", "wirecheck", "--version", PYTHONPATH="", PATH="/usr/bin:/bin").strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    machine = sysconfig.get_platform().replace(".", "_")
    default = ROOT / "dist" / f"wirecheck-spark-py{sys.version_info[0]}{sys.version_info[1]}-{machine}.tar.gz"
    parser.add_argument("archive", nargs="?", type=Path, default=default)
    parser.add_argument("--extras", default=EXTRAS)
    given = parser.parse_args()
    given.archive.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="wirecheck-archive-") as scratch:
        packed(Path(scratch), given.archive.absolute(), given.extras)
        said = tried(given.archive, Path(scratch) / "unpacked")
    print(f"{given.archive}: {given.archive.stat().st_size / 1e6:,.0f} MB, {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
