"""What a monitor remembers between starts: settings, run ID and the files of each batch, next to Spark's own state.

A checkpoint that does not fit is refused before Spark starts. The files of a batch are written before it runs, so that
a repeated batch has the same files. An agent's position is a number and the few missing below it: nothing grows.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any
from uuid import uuid4

from wirecheck.capture.frames_file_name import whose
from wirecheck.decode.dialect import SHIPPED
from wirecheck.judge.ledger import ledger
from wirecheck.streaming.steps import follow_step
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store import storage
from wirecheck.streaming.store.storage import at, is_local, local
from wirecheck.wording import reason_of

NAME, FORMAT = "checkpoint.json", 2
QUERY = "query"
"""Spark's own folder, beside the manifest."""
FILES = "files"
KEPT = 20
"""Batches whose files are remembered; a start reads the last one, or the one before."""
NEW = "start with a new --checkpoint; frames that are still kept are checked again"
SAME = "use the same as before, or "
OF_RELEASE = {"format", "follow_state_version", "judge_state_version"}
"""What no option changes."""
NO_ACCESS = f"let this user read and write it, or {NEW}"


class CheckpointRefused(Exception):  # noqa: N818 - reads as what happened
    """Why this checkpoint cannot be used, and how to continue, in one line."""


class CheckpointDamaged(ValueError):  # noqa: N818 - reads as what happened
    """A file of ours in the checkpoint is missing or damaged; the message is which."""


def meaning(settings: Settings) -> dict[str, Any]:
    """The settings and versions that must stay the same: the state has a meaning only with them."""
    return {
        "format": FORMAT,
        "buckets": settings.buckets,
        "ports": sorted(settings.ports),
        "dialect": ", ".join(sorted({*settings.dialects})) or SHIPPED,
        "follow_state_version": follow_step.STATE_VERSION,
        "judge_state_version": ledger.STATE_VERSION,
        "spark": ".".join(version("pyspark").split(".")[:2]),
    }


def open_or_create(checkpoint: str, now: Mapping[str, Any]) -> str:
    """The ID of the run of this checkpoint, which is new or fits. Raises CheckpointRefused."""
    try:
        at(checkpoint)
    except (OSError, ValueError) as wrong:
        raise CheckpointRefused(f"{checkpoint}: {reason_of(wrong)}; name another --checkpoint") from wrong
    with refused(checkpoint, NAME):
        stored = _read(checkpoint)
        if stored is None:
            stored = {"run": str(uuid4()), **now}
            _write(checkpoint, NAME, stored)
        run = str(stored["run"])
    for name, value in now.items():
        if stored.get(name) != value:
            what = f"{name.replace('_', ' ')} {_shown(stored.get(name))}, this is {_shown(value)}"
            other = f"written by another release (made with {what}); " if name in OF_RELEASE else f"made with {what}; "
            raise CheckpointRefused(f"{checkpoint}: {other}{'' if name in OF_RELEASE else SAME}{NEW}")
    return run


def run_of(checkpoint: str) -> str | None:
    """The run's ID; None where there is no checkpoint yet. Raises CheckpointRefused."""
    with refused(checkpoint, NAME):
        stored = _read(checkpoint)
        return None if stored is None else str(stored["run"])


@contextmanager
def refused(checkpoint: str, name: str) -> Iterator[None]:
    """Whatever is wrong with a file of the checkpoint, as CheckpointRefused."""
    try:
        yield
    except OSError as wrong:
        raise CheckpointRefused(f"{checkpoint}: {name}: {reason_of(wrong)}; {NO_ACCESS}") from wrong
    except CheckpointDamaged as wrong:
        raise CheckpointRefused(f"{checkpoint}: {wrong}; {NEW}") from wrong
    except (ValueError, KeyError, TypeError) as wrong:
        raise CheckpointRefused(f"{checkpoint}: {name} is damaged; {NEW}") from wrong


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _read(checkpoint: str) -> dict[str, Any] | None:
    """None where there is nothing."""
    system, folder = at(checkpoint)
    names = {name for name in storage.names(system, folder) if not name.startswith(".")}
    if NAME in names:
        with system.open_input_file(f"{folder}/{NAME}") as file:
            return dict(json.loads(file.read()))
    if names:
        raise CheckpointDamaged(f"holds {min(names)} and no {NAME}: it is not a checkpoint of this release")
    return None


