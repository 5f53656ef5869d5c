"""A checkpoint as an earlier release, or another place, left it, made into one that goes on here.

Knows: how Spark kept the names of all files it had ever seen (FileStreamSourceLog of Spark 4.x: JSON lines, now and
then put together in N.compact), where a batch says how far it went in that list, and that Spark writes down where the
schemas of its state are. Knows nothing of what the state holds, nor of how folders were moved.
Rule: nothing that was read is read again, and nothing that was not is left out. It may be cut off at any step and begun
anew: the newest batch says whether it was done, and is altered last; of what was moved the manifest (`manifest.claim`).
"""

import json
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from wirecheck.streaming.run import manifest
from wirecheck.streaming.run.arrivals import Agent
from wirecheck.streaming.run.manifest import QUERY, CheckpointRefused
from wirecheck.streaming.spark import state_files
from wirecheck.streaming.spark.operators import PARTS
from wirecheck.streaming.steps.quarantine import whose
from wirecheck.streaming.store import batch_files, checksums, storage
from wirecheck.streaming.store.batch_files import BatchFiles, Positions
from wirecheck.streaming.store.storage import at, is_local

LISTED = "sources/0"
TICK_MS = 1000
"""By which Spark's counting source lets a batch be later than the one before."""


def bring_up(checkpoint: str) -> None:
    """Nothing happens to one that needs it not. Raises CheckpointRefused."""
    with manifest.refused(checkpoint, "Spark's offsets"):
        offsets = manifest.numbered(checkpoint, "offsets")
    if not offsets or went(checkpoint, max(offsets)) is None:
        return
    manifest.unaltered(checkpoint)
    listed = entries(checkpoint)
    for number in sorted(offsets)[-2:]:
        upto, before = went(checkpoint, number), went(checkpoint, number - 1) if number - 1 in offsets else -1
        if upto is None or before is None:  # it was cut off behind this step
            continue
        names = [name for index, name in listed if index <= upto]
        new = [name for index, name in listed if before < index <= upto]
        with manifest.refused(checkpoint, batch_files.place(number)):
            batch_files.write(checkpoint, number, BatchFiles(tuple(new), positions(names)))
    for number in sorted(offsets)[-2:]:
        count(checkpoint, number)


def went(checkpoint: str, batch_id: int) -> int | None:
    """How far a batch went in Spark's list; None where it counts batches."""
    said = manifest.entry(checkpoint, f"offsets/{batch_id}")
    last = said[-1] if said and isinstance(said[-1], dict) else {}
    return int(last["logOffset"]) if "logOffset" in last else None


def entries(checkpoint: str) -> list[tuple[int, str]]:
    """Place in the list and name of every file Spark has seen. Raises CheckpointRefused."""
    with manifest.refused(checkpoint, f"Spark's {LISTED}"):
        logs = manifest.numbered(checkpoint, LISTED)
    together = max((number for number, name in logs.items() if "." in name), default=0)
    lines = [line for number in sorted(logs) if number >= together for line in log(checkpoint, logs[number])]
    return [(int(line["batchId"]), unquote(line["path"]).rpartition("/")[2]) for line in lines]


def log(checkpoint: str, name: str) -> list[Any]:
    return manifest.entry(checkpoint, f"{LISTED}/{name}")


def positions(names: list[str]) -> Positions:
    numbers: dict[str, list[int]] = {}
    for name in names:
        agent, number = whose(name) or (name, 1)
        numbers.setdefault(agent, []).append(number)
    return {agent: Agent().after(some) for agent, some in numbers.items()}


def count(checkpoint: str, batch_id: int) -> None:
    """The batch's offsets, as Spark writes them of a source that counts."""
    system, folder = at(checkpoint)
    name = f"{manifest.QUERY}/offsets/{batch_id}"
    with manifest.refused(checkpoint, name):
        with system.open_input_file(f"{folder}/{name}") as file:
            *head, last = file.read().decode().splitlines()
        if "logOffset" not in json.loads(last):
            return
        now = json.dumps({"offset": PARTS * (batch_id + 1), "timestamp": TICK_MS * (batch_id + 1)})
        checksums.forget(system, folder, name)
        with suppress(FileNotFoundError):  # Hadoop's sum of it
            system.delete_file(f"{folder}/{manifest.QUERY}/offsets/.{batch_id}.crc")
        storage.put(system, f"{folder}/{name}", "\n".join([*head, now]).encode())


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
