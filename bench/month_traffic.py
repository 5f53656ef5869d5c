"""The traffic of a month: a small busy cluster seen by two agents, connections that come and go, topics created again.

Knows: a plan of steps, many on the days that are measured and few on those between, each of the same traffic: so many
connections that open, speak and close. Clients are new every day; every day a topic is deleted and created again, of
which on every fourth day some clients keep the old id: those are the planted faults.
Refuses to know: who reads it. Same plan, same bytes, but for the time a file is written.
Rule: a file of frames is made from those of one short capture: other addresses, ports, names, ids and times, of the
same lengths.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.traffic import START_US, write_capture
from tests import frame_files
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import write_frames

DAY_S = 86_400
BEGUN_S = START_US // 1_000_000
CONNECTIONS, CAPTURE_BYTES = 48, 300_000
MEASURED, BETWEEN = 56, 4
"""Steps of a day that is measured, and of the others."""
SPOKEN_S = 90
"""Of a step's time its connections last so long, and begin somewhere in it."""
AGENTS = {"a": ("10.0.0.11", "10.0.0.12"), "b": ("10.0.0.13",)}
ID = bytes.fromhex("24cc4332f7de45a3b24e33d61aa0d1")
PORTS = 30_000
TOPICS = 20
PARTITIONS, PARTITION_BYTES = 6, 42
"""Of a topic in bench.traffic's answers to Metadata."""


@dataclass(frozen=True)
class Step:
    """What both agents write one file of."""

    number: int
    day: int
    begin_s: int
    """Since 1970, by capture time."""
    end_s: int
    late: bool
    """Not in the first quarter of its day: by then whoever keeps a topic id of yesterday is seen to."""


