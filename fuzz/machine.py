"""python -m fuzz.machine --minutes 20: mutated messages through the interpreter, mutated fields of records too.

Knows: what must hold for any bytes at all. Each batch of inputs is decoded at once; some of each are looked at closely.
    a status of the closed list; a failed message leaves no token; tokens, time and memory in proportion to the bytes;
    a message alone gets what it gets among others; what decoded has values and columns; in the plain source
    (`--plain`, a sample) no index lies in front of its bytes.
Rule: ends by itself after its inputs or minutes, prints seed and time, and exits 1 with the bytes of the first breach.
"""

# ruff: noqa: T201 -- a report on the terminal is what it is for

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fuzz import fields
from fuzz.bend import Draws, bend_all
from fuzz.bound import Bound, add_minutes
from fuzz.guarded import Guarded
from fuzz.seeds import Seeds, messages
from wirecheck import extension_modules
from wirecheck.decode import columns, message, texts
from wirecheck.decode.columns import tables
from wirecheck.decode.interpret.vectors import bytes_of
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.message import Decoded, Dialect, Messages, Status, decode
from wirecheck.decode.nested import nested

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

BATCH, PLAIN_BATCH = 20_000, 50
CLOSE_LOOKS = 8  # per batch
MOST_TOKENS_PER_BYTE, MOST_TOKENS_BESIDE = 4, 64
MOST_NS_PER_BYTE = 2_000  # of a batch; a quadratic step would show far above, a busy machine stays far below
PLAIN_ONE_IN = 500  # of the inputs
FIELDS_ONE_IN = 100
PLAIN_SHARE, FIELDS_SHARE = 0.1, 0.1  # of the minutes


class Breach(AssertionError):  # noqa: N818 -- what the report calls it
    """Something that must hold for any bytes did not."""


@dataclass
class Run:
    """One run over mutated messages, and what it has seen."""

    rng: np.random.Generator
    plain: bool
    inputs: int = 0
    input_bytes: int = 0
    slowest_ns_per_byte: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)

    def batch(self, seeds: Seeds, count: int) -> None:
        with guarded() if self.plain else nullcontext():
            self.guarded_batch(seeds, count)

    def guarded_batch(self, seeds: Seeds, count: int) -> None:
        mutated, dialects = bent(seeds, count, self.rng)
        begin = time.process_time_ns()  # a busy machine is no breach
        decoded = decode(mutated, dialect=dialects)
        took = (time.process_time_ns() - begin) / max(len(mutated.data), 1)
        check(decoded)
        for i in self.rng.integers(0, count, CLOSE_LOOKS).tolist():
            look_closely(decoded, i, dialects)
        if not extension_modules.PLAIN:
            self.slowest_ns_per_byte = max(self.slowest_ns_per_byte, took)
            if took > MOST_NS_PER_BYTE:
                raise Breach(f"{took:.0f} ns per byte: {hexed(mutated, int(np.argmax(mutated.size)))}")
        self.inputs += count
        self.input_bytes += len(mutated.data)
        names, counts = np.unique(decoded.status, return_counts=True)
        self.statuses.update({Status(s).name: c for s, c in zip(names.tolist(), counts.tolist(), strict=True)})


@contextmanager
def guarded() -> Iterator[None]:
    """Have the plain source read bytes that refuse an index in front of them."""
    modules = (message, columns, texts)
    for module in modules:
        module.bytes_of = lambda data: Guarded(bytes_of(data))  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in modules:
            module.bytes_of = bytes_of  # type: ignore[attr-defined]


def bent(seeds: Seeds, count: int, rng: np.random.Generator) -> tuple[Messages, NDArray[np.int8]]:
    """Mutated messages, one in four with a left-out span, one in eight under another version than its own; dialects."""
    draws = Draws(int(rng.integers(1, 2**62)))
    pick, partner = rng.integers(0, len(seeds), count), rng.integers(0, len(seeds), count)
    pairs = zip(pick.tolist(), partner.tolist(), strict=True)
    data, at = bend_all(seeds.data.tobytes(), seeds.at, pairs, draws)
    kept = np.diff(at)
    spanned = rng.random(count) < 0.25
    lengths = np.where(spanned, rng.integers(1, 200, count), 0)
    other = np.where(rng.random(count) < 0.125, rng.integers(-1, 3, count), 0)
    strange = np.where(rng.random(count) < 0.125, rng.integers(0, len(Dialect), count), seeds.dialect[pick])
    mutated = Messages(
        data,
        at,
        kept + lengths,
        np.concatenate([[0], np.cumsum(spanned)]),
        rng.integers(0, kept + 1)[spanned],
        lengths[spanned],
        seeds.side[pick],
        seeds.key[pick],
        (seeds.version[pick] + other).astype(np.int16),
        np.zeros(count, np.int32),
    )
    return mutated, strange.astype(np.int8)


