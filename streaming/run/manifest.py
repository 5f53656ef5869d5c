"""What a checkpoint was made with, in a file beside it, and the refusal to go on with anything else.

Knows: which settings and versions a checkpoint's state has a meaning under only (buckets, ports, dialect, versions of
state and of Spark, where its tables lie). Knows nothing of what the state holds.
Rule: a checkpoint that does not fit is refused before Spark starts, in one line that says how to go on.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyspark

from wirecheck.judge.ledger import ledger
from wirecheck.streaming.run.plan import Plan
from wirecheck.streaming.spark import state_files
from wirecheck.streaming.steps import follow_step
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store import batch_files, checksums, storage
from wirecheck.streaming.store.storage import at, is_local, local, why

NAME = "checkpoint.json"
SET_ASIDE = "set-aside.json"
"""Beside the manifest: names of frames files that killed a worker, and how."""
FORMAT = 1
QUERY = "query"
"""Spark's own folder, beside the manifest."""
LOGS = ("offsets", "commits")
"""What Spark reads first when it goes on."""


class CheckpointRefused(Exception):  # noqa: N818 - reads as what happened
    """Why this checkpoint cannot be gone on with, in one line with the fix."""


PLACES = frozenset({"frames", "out", "checkpoint"})
"""Facts that may be another where somebody says that it was moved."""
FIX = "start with a new --checkpoint; frames that are still kept are checked again"
NO_ACCESS = f"let this user read and write it, or {FIX}"


def facts(settings: Settings, plan: Plan) -> dict[str, Any]:
    """What must be the same for ever. Spark writes down where its own folder is, and where each frames file was."""
    return {
        "format": FORMAT,
        "buckets": settings.buckets,
        "ports": sorted(settings.ports),
        "dialect": settings.dialect,
        "frames": absolute(plan.frames),
        "out": absolute(plan.out),
        "checkpoint": absolute(plan.checkpoint),
        "follow_state_version": follow_step.STATE_VERSION,
        "judge_state_version": ledger.STATE_VERSION,
        "spark": pyspark.__version__,
    }


def absolute(place: str) -> str:
    return str(local(place)) if is_local(place) else place.rstrip("/")


def claim(checkpoint: str, now: dict[str, Any], *, moved: bool = False) -> str:
    """Take the checkpoint, new, fitting or moved; where Spark is to keep its part. Raises CheckpointRefused."""
    try:
        at(checkpoint)
    except (OSError, ValueError) as wrong:
        raise CheckpointRefused(f"{checkpoint}: {why(wrong)}; name another --checkpoint") from wrong
    with refused(checkpoint, NAME):
        before = read(checkpoint)
        if before is None:
            write(checkpoint, now)
            before = now
    for name, value in now.items():
        if not (fits(name, before.get(name), value) or (moved and name in PLACES)):
            words = name.replace("_", " ")
            other = f"made with {words} {shown(before.get(name))}, this is {shown(value)}"
            way_out = "go on as before, say --moved if that was moved," if name in PLACES else "go on as before"
            raise CheckpointRefused(f"{checkpoint}: {other}; {way_out} or {FIX}")
    if before != now:
        brought_up(checkpoint, now)
    return f"{checkpoint.rstrip('/')}/{QUERY}"


def fits(name: str, before: Any, now: Any) -> bool:
    """Whether a checkpoint that was made with the one goes on with the other."""
    if name == "spark":  # patch versions write the same files
        return str(before).split(".")[:2] == str(now).split(".")[:2]
    return bool(before == now)


def brought_up(checkpoint: str, now: dict[str, Any]) -> None:
    """From here on its state is this version's: an earlier one refuses it. Raises CheckpointRefused."""
    with refused(checkpoint, NAME):
        system, folder = at(checkpoint)
        checksums.forget(system, folder, NAME)
        write(checkpoint, now)


