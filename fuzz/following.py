"""python -m fuzz.following --minutes 20 --damage bytes: damaged frames through following, decoding and trim.

Knows: what must hold of any frames. Nothing is raised, whatever the bounds and wherever calls end, snapshots between;
    trim gives back every row, in order, with its length and no byte that was not there; canaries, which stand wherever
    trim leaves something out of the undamaged capture, are not kept.
A canary that is kept is looked at again in what trim gave: in a message that decodes the damage itself moved it into a
field that is kept (counted as moved, and listed); in a header it is the client ID. In a malformed message it may be in
numbers before the error, which docs/limits.md says are kept: never in its texts, bytes or records, and never behind the
error. Anywhere else it is a breach.
Before the sequences, one connection of many segments in random order behind a hole: CPU per byte is bounded, and all of
    its messages are given once the hole is filled.
Rule: ends by itself after its sequences or minutes, prints seed, counts and time, and exits 1 on a breach, with the
frames in a file under build/fuzz. The same seed damages the same frames.
"""

# ruff: noqa: T201 -- a report on the terminal is what it is for

from __future__ import annotations

import argparse
import pickle
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fuzz.bound import Bound, add_minutes
from fuzz.damage import damaged
from fuzz.files import BUILD
from fuzz.hostile import ACK, ANSWERED, ASKED, START_NS, Frames, opened, request
from tests import proxy_headers
from wirecheck import extension_modules
from wirecheck.capture import frames
from wirecheck.capture.agent import offline_agent
from wirecheck.capture.trim.redaction_policy import LENGTH_BYTES, header_bytes, may_hold_secrets
from wirecheck.capture.trim.trimmer import Trim
from wirecheck.decode.columns import tables
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.limits import Limits
from wirecheck.decode.connection.segments import segments
from wirecheck.decode.dialect import DIALECTS, read, read_as_any
from wirecheck.decode.failed import before_content, contents
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.message import Status, decode
from wirecheck.decode.nested import nested
from wirecheck.decode.wire import wire_offset

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fuzz.damage import Row
    from wirecheck.decode.wire import Messages

CAPTURES = Path(__file__).resolve().parent.parent / "tests" / "scenarios" / "captures"
CANARY = b"CaNaRy!#"
FIRST_FRAMES = 12_000  # of a capture, and none that came encrypted: those are fuzz/tls.py's
WINDOW = 45  # frames of a connection in a sequence
TOKEN_BYTES = 200  # what is left out whole and is shorter may be a SASL token: its own bytes stay
BATCH_HEADER_BYTES = 64  # of a record batch: its bytes stay, so that a record is what is tried
REPORT_EVERY = 5_000
PROXIED = 0.2  # of the sequences begin with PROXY headers
HEADERS = [*proxy_headers.NAMELESS.values(), *(header for header, _ in proxy_headers.NAMING.values())]
HEADERS += [proxy_headers.v2(6, more=CANARY * 8), proxy_headers.v2_of(0x21, 0x31, CANARY * 27)]
FETCH = 1
HELD = 20_000  # segments behind a hole, in random order
HELD_CALLS = 50  # in which they come
MOST_NS_PER_BYTE = 2_000  # CPU; a step that looks at all that is held would show far above


@dataclass(frozen=True)
class Base:
    """Frames of a capture, with canaries, and which of them each connection has."""

    name: str
    rows: list[Row]
    connections: list[list[int]]


@dataclass
class Seen:
    counts: Counter[str] = field(default_factory=Counter)
    moved: list[str] = field(default_factory=list)


def batch(rows: list[Row]) -> pa.RecordBatch:
    arrays = []
    for column in frames.FRAMES_CODED:
        values = [row[column.name] for row in rows]
        if pa.types.is_dictionary(column.type):
            arrays.append(pa.array(values, column.type.value_type).dictionary_encode().cast(column.type))
        else:
            arrays.append(pa.array(values, column.type))
    return pa.RecordBatch.from_arrays(arrays, schema=frames.FRAMES_CODED)


