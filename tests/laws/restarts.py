"""Captures judged by steps that end and begin again at random borders of batches, beside a replay of each in one go.

    python -m tests.laws.restarts [--seeds 5] [--month 30] CAPTURE...

Knows: a life is a process that has judged nothing before; it reads the state that the one before it wrote, judges some
batches and ends: between two batches, or, as by kill -9, when a batch's tables are written and its state is not, so
that the next one judges it again. Tables are compacted between lives as if hours had passed.
Refuses to know: what is a finding. Spark's part of it is `chaos.py`'s.
Rule: all that holds afterwards is what one process has that judged the same batches, and what a replay has; of a month
the findings' ids, for a replay in one go forgets nothing on the way, and has an end, at which counts are told. No
reader finds a row twice. Borders are random but told (seed), so that a difference can be run again.
"""

import argparse
import json
import pickle
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.month_traffic import Traffic, plan
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.streaming.run import local_replay
from wirecheck.streaming.steps.frames_folder import agents_of, labelled_in
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store import compaction
from wirecheck.streaming.store.batches import Tables
from wirecheck.streaming.store.result_tables import TABLES, from_ipc
from wirecheck.streaming.store.run_result import Result

ROLL_BYTES = 60_000
RUN = "00000000-0000-4000-8000-000000000017"
HOUR_S = 3600
LEFT_ALONE = 5
"""Passes at the end, until no file is left whose rows lie in another."""


Came = list[list[Path]]
"""Files of frames in their order; those that come at one moment together."""


@dataclass
class Life:
    """What a process is given to do."""

    batches: list[tuple[int, list[Path]]]
    cut_off: bool
    """The last batch's state is not written."""


@dataclass
class Ways:
    """How often what happened, over all captures and seeds."""

    lives: int = 0
    cut_off: int = 0
    batches: int = 0
    compacted: int = 0
    differing: list[str] = field(default_factory=list)