@contextmanager
def refused(checkpoint: str, name: str) -> Iterator[None]:
    """Whatever is wrong with a file of the checkpoint, as CheckpointRefused."""
    try:
        yield
    except OSError as wrong:
        raise CheckpointRefused(f"{checkpoint}: {name}: {why(wrong)}; {NO_ACCESS}") from wrong
    except (ValueError, KeyError, TypeError) as wrong:
        told = str(wrong) if isinstance(wrong, Strange) else f"cannot be read ({name} is damaged)"
        raise CheckpointRefused(f"{checkpoint}: {told}; {FIX}") from wrong


class Strange(ValueError):  # noqa: N818 - never leaves this module
    """Not damaged, and not what it should be."""


def shown(value: Any) -> str:
    return ",".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def read(checkpoint: str) -> dict[str, Any] | None:
    """None where nothing is. Raises OSError and ValueError."""
    system, folder = at(checkpoint)
    there = {name for name in storage.names(system, folder) if not name.startswith(".")}
    if NAME in there:
        with system.open_input_file(f"{folder}/{NAME}") as file:
            return dict(json.loads(file.read()))
    if there:
        raise Strange(f"holds {min(there)} and no {NAME}: it is not a checkpoint of this release")
    return None


def write(checkpoint: str, now: dict[str, Any]) -> None:
    system, folder = at(checkpoint)
    system.create_dir(folder, recursive=True)
    storage.put(system, f"{folder}/{NAME}", (json.dumps(now, indent=1) + "\n").encode())


def set_aside(checkpoint: str) -> dict[str, str]:
    """The files that are not to be opened again, and why. Raises CheckpointRefused where that cannot be read."""
    system, folder = at(checkpoint)
    there = suppress(FileNotFoundError)
    with refused(checkpoint, SET_ASIDE), there, system.open_input_file(f"{folder}/{SET_ASIDE}") as file:
        return {str(name): str(why) for name, why in dict(json.loads(file.read())).items()}
    return {}


def remember(checkpoint: str, files: dict[str, str]) -> None:
    """Before the query goes on, so that no later start opens them either."""
    system, folder = at(checkpoint)
    checksums.forget(system, folder, SET_ASIDE)
    storage.put(system, f"{folder}/{SET_ASIDE}", (json.dumps(files, indent=1) + "\n").encode())


def run_of(checkpoint: str) -> str | None:
    """The run's id, once Spark has given it one. Raises CheckpointRefused where it cannot be read."""
    system, folder = at(checkpoint)
    with refused(checkpoint, "Spark's metadata"):
        with suppress(FileNotFoundError), system.open_input_file(f"{folder}/{QUERY}/metadata") as file:
            return str(json.loads(file.read())["id"])
        if numbered(checkpoint, "offsets"):
            raise Strange("cannot be read (Spark's metadata is missing)")
    return None


def committed(checkpoint: str) -> int:
    """The last batch that Spark will not repeat; -1 before the first."""
    system, folder = at(checkpoint)
    found = storage.names(system, f"{folder}/{QUERY}/commits")
    return max((int(name) for name in found if name.isdigit()), default=-1)


def listed_last(checkpoint: str) -> list[str]:
    """The names of the newest batch's files; it is repeated if it was not committed. Raises CheckpointRefused."""
    with refused(checkpoint, batch_files.FOLDER):
        known = batch_files.numbers(checkpoint)
        if not known:
            return []
        with suppress(ValueError):  # a power cut may have left half of it, and then it is written again
            said = batch_files.read(checkpoint, known[-1])
            return list(said.files) if said else []
    return []


def numbered(checkpoint: str, log: str) -> dict[int, str]:
    """The files of one of Spark's logs by their batch. Raises OSError."""
    system, folder = at(checkpoint)
    there = {name for name in storage.names(system, f"{folder}/{QUERY}/{log}") if name[0].isdigit()}
    return {int(name.partition(".")[0]): name for name in sorted(there)}


def newest(checkpoint: str, log: str) -> list[Any]:
    """The newest entry of one of Spark's logs. Raises CheckpointRefused."""
    with refused(checkpoint, f"Spark's {log}"):
        numbers = numbered(checkpoint, log)
    return entry(checkpoint, f"{log}/{numbers[max(numbers)]}") if numbers else []


