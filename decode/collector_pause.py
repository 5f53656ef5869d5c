"""Python's collector of cycles, paused while a batch is read or checked.

Knows: that a batch makes hundreds of thousands of objects that all live until it ends, so that each look through them
frees nothing and takes longer the more there are. Does not know what they are.
Rule: what a batch leaves behind in cycles is collected once, at its end; nothing here changes a result.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collection inside; the collector is left as it was found."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