def check(decoded: Decoded) -> None:
    """What must hold of every message of a batch."""
    m, tokens = decoded.messages, np.diff(decoded.token_at)
    bounds = MOST_TOKENS_PER_BYTE * np.diff(m.at) + MOST_TOKENS_BESIDE
    breaches = {
        "unknown status": ~np.isin(decoded.status, list(Status)),
        "tokens of a failed message": (decoded.status != Status.OK) & (tokens != 0),
        "no token of a decoded message": (decoded.status == Status.OK) & (tokens <= 0),
        "more tokens than bytes allow": tokens > bounds,
        "error outside of the message": (decoded.error_at < -1) | (decoded.error_at > m.size),
    }
    for what, where in breaches.items():
        if where.any():
            raise Breach(f"{what}: {hexed(m, int(np.flatnonzero(where)[0]))}")


def look_closely(decoded: Decoded, i: int, dialects: NDArray[np.int8]) -> None:
    """One message alone, its values and its columns."""
    m = decoded.messages
    alone = decode(m.take(np.array([i])), dialect=dialects[i : i + 1])
    if alone.status[0] != decoded.status[i] or alone.error_at[0] != decoded.error_at[i]:
        raise Breach(f"its neighbours matter: {hexed(m, i)}")
    if alone.status[0] != Status.OK:
        return
    if nested(alone, 0) != nested(decoded, i):
        raise Breach(f"its neighbours change its values: {hexed(m, i)}")
    found = tables(alone, int(m.key[i]), SIDES[m.side[i]])
    for table in found.values():
        for name in table.names:
            column = table[name]
            if hasattr(column, "strings"):
                column.strings()


def hexed(m: Messages, i: int) -> str:
    spans = list(zip(m.span_offset[m.span_at[i] : m.span_at[i + 1]].tolist(), m.span_length.tolist(), strict=False))
    payload = m.data[m.at[i] : m.at[i + 1]].tobytes().hex()
    return f"{SIDES[m.side[i]]} key {m.key[i]} v{m.version[i]} left out {spans}: {payload}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="mutated bytes against the decoder")
    parser.add_argument("--inputs", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="the plain source under bounds checks, nothing else")
    add_minutes(parser)
    return parser.parse_args()


def plain(bound: Bound, seed: int) -> int:
    """The same again with the plain source: which one runs is chosen when it is imported, so in another process."""
    words = ["--seed", str(seed), "--inputs", str(bound.inputs)]
    words += [] if bound.minutes is None else ["--minutes", str(bound.left_minutes())]
    command = [sys.executable, "-m", "fuzz.machine", "--plain", *words]
    return subprocess.run(command, env=os.environ | {"WIRECHECK_PURE": "1"}, check=False).returncode  # noqa: S603 -- ourselves


def main() -> int:
    options = arguments()
    bound = Bound(options.inputs, options.minutes)
    if options.plain and not extension_modules.PLAIN:
        return plain(bound, options.seed)
    rng, seeds = np.random.default_rng(options.seed), messages()
    run, begin = Run(rng, options.plain), time.monotonic()
    checked = ", every index checked" if run.plain else ""
    print(f"interpreter, {extension_modules.running()}{checked}: {len(seeds)} seeds", flush=True)
    try:
        mutated = bound if run.plain or bound.minutes is None else bound.part(1 - PLAIN_SHARE - FIELDS_SHARE)
        while not mutated.over(run.inputs):
            run.batch(seeds, mutated.next(run.inputs, PLAIN_BATCH if run.plain else BATCH))
    except Breach as breach:
        print(f"BREACH after {run.inputs} inputs of seed {options.seed}: {breach}")
        return 1
    print(f"  {run.inputs} inputs, {run.input_bytes >> 20} MiB in {time.monotonic() - begin:.0f} s, no breach")
    print("  " + ", ".join(f"{name} {count}" for name, count in run.statuses.most_common()))
    if run.plain:
        return 0
    print(f"  slowest batch {run.slowest_ns_per_byte:.0f} ns per byte")
    timed = bound.minutes is not None
    return fields.run(rng, bound.part(FIELDS_SHARE if timed else 1 / FIELDS_ONE_IN)) or plain(
        bound.part(PLAIN_SHARE if timed else 1 / PLAIN_ONE_IN), options.seed
    )


if __name__ == "__main__":
    sys.exit(main())
