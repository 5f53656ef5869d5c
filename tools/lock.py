"""Installs what requirements.lock pins, by its hashes: `python tools/lock.py SET[,SET...] [words of pip]`.

Knows: the one lock file, in which each pin names the sets that need it: build before anything is built, demo for a
replay through Spark, work for working on it, jdk where there is no Java, release for a release's wheels and bill, site
for the documentation as a site. build, demo and work complete each other; release and site are whole, for an
environment of their own. `make lock` (--hashes) asks for the hashes of every file that a pin may be installed from, by
`uv pip compile --generate-hashes`, of the index that pip is configured to ask.
Refuses to know: which versions to pin. Who changes one edits its line, or adds one with its sets, and runs `make lock`.
Rule: needs Python and pip, of any version, and nothing else: pip has no sets in a file of hashes, and names that a file
of hashes constrains are refused by what Debian has (pip 23; 26 takes them). What is written is the index's word at that
time; `pip --require-hashes` refuses whatever else comes.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
SETS = ("build", "demo", "work", "jdk", "release", "site")
HEAD = """\
# One version of each Python package that setup, tests, a release and the images install, with the hashes of its files
# and the sets that need it: tools/lock.py installs a set. To change a version, edit its line and run `make lock`.
"""
PIN = re.compile(r"^(?P<pin>\S+==\S+)(?P<hashes>(?:.*\\\n)*.*)\n +# for (?P<sets>.+)$", re.MULTILINE)
COMPILE = ["pip", "compile", "--quiet", "--no-deps", "--generate-hashes"]
COMPILE += ["--no-header", "--no-annotate", "--no-emit-index-url"]
OLDEST = "3.11.0"
"""The Python that is promised: a pin that needs a newer one is refused."""


def pins(*sets: str) -> dict[str, str]:
    """Of each pin that these sets need, `name==version`: its lines as pip reads them."""
    if unknown := {*sets} - {*SETS}:
        sys.exit(f"{LOCK.name} has no set {', '.join(sorted(unknown))}: {', '.join(SETS)}")
    found = PIN.finditer(LOCK.read_text(encoding="ascii"))
    return {one["pin"]: f"{one['pin']}{one['hashes']}\n" for one in found if {*sets} & {*one["sets"].split(", ")}}


def constraints(target: Path, *sets: str) -> Path:
    """The versions alone, for what is installed beside a wheel of this checkout, whose hash no file has."""
    target.write_text("".join(f"{pin}\n" for pin in pins(*sets)), encoding="ascii")
    return target


def index() -> list[str]:
    """The index that pip is configured to ask, if any: uv has a configuration of its own."""
    words = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    printed = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    url = os.environ.get("PIP_INDEX_URL") or printed
    return ["--index-url", url] if url else []


def hashed(uv: Path, wanted: Path) -> dict[str, str]:
    """The lines of each pin in this file, with all its hashes."""
    out = wanted.with_name("hashed.txt")
    files = ["--python-version", OLDEST, str(wanted), "--output-file", str(out)]
    if ended := subprocess.run([uv, *COMPILE, *index(), *files], check=False, cwd=wanted.parent).returncode:
        sys.exit(ended)
    blocks = re.split(r"\n(?=\S)", out.read_text(encoding="ascii").rstrip("\n"))
    return {name(block): block for block in blocks}


def name(pin: str) -> str:
    """Of the package, as an index compares names."""
    return re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower()


def update() -> None:
    text = LOCK.read_text(encoding="ascii")
    needed_by = {one["pin"]: one["sets"] for one in PIN.finditer(text)}
    with tempfile.TemporaryDirectory(prefix="wirecheck-lock-") as folder:
        scratch = Path(folder)
        python, uv = scratch / "own/bin/python", next(pin for pin in needed_by if pin.startswith("uv=="))
        subprocess.run([sys.executable, "-m", "venv", str(scratch / "own")], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", uv], check=True)
        found = hashed(python.with_name("uv"), constraints(scratch / "wanted.txt", *SETS))
    lines = [f"{found[name(pin)]}\n    # for {needed_by[pin]}\n" for pin in sorted(needed_by, key=name)]
    LOCK.write_text(HEAD + "".join(lines), encoding="ascii")


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__.partition("\n")[0])
    if sys.argv[1:] == ["--hashes"]:
        update()
        return 0
    text = "".join(pins(*sys.argv[1].split(",")).values())
    words = [sys.executable, "-m", "pip", *(sys.argv[2:] or ["install"]), "--require-hashes"]
    return subprocess.run([*words, "--requirement", "/dev/stdin"], input=text, text=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
