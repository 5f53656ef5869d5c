"""Compiles, or loads, every kernel that an agent needs: `python -m wirecheck.capture.agent.warm`, or while it listens.

Knows: a block of a ring without packets, and decode's tiny connection (decode/warm.py), taken through trim in two
parts, in the types the live agent has; by which files numba shows that it has compiled.
Refuses to know: who waits meanwhile (listen.py, writer.py).
Rule: after these two nothing is compiled any more. Numba stores what it compiles beside the sources or in
NUMBA_CACHE_DIR, for every later start of the same version by the same user.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from numba.core import event

import wirecheck
from wirecheck.capture import frames
from wirecheck.capture.link import link_type
from wirecheck.capture.source import ring
from wirecheck.capture.source.rows import Rows
from wirecheck.capture.trim import stream_order
from wirecheck.capture.trim.trimmer import Trim
from wirecheck.decode import warm as decode_warm

if TYPE_CHECKING:
    from collections.abc import Callable


def warm_ring() -> None:
    """What stands between a ring and its rows."""
    nothing, rows = bytes(64), Rows(ring.BLOCK_BYTES)
    left = ring.begin_block(nothing, rows.headers)
    ring.walk_block(nothing, left, link_type.LINK_ETHERNET, rows.headers)
    rows.keep(nothing)


def warm() -> None:
    """What stands between rows and what is kept of them."""
    decode_warm.warm()
    trim, rows = Trim(), _rows()
    middle = rows.num_rows // 2
    for part in (rows.slice(0, middle), rows.slice(middle)):
        for _ in trim.add(part):
            pass
    newest_ns = int(rows.column("ts_ns").to_numpy().max())
    for _ in trim.advance("warm", newest_ns + 10**10):
        pass
    assert sum(len(part) for part in trim.drain()) == 0, "trim waits for what is decided"


def compile_apart() -> None:
    """Compile in a process that ends, if it must be done: the compiler takes some 700 MB and keeps them.

    That process hears no Ctrl-C meant for us. If it fails, `warm` compiles here, and says why it cannot.
    """
    if not is_compiled():
        path = [str(Path(wirecheck.__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))}
        subprocess.run(
            [sys.executable, "-m", "wirecheck.capture.agent.warm"],
            env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0, check=False,
        )  # fmt: skip


def is_compiled() -> bool:
    """Has this version been compiled here? Asks for a kernel of the first and one of the last; none is loaded."""
    return all(_is_stored(kernel) for kernel in (stream_order.by_row, stream_order.by_row))


def reads_files_compiled() -> bool:
    """The same of what every reader of capture files needs."""
    return reads_frames_compiled()


def reads_frames_compiled() -> bool:
    """The same of what every reader of frames needs: nothing any more is compiled at run time."""
    return True


class _Compiling(event.Listener):  # type: ignore[misc]  # numba is not typed
    """Tells once, at the beginning of the first compilation; of several who want to be told, the last is."""

    def __init__(self) -> None:
        self.tell: Callable[[], None] | None = None
        event.register("numba:compile", self)

    def on_start(self, _event: object) -> None:
        tell, self.tell = self.tell, None
        if tell is not None:
            tell()

    def on_end(self, _event: object) -> None: ...


_COMPILING = _Compiling()


def on_compiling(tell: Callable[[], None]) -> None:
    """Have it told, once, as soon as anything is compiled in this process; what is only loaded is not told of."""
    _COMPILING.tell = tell


def cache_folder() -> str | None:
    """Where compiled code is kept for this user; None without a compiler (NUMBA_DISABLE_JIT)."""
    stats = getattr(stream_order.by_row, "stats", None)
    return stats and str(Path(stats.cache_path).parent)


def _is_stored(kernel: object) -> bool:
    stats, plain = getattr(kernel, "stats", None), getattr(kernel, "py_func", None)
    if stats is None or plain is None:
        return True
    compiled_s = Path(plain.__code__.co_filename).stat().st_mtime
    name = f"{Path(plain.__code__.co_filename).stem}.{plain.__name__}-*.nbi"
    return any(file.stat().st_mtime >= compiled_s for file in Path(stats.cache_path).glob(name))


def _rows() -> pa.RecordBatch:
    found = decode_warm.frames()
    columns = {
        field.name: found[field.name] if field.name in found.column_names else pa.nulls(found.num_rows, field.type)
        for field in frames.FRAMES_CODED
    }
    (rows,) = pa.table(columns).cast(frames.FRAMES_CODED).combine_chunks().to_batches()
    return rows


if __name__ == "__main__":
    began_s = time.monotonic()
    warm_ring()
    warm()
    sys.stdout.write(f"compiled code is in {cache_folder()} after {time.monotonic() - began_s:.1f} s\n")
