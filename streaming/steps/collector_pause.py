"""Python's collector of cycles, held off while a batch is judged.

Knows: that a batch makes hundreds of thousands of claims that all live until it ends, so that each look through them
frees nothing and takes longer the more there are. Does not know claims.
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
