"""A month of capture time through the whole query: what a batch, a start and the tables cost as the days go by.

Knows: the bars, and what both days of a monitor's month came to (`month_run.py`). Refuses to know: how the job works.
Rule: what is compared are the second day and the last one, of as many batches each, each with a start before it, so
that Java has compiled as much.
MONTH_DAYS=30 is the whole claim; what is printed says how many days it was. The verdict must be the plain loop's over
the same files, a day's in one batch.
"""

import json
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.contained import nothing_contained_in
from bench.month_run import DAYS, Month
from bench.month_traffic import Traffic, planted
from bench.replay import barred, row
from wirecheck.streaming.store.run_result import Result

PARTS = frozenset(f"CPU per batch, {name}" for name in ("driver", "java", "workers"))
"""Of all together; the driver's grows with the time that somebody waits, too."""
FILES_BAR, RESTART_BAR_S, WITHIN = 1500, 20, 1.1


def measure() -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as name:
        folder = Path(name)
        (folder / "frames").mkdir()
        month = Month(folder, Traffic(folder))
        month.run()
        judged, expected = Result.latest(month.out).json(), month.undisturbed()
        nothing_contained_in(judged["findings"])
        return [*rows(month, judged, expected)]


def rows(month: Month, judged: dict, expected: dict) -> Iterator[dict]:
    what = f"month.{DAYS} days"
    second, last = month.days[1], month.days[-1]
    pairs = {
        **{f"CPU per batch, {name}": (*map(statistics.median, (then, last.cpu_s[name])), "s")
           for name, then in second.cpu_s.items()},
        "state": (second.state_mb, last.state_mb, "MB"),
        **{f"memory of {name}": (size, last.memory_mb.get(name, 0), "MB") for name, size in second.memory_mb.items()},
        "Java's heap after a collection": (second.heap_mb, last.heap_mb, "MB"),
        "CPU of compaction, a day": (second.compaction_s, last.compaction_s, "s"),
    }  # fmt: skip
    for name, (then, now, unit) in pairs.items():
        yield row(f"{what}: {name}, second", then, unit, None)
        ratio = now / then if then and now is not None else None
        line = row(f"{what}: {name}, last", now, unit, None) | {"ratio": ratio}
        if name not in PARTS:
            line |= {"bar": f"<= {WITHIN} x the second day's", "met": ratio and ratio <= WITHIN}
        yield line
    yield row(f"{what}: files of the largest table, second", second.files, "", None)
    yield barred(f"{what}: files of the largest table, last", last.files, FILES_BAR)
    yield row(f"{what}: all tables", last.tables_mb, "MB", None)
    for when, (took_s, spent_s) in (("on the second day", month.starts_s[1]), ("at its end", month.starts_s[-1])):
        yield row(f"{what}: CPU of the start {when}", spent_s, "s", None)
        yield barred(f"{what}: start {when}", took_s, RESTART_BAR_S, "s")
    yield from verdict(what, judged, expected)


def verdict(what: str, judged: dict, expected: dict) -> Iterator[dict]:
    ids = [{finding["id"] for finding in found["findings"]} for found in (judged, expected)]
    yield row(f"{what}: findings", len(ids[0]), "", None)
    yield barred(f"{what}: findings other than the plain loop's", len(ids[0] ^ ids[1]), 0)
    said = {(finding["code"], finding["topic"]) for finding in judged["findings"]}
    yield row(f"{what}: planted", len(planted(DAYS)), "", None)
    yield barred(f"{what}: planted and not found", len(planted(DAYS) - said), 0)
    counted = [found["coverage"]["frames"] for found in (judged, expected)]
    yield barred(f"{what}: frames counted other than by the plain loop", abs(counted[0] - counted[1]), 0)


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
