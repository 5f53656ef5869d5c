"""Compiles the modules of wirecheck/extension_modules.txt by mypyc, as one group; the rest is in pyproject.toml.

Each module is a C file of its own, and as many are compiled at once as there are processors.

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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
MODULES: dict[str, Any] = runpy.run_path(str(ROOT / "wirecheck/extension_modules.py"))
MYPY = ["--config-file=", "--cache-dir=build/mypyc/cache", "--ignore-missing-imports", "--follow-imports=silent"]
"""`make check` is strict, with all that is imported; here what a build environment lacks must not matter."""


def link() -> None:
    """In a checkout the packages are links in wirecheck/ (wirecheck/__init__.py). A zip that was unpacked by what knows
    no links has the text of each, `../decode`, as a file: it becomes a link, or a copy where there can be none.
    """
    for file in (ROOT / "wirecheck").iterdir():
        if file.is_symlink() or not file.is_file() or file.stat().st_size > LONGEST_LINK:
            continue
        text = file.read_bytes().decode(errors="replace").strip()
        target = file.parent / text
        if not text.startswith("../") or not target.exists():
            continue
        file.unlink()
        try:
            file.symlink_to(text, target_is_directory=target.is_dir())
        except OSError:
            (shutil.copytree if target.is_dir() else shutil.copy)(target, file)


LONGEST_LINK = 100
"""Bytes."""
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
        words = [*MYPY, *files]
        found: list[Extension] = mypycify(words, group_name=MODULES["GROUP"], target_dir="build/mypyc", multi_file=True)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - mypycify ends the process where it finds an error
        plainly(error)
        return []
    for extension in found:
        # where mypyc writes the header that the modules' C files include; it does not look there itself
        extension.include_dirs.append(str(Path("build/mypyc", *MODULES["GROUP"].split(".")[:-1])))
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
            plainly(error)
            self.extensions = []

    def build_extensions(self) -> None:
        one_after_the_other = self.compiler.compile
        self.parallel = True  # the modules' shims, each a library
        with ThreadPoolExecutor(os.cpu_count()) as pool:

            def compile_at_once(sources: list[str], *args: Any, **how: Any) -> list[str]:
                made = [pool.submit(one_after_the_other, [source], *args, **how) for source in sources]
                return [file for one in made for file in one.result()]

            self.compiler.compile = compile_at_once
            super().build_extensions()

    def copy_extensions_to_source(self) -> None:
        """Put in place by one rename: what runs meanwhile sees all of them or none."""
        if not self.extensions:
            return
        place = MODULES["folder"]()
        aside = place.with_name(f"{os.getpid()}.aside")
        for extension in self.extensions:
            file = self.get_ext_filename(extension.name)
            (aside / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(self.build_lib, file), aside / file)
        shutil.rmtree(place, ignore_errors=True)
        aside.rename(place)
        for former in sorted(MODULES["compiled_folders"](), key=lambda folder: folder.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(former, ignore_errors=True)


KEPT = 2
"""Folders of compiled modules: this one, and the former, from which a running process may still import."""

link()
setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNone})
if "--inplace" in sys.argv:  # all is on disk, and mypy's trees take 10 to 20 s to be freed
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
