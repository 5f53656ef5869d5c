"""An archive of the Java classes that Spark loads (application class data sharing), so that Java starts faster.

Java runs what is in it, so it is read only from a private folder of this user. No error here ends a command. A
truncated archive would end Java (SIGBUS), so the file's name states its size. Measured 23 November 2026, Java 17: 10
CPU seconds of Java for the small example without it, 5 with it; the run that writes it takes some 10 CPU seconds more,
once.
"""

import hashlib
import os
import shutil
import signal
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pyspark

from wirecheck.streaming.spark.java import Java

SETTING = "WIRECHECK_CLASS_ARCHIVE"
"""Set to `off`, it is neither written nor read."""
FREE_BYTES = 1 << 30
"""On the disk, or none is written: it takes 180 MB."""
KEPT = 2
"""Archives in the folder: those used last."""
ENDED_BY_SIGTERM = 128 + signal.SIGTERM
BASE = "lib/server/classes.jsa"
"""Java's own archive, which this one adds to."""


@dataclass(frozen=True)
class ClassArchive:
    """Of one Java and one installed PySpark."""

    folder: Path
    name: str

    @property
    def part(self) -> Path:
        """Where this process has Java write it."""
        return self.folder / f".{self.name}.{os.getpid()}.tmp"

    def whole(self) -> Path | None:
        """The file, if this user wrote it and it has the size that its name states: half a file ends Java."""
        files = archives(self.folder) if is_private(self.folder, stat.S_ISDIR) else []
        own = (path for path in files if path.name.startswith(f"{self.name}-") and is_private(path, stat.S_ISREG))
        return next((path for path in own if path.stem.endswith(f"-{path.stat().st_size}")), None)

    def read_option(self, whole: Path) -> str:
        """For Java, which verifies a checksum, too: 0.05 s."""
        with suppress(OSError):
            os.utime(whole)
        return f"-Xshare:auto -XX:+VerifySharedSpaces {quoted(f'-XX:SharedArchiveFile={whole}')}"

    def write_option(self) -> str:
        """For a Java that is to write it as it ends; nothing where that cannot be."""
        folder = self.folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            remove_remains(folder)
            free_bytes = shutil.disk_usage(folder).free
        except OSError as failure:
            report(failure)
            return ""
        if not is_private(folder, stat.S_ISDIR) or not os.access(folder, os.W_OK):
            report(f"{folder} is not a writable folder of this user alone (mode 0700)")
        elif free_bytes < FREE_BYTES:
            report(f"less than {FREE_BYTES >> 20} MB are free on the disk of {folder}")
        else:
            return quoted(f"-XX:ArchiveClassesAtExit={self.part}")
        return ""

    def write(self) -> None:
        """End Java, and all else in this process's group, and put in place what Java has written."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)
        codes = []
        with suppress(ChildProcessError):
            while True:
                codes.append(os.waitstatus_to_exitcode(os.wait()[1]))
        try:
            self.part.chmod(0o600)
            if ENDED_BY_SIGTERM in codes:  # and not by the kernel, while it wrote
                self.part.replace(self.folder / f"{self.name}-{self.part.stat().st_size}.jsa")
            for old in [self.part, *archives(self.folder)[KEPT:]]:
                old.unlink(missing_ok=True)
        except OSError as failure:
            report(failure)


def archive_of(java: Java) -> ClassArchive | None:
    """None where there can be none, or none is wanted.

    Java refuses an archive of other jars. Those are named by their folder and its time, this Java by its own archive.
    """
    folder = cache_folder()
    if folder is None or os.environ.get(SETTING) == "off":
        return None
    jars = Path(pyspark.__file__).parent / "jars"
    try:
        base = java.folder.resolve() / BASE
        made_of = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in (base, jars)]
    except OSError:
        return None
    digest = hashlib.sha256(repr(made_of).encode()).hexdigest()[:8]
    return ClassArchive(folder, f"java-{java.version}-pyspark-{version('pyspark')}-{digest}")


def cache_folder() -> Path | None:
    """The user's; None where they have no home. Java takes a colon for the end of a file's name."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "wirecheck" / "java"
    except RuntimeError:
        return None
    return folder if folder.is_absolute() and ":" not in str(folder) else None


def archives(folder: Path | None) -> list[Path]:
    """Those in the folder, the last used first."""
    by_age = [] if folder is None else [(path.stat().st_mtime_ns, path) for path in folder.glob("java-*.jsa")]
    return [path for _, path in sorted(by_age, reverse=True)]


def remove_all() -> tuple[int, int]:
    """Every archive, and what was left of those that were not finished: how many files and bytes. Raises OSError."""
    folder = cache_folder()
    files = [*archives(folder), *(folder.glob(".java-*.tmp") if folder else ())]
    size = sum(path.stat().st_size for path in files)
    for path in files:
        path.unlink(missing_ok=True)
    return len(files), size


def remove_remains(folder: Path) -> None:
    """What processes left that were killed while Java wrote."""
    for path in folder.glob(".java-*.tmp"):
        try:
            os.kill(int(path.suffixes[-2][1:]), 0)
        except ProcessLookupError:
            path.unlink(missing_ok=True)


def is_private(path: Path, kind: object) -> bool:
    """Of that kind, this user's, and of no use to others."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return kind(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077  # type: ignore[operator]


def quoted(option: str) -> str:
    """As Spark's launcher splits options."""
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def report(failure: object) -> None:
    """One line, which goes where Spark's own do."""
    print(f"wirecheck: the archive of Java classes was not written: {failure}", file=sys.stderr)  # noqa: T201