def plan(days: int) -> Iterator[Step]:
    """The second day and the last one are measured."""
    number = 0
    for day in range(days):
        count = MEASURED if day in {1, days - 1} else BETWEEN
        length_s = DAY_S // count
        for turn in range(count):
            begin_s = BEGUN_S + day * DAY_S + turn * length_s
            yield Step(number, day, begin_s, begin_s + length_s, turn >= count // 4)
            number += 1


def stale(day: int) -> bool:
    return day % 4 == 1


def generation(topic: int, day: int) -> int:
    """How often topic n has been created again by then: on the days n, n + TOPICS, ..."""
    return (day - topic) // TOPICS + 1 if day >= topic else 0


def planted(days: int) -> set[tuple[str, str]]:
    """Check and topic of what is to be found: topics created again under their clients' eyes, and old ids kept."""
    recreated = {("TID001", f"orders-{day % TOPICS}") for day in range(1, days)}
    return recreated | {("TID005", f"orders-{day % TOPICS}") for day in range(1, days) if stale(day)}


class Traffic:
    """The files of each step."""

    def __init__(self, folder: Path) -> None:
        pcap = folder / "capture.pcap"
        write_capture(pcap, CAPTURE_BYTES, "small", CONNECTIONS)
        held = [frames_file.read(file) for file in write_frames([pcap], folder / "source", "bench", agent="x").files]
        table = pa.concat_tables(held).cast(frames.FRAMES)
        self.table = table.filter(pc.equal(table["kind"], frames.FRAME)).combine_chunks()
        self.bytes = b"".join(self.table["payload"].to_pylist())
        self.lengths = pc.binary_length(self.table["payload"]).to_numpy()
        ts_ns = self.table["ts_ns"].to_numpy()
        self.share = (ts_ns - ts_ns[0]) / max(1, int(ts_ns[-1] - ts_ns[0]))

    def frames_of(self, step: Step) -> pa.Table:
        """Other addresses and ports than in any before; the day's client ids, and the topic ids by then."""
        spare_s = step.end_s - step.begin_s - 2 * SPOKEN_S
        begin_ns = (step.begin_s + (step.number * 997) % spare_s) * 1_000_000_000
        ts_ns = pa.array(begin_ns + (self.share * SPOKEN_S * 1e9).astype(np.int64))
        return changed(self.table, step, ts_ns=ts_ns, payload=of_lengths(self.payload(step), self.lengths))

    def payload(self, step: Step) -> bytes:
        return said_in(step, self.bytes)

    def publish(self, step: Step, folder: Path) -> list[Path]:
        """Both agents' files of one step."""
        return publish(self.frames_of(step), step.number + 1, step.end_s * 1_000_000_000, folder)


def changed(table: pa.Table, step: Step, **others: pa.Array) -> pa.Table:
    """With hosts of the day, and ports that no step before it had; other columns as given."""
    for side in ("src", "dst"):
        others[f"{side}_ip"] = pc.replace_substring_regex(table[f"{side}_ip"], r"^10\.1\.", f"10.{20 + step.day}.")
        port = table[f"{side}_port"].to_numpy()
        moved = PORTS + (port - PORTS + step.number * CONNECTIONS) % PORTS
        others[f"{side}_port"] = pa.array(np.where(port >= PORTS, moved, port).astype(np.int32))
    for name, column in others.items():
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def of_lengths(said: bytes, lengths: np.ndarray) -> pa.Array:
    """Bytes one behind the other as the values of a column."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(said)])


def said_in(step: Step, said: bytes) -> bytes:
    """Same lengths, other names and ids."""
    for name in (b"consumer-", b"producer-"):
        said = said.replace(name, name[:3] + b"%02d" % step.day + name[5:])
    for topic in range(TOPICS):
        number = generation(topic, step.day)
        old, fresh = ID + bytes([topic]), ID[:-1] + bytes([0xE0 + number]) + bytes([topic])
        if number and not (stale(step.day) and step.late and topic == step.day % TOPICS):
            said = said.replace(old, fresh)
        elif number:  # the servers say the new id, the clients fetch by the old one: the planted fault
            said = said.replace(b"orders-%d" % topic + old, b"orders-%d" % topic + fresh)  # Metadata
        if number and topic == step.day % TOPICS:
            said = begun_anew(said, b"orders-%d" % topic + fresh)
    return said


def publish(table: pa.Table, number: int, until_ns: int, folder: Path) -> list[Path]:
    """The files of that number: each agent's has what its servers receive and send."""
    hidden = []
    for agent, servers in AGENTS.items():
        among = pa.array(servers)
        mine = pc.or_(pc.is_in(table["src_ip"], among), pc.is_in(table["dst_ip"], among))
        marks = frames.mark_rows([frames.Mark(frames.PROGRESS, until_ns)], frames.Stamp("bench", agent))
        whole = pa.concat_tables([table.filter(mine), pa.Table.from_batches([marks]).cast(frames.FRAMES)])
        whole = frames.with_file_seq(whole, number)
        names = pa.array([agent] * whole.num_rows)
        whole = whole.set_column(whole.schema.get_field_index("agent"), "agent", names)
        hidden.append(folder / f".{agent}-{number:010d}.parquet.tmp")
        frame_files.write(whole, hidden[-1], compression="lz4")
    return [file.rename(file.with_name(file.name[1:].removesuffix(".tmp"))) for file in hidden]  # one batch's


def file_of(agent: str, step: Step) -> str:
    return f"{agent}-{step.number + 1:010d}.parquet"


def begun_anew(said: bytes, topic: bytes) -> bytes:
    """Metadata's leader epochs of a topic, by name and id, are those of one that was just created."""
    made, at = bytearray(said), said.find(topic)
    while at >= 0:
        first = at + len(topic) + 2 + 10  # is_internal, the array's length; error, partition and leader
        for partition in range(PARTITIONS):
            epoch = slice(first + partition * PARTITION_BYTES, first + partition * PARTITION_BYTES + 4)
            assert made[epoch] == b"\0\0\0\4"
            made[epoch] = bytes(4)
        at = said.find(topic, at + 1)
    return bytes(made)
