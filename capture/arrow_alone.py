"""pyarrow without pandas, in processes that do not need it.

pyarrow imports pandas, if installed, with the first array: half a CPU second. This is done only in processes of
wirecheck itself; a DataFrame can still be made afterwards.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LEFT_OUT = "pandas"
_ours = False


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


def process_is_ours() -> None:
    """Called by the main function of a process that runs wirecheck only."""
    global _ours  # noqa: PLW0603 - a fact about the process
    _ours = True


def arrow_alone() -> None:
    """Have pyarrow look for pandas now, without success: it looks only once."""
    if not _ours or LEFT_OUT in sys.modules:
        return
    import pyarrow as pa

    with refused():
        pa.array([0])