def base(path: Path) -> Base:
    rows: list[Row] = []
    for table in offline_agent.read_frames([path]):
        rows += [row for row in table.to_pylist() if row["kind"] == frames.FRAME and not row["decrypted"]]
        if len(rows) >= FIRST_FRAMES:
            break
    rows = rows[:FIRST_FRAMES]
    for row, left in zip(rows, trimmed(batch(rows), [len(rows)]), strict=True):
        row["payload"] = with_canaries(row, left["left_out"])
    connections: dict[Any, list[int]] = {}
    for i, row in enumerate(rows):
        ends = frozenset([(row["src_ip"], row["src_port"]), (row["dst_ip"], row["dst_port"])])
        connections.setdefault(ends, []).append(i)
    return Base(path.parent.name, rows, list(connections.values()))


def with_canaries(row: Row, left_out: list[dict[str, int]]) -> bytes:
    data = bytearray(row["payload"])
    for span in left_out if len(data) == row["payload_len"] else ():
        at, length = span["offset"], span["length"]
        if at == 0 and length == len(data) and length < TOKEN_BYTES:
            continue
        skip = BATCH_HEADER_BYTES if length > BATCH_HEADER_BYTES + 4 * len(CANARY) else 0
        if length - skip >= len(CANARY) + 4:
            data[at + skip : at + length] = (CANARY * (length // len(CANARY) + 1))[: length - skip]
    return bytes(data)


def sequence(rng: np.random.Generator, bases: list[Base], *, bend: bool) -> list[Row]:
    """Up to three connections of a capture, a window of each, in the capture's order, damaged."""
    chosen = bases[int(rng.integers(len(bases)))]
    places: set[int] = set()
    for c in rng.integers(0, len(chosen.connections), int(rng.integers(1, 4))).tolist():
        mine = chosen.connections[c]
        at = 0 if rng.random() < 0.7 else int(rng.integers(0, len(mine)))
        places |= set(mine[at : at + WINDOW])
    rows = [chosen.rows[i] | {"agent": "one", "source": "one", "cluster": "c"} for i in sorted(places)]
    if rng.random() < PROXIED:
        rows = proxy_headers.prefixed(rows, HEADERS[int(rng.integers(len(HEADERS)))])
    return damaged(rng, rows, bend=bend)


def cuts(rng: np.random.Generator, count: int) -> list[int]:
    """Where calls end."""
    return sorted({*rng.integers(1, count + 1, int(rng.integers(0, 4))).tolist(), count})


def limits(rng: np.random.Generator) -> Limits:
    if rng.random() < 0.6:
        return Limits()
    tight = {"held_bytes": 4_000, "held_pieces": 30, "search_bytes": 5_000, "search_pieces": 40, "give_up_bytes": 10**5,
             "waiting_messages": 8, "waiting_bytes": 10_000, "connections": 6, "pending_bytes": 60_000}  # fmt: skip
    return Limits(**{name: int(rng.integers(max(most // 60, 1), most)) for name, most in tight.items()})


def follow(rng: np.random.Generator, rows: list[Row], *, early: bool) -> int:
    """Followed in some calls, decoded, some values and columns looked at: how many messages there were."""
    bounds, whole = limits(rng), batch(rows)
    follower, found = Follower(bounds, early=early), []
    for begin, end in pairwise([0, *cuts(rng, len(rows))]):
        part = whole.slice(begin, end - begin)
        found.append(follower.receive(segments(pa.Table.from_batches([part]))))
        if rng.random() < 0.3 and not early:
            follower = Follower.restore(follower.snapshot(), bounds)
        if rng.random() < 0.5:
            found.append(follower.advance("one", int(part.column("ts_ns").to_numpy().max())))
    found.append(follower.drain())
    named = list(DIALECTS)[int(rng.integers(len(DIALECTS)))]
    for part in found:
        if not len(part.messages):
            continue
        decoded = read(part.messages, [named])
        for i in rng.integers(0, len(part.messages), 2).tolist():
            if decoded.status[i] == Status.OK:
                nested(decoded, i)
                tables(decoded, int(part.messages.key[i]), SIDES[part.messages.side[i]])
    return sum(len(part.messages) for part in found)


def trimmed(rows: pa.RecordBatch, ends: list[int], rng: np.random.Generator | None = None) -> list[Row]:
    trim, out = Trim(), []
    for begin, end in pairwise([0, *ends]):
        part = rows.slice(begin, end - begin)
        out += list(trim.add(part))
        if rng is not None and rng.random() < 0.4:
            out += list(trim.advance("one", int(part.column("ts_ns").to_numpy().max())))
    out += list(trim.drain())
    return pa.Table.from_batches(out).to_pylist() if out else []


def vouched(rows: list[Row], kept: list[Row]) -> bool:
    """Every row is there, in order, with nothing in it that was not; whether a canary is kept."""
    assert [row["frame_no"] for row in kept] == [row["frame_no"] for row in rows], "rows or their order"
    for row, left in zip(rows, kept, strict=True):
        assert len(left["payload"]) + sum(s["length"] for s in left["left_out"]) == row["payload_len"], "lengths"
        (there, known), (mine, kept_here) = laid(row), laid(left)
        assert (known | ~kept_here).all(), "bytes that were not there"
        assert (there[kept_here] == mine[kept_here]).all(), "other bytes than were there"
    return any(CANARY in left["payload"] for left in kept)


def laid(row: Row) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The payload as on the wire, and which bytes of it are here."""
    known = np.ones(row["payload_len"], np.bool_)
    for span in row["left_out"]:
        known[span["offset"] : span["offset"] + span["length"]] = False
    data = np.zeros(row["payload_len"], np.uint8)
    data[known] = np.frombuffer(row["payload"], np.uint8)
    return data, known


def places(kept: list[Row]) -> list[str]:
    """What holds a canary, of what trim gave: `moved`, `header`, `numbers`, or a breach."""
    follower, found = Follower(early=True), []
    inside = 0
    for part in (follower.receive(segments(pa.Table.from_batches([batch(kept)]))), follower.drain()):
        m = part.messages
        if not len(m):
            continue
        decoded = read_as_any(m)
        for i in range(len(m)):
            data = m.data[m.at[i] : m.at[i + 1]].tobytes()
            if CANARY not in data:
                continue
            inside += 1
            what = f"{SIDES[m.side[i]]} {m.key[i]} v{m.version[i]} {Status(decoded.status[i]).name}"
            good = decoded.status[i] == Status.OK
            header = CANARY not in data[int(header_bytes(m, i)) :]
            numbers = not good and decoded.status[i] >= Status.TRUNCATED and in_numbers(m.take(np.array([i])), data)
            found.append(f"{'moved' if good else 'header' if header else 'numbers' if numbers else 'BREACH'} {what}")
    return found if inside else ["BREACH outside of any message"]


def in_numbers(malformed: Messages, data: bytes) -> bool:
    """Whether every canary is in what a malformed message has before its error, the wrong length included, and none
    of it is content; of a kind with records or secrets only what is before the first content.
    """
    upto = int(before_content(malformed)[0]) if may_hold_secrets(malformed)[0] else int(decode(malformed).error_at[0])
    inside = contents(malformed)
    content = set[int]().union(*(range(at, at + n) for at, n in zip(inside.offset, inside.length, strict=True)))
    kept = [at for at in range(len(data)) if data.startswith(CANARY, at)]
    held = np.array([at + k for at in kept for k in range(len(CANARY))], np.int64)
    wire = wire_offset(malformed, np.zeros(len(held), np.int64), held).tolist()
    return max(wire) < upto + LENGTH_BYTES and content.isdisjoint(wire)


def tried(rng: np.random.Generator, rows: list[Row], seen: Seen, *, early: bool) -> None:
    seen.counts["messages"] += follow(rng, rows, early=early)
    kept = trimmed(batch(rows), cuts(rng, len(rows)), rng)
    if vouched(rows, kept):
        for place in places(kept):
            seen.counts[place.partition(" ")[0]] += 1
            seen.moved.append(place)
            assert not place.startswith("BREACH"), place


def random_order(rng: np.random.Generator, count: int) -> tuple[float, int, int]:
    """CPU in ns per byte of one connection, so many of whose segments come in random order behind a hole that is filled
    last; its messages, and how many there are.
    """
    asked = b"".join(request(FETCH, 12, i, bytes(9)) for i in range(1, 1 + count))
    size = len(asked) // count
    order = [*(rng.permutation(count - 1) + 1).tolist(), 0]
    rows = opened(1) + [(1, True, ASKED + i * size, ANSWERED, ACK, asked[i * size : (i + 1) * size]) for i in order]
    most = count + 8
    follower = Follower(Limits(held_pieces=most, waiting_messages=most, slack_frames=8 * most))
    found, begin = 0, time.process_time_ns()
    for part in np.array_split(np.arange(len(rows)), HELD_CALLS):
        segments_now = Frames([rows[i] for i in part.tolist()]).segments(START_NS + int(part[0]), 1)
        found += len(follower.receive(segments_now).messages)
    found += len(follower.drain().messages)
    return (time.process_time_ns() - begin) / len(asked), found, count + 2


def held_in_random_order(rng: np.random.Generator) -> bool:
    """Whether HELD segments in random order cost too much, or were not all read."""
    cost, found, wanted = random_order(rng, HELD)
    bad = found != wanted or (cost > MOST_NS_PER_BYTE and not extension_modules.PLAIN)
    print(f"  {'BREACH: ' * bad}{HELD} segments in random order: {cost:.0f} ns a byte, {found} of {wanted} messages")
    return bad


def run(options: argparse.Namespace) -> int:
    bases = [base(path) for path in sorted(options.captures.glob("*/capture.pcap*"))]
    print(f"following: {len(bases)} captures, seed {options.seed}, damage {options.damage}", flush=True)
    rng, seen, begin = np.random.default_rng(options.seed), Seen(), time.monotonic()
    bound, number = Bound(options.sequences, options.minutes), 0
    breaches = int(held_in_random_order(np.random.default_rng(options.seed)))
    while not bound.over(number):
        rows = sequence(rng, bases, bend=options.damage == "bytes")
        try:
            if rows:
                tried(rng, rows, seen, early=bool(number & 1))
        except Exception:  # noqa: BLE001 -- whatever it is, it is the finding
            breaches += 1
            print(f"BREACH in sequence {number}, frames in {keep(options, number, rows)}:", flush=True)
            traceback.print_exc(limit=-3)
        number += 1
        if number % REPORT_EVERY == 0:
            print(f"  {number} in {time.monotonic() - begin:.0f} s, {breaches} breaches", flush=True)
    print(f"  {number} sequences in {time.monotonic() - begin:.0f} s, {breaches} breaches")
    print("  " + ", ".join(f"{name} {count}" for name, count in seen.counts.most_common()))
    for place, count in Counter(seen.moved).most_common():
        print(f"  canary {place}: {count}")
    return 1 if breaches else 0


def keep(options: argparse.Namespace, number: int, rows: list[Row]) -> Path:
    folder = BUILD / "fuzz"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"following-{options.damage}-{options.seed}-{number}.pickle"
    path.write_bytes(pickle.dumps(rows))
    return path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="damaged frames through following, decoding and trim")
    parser.add_argument("--sequences", type=int, default=5_000)
    parser.add_argument("--damage", choices=["bytes", "net"], default="bytes")
    parser.add_argument("--seed", type=int, default=1)
    add_minutes(parser)
    parser.add_argument("--captures", type=Path, default=CAPTURES, help="captures are FOLDER/*/capture.pcap[.gz]")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(run(arguments()))
