"""pyarrow without pandas, in processes that have no use for it.

Knows: pyarrow imports pandas, where it is installed, when the first array is made: half a CPU second of a command that
takes one. Refuses to know who makes arrays.
Rule: nothing is done but in a process that said to be ours from its start to its end: in a notebook pyarrow is its
owner's. Where a DataFrame is asked for after all, pyarrow imports pandas then.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LEFT_OUT = "pandas"
_ours = False


class Refuses:
    """Says of pandas that it is not installed."""

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
    """Said by whoever started it."""
    global _ours  # noqa: PLW0603 - a fact about the process
    _ours = True


def arrow_alone() -> None:
    """Have pyarrow ask for pandas now, in vain: it asks once."""
    if not _ours or LEFT_OUT in sys.modules:
        return
    import pyarrow as pa

    with refused():
        pa.array([0])
