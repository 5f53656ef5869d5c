"""Compiles the modules of wirecheck/extension_modules.txt by mypyc, as one group; the rest is in pyproject.toml.

    WIRECHECK_PURE=1        nothing is compiled: the plain source runs, and the wheel is for every platform
    WIRECHECK_COMPILED=1    what cannot be compiled is an error (our wheels, CI), not a line and the plain source

Knows: what it takes to compile (mypyc, a C compiler, Python.h), and that all of it may be missing. Refuses to know
which of the two runs later (wirecheck/extension_modules.py).
Rule: all or none. A module's own file is a shim that needs the group's library: one that is missing breaks all.
"""

import os
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
MODULES: dict[str, Any] = runpy.run_path(str(ROOT / "wirecheck/extension_modules.py"))
MYPY = ["--config-file=", "--cache-dir=build/mypyc/cache", "--ignore-missing-imports", "--follow-imports=silent"]
"""`make check` is strict, with all that is imported; here what a build environment lacks must not matter."""


ONLY_ASKED = {"egg_info", "dist_info", "sdist"}
"""What builds nothing, and is asked before something is built."""


def plainly(error: BaseException) -> None:
    """Go on without, or not."""
    if os.environ.get("WIRECHECK_COMPILED") == "1":
        raise error
    sys.stderr.write(f"wirecheck: not compiled, the plain source will run: {error!r}\n")


def extensions() -> list[Extension]:
    if os.environ.get("WIRECHECK_PURE") == "1" or ONLY_ASKED & {*sys.argv}:
        return []
    try:
        import mypyc
        from mypyc.build import mypycify

        files = [f"wirecheck/{path}" for path in MODULES["listed"]()]
        places = (ROOT, Path(mypyc.__file__).parent)
        found: list[Extension] = mypycify([*MYPY, *files], group_name=MODULES["GROUP"], target_dir="build/mypyc")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - mypycify ends the process where it finds an error
        plainly(error)
        return []
    for extension in found:
        # a compiler of next year warns of more, and the bytes are the same wherever it is built
        kept = [word for word in extension.extra_compile_args if word != "-Werror"]
        # nobody puts other functions in the place of the library's own: they may be inlined
        extension.extra_compile_args = [
            *kept, *(f"-ffile-prefix-map={place}=." for place in places), "-fno-semantic-interposition",
        ]  # fmt: skip
    return found


class AllOrNone(build_ext):
    """Into a wheel they go beside the sources, in a checkout into a folder of their own."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:  # noqa: BLE001 - each compiler has its own
            for extension in self.extensions:
                Path(self.build_lib, self.get_ext_filename(extension.name)).unlink(missing_ok=True)
            if self.inplace:
                MODULES["DIGEST"].unlink(missing_ok=True)
            plainly(error)
            self.extensions = []

    def copy_extensions_to_source(self) -> None:
        if not self.extensions:
            return
        MODULES["DIGEST"].unlink(missing_ok=True)  # while it lasts, and if it ends early, nothing is taken from there
        for extension in self.extensions:
            file = self.get_ext_filename(extension.name)
            (MODULES["FOLDER"] / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(self.build_lib, file), MODULES["FOLDER"] / file)
        MODULES["DIGEST"].write_text(MODULES["digest"](), encoding="ascii")


setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNone})
