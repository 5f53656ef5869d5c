"""Damage to the frames of a few connections: what networks and captures do, and what they never do.

Knows: rows of frames as dictionaries, by the columns of capture.frames. `NET` is loss, order, repeats, cuts, snap
lengths, other numbers, flags and times, a second agent, a port used again, a late start. `bent` changes payload bytes.
Refuses to know: what the payloads say.
Rule: a row is copied before it is changed; the same generator damages alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

Row = dict[str, Any]
SECOND = 10**9
MOST = 9  # damages of a sequence
FRONT_BYTES = 80  # of a payload, where sizes, headers and counts are: bent more often
EXTREMES = [bytes.fromhex(v) for v in ("7fffffff", "ffffffff", "80000000", "00000000", "0fffffff", "fffffffe")]


def damaged(rng: np.random.Generator, rows: list[Row], *, bend: bool) -> list[Row]:
    rows = [dict(row) for row in rows]
    choice = [*NET, *([bent] * 3 if bend else [])]
    for _ in range(int(rng.integers(1, MOST))):
        if rows:
            choice[int(rng.integers(len(choice)))](rng, rows, int(rng.integers(len(rows))))
    return rows


def lose(rng: np.random.Generator, rows: list[Row], i: int) -> None:
    del rows[i : i + int(rng.integers(1, 4))]


def repeat(rng: np.random.Generator, rows: list[Row], i: int) -> None:
    rows.insert(int(rng.integers(len(rows) + 1)), dict(rows[i]))


def move(rng: np.random.Generator, rows: list[Row], i: int) -> None:
    rows.insert(int(rng.integers(len(rows))), rows.pop(i))


def number(rng: np.random.Generator, rows: list[Row], i: int) -> None:
    name = str(rng.choice(["tcp_seq", "tcp_ack"]))
    by = int(rng.choice([1, -1, 7, -9, 1460, -1460, 1 << 20, 1 << 29, 1 << 30, 1 << 31, (1 << 31) - 1]))
    rows[i][name] = (rows[i][name] + by) & 0xFFFFFFFF


def flag(rng: np.random.Generator, rows: list[Row], i: int) -> None:
    rows[i]["tcp_flags"] = int(rng.choice([0, 1, 2, 4, 16, 17, 18, 20, 24, 3, 7, 511]))
    rows[i]["tcp_window"] = rng.choice([None, 0, 1, 65535])


def hide(rng: np.random.Generator, rows: list[Row], i: int) -> None:
    """A snap length, or a stretch that somebody left out."""
    row = rows[i]
    if row["payload_len"] > 1 and not row["left_out"]:
        at = int(rng.integers(0, row["payload_len"]))
        most = row["payload_len"] - at
        length = most if rng.random() < 0.5 else int(rng.integers(1, most + 1))
        row["payload"] = row["payload"][:at] + row["payload"][at + length :]
        row["left_out"] = [{"offset": at, "length": length}]


def split(rng: np.random.Generator, rows: list[Row], i: int) -> None:
    """Two packets of one, that overlap a little."""
    row = rows[i]
    if row["payload_len"] > 1 and not row["left_out"]:
        cut = int(rng.integers(1, row["payload_len"]))
        low = max(cut - int(rng.integers(0, 20)), 0)
        rows.insert(i + 1, row | {
            "payload": row["payload"][low:], "payload_len": row["payload_len"] - low,
            "tcp_seq": (row["tcp_seq"] + low) & 0xFFFFFFFF,
        })  # fmt: skip
        row["payload"], row["payload_len"] = row["payload"][:cut], cut


def clock(rng: np.random.Generator, rows: list[Row], i: int) -> None:
    by = int(rng.choice([-SECOND, SECOND, 3 * SECOND, 11 * SECOND, -30 * SECOND, 1300 * SECOND, 10**6]))
    for row in rows[i:] if rng.random() < 0.5 else rows[i : i + 1]:
        row["ts_ns"] = max(0, row["ts_ns"] + by)


def no_clock(rng: np.random.Generator, rows: list[Row], i: int) -> None:
    """A time at the limits of what a frame can say."""
    if rng.random() < 0.3:
        rows[i]["ts_ns"] = int(rng.choice([0, 1 << 62, (1 << 62) - 1, 10**18, -1, -(1 << 62) + 1]))


def second_agent(rng: np.random.Generator, rows: list[Row], i: int) -> None:
    rows[i]["agent"] = rows[i]["source"] = "two"
    if rng.random() < 0.3:
        for row in rows[i:]:
            row["agent"] = row["source"] = "two" if rng.random() < 0.5 else "one"


def wrap(rng: np.random.Generator, rows: list[Row], i: int) -> None:
    """All numbers of one side near 2^32."""
    by = (0xFFFFFFFF - rows[i]["tcp_seq"] - int(rng.integers(0, 400))) & 0xFFFFFFFF
    side = (rows[i]["src_ip"], rows[i]["src_port"])
    for row in rows:
        name = "tcp_seq" if (row["src_ip"], row["src_port"]) == side else "tcp_ack"
        row[name] = (row[name] + by) & 0xFFFFFFFF


def port_again(rng: np.random.Generator, rows: list[Row], _: int) -> None:
    """The same frames once more, as another connection in time."""
    by = int(rng.integers(0, 1 << 32))
    rows += [row | {"ts_ns": row["ts_ns"] + SECOND, "tcp_seq": (row["tcp_seq"] + by) & 0xFFFFFFFF} for row in rows[:60]]


def late(rng: np.random.Generator, rows: list[Row], _: int) -> None:
    del rows[: int(rng.integers(0, len(rows)))]


def bent(rng: np.random.Generator, rows: list[Row], i: int) -> None:
    """One to four places of a payload."""
    row = rows[i]
    if row["left_out"] or not row["payload_len"]:
        return
    data = bytearray(row["payload"])
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(0, min(len(data), FRONT_BYTES) if rng.random() < 0.6 else len(data)))
        kind, left = int(rng.integers(0, 5)), len(data) - at
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[at] = int(rng.integers(256))
        elif kind == 2:
            data[at : at + 4] = EXTREMES[int(rng.integers(len(EXTREMES)))][:left]
        elif kind == 3:  # another payload's beginning
            other = rows[int(rng.integers(len(rows)))]["payload"]
            data[at:] = (other + bytes(left))[:left]
        else:
            data[at : at + 16] = rng.bytes(16)[:left]
    row["payload"] = bytes(data)


NET = [
    lose,
    repeat,
    move,
    number,
    number,
    flag,
    hide,
    hide,
    split,
    clock,
    second_agent,
    no_clock,
    wrap,
    port_again,
    late,
]
