"""A checkpoint that was moved, made into one that goes on here.

Knows: that Spark writes down where the schemas of its state are. Knows nothing of what the state holds.
Rule: it may be cut off at any step and started again: the manifest is written last (`manifest.claim`).
"""

from contextlib import suppress
from typing import Any

from wirecheck.streaming.run import manifest
from wirecheck.streaming.run.manifest import QUERY, CheckpointRefused
from wirecheck.streaming.spark import state_files
from wirecheck.streaming.store import checksums, storage
from wirecheck.streaming.store.storage import at, is_local

LISTED = "sources/0"
TICK_MS = 1000
"""By which Spark's counting source lets a batch be later than the one before."""


def relocate(checkpoint: str, now: dict[str, Any]) -> None:
    """Nothing happens to one that is new, or where it was. Raises CheckpointRefused."""
    with manifest.refused(checkpoint, manifest.NAME):
        before = manifest.read(checkpoint)
    if before is None or all(before.get(place) == now[place] for place in manifest.PLACES):
        return
    manifest.unaltered(checkpoint)
    if before.get("out") != now["out"]:
        need_results(checkpoint, now["out"])
    system, folder = at(checkpoint)
    state = f"{folder}/{QUERY}/state"
    root = f"file:{state}" if is_local(checkpoint) else f"{checkpoint.rstrip('/')}/{QUERY}/state"
    with manifest.refused(checkpoint, "Spark's state"):
        for name, content in state_files.moved(system, state, root):
            path, _, number = name.rpartition("/")
            checksums.forget(system, folder, f"{QUERY}/{name}")
            with suppress(FileNotFoundError):  # Hadoop's sum of it
                system.delete_file(f"{folder}/{QUERY}/{path}/.{number}.crc")
            storage.put(system, f"{folder}/{QUERY}/{name}", content)


def need_results(checkpoint: str, out: str) -> None:
    """A later start reads them back, and later revisions follow theirs."""
    run = manifest.run_of(checkpoint)
    with manifest.refused(checkpoint, out):
        system, folder = at(out)
        if run and f"run={run}" not in storage.names(system, f"{folder}/totals"):
            wrong = f"{out} holds no results of it (totals/run={run} is missing); move them, too"
            raise CheckpointRefused(f"{checkpoint}: {wrong}, or {manifest.FIX}")
