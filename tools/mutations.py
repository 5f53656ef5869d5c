"""Laws that can fail: `python -m tools.mutations [WORD]` seeds a mistake in the code for each of them (make mutations).

Knows: `tests/laws/mutations.tsv`, which has for each law one line of the product, and that line with a small mistake in
it. A copy of the checkout gets one mistake at a time, and runs that law by the plain source.
Refuses to know: what a law says, and whether it holds without a mistake (`WIRECHECK_PURE=1 make laws`).
Rule: a law must fail by an assertion. A mistake that stops the code from being imported, or that hangs, shows nothing.

WORD takes the laws and files with it in their name. Exit codes: 0 every law failed, 1 one did not.
"""

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests/laws/mutations.tsv"
LAWS = Path("tests/laws")
NOT_COPIED = (".git", ".venv", "build", "dist", ".hypothesis", ".mypy_cache", ".ruff_cache", ".pytest_cache")
PYTEST = ("-m", "pytest", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", "--tb=short")
LARGE = ("-W", "ignore::hypothesis.errors.HypothesisWarning")  # an example that is not made smaller may be large
MOST_S = 300
"""What a law takes at most with a mistake in the code; nearly all take less than 20 s."""
ASSERTED = re.compile(
    r"^(?:E +(?:assert |AssertionError|Failed: DID NOT RAISE|fuzz\.machine\.Breach)|[ |]+AssertionError)", re.MULTILINE
)
"""Lines of pytest, and of an ExceptionGroup that hypothesis raises."""


class Mutation(NamedTuple):
    law: str
    """File and function, as pytest names them; one case of them by its parameters, where all of them take long."""
    file: str
    before: str
    """What is there, in one line of the file only."""
    after: str

    def places(self) -> int:
        """How often `before` is in the file: once, or the mutation is stale."""
        return (ROOT / self.file).read_text(encoding="utf-8").count(self.before)


def mutations() -> list[Mutation]:
    with LIST.open(encoding="ascii", newline="") as lines:
        rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    if rows[0] != list(Mutation._fields):
        raise ValueError(f"{LIST.name}: the first line has to name {', '.join(Mutation._fields)}")
    return [Mutation(*row) for row in rows[1:]]


def copied(folder: Path) -> Path:
    """The checkout, with its links as they are; times stay, so that bytecode stays of use."""
    copy = folder / "checkout"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    return copy


def with_mistake(copy: Path, one: Mutation) -> str:
    """How the law ends with the mistake in the code; the copy is afterwards as it was."""
    source, place = ROOT / one.file, copy / one.file
    place.write_text(source.read_text(encoding="utf-8").replace(one.before, one.after), encoding="utf-8")
    chosen = {"WIRECHECK_PURE": "1", "HYPOTHESIS_PROFILE": "mutated", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *PYTEST, *LARGE, f"{LAWS}/{one.law}"]
    try:
        ran = subprocess.run(
            command, cwd=copy, env=os.environ | chosen, capture_output=True, text=True, timeout=MOST_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"NO END after {MOST_S} s"
    finally:
        shutil.copy2(source, place)
    if ran.returncode == 0:
        return "STILL PASSES"
    return "fails as it must" if ran.returncode == 1 and ASSERTED.search(ran.stdout) else f"BREAKS\n{ran.stdout}"


def main() -> int:
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="wirecheck-mutations-") as scratch:
        copy = copied(Path(scratch))
        for one in (one for one in mutations() if word in one.law or word in one.file):
            begin_s = time.monotonic()
            ended = with_mistake(copy, one) if one.places() == 1 else f"STALE: {one.before!r} {one.places()} times"
            wrong += ended != "fails as it must"
            print(f"{time.monotonic() - begin_s:5.1f} s  {one.law}  {one.file}: {ended}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
