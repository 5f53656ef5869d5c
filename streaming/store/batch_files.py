"""Which files of frames make a batch, and how far each agent has been read with it: one small file a batch.

Knows: how that is written down in a checkpoint before the batch begins, and that only the last few are kept. Knows
nothing of how the files of a batch are chosen (`arrivals.py`), nor of Spark.
Rule: once written it stays: a batch that is repeated is made of the same files. What was read before is known by a
number for each agent and the few below it that never came: nothing here grows with what was ever seen.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from wirecheck.streaming.store import storage
from wirecheck.streaming.store.storage import at

FOLDER = "files"
KEPT = 20
"""Batches; a start looks at the last one, or at the one before."""


@dataclass(frozen=True)
class Position:
    """How far one agent's files have been read."""

    first: int
    """The lowest number that was ever there."""
    next: int
    """All below are read, but for those awaited."""
    awaited: tuple[int, ...] = ()
    """Between the two, not there yet; the latest of them."""


Positions = Mapping[str, Position]


@dataclass(frozen=True)
class BatchFiles:
    files: tuple[str, ...] = ()
    """Their names, in the order in which they came."""
    after: Positions = field(default_factory=dict)
    """By agent, once they are read."""


def place(batch_id: int) -> str:
    """Below the checkpoint."""
    return f"{FOLDER}/{batch_id}.json"


def read(checkpoint: str, batch_id: int) -> BatchFiles | None:
    """None where it has not been written. Raises OSError and ValueError."""
    system, folder = at(checkpoint)
    with suppress(FileNotFoundError), system.open_input_file(f"{folder}/{place(batch_id)}") as file:
        try:
            said = json.loads(file.read())
            after = {agent: Position(first, upto, tuple(few)) for agent, (first, upto, few) in said["after"].items()}
            return BatchFiles(tuple(map(str, said["files"])), after)
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise ValueError(f"{place(batch_id)} is damaged") from wrong
    return None


def write(checkpoint: str, batch_id: int, said: BatchFiles) -> None:
    system, folder = at(checkpoint)
    system.create_dir(f"{folder}/{FOLDER}", recursive=True)
    after = {agent: [one.first, one.next, list(one.awaited)] for agent, one in said.after.items()}
    content = json.dumps({"files": list(said.files), "after": after}) + "\n"
    storage.put(system, f"{folder}/{place(batch_id)}", content.encode())


def numbers(checkpoint: str) -> list[int]:
    """The batches whose files are known, in order."""
    system, folder = at(checkpoint)
    found = storage.names(system, f"{folder}/{FOLDER}")
    return sorted(int(name.removesuffix(".json")) for name in found if name[0].isdigit() and name.endswith(".json"))


def forget(checkpoint: str, batch_id: int) -> None:
    """What lies so far behind this batch that nobody will ask for it."""
    system, folder = at(checkpoint)
    for number in numbers(checkpoint):
        if number <= batch_id - KEPT:
            system.delete_file(f"{folder}/{place(number)}")
