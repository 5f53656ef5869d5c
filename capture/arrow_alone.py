"""pyarrow without pandas and without a memory pool of its own, in processes of wirecheck.

pyarrow looks for pandas with its first array, and imports it if installed: half a CPU second. In a process of wirecheck
itself that look comes right after the import of pyarrow, and finds none; it looks only once. A DataFrame can still be
made afterwards.

Arrow's own pool (mimalloc) keeps pages that glibc gives to Python's objects at once: a replay takes a tenth less
memory and time without it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import util
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

LEFT_OUT = "pandas"


def process_is_ours() -> None:
    """Called by the main function of a process that runs wirecheck only, before anything imports pyarrow."""
    sys.meta_path.insert(0, ArrowAlone())


class ArrowAlone:
    """Finds pyarrow, once, and has it look for pandas, and changes its pool, as soon as it is there."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002 - importlib's shape
        if fullname != "pyarrow":
            return None
        sys.meta_path.remove(self)
        spec = util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_look(module: ModuleType) -> None:
            load(module)
            module.set_memory_pool(module.system_memory_pool())
            with refused():
                module.array([0])

        spec.loader.exec_module = load_and_look  # type: ignore[method-assign]
        return spec


class Refuses:
    """A finder for which pandas is not installed."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:  # noqa: ARG002 - importlib's shape
        if fullname == LEFT_OUT:
            raise ModuleNotFoundError(f"{LEFT_OUT} is missing", name=LEFT_OUT)


@contextmanager
def refused() -> Iterator[None]:
    finder = Refuses()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
