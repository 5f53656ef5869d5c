"""Whether the modules of extension_modules.txt run compiled by mypyc, or as plain source: all of them or none.

A wheel has the compiled files beside the sources; a checkout has them in a folder of build/compiled that is named by a
digest of their sources. A compiled file never overrides an edited source: if there is no folder of that name, the plain
source runs, and a line on stderr says so where there is another. WIRECHECK_PURE=1 chooses the plain source,
WIRECHECK_COMPILED=1 refuses it.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import source_hash, spec_from_file_location
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).resolve().parent
LIST = PACKAGE / "extension_modules.txt"
GROUP = "wirecheck.compiled"
SHARED = f"{GROUP}__mypyc"  # the library that holds the code of all; the modules' own files only point there
SUFFIX = EXTENSION_SUFFIXES[0]
TAG = SUFFIX.split(".")[1]  # of this Python and platform: several share a checkout
CHOSEN, NEVER, EDITED = "WIRECHECK_PURE=1", "nothing was compiled", "edited since it was compiled"
CHECKOUT = (PACKAGE.parent / "setup.py").exists()


def listed() -> list[str]:
    """Their paths under wirecheck/."""
    return [line for line in LIST.read_text(encoding="ascii").split("\n") if line and not line.startswith("#")]


def name(path: str) -> str:
    return f"wirecheck.{path.removesuffix('.py').replace('/', '.')}"


def digest() -> str:
    """Of all sources as they are now, by the hash that Python compares its own .pyc with (PEP 552)."""
    return source_hash(b"\0".join([LIST.read_bytes(), *((PACKAGE / path).read_bytes() for path in listed())])).hex()


def folder() -> Path:
    """Where a checkout has what was compiled of its sources as they are now."""
    return PACKAGE.parent / "build/compiled" / f"{digest()}.{TAG}"


def compiled_folders() -> list[Path]:
    """Of any sources, for this Python."""
    return list((PACKAGE.parent / "build/compiled").glob(f"*.{TAG}"))


class Places:
    """Finds the modules whose files it was given, before other finders look for them.

    A finder by its one method (importlib.abc, which has a class for it, takes a tenth of all that --help takes).
    """

    def __init__(self, files: dict[str, Path]) -> None:
        self.files = files

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - importlib's shape
        target: ModuleType | None = None,  # noqa: ARG002 - importlib's shape
    ) -> ModuleSpec | None:
        return spec_from_file_location(fullname, self.files[fullname]) if fullname in self.files else None


def choose() -> str:
    """Have the modules found where they are to be found from now on; "" where that is compiled, else why it is not."""
    beside = (PACKAGE / listed()[0]).with_suffix(SUFFIX).exists()
    if os.environ.get("WIRECHECK_PURE") == "1":
        if beside:
            sys.meta_path.insert(0, Places({name(path): PACKAGE / path for path in listed()}))
        return CHOSEN
    if beside:
        return ""
    if not (there := compiled_folders()):
        return NEVER
    if (here := folder()) not in there:
        sys.stderr.write(f"wirecheck: plain source: {EDITED}; fix: {remedy(EDITED)}\n")
        os.environ["WIRECHECK_PURE"] = "1"  # this run's other processes do as this one does, and say nothing
        return EDITED
    files = {module: here / f"{module.replace('.', '/')}{SUFFIX}" for module in [SHARED, *map(name, listed())]}
    sys.meta_path.insert(0, Places(files))
    return ""


def insisted(plain: str) -> str:
    """The same; what must not run plain ends here."""
    if plain and os.environ.get("WIRECHECK_COMPILED") == "1":
        raise ImportError(f"WIRECHECK_COMPILED=1, and wirecheck is not compiled: {plain}")
    return plain


def remedy(why: str) -> str:
    """What to do about plain source."""
    if why == CHOSEN:
        return "unset WIRECHECK_PURE"
    if CHECKOUT:
        return "with a C compiler and Python's headers: make compiled"
    return "install a wheel of this platform, or the sdist with a C compiler and Python's headers"


def running() -> str:
    """What runs in this process, in words."""
    return f"plain source ({PLAIN})" if PLAIN else "compiled"


def cost() -> str:
    """What plain source means for an agent or a monitor."""
    return f"{running()}, tens of times slower than compiled: carries about {PLAIN_FRAMES_PER_SECOND:,} frames/s"


def slow() -> str:
    """The line that an agent or a monitor logs at its start; "" if the code is compiled."""
    return f"{cost()}; fix: {remedy(PLAIN)}" if PLAIN else ""


PLAIN_FRAMES_PER_SECOND = 7_000
"""From pcap to trimmed files (`capture -r` of the example), on a core of a slow machine: 7,000; compiled 120,000."""
PLAIN = ""
"""Why the plain source runs; empty where it is compiled."""