def batches_of(came: Came, chance: random.Random) -> list[list[Path]]:
    """Of what came at one moment, to a quarter of all."""
    found: list[list[Path]] = []
    left = came
    while left:
        count = chance.choice((1, 1, 2, 3, max(1, len(came) // 4)))
        found.append([file for files in left[:count] for file in files])
        left = left[count:]
    return found


def lives(batches: list[list[Path]], chance: random.Random) -> Iterator[Life]:
    """Of one batch to three."""
    number, repeated = 0, 0
    while number < len(batches):
        upto = min(len(batches), max(number + 1, number + chance.randint(1, 3) + repeated))
        cut_off = upto < len(batches) and chance.random() < 0.4
        yield Life([(at, batches[at]) for at in range(number, upto)], cut_off)
        number, repeated = upto - cut_off, int(cut_off)


def live(life: Life, state: Path, out: Path, settings: Settings) -> None:
    """One of them, from its start to its end."""
    loop = Loop(settings)
    if state.exists():
        loop.buckets, loop.shards = pickle.loads(state.read_bytes())
    for number, files in life.batches:
        loop.batch(files)
        emitted: dict[str, list[Any]] = {}
        for row in loop.emitted:
            emitted.setdefault(row.route, []).append(from_ipc(row.cell))
        loop.emitted.clear()
        Tables(out, RUN).write({table: concat(rows) for table, rows in emitted.items()}, number)
        if not life.cut_off or number != life.batches[-1][0]:
            state.write_bytes(pickle.dumps((loop.buckets, loop.shards)))


def concat(rows: list[Any]) -> Any:
    import pyarrow as pa

    return pa.concat_tables(rows)


def interrupted(
    batches: list[list[Path]], folder: Path, chance: random.Random, ways: Ways, settings: Settings
) -> dict[str, Any]:
    """What such lives leave in the result tables."""
    out, hours, last = folder / "out", 0, 0
    for life in lives(batches, chance):
        process = get_context("fork").Process(target=live, args=(life, folder / "state", out, settings))
        process.start()
        process.join()
        if process.exitcode:
            raise RuntimeError(f"a life ended with {process.exitcode}")
        ways.lives, ways.cut_off = ways.lives + 1, ways.cut_off + life.cut_off
        ways.batches += len(life.batches)
        last = life.batches[-1][0] - life.cut_off
        if chance.random() < 0.5:
            hours += chance.randint(1, 3)
            compact(out, hours, last)
            ways.compacted += 1
    for later in range(1, LEFT_ALONE + 1):
        compact(out, hours + later, last)
    twice = doubled(out)
    return {**said(Result.read(out, RUN)), **({"rows found twice": twice} if twice else {})}


def compact(out: Path, hours: int, committed: int) -> None:
    """A pass over the tables, as so much later."""
    now_s = time.time_ns() / 1e9 + hours * HOUR_S
    compaction.compact(out, RUN, compaction.CompactionTerms(now_s, 1, many_batches=3), committed)


def said(result: Result) -> dict[str, Any]:
    """What must be the same: all that holds."""
    found = result.json()
    return {**found, "ids": sorted(finding["id"] for finding in found["findings"]), "statements": result.statements()}


def alone(work: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
    """What a process makes of it that has judged nothing before: this one forks it."""
    with get_context("fork").Pool(1) as pool:
        found: dict[str, Any] = pool.apply(work, given)
        return found


def replayed(files: list[Path]) -> dict[str, Any]:
    """In one go."""
    run = local_replay.of_files(files, Settings())
    run.judge(files)
    return said(run.result())


def uninterrupted(batches: list[list[Path]], settings: Settings) -> dict[str, Any]:
    """The same batches by one process."""
    loop = Loop(settings)
    for files in batches:
        loop.batch(files)
    return said(loop.result())


def differing(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    return sorted(part for part in expected.keys() | found.keys() if found.get(part) != expected.get(part))


def doubled(out: Path) -> int:
    """Rows that a reader without any knowledge of ours finds more than once."""
    import pyarrow.dataset as ds

    found = 0
    for table in (name for name, one in TABLES.items() if one.revised and (out / name).exists()):
        rows = ds.dataset(out / table, partitioning="hive").to_table(columns=["id", "revision"])
        found += rows.num_rows - rows.group_by(["id", "revision"]).aggregate([]).num_rows
    return found


def capture_of(place: Path) -> Path:
    return next((place / name for name in ("capture.pcap", "capture.pcap.gz") if (place / name).exists()), place)


def as_a_monitor(files: list[Path]) -> Settings:
    """Where agents begin is known, and of none where it ends."""
    known = labelled_in(agents_of(files), files)
    return Settings(buckets=2, agents={agent: replace(found, last=0) for agent, found in known.items()})


def of_capture(place: Path, folder: Path) -> Came:
    return [[file] for file in write_frames([capture_of(place)], folder, "default", roll_bytes=ROLL_BYTES).files]


def of_month(days: Iterable[int], folder: Path) -> Came:
    """Of the month's traffic, with its planted faults: files of two agents, hours apart."""
    (scratch := folder.with_name("a step")).mkdir()
    folder.mkdir()
    traffic = Traffic(scratch)
    return [traffic.publish(step, folder) for step in plan(max(days) + 2) if step.day in days]


def compared(
    name: str, made: Callable[[Path], Came], seeds: Iterable[int], ways: Ways, parts: Iterable[str] = ()
) -> dict[str, Any]:
    """What differs by seed, of one input: `made` writes its frames files. `parts`: what a replay in one go has to say
    alike; everything, where none are named.
    """
    with tempfile.TemporaryDirectory(prefix="wirecheck-restarts-") as scratch:
        folder = Path(scratch)
        came = made(folder / "frames")
        files = [file for some in came for file in some]
        settings, expected = as_a_monitor(files), alone(replayed, files)
        wrong: dict[int, list[str]] = {}
        for seed in seeds:
            chance = random.Random(seed)
            batches = batches_of(came, chance)
            (work := folder / str(seed)).mkdir()
            found = interrupted(batches, work, chance, ways, settings)
            beside = differing(found, alone(uninterrupted, batches, settings))
            other = [part for part in differing(found, expected) if part in (parts or found)]
            if beside or other:
                wrong[seed] = [*(f"{part} without restarts" for part in beside), *other]
            shutil.rmtree(work)
    ways.differing += [f"{name}, seed {seed}: {', '.join(parts)}" for seed, parts in wrong.items()]
    counts = {part: len(expected[part]) for part in ("findings", "topics", "clients", "statements")}
    codes = sorted({(finding["code"], finding["topic"]) for finding in expected["findings"]}, key=str)
    return {"name": name, "files": len(files), **counts, "differing": wrong, "found": codes}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="*", type=Path)
    parser.add_argument("--month", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1)
    given = parser.parse_args()
    ways = Ways()
    seeds = range(given.first, given.first + given.seeds)
    lines: Iterable[dict[str, Any]] = (
        compared(place.name, partial(of_capture, place), seeds, ways) for place in given.captures
    )
    if given.month:
        name = f"{given.month} days of the month"
        lines = chain(lines, (compared(name, partial(of_month, range(given.month)), seeds, ways, ["ids"]),))
    for line in lines:
        print(json.dumps({part: said for part, said in line.items() if part != "found"}), flush=True)
    print(json.dumps(vars(ways)))
    return int(bool(ways.differing))


if __name__ == "__main__":
    sys.exit(main())