def _write(checkpoint: str, name: str, content: Any) -> None:
    system, folder = at(checkpoint)
    path = f"{folder}/{name}"
    system.create_dir(path.rpartition("/")[0], recursive=True)
    storage.put(system, path, (json.dumps(content) + "\n").encode())


@contextmanager
def locked(checkpoint: str) -> Iterator[None]:
    """Keeps a second monitor out, on this machine. Raises CheckpointRefused."""
    if not is_local(checkpoint):
        yield
        return
    folder = local(checkpoint)
    if folder.is_file():
        raise CheckpointRefused(f"{checkpoint}: is a file, not a folder; name another --checkpoint")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    except OSError as wrong:
        fix = "let this user write there, or name another --checkpoint"
        raise CheckpointRefused(f"{checkpoint}: {reason_of(wrong)}; {fix}") from wrong
    with os.fdopen(handle):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as held:
            raise CheckpointRefused(f"{checkpoint}: another monitor is using it; stop that one first") from held
        yield


# --- batches


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
    """The files of frames of one batch."""

    files: tuple[str, ...] = ()
    """Their names, in the order in which they came."""
    after: Positions = field(default_factory=dict)
    """By agent, once they are read."""


def place(batch_id: int) -> str:
    """Below the checkpoint."""
    return f"{FILES}/{batch_id}.json"


def read_files(checkpoint: str, batch_id: int) -> BatchFiles | None:
    """None where they were not written. Raises OSError and CheckpointDamaged."""
    system, folder = at(checkpoint)
    with suppress(FileNotFoundError), system.open_input_file(f"{folder}/{place(batch_id)}") as file:
        try:
            kept = json.loads(file.read())
            after = {agent: Position(first, upto, tuple(few)) for agent, (first, upto, few) in kept["after"].items()}
            return BatchFiles(tuple(map(str, kept["files"])), after)
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise CheckpointDamaged(f"{place(batch_id)} is damaged") from wrong
    return None


def need_files(checkpoint: str, batch_id: int) -> BatchFiles:
    """Raises OSError and CheckpointDamaged."""
    if (batch := read_files(checkpoint, batch_id)) is None:
        raise CheckpointDamaged(f"{place(batch_id)} is missing")
    return batch


def write_files(checkpoint: str, batch_id: int, batch: BatchFiles) -> None:
    """Before the batch runs; those of batches that no start will ask for are removed."""
    after = {agent: [one.first, one.next, list(one.awaited)] for agent, one in batch.after.items()}
    _write(checkpoint, place(batch_id), {"files": list(batch.files), "after": after})
    system, folder = at(checkpoint)
    for number in written_down(checkpoint):
        if number <= batch_id - KEPT:
            system.delete_file(f"{folder}/{place(number)}")


def written_down(checkpoint: str) -> list[int]:
    """The batches whose files are known, in order."""
    system, folder = at(checkpoint)
    names = storage.names(system, f"{folder}/{FILES}")
    return sorted(int(name.removesuffix(".json")) for name in names if name[0].isdigit() and name.endswith(".json"))


def newest_files(checkpoint: str) -> list[str]:
    """Those of the newest batch, which is repeated if it was not committed. Raises CheckpointRefused."""
    with refused(checkpoint, FILES):
        numbers = written_down(checkpoint)
        with suppress(CheckpointDamaged):  # a power cut may leave half a file, which is then written again
            return list(need_files(checkpoint, numbers[-1]).files) if numbers else []
    return []


def present_files(checkpoint: str, batch_id: int, settings: Settings) -> list[str]:
    """The files of a batch, without those that are known to have gone since. Raises OSError and CheckpointDamaged."""
    return [name for name in need_files(checkpoint, batch_id).files if not _has_gone(name, settings)]


def _has_gone(name: str, settings: Settings) -> bool:
    agent, number = whose(name) or (name, 1)
    known = settings.agents.get(agent)
    return known is not None and any(number in gap for gap in known.missing)


def drop_unfinished(checkpoint: str) -> None:
    """While no query runs: files that one did not finish. Spark leaves them, as large as what the batch has changed."""
    if is_local(checkpoint):
        for pattern in (".*.tmp", ".*.tmp.crc"):
            for left in (local(checkpoint) / QUERY).rglob(pattern):
                left.unlink(missing_ok=True)


def committed(checkpoint: str) -> int:
    """The last batch that Spark will not repeat; -1 before the first."""
    system, folder = at(checkpoint)
    names = storage.names(system, f"{folder}/{QUERY}/commits")
    return max((int(name) for name in names if name.isdigit()), default=-1)