def entry(checkpoint: str, name: str) -> list[Any]:
    """A file of one of Spark's logs: JSON lines under a version. Raises CheckpointRefused."""
    system, folder = at(checkpoint)
    with refused(checkpoint, f"Spark's {name}"), system.open_input_file(f"{folder}/{QUERY}/{name}") as file:
        version, *lines = file.read().decode().splitlines()
        int(version.removeprefix("v"))
        return [json.loads(line) for line in lines if line != "-"]  # as Spark writes that there is no offset


def sum_up(checkpoint: str) -> None:
    """Keep the sums of what the last committed batch rests on, all of which is whole and never written again.

    What Spark has written since may be half there, or come again otherwise. Raises OSError and CheckpointRefused.
    """
    done = committed(checkpoint)
    if done < 0:
        return
    system, folder = at(checkpoint)
    offsets = numbered(checkpoint, "offsets")
    names = [
        "metadata",
        f"commits/{done}",
        *(f"offsets/{offsets[number]}" for number in (done - 1, done) if number in offsets),
        *state_files.needed(system, f"{folder}/{QUERY}/state", done + 1),
    ]
    own = [NAME, SET_ASIDE, batch_files.place(done)]
    checksums.keep(system, folder, [*own, *(f"{QUERY}/{name}" for name in names)])


def readable(checkpoint: str) -> None:
    """Refuse what Spark would fail on, in words of its own, once it has started. Raises CheckpointRefused."""
    unaltered(checkpoint)
    run_of(checkpoint)
    for log in LOGS:
        newest(checkpoint, log)
    with refused(checkpoint, "Spark's offsets"):
        done = committed(checkpoint)
        if done > max(numbered(checkpoint, "offsets"), default=-1):
            raise Strange(f"cannot be read (Spark's offsets/{done} is missing)")
        begun = max(numbered(checkpoint, "offsets"), default=-1)
        if done < begun - 1:
            raise Strange(f"cannot be read (Spark's commits/{begun - 1} is missing)")
    if done >= 0:
        system, folder = at(checkpoint)
        with refused(checkpoint, batch_files.place(done)):
            if batch_files.read(checkpoint, done) is None:
                raise Strange(f"cannot be read ({batch_files.place(done)} is missing)")
        with refused(checkpoint, "Spark's state"):
            if wrong := state_files.damaged(system, f"{folder}/{QUERY}/state", done + 1):
                raise Strange(f"cannot be read (Spark's {wrong})")


def unaltered(checkpoint: str) -> None:
    """Refuse files that are not what they were when their batch was committed. Raises CheckpointRefused."""
    system, folder = at(checkpoint)
    with refused(checkpoint, checksums.NAME):
        try:
            sums = checksums.read(system, folder)
        except checksums.SumsDamagedError as damaged:
            way_out = f"remove it to go on without the sums of its files, or {FIX}"
            raise CheckpointRefused(f"{checkpoint}: {checksums.NAME} is damaged; {way_out}") from damaged
    for path, before in sums.items():
        name = f"Spark's {path.removeprefix(f'{QUERY}/')}" if path.startswith(f"{QUERY}/") else path
        with refused(checkpoint, name), suppress(FileNotFoundError):  # what is gone and needed is found missing
            if checksums.of_file(system, f"{folder}/{path}") != before:
                raise Strange(f"cannot be read ({name} is damaged: it is not what its batch was committed with)")


def lock(checkpoint: str) -> int | None:
    """Keep a second monitor out, on this machine; the handle, to be closed at the end."""
    if not is_local(checkpoint):
        return None
    folder = local(checkpoint)
    if folder.is_file():
        raise CheckpointRefused(f"{checkpoint}: is a file, not a folder; name another --checkpoint")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    except OSError as wrong:
        fix = "let this user write there, or name another --checkpoint"
        raise CheckpointRefused(f"{checkpoint}: {why(wrong)}; {fix}") from wrong
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as taken:
        os.close(handle)
        raise CheckpointRefused(f"{checkpoint}: another monitor is at work on it; end that one first") from taken
    return handle
