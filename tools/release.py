"""Builds wheels and the sdist twice from clean copies, holds them against each other, and tries the wheels.

    python -m tools.release [--no-try]        dist/ gets all, the corpus, a bill of materials, licences and SHA256SUMS
    python -m tools.release --tag v0.1.0      may this tag be published? If not: why, and exit status 1
    python -m tools.release --sums            SHA256SUMS again, over all of dist/

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
import sysconfig
import tarfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from tools import bill, lock

ROOT = Path(__file__).resolve().parent.parent
DIST, SUMS = ROOT / "dist", "SHA256SUMS"
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
TRUTHS = (ROOT / "tests/scenarios", ROOT / "examples")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WHOLE = "capture,monitor"
"""What the bill of materials is of."""


def lacking() -> list[str]:
    """What a build needs beyond `make setup`, and is not on this machine."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    found = [name for name, program in (("git", "git"), ("a C compiler", compiler)) if not shutil.which(program)]
    return found if Path(sysconfig.get_path("include"), "Python.h").exists() else [*found, "Python.h"]


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
    with tarfile.open(sdist) as before:
        members = [(member, file and file.read()) for member, file in opened(before)]
    pack(sdist, members, since)


def opened(archive: tarfile.TarFile) -> list[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    return [(member, archive.extractfile(member) if member.isfile() else None) for member in archive.getmembers()]


def pack(target: Path, members: Iterable[tuple[tarfile.TarInfo, bytes | None]], since: int) -> None:
    """A .tar.gz that has the same bytes wherever it is made."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as after:
        for member, data in sorted(members, key=lambda one: one[0].name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = since, 0, 0, "", ""
            member.mode, member.pax_headers = 0o755 if member.isdir() or member.mode & 0o100 else 0o644, {}
            after.addfile(member, None if data is None else io.BytesIO(data))
    with target.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=since) as out:
        out.write(packed.getvalue())


def corpus(dist: Path, since: int) -> Path:
    """All captures with a truth as an archive of their own: `wirecheck score` reads what it is unpacked to."""
    top = f"wirecheck-corpus-{PROJECT['version']}"
    files = {f"{top}/README.md": ROOT / "docs/corpus.md", f"{top}/LICENSE": ROOT / "LICENSE"}
    for truth in sorted(path for folder in TRUTHS for path in folder.rglob("truth.json")):
        for file in truth.parent.iterdir():
            if file.name in {"truth.json", "README.md"} or file.name.startswith("capture."):
                files[f"{top}/{truth.parent.name}/{file.name}"] = file
    members = []
    for name, file in files.items():
        member, data = tarfile.TarInfo(name), file.read_bytes()
        member.size = len(data)
        members.append((member, data))
    target = dist / f"{top}.tar.gz"
    pack(target, members, since)
    return target


def hindrances(tag: str) -> list[str]:
    """Why this tag may not be published."""
    version = PROJECT["version"]
    found = [] if tag == f"v{version}" else [f"tag {tag}, but pyproject.toml has version {version}: v{version}"]
    if not {"Documentation", "Source"} <= set(PROJECT.get("urls", {})):
        found.append("pyproject.toml: [project.urls] needs Documentation and Source")
    heading = next(line for line in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines() if line.startswith("## "))
    if not heading.startswith(f"## {version} (") or "unreleased" in heading:
        found.append(f"CHANGELOG.md begins with {heading!r}: give {version} its date")
    return found


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_plain(wheel: Path) -> bool:
    return wheel.stem.endswith("-none-any")


def tried(wheel: Path, extras: str, scratch: Path) -> Path:
    """Install it into an environment that holds nothing, and use it as the README says; that environment's Python."""
    run(sys.executable, "-m", "venv", str(scratch / "env"), cwd=scratch)
    named = f"{wheel}[{extras}]" if extras else str(wheel)
    bin_ = scratch / "env/bin"
    pins = str(lock.constraints(scratch / "pins.txt", "build", "demo", "work"))
    run(str(bin_ / "pip"), "install", "-q", "--disable-pip-version-check", "-c", pins, named, cwd=scratch)
    for command in TRIED[extras]:
        run(str(bin_ / "wirecheck"), *command, cwd=scratch, WIRECHECK_COMPILED="" if is_plain(wheel) else "1")
        said = " ".join(command).replace(PCAP, EXAMPLE.name)
        print(f"  {'plain' if is_plain(wheel) else 'compiled'} [{extras}] wirecheck {said}")
    return bin_ / "python"


def write_sums(dist: Path, made: list[Path]) -> None:
    text = "".join(f"{digest(path)}  {path.name}\n" for path in made)
    (dist / SUMS).write_text(text)
    print(text, end="")


def main() -> None:
    if "--tag" in sys.argv:
        sys.exit("\n".join(hindrances(sys.argv[sys.argv.index("--tag") + 1])) or None)
    if "--sums" in sys.argv:
        write_sums(DIST, sorted(path for path in DIST.iterdir() if path.name != SUMS))
        return
    if missing := lacking():
        sys.exit(f"a release needs {', '.join(missing)}: on Debian, apt-get install git gcc libc6-dev python3-dev")
    since = epoch()
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        first, second = built(Path(one), since), built(Path(other), since)
        unlike = [a.name for a, b in zip(first, second, strict=True) if digest(a) != digest(b)]
        if unlike:
            sys.exit(f"two builds differ: {', '.join(unlike)}")
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        for path in first:
            shutil.copy(path, DIST / path.name)
    corpus(DIST, int(since))
    made = sorted(DIST.iterdir())
    write_sums(DIST, made)
    compiled, plain = sorted((path for path in made if path.suffix == ".whl"), key=is_plain)
    trials = [(plain, ""), *((compiled, extras) for extras in TRIED)]
    for wheel, extras in () if "--no-try" in sys.argv else trials:
        with TemporaryDirectory() as scratch:
            python = tried(wheel, extras, Path(scratch))
            if extras == WHOLE:
                made += bill.written(python, Path(scratch), DIST, since)
                write_sums(DIST, made)


if __name__ == "__main__":
    main()
