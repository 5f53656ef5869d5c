"""Builds wheels and the sdist twice from clean copies, holds them against each other, and tries the wheels.

    python -m tools.release [--no-try]        dist/ gets all, a bill of materials, licences and SHA256SUMS

Of the wheels one is compiled for this Python and platform, and one is plain source for all others; cibuildwheel makes
compiled ones for all (pyproject.toml).

Knows: what makes a build reproducible (SOURCE_DATE_EPOCH, sorted members, no owner) and what a fresh environment
must be able to do with each extra. Refuses to know a version: pyproject.toml says it, and nothing else does.
"""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from tools import bill

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz"
PCAP = str(EXAMPLE)
DECODES = [["--version"], ["decode", PCAP, "--limit", "1"]]
READS = [
    ["topics", "verdict", "--topic", "shipments"],
    ["clients", "verdict", "--target", "4.0"],
    ["evidence", "TID002", PCAP, "-o", "tid002.pcapng"],
    ["explain", "TID002"],
]
LOCALLY = [*DECODES, ["replay", PCAP, "--fail-on", "never", "--out", "verdict"], *READS]
"""Without pyspark nobody needs to say that it is to be judged locally."""
CAPTURES = [*LOCALLY, ["capture", "-r", PCAP, "--out", "frames"]]
JUDGES = [*CAPTURES, ["replay", PCAP, "--fail-on", "never", "--engine", "local"]]
TRIED = {"": LOCALLY, "capture": CAPTURES, "monitor": JUDGES, "capture,monitor": JUDGES}
"""Per set of extras what must work in an environment that holds nothing else."""
WHOLE = "capture,monitor"
"""What the bill of materials is of."""


def epoch() -> str:
    """The time of the last commit: the same for everyone who builds it."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return os.environ["SOURCE_DATE_EPOCH"]
    return run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()


def run(*command: str, cwd: Path, **more: str) -> str:
    environment = {**os.environ, **more}
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{' '.join(command)} ended with {result.returncode}:\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
    return result.stdout


def copied(to: Path) -> Path:
    """Tracked files alone: nothing that lies about in a working tree gets into a release."""
    for name in run("git", "ls-files", "-z", cwd=ROOT).split("\0"):
        if name and ((ROOT / name).is_file() or (ROOT / name).is_symlink()):  # wirecheck/ links its rooms
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name, follow_symlinks=False)
    return to


def built(scratch: Path, since: str) -> list[Path]:
    source, out = copied(scratch / "source"), scratch / "dist"
    build = [sys.executable, "-m", "build", "--outdir", str(out), str(source)]
    run(*build, cwd=scratch, SOURCE_DATE_EPOCH=since, WIRECHECK_COMPILED="1", WIRECHECK_PURE="")
    run(*build, "--wheel", cwd=scratch, SOURCE_DATE_EPOCH=since, WIRECHECK_PURE="1")
    for sdist in out.glob("*.tar.gz"):
        settle(sdist, int(since))
    return sorted(out.iterdir())


def settle(sdist: Path, since: int) -> None:
    """The same members in one order, with one time and no owner: setuptools leaves those of the machine in."""
    packed = io.BytesIO()
    with tarfile.open(sdist) as before, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as after:
        for member in sorted(before.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = since, 0, 0, "", ""
            member.mode, member.pax_headers = 0o755 if member.isdir() or member.mode & 0o100 else 0o644, {}
            after.addfile(member, before.extractfile(member) if member.isfile() else None)
    with sdist.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=since) as out:
        out.write(packed.getvalue())


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_plain(wheel: Path) -> bool:
    return wheel.stem.endswith("-none-any")


def tried(wheel: Path, extras: str, scratch: Path) -> Path:
    """Install it into an environment that holds nothing, and use it as the README says; that environment's Python."""
    run(sys.executable, "-m", "venv", str(scratch / "env"), cwd=scratch)
    named = f"{wheel}[{extras}]" if extras else str(wheel)
    bin_ = scratch / "env/bin"
    constraints = str(ROOT / "pins/constraints.txt")
    run(str(bin_ / "pip"), "install", "-q", "--disable-pip-version-check", "-c", constraints, named, cwd=scratch)
    for command in TRIED[extras]:
        run(str(bin_ / "wirecheck"), *command, cwd=scratch, WIRECHECK_COMPILED="" if is_plain(wheel) else "1")
        said = " ".join(command).replace(PCAP, EXAMPLE.name)
        print(f"  {'plain' if is_plain(wheel) else 'compiled'} [{extras}] wirecheck {said}")
    return bin_ / "python"


def write_sums(dist: Path, made: list[Path]) -> None:
    text = "".join(f"{digest(path)}  {path.name}\n" for path in made)
    (dist / "SHA256SUMS").write_text(text)
    print(text, end="")


def main() -> None:
    since = epoch()
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        first, second = built(Path(one), since), built(Path(other), since)
        unlike = [a.name for a, b in zip(first, second, strict=True) if digest(a) != digest(b)]
        if unlike:
            sys.exit(f"two builds differ: {', '.join(unlike)}")
        dist = ROOT / "dist"
        shutil.rmtree(dist, ignore_errors=True)
        dist.mkdir()
        for path in first:
            shutil.copy(path, dist / path.name)
    made = sorted(dist.iterdir())
    write_sums(dist, made)
    compiled, plain = sorted((path for path in made if path.suffix == ".whl"), key=is_plain)
    trials = [(plain, ""), *((compiled, extras) for extras in TRIED)]
    for wheel, extras in () if "--no-try" in sys.argv else trials:
        with TemporaryDirectory() as scratch:
            python = tried(wheel, extras, Path(scratch))
            if extras == WHOLE:
                made += bill.written(python, Path(scratch), dist, since)
                write_sums(dist, made)


if __name__ == "__main__":
    main()
